"""scikit-learn's tests of naive Bayes, run on `NaiveBayes`."""

from peer_tests import peer_tests

NOT_APPLICABLE = {
    "partial_fit needs no classes in its first call, and has no other order of classes": """
        test_NB_partial_fit_no_first_classes test_discretenb_provide_prior
    """,
    "rows of one class are an error": """
        test_gnb_sample_weight test_discretenb_degenerate_one_class_case
    """,
    "a pseudocount of zero is not raised": "test_alpha",
    "variances are not smoothed": "test_check_accuracy_on_digits",
    "array API": "test_gnb_array_api_compliance",
    "private methods": """
        test_gnb_check_update_with_no_data test_check_alpha
    """,
}
globals().update(peer_tests("sklearn.tests.test_naive_bayes", NOT_APPLICABLE))
