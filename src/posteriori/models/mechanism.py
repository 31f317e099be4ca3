"""A family of the target with one of its links: what it allows, and what it cannot have."""

from dataclasses import dataclass

import numpy as np

from posteriori.arguments import either
from posteriori.errors import DomainError, ParameterError, ScaleError
from posteriori.likelihood.domain import Domain
from posteriori.likelihood.glm import GLM_FAMILIES, glm_loss
from posteriori.likelihood.link import Link
from posteriori.likelihood.links import LINKS, PROBABILITY_LINKS, PositiveIdentity
from posteriori.likelihood.loss import Loss
from posteriori.posterior.priors import GaussianPrior, PriorLike
from posteriori.rows.rows import Rows
from posteriori.statistics.glm_domain import GatherTargetRange
from posteriori.statistics.local_quadratic import Target
from posteriori.typing import Array

_SMALLEST, _LARGEST = 1e-280, 1e280
"""Second derivatives that can be summed and inverted."""


@dataclass(frozen=True)
class Mechanism:
    """A family and a link by name.

    >>> Mechanism("exponential", "reciprocal").domain
    Domain(low=0.0, high=inf, by_label=False)
    """

    family: str
    link: str

    @property
    def loss(self) -> Loss:
        """-ln p(t|a)."""
        return glm_loss(self.family, self.link)

    @property
    def domain(self) -> Domain:
        """The activations whose mean a target of this family can have."""
        if self.family == "bernoulli":
            return Domain(*PROBABILITY_LINKS[self.link].domain)
        return Domain(*self.mean_link.domain)

    @property
    def mean_link(self) -> Link:
        """The link of a target that is a number, with the ends that its means have."""
        if self.link == "identity" and self.family != "gaussian":
            return PositiveIdentity()
        return LINKS[self.link]

    @property
    def reaches_its_ends(self) -> bool:
        """Whether the likelihood of a row can be more than zero at an end of the domain."""
        return self.domain.is_bounded and self.family in ("poisson", "bernoulli")

    @property
    def zero_lies_at(self) -> float:
        """The sign of the activations whose mean tends to zero; 0 where some have mean zero."""
        return {"log": -1.0, "reciprocal": 1.0}.get(self.link, 0.0)


def read_mechanism(family: str, link: str) -> Mechanism:
    """The family and link that the user named."""
    if family == "categorical":
        if link not in ("canonical", "softmax"):
            raise ParameterError(
                f"A categorical target cannot have the link {link!r}.",
                "Choose 'canonical', which is 'softmax'.",
            )
        return Mechanism("bernoulli", "logit")
    if not isinstance(family, str) or family not in GLM_FAMILIES:
        raise ParameterError(
            f"family={family!r} is not understood.",
            f"Use {either([*GLM_FAMILIES, 'categorical'])} ('bernoulli' is the binomial family; "
            "counts of groups are shares with sample_weight).",
        )
    glm_loss(family, link)
    return Mechanism(family, GLM_FAMILIES[family].canonical if link == "canonical" else link)


def check_targets(rows: Rows, target: Target, mechanism: Mechanism, prior: PriorLike) -> None:
    """An error that names a target which the family cannot have, or targets that are all zero."""
    family = GLM_FAMILIES[mechanism.family]
    found = rows.map_sum(GatherTargetRange(family, target))
    if found.bad_row >= 0:
        raise DomainError(
            f"Row {found.bad_row} of y is {found.bad_value:g}; targets of the {family.name} family "
            f"are {family.domain}.",
            "Drop such rows, or choose a family that has them.",
        )
    _check_size(abs(found.largest), mechanism.loss)
    if family.name != "gaussian" and found.largest <= 0 and not isinstance(prior, GaussianPrior):
        raise DomainError(
            "All targets are zero, and so is the best mean, which no distribution of the "
            f"{family.name} family has.",
            "Pass rows with other targets, or a GaussianPrior that holds the intercept too.",
        )


def _check_size(size: float, loss: Loss) -> None:
    """An error where the information of a target of this size leaves the doubles."""
    information = float(loss.information(loss.activation(np.array([size])))[0])
    if size > 0 and not _SMALLEST < information < _LARGEST:
        raise ScaleError(
            f"With targets as {'large' if size > 1 else 'small'} as {size:.3g}, the second "
            "derivatives do not fit in a double.",
            f"{'Divide' if size > 1 else 'Multiply'} y by a large number.",
        )


def check_inside(activation: Array, mechanism: Mechanism) -> None:
    """An error that names the first row whose activation (n,) has no mean."""
    domain = mechanism.domain
    inside = (activation > domain.low) & (activation < domain.high)
    if mechanism.reaches_its_ends:
        inside |= (activation == domain.low) | (activation == domain.high)
    if inside.all():
        return
    row = int(np.argmin(inside))
    raise DomainError(
        f"Row {row} has the activation {activation[row]:.6g}; in the {mechanism.family} family "
        f"with the {mechanism.link} link only those {domain.words} have a mean.",
        "The fit does not reach so far: drop the row, or fit with a link that has no ends.",
    )


def check_means(mean: Array) -> None:
    """An error that names the first row whose mean is beyond all doubles."""
    if not np.isfinite(mean).all():
        raise ScaleError(
            f"The mean of row {int(np.argmin(np.isfinite(mean)))} does not fit in a double.",
            "Look at its entries: they lie far beyond those of the fit.",
        )
