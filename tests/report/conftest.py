"""What all tests of plots share."""

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")
