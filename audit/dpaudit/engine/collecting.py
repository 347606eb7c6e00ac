"""Trials, one block after another, and what went wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.claims import Array, TradeoffFunction
from dpaudit.diagnostics import Memory, coupling, dependence, drift, key
from dpaudit.engine.constant import Seen
from dpaudit.inference.strategy import strategy
from dpaudit.mechanisms import CommandMechanism, IsolatedMechanism, MechanismError
from dpaudit.neighbours import Pair
from dpaudit.outputs import OutputError, Timed
from dpaudit.registry import Attack, resolve_attacks
from dpaudit.result import StoppedBy
from dpaudit.scoring import FIRST_FIT, Learner, Rivals
from dpaudit.scoring.rivals import BinCounts
from dpaudit.trials.digest import OutputsDigest
from dpaudit.trials.runs import Terms
from dpaudit.trials.sampling import Sampler
from dpaudit.trials.store import StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where an audit stands."""

    trials: int  # runs per dataset so far
    allowed: int
    log_e: float  # evidence against the claim; nan if none is counted before the end
    log_threshold: float  # evidence at which it is refuted


Report = Callable[[Progress], None]

_LARGE, _SMALL = 32, 128  # parts of the trials so far that make a block, and one where the audit may end soon
_LARGEST = 65_536  # trials in a block that no score is learned from
_MOST_BYTES = 2**23  # of outputs of one dataset in a block, as they came


