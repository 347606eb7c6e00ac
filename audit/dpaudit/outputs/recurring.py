"""The values of outputs that take few, so that what depends on the value alone is computed once for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpaudit.outputs.block import Outputs

Places = npt.NDArray[np.intp]

_MAX_VALUES = 512  # values
_MAX_PAIRS = 2**16  # beginnings of rows times what may follow
_MAX_COLUMNS = 64
_LOOK = 256  # outputs; a look at a few saves sorting them all
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # by bytes of a number


@dataclass(frozen=True, slots=True, eq=False)
class Recurring:
    """The values that outputs of a batched mechanism have taken.  Equal bits, equal value."""

    values: Outputs  # each once
    _dtype: np.dtype[np.generic]
    _columns: Sequence[npt.NDArray[np.unsignedinteger]]  # bits that occur in each column, ascending
    _tables: Sequence[Places]  # for each column: (beginnings, bits) -> beginning with this column, -1 if it is new

    @classmethod
    def of(cls, *seen: Outputs) -> Recurring | None:
        """The values of some outputs, None if they are too many or no plain numbers of a batched mechanism."""
        parts = []
        for side in seen:
            part = _bits(side)
            if part is None or part.shape[1] > _MAX_COLUMNS or len(np.unique(part[-_LOOK:], axis=0)) > _LOOK // 2:
                return None
            parts.append(part)
        arrays = [side.array for side in seen if side.array is not None]
        if len({(array.dtype, array.shape[1:]) for array in arrays}) > 1:
            return None
        bits = np.concatenate(parts)
        columns: list[npt.NDArray[np.unsignedinteger]] = []
        tables: list[Places] = []
        beginning, before = np.zeros(len(bits), dtype=np.intp), 1  # that of each row, numbered; how many there are
        for found in bits.T:
            column = np.unique(found)
            if before * len(column) > _MAX_PAIRS:
                return None
            longer = beginning * len(column) + np.searchsorted(column, found)
            occurs = np.bincount(longer, minlength=before * len(column)) > 0
            table = np.where(occurs, np.cumsum(occurs) - 1, -1)
            columns.append(column)
            tables.append(table.reshape(before, -1))
            beginning, before = table[longer], int(occurs.sum())
            if before > _MAX_VALUES:
                return None
        _, first = np.unique(beginning, return_index=True)
        values = np.concatenate(arrays)[first]
        return cls(Outputs.read(values), values.dtype, columns, tables)

    def places(self, outputs: Outputs) -> Places | None:
        """Where in `values` each of these outputs is, (n,), -1 if it is new; None if they are of another kind."""
        bits = _bits(outputs)
        if bits is None or bits.shape[1] != len(self._columns) or outputs.array.dtype != self._dtype:  # type: ignore[union-attr]
            return None
        place, known = np.zeros(len(bits), dtype=np.intp), np.ones(len(bits), dtype=np.bool_)
        for found, column, table in zip(bits.T, self._columns, self._tables, strict=True):
            at = np.minimum(np.searchsorted(column, found), len(column) - 1)
            place = table[place, at]
            known &= (column[at] == found) & (place >= 0)
        return np.where(known, place, -1)


def _bits(outputs: Outputs) -> npt.NDArray[np.unsignedinteger] | None:
    """(n, d), if the outputs are an array of numbers and nothing else was observed of the runs."""
    array = outputs.raw
    if not isinstance(array, np.ndarray) or outputs.array is None or outputs.seconds is not None or not len(array):
        return None
    if (
        array.dtype.kind not in "biuf"
        or array.dtype.itemsize not in _BITS
        or not array.dtype.isnative
        or array.size == 0
    ):
        return None
    return np.ascontiguousarray(array).view(_BITS[array.dtype.itemsize]).reshape(len(array), -1)
