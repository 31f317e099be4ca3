"""scikit-learn's tests of generalised linear models, run on `GLM`."""

from peer_tests import peer_tests

NOT_APPLICABLE = {
    "collinear columns are named in a warning": "test_linalg_warning_with_newton_solver",
    "array API": """
        test_poisson_regressor_array_api_compliance
        test_poisson_regressor_array_api_warm_start
    """,
}
globals().update(peer_tests("sklearn.linear_model._glm.tests.test_glm", NOT_APPLICABLE))
