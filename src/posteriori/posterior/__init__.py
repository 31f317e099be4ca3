"""INFER: distributions over parameters, as means and triangular factors."""
