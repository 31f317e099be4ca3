"""The array types that every room uses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Real numbers, whatever the shape."""

Codes = NDArray[np.intp]
"""Indices of classes, levels or groups; -1 is a missing one."""

Labels = NDArray[Any]
"""Class labels as the user wrote them."""
