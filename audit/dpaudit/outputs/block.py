"""Stores a block of outputs on one dataset, and caches the feature matrices that attacks request."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import AnyArray, Array, Flags
from dpaudit.outputs.derived import derived
from dpaudit.outputs.encoding import Encoding, PlainEncoding
from dpaudit.outputs.entries import OutputError, Timed
from dpaudit.outputs.parts import parts_of
from dpaudit.outputs.plain import (
    WIDE,
    Distinct,
    Plain,
    array_of,
    as_alone,
    distinct_keys,
    distinct_rows,
    key_of,
    plain_array,
    plain_kind,
    row_key,
    size_of,
)
from dpaudit.outputs.tables import Parts
from dpaudit.values import Output, RawOutputs

View = RawOutputs  # the form in which an attack receives n outputs: an array of n rows, or a list of n outputs

VIEWS = ("features", "derived", "bits", "queries", "natural", "timed")


class Outputs:
    """A block of n outputs of a mechanism on one dataset.  The outputs never change, and computed views are cached."""

    __slots__ = ("_distinct", "_keys", "_parts", "_recurs", "_unknown", "_views", "array", "kind", "raw", "seconds")

    def __init__(
        self,
        raw: Sequence[Output] | Plain | None,
        kind: str,
        array: Plain | None,
        seconds: Array | None,
        parts: list[Parts] | None = None,
    ) -> None:
        self.raw = raw  # outputs, each with the value that it has alone; None if they were too large to keep
        self.kind = kind  # plain kind of all outputs (`plain.plain_kind`); "" if they have none in common
        self.array = array  # outputs as one array of shape (n,) or (n, d); None if they have no plain kind in common
        self.seconds = seconds  # running time of each run, (n,); None if running times were not observed
        self._parts = parts
        self._views: dict[str, tuple[Encoding, View]] = {}
        self._unknown: tuple[Encoding, Flags | None] | None = None
        self._distinct: Distinct | None = None
        self._recurs: bool | None = None
        self._keys: list[Hashable] | None = None  # the key of each output, of outputs without an array

    @classmethod
    def read(cls, outputs: RawOutputs) -> Outputs:
        """Read a list of n outputs, each with the value that it has alone, or the outputs of a call in another form."""
        seconds = None
        if not isinstance(outputs, list):
            outputs = as_alone(outputs)
        elif any(type(output) is Timed for output in outputs):
            seconds = np.array([output.seconds if type(output) is Timed else np.nan for output in outputs])
            outputs = [output.output if type(output) is Timed else output for output in outputs]
        kind, array = plain_array(outputs)
        if kind:
            return cls(outputs, kind, array, seconds)
        try:
            return cls(outputs, "", None, seconds, list(map(parts_of, list(outputs))))
        except OutputError:
            raise
        except Exception as error:  # a registered encoder or the class of an output may raise any exception
            raise OutputError(f"an output could not be read: {type(error).__name__}: {error}") from error

    def __len__(self) -> int:
        if self.array is not None:
            return len(self.array)
        return len(self._parts) if self._parts is not None else len(self.listed())

    def listed(self) -> Sequence[Output] | Plain:
        """Return the outputs as a sequence.  The sequence is empty if the outputs were not kept."""
        return () if self.raw is None else self.raw

    def parts(self) -> list[Parts]:
        """Return the parts of each output."""
        if self._parts is None:
            self._parts = list(map(parts_of, self._one_by_one()))
        return self._parts

    def _one_by_one(self) -> Sequence[Output]:
        """Return the outputs with their own types; rows of an array are lists unless they are long."""
        raw = self.listed()
        if isinstance(raw, np.ndarray) and (self.array is not None or raw[:1].size <= WIDE):
            return list(raw.tolist())
        return list(raw)

    def unknown_outputs(self, encoding: Encoding) -> Flags | None:
        """Return a mask (n,) of the outputs that the encoding cannot represent; None if it represents all."""
        if not isinstance(encoding, PlainEncoding) or self.kind == encoding.kind:
            return None
        if self._unknown is None or self._unknown[0] is not encoding:
            outputs = [] if self.kind or self.raw is None else self.raw
            unknown = np.array([plain_kind(output) != encoding.kind for output in outputs], dtype=np.bool_)
            self._unknown = encoding, unknown if len(outputs) else np.ones(len(self), dtype=np.bool_)
        return self._unknown[1]

    def value_keys(self) -> list[Hashable]:
        """Return a key for each output; outputs of any blocks have equal keys exactly if their values are equal."""
        if self.array is not None:
            return [row_key(self.kind, row) for row in self.array]
        if self._keys is None:
            self._keys = [key_of(output) for output in self.listed()]
        return self._keys

    def distinct(self) -> Distinct:
        """Return the distinct values among the outputs.  Equal values have the same bits, type and form."""
        if self._distinct is None:
            array = self.array
            self._distinct = distinct_keys(self.value_keys()) if array is None else distinct_rows(self.kind, array)
        return self._distinct

    @property
    def recurs(self) -> bool:
        """Whether most outputs seem to have few values, so that scoring each value once saves time."""
        if self._recurs is None:
            # the latest 256 outputs show whether values recur
            latest = np.zeros(0) if self.seconds is not None or self.array is None else self.array[-256:]
            self._recurs = len(latest) > 1 and len(distinct_rows("", latest).index) <= len(latest) // 2
        return self._recurs

    @overload
    def view(self, encoding: Encoding, sees: Literal["features", "derived", "bits", "queries", "timed"]) -> Array: ...

    @overload
    def view(self, encoding: Encoding, sees: str) -> View: ...

    def view(self, encoding: Encoding, sees: str) -> View:
        """Return the outputs, which the encoding must know, in one of the forms `VIEWS`, which an attack requests."""
        known = self._views.get(sees)
        if known is None or known[0] is not encoding:
            known = encoding, self._computed(encoding, sees)
            self._views[sees] = known
        return known[1]

    def _computed(self, encoding: Encoding, sees: str) -> View:
        if sees == "derived":
            features = self.view(encoding, "features")
            return np.hstack([features, derived(features[:, : encoding.numeric])])
        if sees == "timed":
            seconds = self.seconds if self.seconds is not None else np.full(len(self), np.nan)
            return np.column_stack([seconds, self.view(encoding, "features")])
        if not isinstance(encoding, PlainEncoding):
            if sees == "natural":
                return list(self.listed())
            columns = {"features": encoding.features, "bits": encoding.bits, "queries": encoding.queries}
            return columns[sees](self.parts())
        if sees == "queries":
            return np.zeros((len(self), 0))
        array = self.array
        if array is None:
            listed = list(self.listed())
            array = array_of(listed) if listed else np.zeros((0, encoding.columns))
        if sees == "natural":
            return array.reshape(-1) if encoding.single else array.reshape(len(array), -1)
        return encoding.bits(array) if sees == "bits" else encoding.features(array)

    def take(self, index: npt.NDArray[np.intp] | slice) -> Outputs:
        """Return a block of the outputs at the positions `index`, with their cached views; a slice copies no array."""
        raw = None if self.raw is None else _at(self.raw, index)
        kind, array = self.kind, None if self.array is None else self.array[index]
        if array is None and raw is not None:  # some of the outputs may have a kind in common
            kind, array = plain_array(raw)
        chosen = Outputs(
            raw,
            kind,
            array if kind else None,
            None if self.seconds is None else self.seconds[index],
            None if self._parts is None else _at(self._parts, index),
        )
        chosen._keys = None if self._keys is None else _at(self._keys, index)
        chosen._views = {sees: (encoding, _at(view, index)) for sees, (encoding, view) in self._views.items()}
        return chosen

    def read_again(self, index: npt.NDArray[np.intp]) -> Outputs:
        """Return a block of the outputs at the positions `index`, without cached views if the raw outputs were kept."""
        if self.raw is None:
            return self.take(index)
        again = Outputs.read(_at(self.raw, index))
        again.seconds = None if self.seconds is None else self.seconds[index]
        return again

    def latest(self, n: int) -> Outputs:
        """Return the last n outputs of the block, or all outputs if the block has fewer than n outputs."""
        return self if len(self) <= n else self.take(np.arange(len(self) - n, len(self)))

    def first(self, n: int) -> Outputs:
        """Return the first n outputs of the block, or all outputs if the block has fewer than n outputs."""
        return self if len(self) <= n else self.take(np.arange(n))

    def parts_each(self) -> float:
        """Return the approximate mean number of parts per output.  The number is 1 if the outputs are plain numbers."""
        if not self._parts:
            return 1.0
        some = self._parts[:: max(1, len(self._parts) // 50)]
        return sum(1 + len(one.numbers) + len(one.labels) + len(one.counts) for one in some) / len(some)

    def size(self) -> float:
        """Return the approximate size of the raw outputs, in bytes."""
        if isinstance(self.raw, np.ndarray):
            return self.raw.nbytes
        some = self.listed()[:: max(1, len(self) // 20)]
        return len(self) * sum(map(size_of, some)) / max(1, len(some))

    def without_raw(self) -> Outputs:
        """Return a copy of the block without the raw form of outputs that are neither numbers nor short vectors."""
        if self.array is not None:
            return self
        plain = [output if plain_kind(output) else None for output in self.listed()]
        kept = plain if any(output is not None for output in plain) else None
        slim = Outputs(kept, "", None, self.seconds, self._parts)
        slim._keys = self._keys or [object() for _ in plain]  # without its raw form, an output is like no other
        slim._views = {sees: view for sees, view in self._views.items() if sees != "natural"}
        return slim

    @classmethod
    def join(cls, blocks: Sequence[Outputs]) -> Outputs:
        """Concatenate at least one block, with a view that all have for one encoding, unless it is large or cheap."""
        if len(blocks) == 1:
            return blocks[0]
        arrays = [block.array for block in blocks if block.array is not None]
        kinds = {block.kind for block in blocks}
        plain = len(kinds) == 1 and len(arrays) == len(blocks)
        array = np.concatenate(arrays) if plain else None
        parts = None
        if all(block._parts is not None for block in blocks):
            parts = [one for block in blocks for one in block._parts or ()]
        elif not plain:
            parts = [one for block in blocks for one in block.parts()]
        raw: Sequence[Output] | Plain | None = None
        if array is not None and all(isinstance(block.raw, np.ndarray) for block in blocks):
            raw = array.reshape(len(array), *blocks[0].raw.shape[1:])  # type: ignore[union-attr]
        elif all(block.raw is not None for block in blocks):
            raw = [output for block in blocks for output in block._one_by_one()]
        seconds = None
        if any(block.seconds is not None for block in blocks):
            seconds = np.concatenate(
                [block.seconds if block.seconds is not None else np.full(len(block), np.nan) for block in blocks]
            )
        whole = cls(raw, kinds.pop() if plain else "", array, seconds, parts)
        if not plain and all(block.array is not None or block._keys is not None for block in blocks):
            whole._keys = [key for block in blocks for key in block.value_keys()]
        for sees, (encoding, view) in blocks[-1]._views.items():
            views = [block._views.get(sees, (None, None)) for block in blocks]
            if isinstance(view, np.ndarray) and all(known is encoding for known, _ in views):
                copies = plain and sees in ("features", "natural") and isinstance(encoding, PlainEncoding)
                # a larger view is computed when needed
                if copies or len(whole) * view[:1].size > 2**22:
                    continue
                whole._views[sees] = encoding, np.concatenate([part for _, part in views])
        return whole


Rows = TypeVar("Rows", bound="Sequence[Any] | AnyArray")


def _at(rows: Rows, index: npt.NDArray[np.intp] | slice) -> Rows:
    if isinstance(rows, np.ndarray):
        return rows[index]  # type: ignore[return-value]
    if isinstance(index, slice):
        return rows[index]  # type: ignore[return-value]
    return [rows[i] for i in index]  # type: ignore[return-value]
