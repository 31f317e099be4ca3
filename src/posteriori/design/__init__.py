"""FEATURES: the design matrix, known by three products only."""
