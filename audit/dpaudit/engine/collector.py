"""Trials, one block after another, and what went wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.seen import Seen
from dpaudit.inference.independence import FIRST_SHARE, SUSPICIOUS, Memory, coupling, dependence, drift, key
from dpaudit.inference.sequential.strategy import strategy
from dpaudit.learning import Experts, Learner, symmetric_columns
from dpaudit.learning.attack import Attack, resolve_attacks
from dpaudit.learning.blocks import Block
from dpaudit.learning.selection import BinCounts
from dpaudit.mechanisms import CommandMechanism, IsolatedMechanism, MechanismError
from dpaudit.mechanisms.held import held_numbers
from dpaudit.mechanisms.protocol import in_words
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import OutputError, Timed
from dpaudit.pairs.pair import Pair
from dpaudit.sampling.beginning import Beginning
from dpaudit.sampling.output_fingerprint import OutputsFingerprint
from dpaudit.sampling.runs import ExecutionSettings
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.store import StoreError
from dpaudit.sampling.streams import stream
from dpaudit.text.reasons import About, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where an audit stands."""

    trials: int  # runs per dataset so far
    allowed: int
    log_e: float  # evidence against the claim; nan if none is counted before the end
    log_threshold: float  # evidence at which it is refuted


ProgressCallback = Callable[[Progress], None]
Bet = Callable[[tuple[Array, Array] | None], None]
"""Gets the scores of a block that was not learned from yet, of d0 and of d1."""


@dataclass(slots=True, kw_only=True)
class Turn:
    """One step of the learning loop."""

    pair: int
    near: bool = False  # whether the audit may end soon, see `Collector.next_block`
    learned: bool = False  # whether there were outputs


