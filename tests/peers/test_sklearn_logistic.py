"""scikit-learn's tests of logistic regression, run on `LogisticRegression`."""

from peer_tests import peer_tests

NOT_APPLICABLE = {
    "tests another class, with many fits": "test_multinomial_cv_iris",
    "there is no L1 penalty": """
        test_elasticnet_l1_ratio_err_helpful
        test_sample_and_class_weight_equivalence_liblinear test_logreg_l1
        test_logistic_regression_cv_refit test_saga_vs_liblinear test_elastic_net_coeffs
        test_elastic_net_l1_l2_equivalence test_elastic_net_vs_l1_l2
        test_LogisticRegression_elastic_net_objective
        test_LogisticRegressionCV_GridSearchCV_elastic_net test_l1_ratio_non_elasticnet
        test_elastic_net_versus_sgd test_scores_attribute_layout_elasticnet
        test_l1_ratio_None_deprecated test_lr_penalty_l1ratio_incompatible
    """,
    "compares with the coefficients of another class at the tolerance of its solver": """
        test_logistic_cv test_logistic_cv_multinomial_score
    """,
    "coefficients are read-only": """
        test_write_parameters test_logistic_cv_folds_with_classes_missing
    """,
    "coefficients are doubles, and dense": """
        test_dtype_match test_sparsify
    """,
    "combinations of parameters that solvers of scikit-learn do not take": """
        test_check_solver_option test_liblinear_dual_random_state test_large_sparse_matrix
        test_liblinear_with_large_values test_newton_cholesky_fallback_to_lbfgs
        test_liblinear_multiclass_raises
    """,
    "a fit starts anew": """
        test_warm_start test_warm_start_newton_solver
    """,
    "no steps at all are an error": "test_zero_max_iter",
    "separated classes are named in a warning": "test_c_inf_no_warning",
    "deprecated parameters": """
        test_penalty_none test_penalty_deprecated
        test_logisticregression_warns_with_n_jobs
    """,
    "private methods": "test_logreg_predict_proba_multinomial",
    "callbacks": """
        test_logistic_regression_callback_support
        test_logistic_regression_callback_fitted_estimator
        test_logistic_regression_callback_support_warning
    """,
    "array API": """
        test_logistic_regression_array_api_compliance
        test_logistic_regression_array_api_warm_start
    """,
}
globals().update(peer_tests("sklearn.linear_model.tests.test_logistic", NOT_APPLICABLE))
