"""Outputs -> feature matrix.  The one place where it is decided what the attacks get to see.

| output                                   | features                                |
|------------------------------------------|-----------------------------------------|
| number, boolean, numpy scalar            | itself, one column                      |
| tuple, list or array of numbers, nested  | its entries in order, one column each   |

inf and NaN stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaudit.claims import Array


class OutputError(Exception):
    """An output that cannot be turned into features; says which, and what can be."""


def features(outputs: Sequence[Any] | np.ndarray[Any, Any], columns: int | None = None) -> Array:
    """The outputs as a float64 array of shape (n, columns).

    `columns`: how many the audit's first outputs had; OutputError if these have another number.
    """
    rows = outputs if isinstance(outputs, np.ndarray) else _rows(outputs)
    if rows.dtype.kind not in "biuf":
        raise OutputError(f"outputs must be numbers, got an array of dtype {rows.dtype}")
    matrix: Array = rows.reshape(len(rows), -1).astype(np.float64)
    if columns is not None and matrix.shape[1] != columns:
        raise OutputError(
            f"every output must have the same length; earlier ones had {columns} numbers, now it is {matrix.shape[1]}"
        )
    return matrix


def _rows(outputs: Sequence[Any]) -> np.ndarray[Any, Any]:
    try:
        rows = np.array(outputs)
    except (ValueError, TypeError):  # ragged
        rows = np.array([None])
    if rows.dtype.kind in "biuf":
        return rows
    for index, output in enumerate(outputs):
        try:
            kind = np.asarray(output).dtype.kind
        except (ValueError, TypeError):
            kind = "O"
        if kind not in "biuf":
            found = "nothing (None)" if output is None else f"{type(output).__name__} {str(output)[:60]!r}"
            raise OutputError(
                f"an output must be a number or a tuple, list or array of numbers, got {found} (output {index} of "
                f"{len(outputs)}); return what the analyst would see"
            )
    lengths = sorted({np.size(output) for output in outputs})
    raise OutputError(f"every output must have the same length, got lengths {lengths[0]} to {lengths[-1]}")
