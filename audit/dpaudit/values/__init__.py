"""Defines type aliases for values of any type, so that a function signature states the meaning of each value.

The annotation `object` marks a value whose attributes are never read.  The aliases of this package mark values that
dpaudit only passes on.  They also mark values whose attributes are read after a check that type checkers cannot follow.

May import: nothing of ours.
Public names: see `__all__`; `content.key`, which finds equal values; `features`, which names parts of
outputs; `stored`, which writes plain values as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

Dataset = Any
"""The input of a mechanism.  The mechanism defines the type of the input."""

Record = Any
"""One record of a dataset, or one cell of a record."""

Output = Any
"""The output of one run of a mechanism: a number, a vector, a data frame, or any other object."""

RawOutputs = Sequence[Output] | npt.NDArray[Any]
"""A sequence of outputs as a mechanism returned them.  Row i of an array is output i."""

Foreign = Any
"""An object of another library or of a user.  Code must check that an attribute exists before reading it."""

Parameters = Mapping[str, Any]
"""Keyword arguments, by name."""

Json = Any
"""A value as `json.loads` returns it.  The code that reads such a value checks its type."""

JsonObject = dict[str, Json]
"""A JSON object, as `json.loads` returns it."""

__all__ = ["Dataset", "Foreign", "Json", "JsonObject", "Output", "Parameters", "RawOutputs", "Record"]
