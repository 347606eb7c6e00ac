"""Runs the mechanism on all pairs, block by block, and records its failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.independence import Seen
from dpaudit.inference.independence.signs import (
    FIRST_SHARE,
    SUSPICIOUS,
    TESTED_OUTPUTS,
    Memory,
    coupling,
    dependence,
    drift,
)
from dpaudit.inference.sequential.planned import Planned
from dpaudit.inference.sequential.strategy import strategy
from dpaudit.learning import Experts, Learner, symmetric_columns
from dpaudit.learning.attack import Attack, hinted, resolve_attacks
from dpaudit.learning.blocks import Block
from dpaudit.numerics import Array
from dpaudit.outputs import OutputError, Timed
from dpaudit.pairs.pair import Pair, candidates, target_rows
from dpaudit.running import CommandMechanism, IsolatedMechanism, MechanismError
from dpaudit.running.fresh_process import NotPossible, sent
from dpaudit.running.identity import Beginning, OutputsFingerprint
from dpaudit.running.mechanisms import resolved
from dpaudit.running.outcomes import in_words
from dpaudit.running.runs import ExecutionSettings, costly
from dpaudit.running.sampler import Sampler
from dpaudit.running.store import StoreError
from dpaudit.running.streams import stream
from dpaudit.text import Reason, WarningCode
from dpaudit.values import Output, RawOutputs, key
from dpaudit_attacks.supported import Supported


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a running audit."""

    trials: int  # number of runs made on each dataset so far
    allowed: int  # maximum number of runs on each dataset
    log_e: float  # evidence against the claim in nats; nan if the claim is tested only at the end
    log_threshold: float  # evidence in nats at which the claim is refuted
    failed: bool = False  # whether a failed run ended the trials of a pair


ProgressCallback = Callable[[Progress], None]
Bet = Callable[[int, tuple[Array, Array] | None], None]
"""A function of a pair and the scores of a block (None without a score), called before attacks learn from the block."""


@dataclass(slots=True, kw_only=True)
class Turn:
    """One step of the learning loop, which processes one block of one pair."""

    pair: int
    near: bool = False  # whether the audit may stop soon, so that `Collector.next_block` makes small blocks
    learned: bool = False  # whether the block contained outputs


_LARGE, _SMALL = 32, 128  # a block has 1/32 of the trials so far, or 1/128 if the audit may stop soon
_SLOW = 0.01  # seconds per run from which on a mechanism is slow
_FEW = 8  # outputs are large if a block holds fewer
_OBSERVED = 4  # further runs after a refutation are made in blocks of a quarter of the runs so far
MAX_BLOCK_TRIALS = 65_536  # maximum number of trials in a block once the score is frozen
_MAX_BLOCK_BYTES = 2**23  # maximum size of the outputs of one dataset in a block, in bytes, before encoding


