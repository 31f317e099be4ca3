"""SOLVE: from statistics to parameters; sees functions and sums, never rows."""
