"""Names for values that may be of any type, so that a signature says what is meant.

`object` is the type of a value of which nothing is asked.  These names are for values that are handed on, or whose
attributes are read after a check that type checkers cannot follow.

May import: nothing of ours.
Public names: those below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

Dataset = Any
"""What a mechanism is run on.  Its type is between the pair and the mechanism; dpaudit hands it on."""

Record = Any
"""One record of a dataset, or one cell of it."""

Output = Any
"""What one run of a mechanism gave: a number, a vector, a data frame, or any object."""

RawOutputs = Sequence[Output] | npt.NDArray[Any]
"""n outputs as a mechanism gave them.  Row i of an array is output i."""

Foreign = Any
"""An object of another library, or a user's.  Its attributes are read where they are there."""

Parameters = Mapping[str, Any]
"""Keyword arguments, by name."""

Json = Any
"""A value as `json.loads` returns it.  Its reader checks it."""

JsonObject = dict[str, Json]
"""A JSON object, as `json.loads` returns it."""

__all__ = ["Dataset", "Foreign", "Json", "JsonObject", "Output", "Parameters", "RawOutputs", "Record"]