@dataclass
class Collector:
    """An object that runs the mechanism and passes the outputs of each pair to the learner of this pair."""

    sampler: Sampler
    learners: Sequence[Learner]  # the learner of each pair
    allowed: int  # maximum number of runs on each dataset, over all pairs
    trials: int = field(default=0, init=False)  # number of runs made on each dataset so far, summed over all pairs
    spent: list[int] = field(init=False)  # number of trials made on each pair
    failure: str = field(default="", init=False)  # the failure that ended the audit; "" if there was none
    ended: str = field(default="", init=False)  # how a budget of the mechanism ended; "" if it did not
    dropped: dict[int, str] = field(default_factory=dict, init=False)  # pair index -> failure that ended its trials
    last_pair: int | None = field(default=None, init=False)  # index of the pair on which a failure ended the audit
    interrupted: bool = field(default=False, init=False)  # whether the user interrupted the audit
    observed: int = field(default=0, init=False)  # number of runs on each dataset that only tests of independence use
    outputs_fingerprint: OutputsFingerprint = field(default_factory=OutputsFingerprint, init=False)
    seen: list[tuple[Seen, Seen]] = field(init=False)  # for each pair: whether outputs of d0 and of d1 vary
    notes: list[str] = field(default_factory=list)  # warnings about the audit from before the first run
    beginning: Beginning = field(default_factory=Beginning, init=False)
    sent: object = None  # the mechanism in a form for new processes; a `NotPossible` if there is none
    since: float = field(default_factory=time.time)  # when the audit began
    most: list[int] = field(init=False)  # for each pair, the maximum number of trials whose outputs are held at once
    _memories: list[tuple[Memory, Memory]] = field(init=False)  # for each pair, outputs for tests of independence

    def __post_init__(self) -> None:
        self.spent, self.most = ([start] * len(self.learners) for start in (0, _MAX_BLOCK_BYTES))
        self._memories = [(Memory(), Memory()) for _ in self.learners]
        self.seen = [(Seen(), Seen()) for _ in self.learners]

    @property
    def open(self) -> bool:
        """Whether further trials can be made."""
        return self.trials < self.allowed and not self.failure and not self.ended and not self.void

    @property
    def void(self) -> str:
        """The reason why the counted scores are invalid as evidence; "" if they are valid."""
        return next((learner.void for learner in self.learners if learner.void), "")

    @property
    def unseen(self) -> list[str]:
        """The reasons why the audit could not make all trials on some pairs, which exclude NO_VIOLATION."""
        found = []
        for index, (learner, pair) in enumerate(zip(self.learners, self.sampler.pairs, strict=True)):
            if index in self.dropped or learner.hopeless:
                who = "the mechanism failed" if index in self.dropped else "every attack was dropped"
                found.append(f"no conclusion about pair {pair}: {who} on this pair; remove the cause or the pair")
        return found

    @property
    def side_effects(self) -> list[str]:
        """Warnings about side effects of the mechanism, and about failed runs that were retried."""
        with0, with1 = self.sampler.side_effects
        found = (with0 + with1).words()
        if self.sampler.execution.failures == "retry" and with0.failed + with1.failed:
            words = (
                f"{with0.failed} runs on d0 and {with1.failed} on d1 failed and were retried: the claim was tested "
                "on successful runs only (use failures: outcome to audit the failures as well)"
            )
            found.append(Reason(words, WarningCode.RETRIED))
        if with0.repeated + with1.repeated:
            words = (
                f"{with0.repeated} requests with d0 and {with1.repeated} with d1 were sent again after a pause, since "
                "the service was busy or did not answer: the claim was tested on the answers"
            )
            found.append(Reason(words, WarningCode.RETRIED))
        return found

    @property
    def slow(self) -> bool:
        """Whether runs take so long, or outputs so much memory, that fresh runs are as few as those of the proof."""
        return costly(self.sampler.mechanism) or self.sampler.seconds_per_run > _SLOW or min(self.most) < _FEW

    def compared(self, pair: int, side: int) -> list[Output]:
        """Return as many of the first outputs as one of `CHECKPOINTS` says, which are none if there are too few."""
        memory = self._memories[pair][side]
        return memory.first[: memory.length]

    def dependence(self) -> list[Reason]:
        """Return why the guarantee does not hold; the tests on all pairs together have the level `SUSPICIOUS`."""
        if self.void:
            return [Reason(self.void, WarningCode.VOID)]
        return [
            Reason(f"{sign} (pair {pair})", WarningCode.DEPENDENT)
            for index, pair in enumerate(self.sampler.pairs)
            for sign in dict.fromkeys(self._signs(index, SUSPICIOUS / len(self.learners)))
        ]

    def untested(self, compared: int | None) -> list[str]:
        """Return a warning if pairs, except the one `compared` between processes, have too few runs for a test."""
        pairs, runs = self.sampler.pairs, [len(memories[0].first) for memories in self._memories]
        few = [pairs[index] for index, made in enumerate(runs) if 0 < made < TESTED_OUTPUTS and index != compared]
        if not few:
            return []
        where = f"pair {few[0]}" if len(few) == 1 else f"{len(few)} of {len(pairs)} pairs, the first is {few[0]}"
        words = "no test checked whether runs are independent: fewer than"
        return [f"{words} {TESTED_OUTPUTS} runs per dataset ({where})"]

    def _signs(self, pair: int, significance: float) -> list[str]:
        """Test whether runs of a pair are dependent; outputs and scores each get half of the significance."""
        memories, signs = self._memories[pair], []
        runs = [
            ([memory.first[: memory.length] for memory in memories], significance * FIRST_SHARE, True),
            ([memory.thinned for memory in memories], significance * memories[0].spread_share, False),
        ]
        for (outputs0, outputs1), level, consecutive in runs:
            if not len(outputs0) or not len(outputs1):
                continue
            timed = self.sampler.execution.observe_time  # running times may depend on each other, but outputs may not
            outputs = tuple([o.output if isinstance(o, Timed) else o for o in side] for side in (outputs0, outputs1))
            rng = stream(self.sampler.seed, "shuffle", pair, int(consecutive))
            columns, scores = symmetric_columns(self.learners[pair], outputs[0], outputs[1], rng, refit=not timed)
            share = level / 6  # 6 tests: d0, d1 and the two together, each on outputs and on scores
            by_score = share / len(self.learners[pair].attacks)  # corrected, because these runs selected the attack
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
        """Make further runs of a pair after a refutation, which are no evidence, up to `runs` on each dataset."""
        start, learner = self.spent[pair], self.learners[pair]
        store, self.sampler.store = self.sampler.store, None  # not stored: an audit that resumes may make other blocks
        try:
            while start < runs and (left := self.allowed - self.trials - self.observed) > 0:
                size = min(runs - start, left, self.most[pair], max(2, start // _OBSERVED))
                outcomes = self.sampler.block(pair, start, start + size)
                complete = min(len(outcome.outputs) for outcome in outcomes)
                outputs0, outputs1 = (outcome.outputs[:complete] for outcome in outcomes)
                if not complete:
                    break
                block = learner.read(outputs0, outputs1)
                if learner.ready:
                    learner.score_fresh(*block)  # updates the weights of the attacks
                learner.learn(*block)
                self._remember(pair, (outputs0, outputs1))
                start, self.observed = start + complete, self.observed + complete
        except OutputError:
            pass
        finally:
            self.sampler.store = store

    def _remember(self, pair: int, sides: tuple[RawOutputs, RawOutputs], bytes_each: float = 8.0) -> None:
        for seen, memory, outputs in zip(self.seen[pair], self._memories[pair], sides, strict=True):
            seen.add(outputs)
            memory.add(outputs, bytes_each)

    @contextmanager
    def limited(self, trials: int) -> Iterator[None]:
        """In a `with` block, limit the total number of runs on each dataset, including earlier runs."""
        allowed, self.allowed = self.allowed, trials
        try:
            yield
        finally:
            self.allowed = allowed

    def learn(self, turn: Callable[[], Turn | None], bet: Bet | None = None) -> Iterator[Turn]:
        """Yield each step of the loop of an audit or a replay, after the learner has learned from its block."""
        while self.open and (now := turn()) is not None:
            learner, block = self.learners[now.pair], self.next_block(now.pair, near=now.near)
            for outputs0, outputs1 in block:
                scores = learner.score_fresh(outputs0, outputs1) if learner.ready else None  # also updates the weights
                if bet is not None:
                    bet(now.pair, scores)
                learner.learn(outputs0, outputs1)
            now.learned = bool(block)
            yield now

    def next_block(self, pair: int, *, near: bool = False) -> list[Block]:
        """Make the next block of a pair whose score is still refitted.  It ends where scores are refitted."""
        learner = self.learners[pair]
        due = learner.next_fit - learner.trials  # number of trials until the next fit
        size = max(2, learner.trials // (_SMALL if near else _LARGE)) if learner.ready else due
        return self.block(pair, min(size, due, learner.max_block_trials or size))

    def blocks(self, pair: int, until: int) -> Iterator[Block]:
        """Yield large blocks of a pair until the number of trials of all pairs is `until`, or no trials can be made."""
        while self.open and self.trials < until and pair not in self.dropped:
            yield from self.block(pair, min(MAX_BLOCK_TRIALS, until - self.trials))

    def block(self, pair: int, size: int) -> list[Block]:
        """Make a block of at most `size` trials of a pair; fewer if its outputs are large.

        A failure ends the trials of the pair, and of the audit if all pairs have failed.  The list is empty if it came
        first.
        """
        start = self.spent[pair]
        size = min(size, self.most[pair], self.allowed - self.trials)
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
                self.most[pair] = max(1, int(_MAX_BLOCK_BYTES / bytes_each))
                block = [sides]
                self.outputs_fingerprint.add(pair, start, (outputs0, outputs1))
                self.beginning.add(pair, (outputs0, outputs1))
                self._remember(pair, (outputs0, outputs1), bytes_each)
            if (block or self.trials) and (spent := [outcome for outcome in outcomes if outcome.spent]):
                self.ended = f"the mechanism {spent[0].failure}"
                runs = f"the verdict rests on the {self.trials + complete:,} runs per dataset before"
                self.notes.append(f"{self.ended}; {runs}")
                failures = []
        except OutputError as error:
            failures.insert(0, f"gave an output that cannot be read: {error}")
        except (SystemExit, GeneratorExit) as error:  # raised by methods of an output, such as `__array__`
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
    mechanism: object,
    pairs: Sequence[Pair],
    attacks: str | Attack | Sequence[str | Attack],
    trials: int,
    seed: int,
    jobs: int,
    execution: ExecutionSettings,
    tested: TradeoffFunction,
    planned: Planned | None = None,
) -> Collector:
    """Return a new collector for the arguments of `audit`.  The argument `tested` is the symmetrized claim."""
    chosen = resolve_attacks(attacks, released=isinstance(mechanism, (CommandMechanism, IsolatedMechanism)))
    chosen = hinted(chosen, resolved(mechanism))
    try:
        form: object = sent(mechanism)
    except NotPossible as error:
        form = error
    worth = strategy(tested, planned).of_one_pair(tested)
    each = [[*chosen, *_of_local_reports(mechanism, pair, attacks)] for pair in pairs]
    return Collector(
        sampler=Sampler(mechanism, pairs, seed, jobs, execution),
        learners=[
            Learner(known, seed, i, Experts(worth), targets=target_rows(pair))
            for i, (known, pair) in enumerate(zip(each, pairs, strict=True))
        ],
        allowed=trials,
        sent=form,
    )


def _of_local_reports(mechanism: object, pair: Pair, attacks: str | Attack | Sequence[str | Attack]) -> list[Attack]:
    """Return the attack for a pair that uses the mechanism's `supports`, if "auto" is wanted and there is one."""
    supports = getattr(resolved(mechanism), "supports", None)
    wanted = attacks == "auto" or (isinstance(attacks, Sequence) and "auto" in attacks)
    return [Supported(supports, candidates(pair))] if wanted and callable(supports) else []
