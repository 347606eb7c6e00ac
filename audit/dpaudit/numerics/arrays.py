"""Aliases for types of numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
"""Floats of any shape."""

AnyArray = npt.NDArray[Any]
"""An array of any type and shape."""

Flags = npt.NDArray[np.bool_]
"""Booleans of any shape."""

Integers = npt.NDArray[np.int64]
"""Integers of any shape."""
