"""Blocks of outputs of both datasets: their views for attacks, the store of the latest, and the limits of fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.numerics import Array
from dpaudit.outputs import Encoding, Outputs, PartsEncoding, PlainEncoding, Targets, View

FIRST_FIT = 10  # number of trials before the first fit of the attacks
# From this number of trials on, attacks are fitted and tried more rarely, because all that they gain is time.
SETTLED = 50_000
TRIAL_PERIOD = 4_096  # trials after which an attack that joined or returned at `SETTLED` or later may be suspended


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a learner.  Each limit on rows, outputs or bytes applies to each of the two datasets alone."""

    refit_growth: tuple[tuple[float, float], ...] = ((5_000, 1.3), (50_000, 1.5), (math.inf, 2.0))
    """Pairs (until, factor): below `until` trials, attacks are refitted when the trials have grown by `factor`."""
    # From `SETTLED` trials on, an attack that is not in use, and whose last fit had as many outputs as a fit may have,
    # is refitted only when the trials have grown by this factor.  A fit to as many other outputs is hardly better.
    full_fit_growth: float = 32.0
    first_quick_fit: int | None = None  # number of trials at the first fit of quick attacks; None as for others
    quick_growth: float = 1.1  # factor by which the number of trials must grow before quick attacks are refitted
    choice_growth: float = 1.1  # factor by which trials must grow before the selection of one attack is revised
    first_moment: int = 20  # number of trials at which a score is first frozen for the witness
    # minimum weight in the mixture with which an attack is kept in a frozen score; an attack that returns from a
    # suspension weighs less (`weights._BEHIND_ON_RETURN`), and would score all later outputs
    min_frozen_weight: float = 0.05
    max_judged_outputs: int = 4_096  # maximum number of outputs in a block that update the weights of the attacks

    max_fit_rows: int = 50_000  # maximum number of outputs in a fit, unless the outputs are vectors
    max_wide_fit_rows: int = 200_000  # maximum number of outputs in a fit to vectors
    fit_rows_per_column: int = 20_000  # outputs in a fit to vectors, per component; the other two limits apply, too
    max_fit_bytes: int = 2**30  # maximum size of the outputs in a fit, in bytes
    max_fit_numbers: int = 2**26  # maximum number of components of the outputs in a fit to vectors
    # An attack that returns from a suspension had lost to others, so at first it is fitted to few outputs: as many as
    # have this number of features together, but at least `min_structured_rows`, and at least a sixteenth of all.
    probation_numbers: int = 2**14
    min_fit_rows: int = 50  # minimum number of outputs in a fit, even if they exceed `max_fit_bytes`
    max_fit_parts: int = 500_000  # maximum number of parts of structured outputs that are stored in memory
    min_structured_rows: int = 1_000  # minimum number of structured outputs in a fit, even above `max_fit_parts`
    max_raw_bytes: int = 2**28  # maximum size, in bytes, of outputs that are stored in their original form
    max_vocabulary: int = 2_000  # maximum number of structured outputs from which an encoding is learned

    max_second_stage_rows: int = 1_500_000  # maximum number of outputs in the second stage
    max_second_stage_numbers: int = 2**25  # maximum number of features, over all outputs, in the second stage
    held_share: float = 1 / 3  # share of the outputs of the second stage that is held out of the fits
    min_weight: float = 0.01  # minimum weight in the mixture with which an attack is kept in the second stage

    def probation_rows(self, trials: int, columns: int) -> int:
        """Return the maximum number of outputs in the fit of an attack that returns from a suspension."""
        return max(self.min_structured_rows, self.probation_numbers // columns, trials // 16)


STREAM = Settings(first_quick_fit=3)
"""The settings for a stream: quick attacks score outputs early, because a stream may refute a claim in a few steps."""


Block = tuple[Outputs, Outputs]  # outputs of n runs on d0 and outputs of n runs on d1, each in the order of the runs


def as_outputs(outputs: Outputs | Array) -> Outputs:
    return outputs if isinstance(outputs, Outputs) else Outputs.read(outputs)


def joined(blocks: Sequence[Block]) -> Block:
    return Outputs.join([block[0] for block in blocks]), Outputs.join([block[1] for block in blocks])


def plain(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks of plain numbers whose kind is that of the latest block of plain numbers."""
    kinds = [{side.kind for side in block} for block in blocks]
    latest = next((kind for kind in kinds[::-1] if len(kind) == 1 and "" not in kind), None)
    return [block for block, kind in zip(blocks, kinds, strict=True) if kind == latest]


def view_of(outputs: Outputs, encoding: Encoding, view: str) -> View:
    """Return a view of outputs for a fit.  Outputs that the encoding cannot represent are left out."""
    unknown = outputs.unknown_outputs(encoding)
    known = outputs if unknown is None else outputs.take(np.flatnonzero(~unknown))
    seen: View = known.view(encoding, view)
    return seen


def encoding_of(seen: Block, max_vocabulary: int, targets: Targets = (None, None)) -> Encoding:
    """Choose an encoding for a block of outputs; that of structured outputs is learned from the latest ones."""
    first, second = seen
    if first.array is not None and second.array is not None and first.kind == second.kind:
        return PlainEncoding.of(np.concatenate([first.array, second.array]), first.kind)
    parts0, parts1 = (side.latest(max_vocabulary).parts() for side in seen)
    return PartsEncoding.of([*parts0, *parts1], np.repeat([False, True], [len(parts0), len(parts1)]), targets)


@dataclass(eq=False)
class PastOutputs:
    """A store of the latest outputs of one pair, in the order of their runs."""

    settings: Settings
    keeps_raw: bool  # whether any attack requests outputs in their original form
    before_forgetting: Callable[[], None]  # function that is called before old outputs are dropped
    blocks: list[Block] = field(default_factory=list, init=False)  # without the original outputs
    whole: list[Block] = field(default_factory=list, init=False)  # latest blocks, with the original form of the outputs
    _kept: int = field(default=0, init=False)  # number of trials in `blocks`
    _bytes_each: float = field(default=1.0, init=False)  # mean size of the latest outputs, in bytes

    def remember(self, block: Block, encoding: Encoding | None) -> None:
        """Store a new block of outputs, and drop the oldest blocks if a limit on the memory is exceeded."""
        if self.whole:
            forgets = _too_large([*self.whole, block], self.settings.max_raw_bytes)
        else:
            kept = self._kept + len(block[0]) - len(self.blocks[0][0]) if self.blocks else 0
            forgets = kept >= self.max_rows(encoding)
        if forgets:
            self.before_forgetting()
        self._bytes_each = max(1.0, *(side.size() / len(side) for side in block))
        if self.keeps_raw:
            self.whole.append(block)
            while len(self.whole) > 1 and _too_large(self.whole, self.settings.max_raw_bytes):
                del self.whole[0]
        self.blocks.append((block[0].without_raw(), block[1].without_raw()))
        self._kept += len(block[0])
        while self._kept - len(self.blocks[0][0]) >= self.max_rows(encoding):
            self._kept -= len(self.blocks.pop(0)[0])

    def gather(self, encoding: Encoding | None) -> Block:
        """Return the latest outputs, as many as a fit can use, and drop all older outputs."""
        seen0, seen1 = joined(self.blocks)
        if len(self.whole) > 1:
            self.whole = [joined(self.whole)]
        settings = self.settings
        by_parts = [settings.max_fit_parts / side.parts_each() for side in (seen0, seen1)]
        most = min(self.max_rows(encoding), *(max(settings.min_structured_rows, int(rows)) for rows in by_parts))
        if not self.whole and most < len(seen0):
            self.before_forgetting()
        self.blocks = [(seen0.latest(most), seen1.latest(most))]
        self._kept = len(self.blocks[0][0])
        return self.blocks[0]

    def outputs(self) -> Block:
        return joined(self.whole or self.blocks)

    def latest(self, most: int) -> Block:
        """Return the latest outputs of each dataset: `most` outputs, or fewer if fewer are stored."""
        found: list[Block] = []
        for block in reversed(self.whole or self.blocks):
            if sum(len(later[0]) for later in found) >= most:
                break
            found.insert(0, block)
        seen0, seen1 = joined(found)
        return seen0.latest(most), seen1.latest(most)

    def max_rows(self, encoding: Encoding | None) -> int:
        """Return the maximum number of outputs of each dataset in a fit."""
        settings = self.settings
        width = encoding.columns if isinstance(encoding, PlainEncoding) else 1
        rows = min(settings.max_wide_fit_rows, max(settings.max_fit_rows, settings.fit_rows_per_column * width))
        rows = min(rows, settings.max_fit_numbers // width)
        return max(settings.min_fit_rows, min(rows, self.max_rows_by_size))

    @property
    def max_rows_by_size(self) -> int:
        """The number of outputs that can be stored if each of them is as large as the mean of the latest outputs."""
        return int(self.settings.max_fit_bytes / self._bytes_each)


def _too_large(blocks: list[Block], max_bytes: int) -> bool:
    return any(sum(block[side].size() for block in blocks) > max_bytes for side in (0, 1))
