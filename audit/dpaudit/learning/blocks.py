"""Blocks of outputs of both datasets, and what attacks see of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Encoding, Outputs, PartsEncoding, PlainEncoding, View

Block = tuple[Outputs, Outputs]
"""As many outputs of d0 as of d1, in the order they came."""


def as_outputs(outputs: Outputs | Array) -> Outputs:
    """The same outputs, read if they are not yet."""
    return outputs if isinstance(outputs, Outputs) else Outputs.read(outputs)


def joined(blocks: Sequence[Block]) -> Block:
    """One block of all these outputs."""
    return Outputs.join([block[0] for block in blocks]), Outputs.join([block[1] for block in blocks])


def plain(blocks: Sequence[Block]) -> list[Block]:
    """The blocks of plain numbers that have the latest one's type and shape.

    Joined, these blocks are plain numbers still.
    """
    kinds = [{(side.array.dtype, side.array.shape[1:]) for side in block if side.array is not None} for block in blocks]
    whole = [
        all(side.array is not None for side in block) and len(kind) == 1
        for block, kind in zip(blocks, kinds, strict=True)
    ]
    latest = next((kind for kind, numbers in zip(kinds[::-1], whole[::-1], strict=True) if numbers), None)
    return [block for block, kind, numbers in zip(blocks, kinds, whole, strict=True) if numbers and kind == latest]


def view_of(outputs: Outputs, encoding: Encoding, view: str) -> View:
    """What an attack sees of outputs that are learned from.  Outputs unknown to the encoding are left out."""
    unknown_outputs = outputs.unknown_outputs(encoding)
    seen: View = (outputs if unknown_outputs is None else outputs.take(np.flatnonzero(~unknown_outputs))).view(
        encoding, view
    )
    return seen


def encoding_of(seen: Block, max_vocabulary: int) -> Encoding:
    """An encoding for these outputs.  One of structured outputs is learned from the latest `max_vocabulary`."""
    arrays = [side.array for side in seen]
    if arrays[0] is not None and arrays[1] is not None:
        batched = all(isinstance(side.raw, np.ndarray) for side in seen)
        same = batched or arrays[0].dtype == arrays[1].dtype
        same &= arrays[0].shape[1:] == arrays[1].shape[1:]
        if same:
            return PlainEncoding.of(np.concatenate([arrays[0], arrays[1]]))
    parts0, parts1 = (side.latest(max_vocabulary).parts() for side in seen)
    return PartsEncoding.of([*parts0, *parts1], np.repeat([False, True], [len(parts0), len(parts1)]))


def alike(new: Encoding, old: Encoding | None) -> bool:
    """Whether both encodings are of plain numbers, and columns of the old one mean what those of the new one do."""
    return (
        isinstance(new, PlainEncoding)
        and isinstance(old, PlainEncoding)
        and (old.single, old.columns, old.centre is None, old.kind)
        == (new.single, new.columns, new.centre is None, new.kind)
    )