@dataclass
class Collector:
    """Runs the mechanism and hands its outputs to the learner of the pair they belong to."""

    sampler: Sampler
    learners: Sequence[Learner]  # one for each pair
    allowed: int  # runs per dataset, all pairs together
    trials: int = field(default=0, init=False)
    spent: list[int] = field(init=False)  # of these, on each pair
    failure: str = field(default="", init=False)  # what the mechanism did, if that ended the audit
    dropped: dict[int, str] = field(default_factory=dict, init=False)  # pairs on which it failed while others go on
    last_pair: int | None = field(default=None, init=False)  # on which it did that; None if it was something else
    interrupted: bool = field(default=False, init=False)
    digest: OutputsDigest = field(default_factory=OutputsDigest, init=False)
    seen: list[tuple[Seen, Seen]] = field(init=False)  # whether outputs of d0 and of d1 of each pair vary
    notes: list[str] = field(default_factory=list)  # what was found out before the first run, for `warnings`

    _most: list[int] = field(init=False)  # trials in a block of each pair
    _memories: list[tuple[Memory, Memory]] = field(init=False)  # of d0 and of d1 of each pair

    def __post_init__(self) -> None:
        self.spent = [0] * len(self.learners)
        self._memories = [(Memory(), Memory()) for _ in self.learners]
        self.seen = [(Seen(), Seen()) for _ in self.learners]
        self._most = [_MOST_BYTES] * len(self.learners)

    @property
    def open(self) -> bool:
        """Whether there can be more trials."""
        return self.trials < self.allowed and not self.failure

    @property
    def stopped_by(self) -> StoppedBy:
        """What ended the audit, if it was not the evidence."""
        if self.interrupted:
            return "interruption"
        return "failure" if self.failure else "trials"

    @property
    def conduct(self) -> list[str]:
        """What the mechanism did besides giving outputs, in words."""
        with0, with1 = self.sampler.conduct
        found = (with0 + with1).words()
        if self.sampler.terms.failures == "retry" and with0.failed + with1.failed:
            found.append(
                f"{with0.failed} runs on d0 and {with1.failed} on d1 failed and were made again: the claim is taken to "
                "be about runs that succeed (failures: outcome audits the failures, too)"
            )
        return found

    def first(self, pair: int, side: int) -> list[Any]:
        """The first outputs of a dataset."""
        return self._memories[pair][side].first

    def dependence(self) -> list[str]:
        """Signs that runs depend on each other, in words."""
        found: list[str] = []
        for pair, learner, memories in zip(self.sampler.pairs, self.learners, self._memories, strict=True):
            if not learner.ready:
                continue
            if (
                self.sampler.terms.observe_time
            ):  # times may depend on each other, see `inference.betting`; outputs may not
                for side, memory in enumerate(memories):
                    keys = [key(output.output if isinstance(output, Timed) else output) for output in memory.first]
                    words = dependence(keys, np.zeros(len(keys)))
                    found += [f"{sign}, on d{side} (pair {pair})" for sign in words]
                continue
            first = [learner.score(side) for side in learner.read(*(memory.first for memory in memories))]
            spread = [learner.score(side) for side in learner.read(*(memory.spread for memory in memories))]
            signs = [f"{words}, on d{i}" for i in (0, 1) for words in self._signs(memories[i], first[i], spread[i])]
            found += [f"{words} (pair {pair})" for words in [*signs, *coupling(first[0], first[1])]]
        return found

    @staticmethod
    def _signs(memory: Memory, first: Array, spread: Array) -> list[str]:
        return dependence([key(output) for output in memory.first], first) or drift(spread)

    def next_block(self, pair: int, *, near: bool = False) -> list[tuple[Array, Array]]:
        """Outputs of the next block of a pair that is still learned from, as its attacks see them.

        Blocks grow with the trials, and end where scores are learned anew.  `near`: the audit may end soon, so that a
        large block would run on for nothing.
        """
        learner = self.learners[pair]
        size = max(2, learner.trials // (_SMALL if near else _LARGE)) if learner.ready else FIRST_FIT
        return self.block(pair, min(size, learner.next_fit - learner.trials))

    def blocks(self, pair: int, until: int) -> Iterator[tuple[Any, Any]]:
        """Large blocks of a pair, until so many trials of all pairs, or as long as there are any."""
        while self.open and self.trials < until and pair not in self.dropped:
            yield from self.block(pair, min(_LARGEST, until - self.trials))

    def block(self, pair: int, size: int) -> list[tuple[Array, Array]]:
        """At most `size` trials of a pair; none if the mechanism failed before it gave an output of each dataset.

        Fewer where outputs are so large that they would fill the memory.
        A pair on which it fails is dropped; if it was the last one, that ends the audit.  MechanismError if nothing was
        measured on any pair.
        """
        start = self.spent[pair]
        size = min(size, self._most[pair], self.allowed - self.trials)
        try:
            outcomes = self.sampler.block(pair, start, start + size)
        except StoreError as error:
            self.failure = str(error)
            return []
        failures = [outcome.failure for outcome in outcomes if outcome.failure]
        complete = min(len(outcome.outputs) for outcome in outcomes)
        block: list[tuple[Array, Array]] = []
        try:
            if complete:
                outputs0, outputs1 = (outcome.outputs[:complete] for outcome in outcomes)
                if self.trials == 0 and all(output is None for side in (outputs0, outputs1) for output in side):
                    raise OutputError("nothing (None) in all of its first runs; return what the analyst would see")
                sides = self.learners[pair].read(outputs0, outputs1)
                bytes_each = max(1.0, *(side.size() / complete for side in sides))
                self._most[pair] = max(1, int(_MOST_BYTES / bytes_each))
                block = [sides]
                self.digest.add(pair, start, (outputs0, outputs1))
                self.seen[pair][0].add(outputs0)
                self.seen[pair][1].add(outputs1)
                for memory, outputs in zip(self._memories[pair], (outputs0, outputs1), strict=True):
                    memory.add(outputs, bytes_each)
        except OutputError as error:
            failures.insert(0, f"gave an output that cannot be read: {error}")
        if failures:
            self.dropped[pair] = f"the mechanism {failures[0]} (pair {self.sampler.pairs[pair]})"
            if len(self.dropped) == len(self.learners):
                self.failure, self.last_pair = self.dropped[pair], pair
                if not block and self.trials == 0:
                    raise MechanismError(self.failure)
        self.spent[pair] += complete if block else 0
        self.trials += complete if block else 0
        return block


def new_collector(
    mechanism: Any,
    pairs: Sequence[Pair],
    attacks: str | Attack | Sequence[str | Attack],
    trials: int,
    seed: int,
    jobs: int,
    terms: Terms,
    tested: TradeoffFunction,
) -> Collector:
    """A collector with no trials yet, for the arguments of `audit`; `tested`: the claim for both orders."""
    chosen = resolve_attacks(attacks, released=isinstance(mechanism, (CommandMechanism, IsolatedMechanism)))
    bets = strategy(tested)
    log_prices = bets.log_prices(tested)

    def worth(counts: BinCounts) -> float:
        return bets.log_wealth(bets.gains(log_prices, counts[None]))

    return Collector(
        sampler=Sampler(mechanism, pairs, seed, jobs, terms),
        learners=[Learner(chosen, seed, index, Rivals(worth)) for index in range(len(pairs))],
        allowed=trials,
    )
