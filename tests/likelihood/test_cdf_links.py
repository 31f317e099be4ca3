"""Distribution functions as links: which noise makes which link, against SciPy and mpmath."""

import numpy as np
import pytest
from losses_registry import MIXED, threshold
from scipy import stats

from posteriori.errors import ParameterError
from posteriori.likelihood.cdf_links import Mixture, cdf_link

TWO = [stats.norm(), stats.cauchy()]
NOISES = {
    "norm": stats.norm(0.3, 2.0),
    "logistic": stats.logistic(),
    "cauchy": stats.cauchy,
    "gumbel_l": stats.gumbel_l,
    "gumbel_r": stats.gumbel_r(scale=0.5),
    "t": stats.t(4.5, 1.0, 3.0),
    "mixture": MIXED,
    "mixture of tails": Mixture((0.5, 0.5), (stats.cauchy(), stats.gumbel_r())),
    "skewed": stats.skewnorm(3.0),
    "hyperbolic": stats.hypsecant,
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_noise_has_the_distribution_function_of_scipy(noise):
    link, a, step = cdf_link(noise), np.linspace(-4, 4, 33), 1e-4
    parts = noise.distributions if isinstance(noise, Mixture) else [noise]
    weights = noise.weights if isinstance(noise, Mixture) else [1.0]
    cdf = sum(w * part.cdf(a) for w, part in zip(weights, parts, strict=True))
    pdf = sum(w * part.pdf(a) for w, part in zip(weights, parts, strict=True))
    np.testing.assert_allclose(link.mean(a), cdf, rtol=1e-12)
    np.testing.assert_allclose(np.exp(link.logs(a)[0]), cdf, rtol=1e-12)
    np.testing.assert_allclose(-np.expm1(link.logs(a)[1]), cdf, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(link.slope(a), pdf, rtol=1e-11)
    a = a[4:-4] + 0.01
    near = [link.slope(a + k * step) for k in (-2, -1, 1, 2)]
    second_derivative = np.array([1, -8, 8, -1]) @ near / (12 * step)
    np.testing.assert_allclose(link.second_derivative(a), second_derivative, rtol=1e-8, atol=1e-10)
    mean = np.array([1e-3, 0.2, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(link.mean(link.activation(mean)), mean, rtol=1e-10)
    ends = link.activation(np.array([0.0, 1.0]))
    assert ends.tolist() == [-np.inf, np.inf]


def test_at_a_kink_of_the_density_its_slope_is_an_average_of_both_sides():
    rise, fall = cdf_link("laplace").curvatures(np.array([0.0, -1.0, 1.0]))
    np.testing.assert_allclose(rise[:2], [1.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(fall[[0, 2]], [1.0, 0.0], atol=1e-9)


def test_beyond_a_bounded_support_labels_are_certain_or_impossible():
    loss = threshold(stats.uniform(0.0, 2.0))
    a = np.array([-1.0, -1.0, 3.0, 3.0])
    t = np.array([0.0, 1.0, 0.0, 1.0])
    assert loss.value(a, t).tolist() == [0.0, np.inf, np.inf, 0.0]
    assert loss.gradient(a, t).tolist() == [0.0] * 4
    assert loss.curvature(a, t).tolist() == [0.0] * 4
    assert loss.information(a).tolist() == [0.0] * 4


def test_the_support_of_noise_is_that_of_its_parts_together():
    assert cdf_link("expon").support == (0.0, np.inf)
    both = cdf_link(Mixture([0.5, 0.5], [stats.uniform(), stats.uniform(2.0, 3.0)]))
    assert both.support == (0.0, 5.0)
    assert both.support.is_bounded
    assert not cdf_link(Mixture([0.5, 0.5], [stats.norm(), stats.uniform()])).support.is_bounded


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        *(
            (noise, "not a continuous distribution of SciPy, or needs other arguments")
            for noise in (stats.t, stats.poisson(3), "poisson", "gauss", 3, stats.norm(0.0, -1.0),
                          stats.norm([0.0, 1.0]), stats.gamma(a=-2.0))
        ),
        *(
            (weights, "mixture of 2 distributions has the weights")
            for weights in ([0.5, 0.6], [1.0], [1.5, -0.5], [0.5, "half"])
        ),
    ],
)  # fmt: skip
def test_impossible_noise_is_named(noise, words):
    with pytest.raises(ParameterError, match=words):
        cdf_link(Mixture(noise, TWO) if isinstance(noise, list) else noise)
