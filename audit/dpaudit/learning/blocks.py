"""Defines blocks of outputs of both datasets, and converts outputs to the views that attacks request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Encoding, Outputs, PartsEncoding, PlainEncoding, Targets, View

Block = tuple[Outputs, Outputs]
"""Outputs of n runs on d0 and outputs of n runs on d1, each in the order of the runs."""


def as_outputs(outputs: Outputs | Array) -> Outputs:
    """Convert outputs to an `Outputs` object, unless they already are one."""
    return outputs if isinstance(outputs, Outputs) else Outputs.read(outputs)


def joined(blocks: Sequence[Block]) -> Block:
    """Concatenate blocks of outputs for each dataset."""
    return Outputs.join([block[0] for block in blocks]), Outputs.join([block[1] for block in blocks])


def plain(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks of plain numbers whose kind is that of the latest block of plain numbers."""
    kinds = [{side.kind for side in block} for block in blocks]
    latest = next((kind for kind in kinds[::-1] if len(kind) == 1 and "" not in kind), None)
    return [block for block, kind in zip(blocks, kinds, strict=True) if kind == latest]


def view_of(outputs: Outputs, encoding: Encoding, view: str) -> View:
    """Return a view of outputs for a fit.  Outputs that the encoding cannot represent are left out."""
    unknown_outputs = outputs.unknown_outputs(encoding)
    seen: View = (outputs if unknown_outputs is None else outputs.take(np.flatnonzero(~unknown_outputs))).view(
        encoding, view
    )
    return seen


def encoding_of(seen: Block, max_vocabulary: int, targets: Targets = (None, None)) -> Encoding:
    """Choose an encoding for a block of outputs.  For structured outputs, the encoding is learned from the latest
    outputs.
    """
    first, second = seen
    if first.array is not None and second.array is not None and first.kind == second.kind:
        return PlainEncoding.of(np.concatenate([first.array, second.array]), first.kind)
    parts0, parts1 = (side.latest(max_vocabulary).parts() for side in seen)
    return PartsEncoding.of([*parts0, *parts1], np.repeat([False, True], [len(parts0), len(parts1)]), targets)


def alike(new: Encoding, old: Encoding | None) -> bool:
    """Return whether two encodings are both for plain numbers and give columns with the same meaning."""
    return (
        isinstance(new, PlainEncoding)
        and isinstance(old, PlainEncoding)
        and (old.single, old.columns, old.centre is None, old.kind)
        == (new.single, new.columns, new.centre is None, new.kind)
    )
