"""The line search: parabolas, and values without digits."""

import numpy as np
import pytest
from toy_objectives import of_one, quadratic

from posteriori.solve.line_search import rounding, search


@pytest.mark.parametrize(("step", "length", "n_evaluations"), [(1.0, 1.0, 1), (3.0, 1 / 3, 2)])
def test_a_line_search_finds_the_minimum_of_a_parabola(step, length, n_evaluations):
    objective, w = quadratic(np.eye(2), [1.0, 1.0]), np.zeros(2)
    found = search(objective, w, objective(w, "none"), np.full(2, step))
    assert found.length == pytest.approx(length)
    assert found.n_evaluations == n_evaluations


def test_a_line_search_goes_by_slopes_where_the_value_has_no_digits_left():
    # 1e8 + x²/2 is the same double for all x of interest.
    objective = of_one(lambda x: 1e8 + x**2 / 2, lambda x: x, lambda x: 1.0)
    w = np.array([1e-5])
    found = search(objective, w, objective(w, "none"), np.array([-2.5e-5]))
    assert found.length == pytest.approx(0.4)
    assert rounding(objective, 1e8) > 0.5e-10
