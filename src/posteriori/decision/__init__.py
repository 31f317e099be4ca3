"""DECIDE: from probabilities to actions."""