_LARGE, _SMALL = 32, 128  # parts of the trials so far that make a block, and one where the audit may end soon
_MAX_BLOCK_TRIALS = 65_536  # trials in a block that no score is learned from
_MAX_BLOCK_BYTES = 2**23  # of outputs of one dataset in a block, as they came


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
    observed: int = field(default=0, init=False)  # runs per dataset that only the tests of independence look at
    outputs_fingerprint: OutputsFingerprint = field(default_factory=OutputsFingerprint, init=False)
    seen: list[tuple[Seen, Seen]] = field(init=False)  # whether outputs of d0 and of d1 of each pair vary
    notes: list[str] = field(default_factory=list)  # what was found out before the first run, for `warnings`
    beginning: Beginning = field(default_factory=Beginning, init=False)
    held: Counter[float] | None = None  # numbers that the mechanism held before the first run, if they were looked at

    _most: list[int] = field(init=False)  # trials in a block of each pair
    _memories: list[tuple[Memory, Memory]] = field(init=False)  # of d0 and of d1 of each pair

    def __post_init__(self) -> None:
        self.spent = [0] * len(self.learners)
        self._memories = [(Memory(), Memory()) for _ in self.learners]
        self.seen = [(Seen(), Seen()) for _ in self.learners]
        self._most = [_MAX_BLOCK_BYTES] * len(self.learners)

    @property
    def open(self) -> bool:
        """Whether there can be more trials."""
        return self.trials < self.allowed and not self.failure and not self.void

    @property
    def void(self) -> str:
        """Why scores that were counted prove nothing, in words."""
        return next((learner.void for learner in self.learners if learner.void), "")

    @property
    def unseen(self) -> list[str]:
        """Why the audit has not looked at all pairs to the end, in words.

        A mechanism that now and then fails where it leaks must not end with "no violation found".
        """
        found = []
        for index, learner in enumerate(self.learners):
            why = (
                "the mechanism failed on it" if index in self.dropped else
                "every attack was dropped on it" if learner.hopeless else
                ""
            )  # fmt: skip
            if why:
                found.append(
                    f"nothing can be said of pair {self.sampler.pairs[index]}: {why}; mend that, or leave the pair out"
                )
        return found

    @property
    def side_effects(self) -> list[str]:
        """What the mechanism did besides giving outputs, in words."""
        with0, with1 = self.sampler.side_effects
        found = (with0 + with1).words()
        if self.sampler.execution.failures == "retry" and with0.failed + with1.failed:
            found.append(
                f"{with0.failed} runs on d0 and {with1.failed} on d1 failed and were retried: the claim is taken to "
                "be about runs that succeed (failures: outcome audits the failures, too)"
            )
        return found

    def first(self, pair: int, side: int) -> list[Any]:
        """The first outputs of a dataset."""
        return self._memories[pair][side].first

    def dependence(self) -> list[Reason]:
        """Why no guarantee holds, in words: runs that depend on each other, scores that depend on more than an output.

        The tests of all pairs together have the significance `diagnostics.SUSPICIOUS`.
        """
        if self.void:
            return [Reason.that(self.void, About.VOID)]
        found: list[str] = []
        for pair in range(len(self.learners)):
            signs = dict.fromkeys(self._signs(pair, SUSPICIOUS / len(self.learners)))
            found += [f"{words} (pair {self.sampler.pairs[pair]})" for words in signs]
        return [Reason.that(sign, About.DEPENDENT) for sign in found]

    def _signs(self, pair: int, significance: float) -> list[str]:
        """Signs of dependence between the runs of a pair: half the significance for outputs, half for their scores."""
        memories, signs = self._memories[pair], []
        runs = [
            ([memory.first[: memory.length] for memory in memories], significance * FIRST_SHARE, True),
            ([memory.thinned for memory in memories], significance * memories[0].spread_share, False),
        ]
        for (outputs0, outputs1), level, consecutive in runs:
            if not len(outputs0) or not len(outputs1):
                continue
            timed = self.sampler.execution.observe_time  # times may depend on each other, outputs may not
            outputs = tuple([o.output if isinstance(o, Timed) else o for o in side] for side in (outputs0, outputs1))
            rng = stream(self.sampler.seed, "shuffle", pair, int(consecutive))
            columns, scores = symmetric_columns(self.learners[pair], outputs[0], outputs[1], rng, refit=not timed)
            share = level / 6  # two datasets and the two together, by outputs and by scores
            by_score = share / len(self.learners[pair].attacks)  # of which the runs chose one
            for side in (0, 1):
                if consecutive:
                    found = dependence([key(output) for output in outputs[side]], columns[side], share)
                    found += dependence((), scores[side], by_score)
                else:
                    found = drift(columns[side], share) + drift(scores[side], by_score)
                signs += [f"{words}, on d{side}" for words in found]
            if consecutive and not timed:
                signs += coupling(*columns, share) + coupling(*scores, by_score)
        return signs

    def observe(self, pair: int, runs: int) -> None:
        """Make further runs of a pair, until there are so many, for the tests of independence and nothing else.

        They count as no evidence.  What goes wrong in them changes nothing.
        """
        start, store = self.spent[pair], self.sampler.store
        size = min(runs - start, self.allowed - self.trials - self.observed, self._most[pair])
        if size < 1:
            return
        try:
            self.sampler.store = None  # an audit that goes on may cut its blocks elsewhere
            outcomes = self.sampler.block(pair, start, start + size)
            complete = min(len(outcome.outputs) for outcome in outcomes)
            outputs0, outputs1 = (outcome.outputs[:complete] for outcome in outcomes)
            self.learners[pair].read(outputs0, outputs1)
        except OutputError:
            return
        finally:
            self.sampler.store = store
        for memory, outputs in zip(self._memories[pair], (outputs0, outputs1), strict=True):
            memory.add(outputs)
        self.observed += complete

    @contextmanager
    def limited(self, trials: int) -> Iterator[None]:
        """A phase with so many runs per dataset at the most, those before it included."""
        allowed, self.allowed = self.allowed, trials
        try:
            yield
        finally:
            self.allowed = allowed

    def learn(self, turn: Callable[[], Turn | None], bet: Callable[..., None] | None = None) -> Iterator[Turn]:
        """The learning loop of every audit: block after block, as long as there can be more trials.

        Args:
            turn: Which block is next; None ends the loop.
            bet: Gets the pair of a block, and its scores or None where no score has been learned yet.

        Yields:
            Each turn after its block was learned from.
        """
        while self.open and (now := turn()) is not None:
            now.learned = self.learn_block(now.pair, None if bet is None else partial(bet, now.pair), near=now.near)
            yield now

    def learn_block(self, pair: int, bet: Bet | None = None, *, near: bool = False) -> bool:
        """Score the next block of a pair by what was learned before it, bet, and only then learn from it.

        Args:
            pair: Its number.
            bet: Gets the scores, or None where no score has been learned yet.
            near: See `next_block`.

        Returns:
            Whether there were outputs.
        """
        learner = self.learners[pair]
        block = self.next_block(pair, near=near)
        for outputs0, outputs1 in block:
            scores = learner.score_fresh(outputs0, outputs1) if learner.ready else None  # also judges the attacks
            if bet is not None:
                bet(scores)
            learner.learn(outputs0, outputs1)
        return bool(block)

    def next_block(self, pair: int, *, near: bool = False) -> list[Block]:
        """Outputs of the next block of a pair that is still learned from, as its attacks see them.

        Blocks grow with the trials, and end where scores are learned anew.  `near`: the audit may end soon, so that a
        large block would run on for nothing.
        """
        learner = self.learners[pair]
        due = learner.next_fit - learner.trials  # nothing is scored before, where there is no score yet
        size = max(2, learner.trials // (_SMALL if near else _LARGE)) if learner.ready else due
        return self.block(pair, min(size, due))

    def blocks(self, pair: int, until: int) -> Iterator[Block]:
        """Large blocks of a pair, until so many trials of all pairs, or as long as there are any."""
        while self.open and self.trials < until and pair not in self.dropped:
            yield from self.block(pair, min(_MAX_BLOCK_TRIALS, until - self.trials))

    def block(self, pair: int, size: int) -> list[Block]:
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
        block: list[Block] = []
        try:
            if complete:
                outputs0, outputs1 = (outcome.outputs[:complete] for outcome in outcomes)
                if self.trials == 0 and all(output is None for side in (outputs0, outputs1) for output in side):
                    raise OutputError("nothing (None) in all of its first runs; return what the analyst would see")
                sides = self.learners[pair].read(outputs0, outputs1)
                bytes_each = max(1.0, *(side.size() / complete for side in sides))
                self._most[pair] = max(1, int(_MAX_BLOCK_BYTES / bytes_each))
                block = [sides]
                self.outputs_fingerprint.add(pair, start, (outputs0, outputs1))
                self.seen[pair][0].add(outputs0)
                self.seen[pair][1].add(outputs1)
                self.beginning.add(pair, (outputs0, outputs1))
                for memory, outputs in zip(self._memories[pair], (outputs0, outputs1), strict=True):
                    memory.add(outputs, bytes_each)
        except OutputError as error:
            failures.insert(0, f"gave an output that cannot be read: {error}")
        except (SystemExit, GeneratorExit) as error:  # of the output's own code, e.g. in __array__
            failures.insert(0, f"gave an output that cannot be read: it raised {in_words(error)}")
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
    execution: ExecutionSettings,
    tested: TradeoffFunction,
) -> Collector:
    """A collector with no trials yet, for the arguments of `audit`; `tested`: the claim for both orders."""
    chosen = resolve_attacks(attacks, released=isinstance(mechanism, (CommandMechanism, IsolatedMechanism)))
    bets = strategy(tested)
    log_prices = bets.log_prices(tested)

    def worth(counts: BinCounts) -> float:
        return bets.log_wealth(bets.gains(log_prices, counts[None]))

    return Collector(
        sampler=Sampler(mechanism, pairs, seed, jobs, execution),
        learners=[Learner(chosen, seed, index, Experts(worth)) for index in range(len(pairs))],
        allowed=trials,
        held=_held(mechanism),
    )


def _held(mechanism: Any) -> Counter[float] | None:
    """The numbers that a mechanism holds; None of a program, and where they cannot be looked at."""
    if isinstance(mechanism, CommandMechanism | IsolatedMechanism):
        return None
    with suppress(Exception):  # of the mechanism's own code, which the first run will meet
        return held_numbers(mechanism)
    return None
