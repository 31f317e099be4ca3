"""SHOW: summarise to plain values first, render afterwards."""
