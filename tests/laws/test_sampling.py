"""A generative model generates: its samples have its density, and a fit to them finds it again."""

import numpy as np
import pytest
from samples import fitted, is_generative, names_columns, over, rows_for
from scipy.special import logsumexp

N = 20_000


@over(is_generative, lambda entry: entry.recovers)
def test_a_fit_to_samples_finds_the_model(entry):
    """The loss in log-likelihood on held-out rows is p/2n on average for p parameters."""
    rows = rows_for(entry)
    model = fitted(entry, rows)
    X, y = model.sample(N, random_state=0)
    again = entry.make(rows.classes).fit(X, y)
    held_out, _ = model.sample(N, random_state=1)
    loss = (model.score_samples(held_out) - again.score_samples(held_out)).mean()
    assert abs(loss) < 5 * model.n_parameters_ / N
    np.testing.assert_allclose(again.priors_, model.priors_, atol=4 / np.sqrt(N))


@over(is_generative)
def test_samples_have_the_probabilities_that_the_model_gives_them(entry):
    """The mean of p(C_k|x) over samples is the share of C_k among them."""
    model = fitted(entry, rows_for(entry))
    X, y = model.sample(N, random_state=2)
    share = np.array([(y == label).mean() for label in model.classes_])
    np.testing.assert_allclose(model.predict_proba(X).mean(axis=0), share, atol=4 / np.sqrt(N))


@over(is_generative)
def test_the_same_seed_gives_the_same_samples(entry):
    model = fitted(entry, rows_for(entry))
    for one, other in zip(model.sample(7, random_state=3), model.sample(7, 3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(model.sample(50, 3)[0], model.sample(50, 4)[0])


@over(is_generative)
def test_no_sample_of_a_class_of_prior_zero(entry):
    model = fitted(entry, rows_for(entry)).with_priors([0.0, 0.5, 0.5])
    assert set(model.sample(200, 5)[1].tolist()) == {1, 2}


def _line(kind, x):
    """Points and the logarithms of their weights: what is summed or integrated over."""
    if kind == "bits":
        return np.array([0.0, 1.0]), np.zeros(2)
    if kind == "levels":
        states = np.unique(x)
        return states, np.zeros(len(states))
    if kind == "counts":
        return np.arange(80.0), np.zeros(80)
    if kind == "positive":
        # x = s t³/(1 - t), smooth at zero and short at infinity.
        t = (np.arange(3000) + 0.5) / 3000
        s = x.mean()
        return s * t**3 / (1 - t), np.log(s * t**2 * (3 - 2 * t) / (1 - t) ** 2 / len(t))
    points = np.linspace(x.mean() - 14 * x.std(), x.mean() + 14 * x.std(), 700)
    return points, np.full(len(points), np.log(points[1] - points[0]))


@over(is_generative, lambda entry: not names_columns(entry))
@pytest.mark.parametrize("d", [1, 2])
def test_the_density_integrates_to_one(entry, d):
    rows = rows_for(entry, d=d)
    model = fitted(entry, rows)
    lines = [_line(entry.kind, rows.X[:, j]) for j in range(d)]
    if d == 2 and len(lines[0][0]) > 100:  # fewer points a line, each standing for more
        lines = [(points[1::3], logs[1::3] + np.log(3)) for points, logs in lines]
    grid = np.stack(np.meshgrid(*[points for points, _ in lines], indexing="ij"), -1)
    weight = sum(np.meshgrid(*[logs for _, logs in lines], indexing="ij"))
    total = logsumexp(model.score_samples(grid.reshape(-1, d)) + weight.ravel())
    assert abs(np.exp(total) - 1) < 1e-6
