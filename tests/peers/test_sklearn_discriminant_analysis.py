"""scikit-learn's tests of discriminant analysis, run on `GaussianClassifier`."""

from peer_tests import peer_tests

NOT_APPLICABLE = {
    "priors that do not sum to one are an error": "test_lda_priors",
    "covariances are shrunk towards uncorrelated columns, not by Ledoit and Wolf": """
        test_lda_shrinkage test_lda_ledoitwolf test_qda_ledoitwolf
        test_qda_covariance_estimator
    """,
    "coefficients are doubles": "test_lda_dtype_match",
    "a warning names columns of a singular covariance, which is made regular": """
        test_qda test_qda_regularization
        test_raises_value_error_on_same_number_of_classes_and_samples
        test_raises_value_error_on_one_sample_per_class
    """,
    "attributes of the solvers": "test_qda_coefs",
    "names are those of the class": "test_get_feature_names_out",
    "private functions": "test_covariance",
}
globals().update(peer_tests("sklearn.tests.test_discriminant_analysis", NOT_APPLICABLE))
