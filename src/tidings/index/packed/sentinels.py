"""What stands where nothing does."""

from __future__ import annotations

import numpy as np

NONE = -1
"""No slot, row, node, number or whatever else an array of integers names."""
NEVER = int(np.iinfo(np.int64).max)
"""The expiry of what never expires."""
