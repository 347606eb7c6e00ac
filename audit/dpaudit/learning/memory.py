"""What is kept of past outputs: the latest ones, as many as a fit looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dpaudit.learning.blocks import Block, joined
from dpaudit.learning.settings import Settings
from dpaudit.outputs import Encoding, PlainEncoding


@dataclass(eq=False)
class PastOutputs:
    """The latest outputs of one pair, in the order they came."""

    settings: Settings
    keeps_raw: bool  # whether an attack wants outputs as they came
    before_forgetting: Callable[[], None]  # called while the outputs that are about to be forgotten are still there
    blocks: list[Block] = field(default_factory=list, init=False)  # without the outputs as they came
    whole: list[Block] = field(default_factory=list, init=False)  # the latest ones, with the outputs as they came
    _kept: int = field(default=0, init=False)  # trials in `blocks`
    _bytes_each: float = field(default=1.0, init=False)  # bytes of one of the latest outputs

    def remember(self, block: Block, encoding: Encoding | None) -> None:
        """Keep a new block, and forget the oldest ones if there are too many."""
        if self._forgets(block, encoding):
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
        """What a fit looks at.  Older outputs are forgotten."""
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

    def keep_only(self, block: Block) -> None:
        """Forget all but these outputs."""
        self.blocks, self.whole = [block], []

    def outputs(self) -> Block:
        """All outputs that are remembered and can be scored."""
        return joined(self.whole or self.blocks)

    def latest(self, most: int) -> Block:
        """The latest outputs, at most `most` of each dataset, as far as they are remembered."""
        found: list[Block] = []
        for block in reversed(self.whole or self.blocks):
            if sum(len(later[0]) for later in found) >= most:
                break
            found.insert(0, block)
        seen0, seen1 = joined(found)
        return seen0.latest(most), seen1.latest(most)

    def max_rows(self, encoding: Encoding | None) -> int:
        """How many outputs of each dataset a fit looks at: more if they are vectors, fewer if they are large."""
        settings = self.settings
        width = encoding.columns if isinstance(encoding, PlainEncoding) else 1
        rows = min(settings.max_wide_fit_rows, max(settings.max_fit_rows, settings.fit_rows_per_column * width))
        return max(settings.min_fit_rows, min(rows, self.max_rows_by_size))

    @property
    def max_rows_by_size(self) -> int:
        """How many outputs as large as the latest ones fit into the memory."""
        return int(self.settings.max_fit_bytes / self._bytes_each)

    def _forgets(self, block: Block, encoding: Encoding | None) -> bool:
        """Whether older outputs are about to be forgotten for a new block."""
        if self.whole:
            return _too_large([*self.whole, block], self.settings.max_raw_bytes)
        return bool(self.blocks) and self._kept + len(block[0]) - len(self.blocks[0][0]) >= self.max_rows(encoding)


def _too_large(blocks: list[Block], max_bytes: int) -> bool:
    return any(sum(block[side].size() for block in blocks) > max_bytes for side in (0, 1))
