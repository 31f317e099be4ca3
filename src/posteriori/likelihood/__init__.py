"""Pointwise mathematics, with no design matrix in sight."""
