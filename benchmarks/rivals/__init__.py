"""One file per rival.

Each defines one `RIVAL`, or `solvers(...)` where a rival has a tolerance: it is then taken at the
loosest one with which it reaches the optimum.
"""
