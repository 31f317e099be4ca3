"""The families a feature can have given its class (4.2.3, 4.2.4), by name.

A new family is one class and a line here.

>>> sorted(FAMILIES)
['bernoulli', 'categorical', 'exponential', 'gaussian', 'poisson']
>>> FAMILIES["poisson"].domain
'a whole number, zero or more'
"""

from posteriori.likelihood.categorical import Categorical
from posteriori.likelihood.family import Family
from posteriori.likelihood.normal import Gaussian
from posteriori.likelihood.one_parameter import Bernoulli, Exponential, Poisson

ONE_PARAMETER: dict[str, type[Bernoulli] | type[Poisson] | type[Exponential]] = {
    family.name: family for family in (Bernoulli, Poisson, Exponential)
}
"""Families with u(x) = x whose parameter follows from a count and a sum."""

FAMILIES: dict[str, type[Family]] = {
    **ONE_PARAMETER,
    Gaussian.name: Gaussian,
    Categorical.name: Categorical,
}
"""All families by name."""
