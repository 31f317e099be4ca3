"""Errors and warnings: a class, a code and a remedy each."""

import copy
import inspect
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from posteriori import LogisticRegression, errors

CLASSES = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, errors._Coded) and cls.__module__ == "posteriori.errors"
]
ROOTS = {errors._Coded, errors.PosterioriError, errors.PosterioriWarning}
LEAVES = [cls for cls in CLASSES if cls not in ROOTS]


def test_every_class_has_a_code_of_its_own():
    codes = [cls.code for cls in LEAVES]
    assert len(LEAVES) >= 19
    assert len(set(codes)) == len(codes)
    assert "P000" not in codes


@pytest.mark.parametrize("cls", LEAVES)
def test_the_code_says_error_or_warning(cls):
    is_warning = issubclass(cls, errors.PosterioriWarning)
    assert cls.code[0] == ("W" if is_warning else "P")
    assert cls.code[1:].isdigit()
    assert len(cls.code) == 4
    # Ctrl-C is not to be caught with what went wrong by itself.
    is_error = issubclass(cls, errors.PosterioriError | errors.Interrupted)
    assert is_error is not is_warning


@pytest.mark.parametrize("cls", LEAVES)
def test_the_message_is_the_problem_the_remedy_and_the_code(cls):
    error = cls("It is broken.", "Mend it.")
    assert str(error) == f"It is broken. Mend it. [{cls.code}]"
    assert (error.problem, error.remedy) == ("It is broken.", "Mend it.")


@pytest.mark.parametrize("cls", LEAVES)
@pytest.mark.parametrize("through", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy])
def test_it_survives_pickling(cls, through):
    again = through(cls("Column 'a' is odd.", "Drop it."))
    assert type(again) is cls
    assert str(again) == f"Column 'a' is odd. Drop it. [{cls.code}]"
    assert again.remedy == "Drop it."


@pytest.mark.parametrize("cls", LEAVES)
def test_every_class_says_in_a_sentence_what_it_is_for(cls):
    assert cls.__doc__.strip().endswith(".")


def test_they_are_caught_as_what_people_expect():
    assert issubclass(errors.DataError, ValueError)
    assert issubclass(errors.ColumnTypeError, TypeError)
    assert issubclass(errors.ParameterError, ValueError)
    assert issubclass(errors.NotLinearError, AttributeError)
    assert issubclass(errors.SingularCovarianceError, np.linalg.LinAlgError)
    assert issubclass(errors.PosterioriWarning, UserWarning)


def test_a_warning_points_at_the_line_of_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        errors.warn(errors.RankDeficiencyWarning("a", "b"))
        from posteriori import GLM, LeastSquaresClassifier

        LeastSquaresClassifier().fit(np.array([[0.0, 1], [1, 1], [2, 1]]), [0, 1, 1])
        LeastSquaresClassifier().fit(np.array([[0.0], [1], [2]]), np.array([[0], [1], [1]]))
        GLM().fit(np.array([[0.0], [1], [2]]), np.array([[0], [1], [1]]))
    assert [warning.filename for warning in caught] == [__file__] * 4
    assert [warning.category for warning in caught[2:]] == [DataConversionWarning] * 2


@pytest.mark.parametrize("names", [{}, {"__name__": "notebook"}])
def test_code_without_a_name_is_warned_too(names):
    code = (
        "from posteriori import LeastSquaresClassifier\n"
        "LeastSquaresClassifier().fit([[0.0, 1], [1, 1], [2, 1]], [0, 1, 1])"
    )
    with pytest.warns(errors.RankDeficiencyWarning) as caught:
        exec(compile(code, "a cell", "exec"), names)
    assert (caught[0].filename, caught[0].lineno) == ("a cell", 2)
    assert str(caught[0].message).startswith(
        "Column 1 is constant, or can be computed from the other columns. "
    )


def test_control_characters_are_written_out_in_errors_and_summaries():
    name = "a\x1b[31mred\x07"
    X = pd.DataFrame({name: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]})
    model = LogisticRegression().fit(X, [0, 1, 0, 1, 0, 1])
    texts = [str(model.summary()), str(model.explain(X[:1])), str(model.check())]
    with pytest.raises(errors.MissingValueError) as caught:
        model.fit(X * np.nan, [0, 1, 0, 1, 0, 1])
    for text in (*texts, str(caught.value)):
        assert "\x1b" not in text
        assert "\x07" not in text
    assert r"a\x1b[31mred\x07" in texts[0]
    assert r"a\x1b[31mred\x07" in str(caught.value)
