"""INFER: distributions held by means and triangular factors."""
