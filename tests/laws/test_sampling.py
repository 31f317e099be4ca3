"""Samples of a generative model have its density, and a fit to them finds it again."""

import numpy as np
import pytest
from samples import fitted, is_generative, names_columns, over, rows_for
from scipy.special import logsumexp

N = 20_000


@over(is_generative)
def test_a_fit_to_samples_finds_the_model(entry):
    """The loss in log-likelihood on other rows is p/2n on average for p parameters."""
    rows = rows_for(entry)
    model = fitted(entry, rows)
    X, y = model.sample(N, random_state=0)
    again = entry.make(rows.classes).fit(X, y)
    other, labels = model.sample(N, random_state=1)
    loss = (model.score_samples(other) - again.score_samples(other)).mean()
    assert abs(loss) < 5 * model.n_parameters_ / N
    np.testing.assert_allclose(again.priors_, model.priors_, atol=4 / np.sqrt(N))
    # The mean of p(C_k|x) over samples is the share of C_k among them.
    share = np.array([(labels == label).mean() for label in model.classes_])
    mean = model.predict_proba(other).mean(axis=0)
    np.testing.assert_allclose(mean, share, atol=4 / np.sqrt(N))


@over(is_generative)
def test_samples_follow_the_seed_and_the_priors(entry):
    model = fitted(entry, rows_for(entry))
    for one, other in zip(model.sample(7, random_state=3), model.sample(7, 3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(model.sample(50, 3)[0], model.sample(50, 4)[0])
    assert set(model.with_priors([0.0, 0.5, 0.5]).sample(200, 5)[1].tolist()) == {1, 2}


@over(is_generative, lambda entry: not names_columns(entry))
@pytest.mark.parametrize("d", [1, 2])
def test_the_density_integrates_to_one(entry, d):
    rows = rows_for(entry, d=d)
    model = fitted(entry, rows)
    lines = [np.linspace(x.mean() - 14 * x.std(), x.mean() + 14 * x.std(), 250) for x in rows.X.T]
    grid = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, d)
    log_area = sum(np.log(line[1] - line[0]) for line in lines)
    assert abs(np.exp(logsumexp(model.score_samples(grid)) + log_area) - 1) < 1e-6
