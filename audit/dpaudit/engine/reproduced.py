"""Judges violations whose outputs vary: runs in new processes detect noise that was drawn once and used again.

A mechanism may draw noise once and use it in many runs.  For example, the mechanism may choose from a pool of a few
values, or add fresh jitter to the kept noise.  Such runs are independent given the kept noise, so the audit tests the
law of outputs given that noise.  The claim is about a different law, under which every run draws fresh noise.

**When new processes are needed.**  New processes are needed if a violation is about to be reported, its outputs vary,
and the code may keep state (`mechanisms.stateless.forgets`).  If outputs do not vary, `engine.constant_outputs` judges.
The state of a program or an isolated mechanism cannot be read.  For these mechanisms, new processes are needed only if
non-integer outputs were repeated (`engine.pools`).

**How the processes decide.**  The steps are taken in this order, until one of them decides:

1. Twins.  This process, which may hold kept noise, makes two sets of runs.  Two new processes each repeat one set with
   the same randomness.  If all outputs agree, the outputs depend only on the dataset and the given randomness: the
   violation stands.
2. State.  The numbers that the mechanism holds in the two new processes are compared (`mechanisms.held`).  If these
   numbers agree, and no non-integer output was repeated, neither process holds its own noise: the violation stands.
   The outputs differed in step 1 because the mechanism draws from its own random source.  The violation also stands if
   only integers differ, no non-integer output was repeated, both datasets have non-integer outputs, and few outputs
   were repeated.
3. Values.  If, on either dataset, the first outputs have at most half as many distinct values as outputs, 12 new
   processes give one output on each dataset.  The violation stands unless values that were never seen in this process
   occur too often, at level 1e-6 for each dataset (`inference.fixed.newcomers`).  This step is skipped if even 12
   unseen values would not be significant at this level.
4. The claim.  A score and a region are frozen, and a number k is fixed.  2k new processes give one output each.  The
   violation stands if the counts of these outputs refute the claim at the audit's significance
   (`inference.fixed.exact_binomial`).

Otherwise the audit is inconclusive.

Theorem:
    Let the processes be independent of each other, and let the claim hold for the first run of each process.  Then
    step 4 lets the violation stand with probability at most s, the audit's significance, whatever happens in later
    runs.
Proof:
    Score, region and k are fixed before the processes start, and each process gives one output.  So the counts are
    independent and binomial given all earlier events, and Theorem 1 of `inference.fixed.exact_binomial` applies.

Theorem:
    Suppose that, given the randomness passed to a run, its output varies from process to process with a law that has no
    atoms.  Then step 1 lets a violation that rests on kept noise stand with probability 0.
Proof:
    Outputs of different processes are independent, given that randomness, so they agree with probability 0.

Steps 1 to 3 do not bound the probability that a violation stands wrongly.  Step 1 fails if noise on a grid agrees by
chance, or if kept noise affects none of the 32 repeated runs.  Step 2 sees only numbers in Python objects.  The level
of step 3 bounds the probability that a mechanism with independent runs is passed on to step 4, but not the probability
of a missed pool.  Step 3 misses kept values that are too rare to occur among twelve outputs.  If
the pool is so large that few outputs were repeated, step 3 is skipped and step 4 decides.

The audit's p-value and bounds apply to the runs in this process, even if step 4 lets the violation stand.  A hint
states this restriction.  Step 4 has less power than the audit, because it sees only first runs, at most 60 on each
dataset, in a region that was learned in this process.  The audit is inconclusive if a violation is slight, affects
later runs only, or no longer lies in the region when the noise is drawn again.

If no new process can run the mechanism, only a strong suspicion makes the audit inconclusive.  Such a suspicion
is a strong pool (`engine.pools`), or numbers that the mechanism has kept since the audit began.  Otherwise a hint
states what was assumed, if non-integer outputs were repeated or the mechanism holds a non-integer number.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.judgement import Judgement
from dpaudit.engine.pools import Pool, pool_of
from dpaudit.engine.seen import not_whole, shown
from dpaudit.inference.fixed import exact_binomial, newcomers
from dpaudit.inference.fixed.regions import threshold_for_claim
from dpaudit.inference.grid import bin_counts
from dpaudit.learning import Learner
from dpaudit.mechanisms import CommandMechanism, IsolatedMechanism
from dpaudit.mechanisms.held import fractions, held_numbers
from dpaudit.numerics.arrays import Array, Integers
from dpaudit.outputs import OutputError
from dpaudit.sampling.detached import Dataset
from dpaudit.sampling.fresh_process import (
    NotPossible,
    sent,
    told_apart,
    twin_in_a_fresh_process,
    values_in_a_fresh_process,
)
from dpaudit.sampling.runs import Outcome, Runs, made
from dpaudit.sampling.streams import stream
from dpaudit.text.rounding import upper
from dpaudit.values import Output, RawOutputs
from dpaudit.values.content import key

if TYPE_CHECKING:
    from dpaudit.engine.collector import Collector

Answer = TypeVar("Answer")

MAX_SECONDS = 60.0  # time limit of all new processes of an audit together
TWINS = 2  # number of processes in step 1
NEWCOMERS = 12  # number of processes in step 3
_MAX_KNOWN = 4_000  # maximum number of further runs in this process that collect known values for step 3
_SURELY = 1e-6  # level of step 3 for each dataset
_MAX_CONFIRMING = 60  # maximum number of processes for each dataset in step 4
_RUNS, _WARM_UP = 8, 100  # runs on each dataset that step 1 repeats, and maximum number of warm-up runs before them
_SECONDS = 1.0  # time limit of repeated, warm-up or further runs on one dataset in this process

WAY_OUT = "Let the mechanism draw all noise from the rng that it is given, and switch caches off"

ONLY_HERE = "The audit's p-value and bounds apply to the runs in this process, if these runs are independent"


def reproduced(collector: Collector, pair: int, tested: TradeoffFunction, significance: float) -> Judgement:
    """Judge a violation by a mechanism that may keep state from run to run.

    Args:
        collector: The collector after the last trial.
        pair: Index of the pair with the strongest evidence.
        tested: The claim, symmetrized (`TradeoffFunction.symmetrized`).
        significance: Significance of the audit, between 0 and 1.

    Returns:
        Doubts if noise may have been drawn once and used again.  Otherwise there may be hints that state assumptions.
    """
    sampler = collector.sampler
    if sampler.execution.observe_time:  # the first run of a process takes longer than others
        return Judgement()
    datasets = (sampler.pairs[pair].d0, sampler.pairs[pair].d1)
    pool = pool_of([collector.first(pair, side) for side in (0, 1)], datasets)
    program = isinstance(sampler.mechanism, CommandMechanism | IsolatedMechanism)
    if program and pool is None:
        return Judgement()
    asking = _Asking(collector, pair, time.monotonic() + MAX_SECONDS)
    try:
        asking.mechanism = sent(sampler.mechanism)
        drawn = asking.twins()
    except NotPossible as error:
        return _unasked(collector, asking, pool, str(error))
    recurring = asking.recurring
    if drawn is None or not (pool is not None or fractions(drawn) or (drawn and (recurring or asking.whole))):
        return Judgement()
    found = pool.words if pool is not None else _numbers(fractions(drawn) or drawn)
    try:
        if recurring and asking.values_recur():
            return Judgement()
        words = asking.refuted(tested, significance)
    except NotPossible as error:
        words = f"New processes did not confirm the violation: {error}"
    else:
        if not words:
            words = f"{found}; new processes refute the claim as well ({asking.confirmed}).  {ONLY_HERE}"
            return Judgement(hints=[words])
    return Judgement(doubts=[f"{found}: noise may have been drawn once and used again.  {words}.  {WAY_OUT}"])


def _numbers(drawn: set[float]) -> str:
    return f"the mechanism holds different numbers in each new process, such as {shown(min(drawn, key=abs))}"


def _unasked(collector: Collector, asking: _Asking, pool: Pool | None, why: str) -> Judgement:
    """Judge a violation that no new process could test."""
    if pool is not None and pool.strong:
        found = f"{pool.words}; they lie on no grid, and the other dataset never gives them"
    elif new := asking.came_to_hold():
        found = f"the mechanism has kept numbers since the audit began, such as {shown(min(new, key=abs))}"
    elif isinstance(collector.sampler.mechanism, CommandMechanism | IsolatedMechanism):
        words = f"runs of the program were assumed to be independent; new processes could not test this: {why}"
        return Judgement(hints=[words])
    else:
        held = fractions(held_numbers(collector.sampler.mechanism))
        words = f"runs in this process were assumed to be independent; new processes could not test this: {why}"
        return Judgement(hints=[words] if held or pool is not None else [])
    return Judgement(
        doubts=[f"{found}: noise may have been drawn once and used again.  New processes could not test this: {why}"]
    )


@dataclass
class _Asking:
    """Runs of the mechanism in this process and in new processes."""

    collector: Collector
    pair: int  # index of the pair
    ends: float  # deadline, on the monotonic clock
    mechanism: object = None  # the mechanism as returned by `sent`
    confirmed: str = ""  # how step 4 confirmed the violation, for the hint
    _each: float = 0.5  # estimated seconds per process

    def twins(self) -> set[float] | None:
        """Return None if all runs agree; otherwise the numbers that only one of the two new processes holds."""
        runs = self._warmed_up()
        here = [[self._runs(("twin", twin, side), side, runs) for side in (0, 1)] for twin in range(TWINS)]
        outputs = [[[told_apart(output) for output in _made(one)] for one in both] for both in here]
        there = [[replace(one, mechanism=self.mechanism) for one in both] for both in here]
        began = time.monotonic()
        twins = self._each_in_a_process(twin_in_a_fresh_process, there)
        self._each = max(0.1, (time.monotonic() - began) * self._workers / TWINS)
        if all(twin.outputs == own for twin, own in zip(twins, outputs, strict=True)):
            return None
        kept, other = (twin.kept for twin in twins[:2])
        return set((kept - other) | (other - kept))

    @property
    def recurring(self) -> bool:
        """Whether, on at least one dataset, at most half of the first outputs are distinct values."""
        return any(2 * len(set(map(key, self._first(side)))) <= len(self._first(side)) for side in (0, 1))

    @property
    def whole(self) -> bool:
        """Whether, on at least one dataset, the first outputs hold no non-integer numbers."""
        return any(not any(map(not_whole, self._first(side))) for side in (0, 1))

    def values_recur(self) -> bool:
        """Whether step 3 lets the violation stand, because unseen values are rare enough in new processes.

        Return False if step 3 is skipped, because even 12 unseen values would not be significant on some dataset.
        """
        known = [[key(o) for o in (*self._first(side), *self._more(side))] for side in (0, 1)]
        strangers = [object() for _ in range(NEWCOMERS)]
        if any(newcomers.p_value(side, strangers) > _SURELY for side in known):
            return False
        tasks = [[self._runs(("value", i, side), side, 1) for side in (0, 1)] for i in range(NEWCOMERS)]
        found = self._each_in_a_process(values_in_a_fresh_process, self._there(tasks))
        return all(
            newcomers.p_value(known[side], [key(outputs[side]) for outputs in found]) > _SURELY for side in (0, 1)
        )

    def refuted(self, tested: TradeoffFunction, significance: float) -> str:
        """Run step 4; return why the outputs of new processes do not refute the claim, or "" if they do."""
        learner = self.collector.learners[self.pair]
        most = int(min(_MAX_CONFIRMING, max(0.0, self._left) * self._workers / self._each / 2.5))
        seen0, seen1 = (bin_counts(side) for side in _scored(learner, self._first(0), self._first(1)))
        region = threshold_for_claim(seen0, seen1, tested, trials=max(1, most), significance=significance)
        rates = [_rate(seen0[region + 1 :], seen0), _rate(seen1[: region + 1], seen1)]
        k = _processes(tested, rates, significance, most)
        if not k:
            if most < _MAX_CONFIRMING:
                return f"There was time for only {most} new processes per dataset, too few to confirm the violation"
            return f"The violation is too small to be confirmed in {most} new processes for each dataset"
        tasks = [[self._runs(("claim", i, side), side, 1)] for i in range(k) for side in (0, 1)]
        found = [outputs[0] for outputs in self._each_in_a_process(values_in_a_fresh_process, self._there(tasks))]
        scores = _scored(learner, found[::2], found[1::2])
        x, y = (int(bin_counts(side)[region + 1 :].sum()) for side in scores)
        p_value = exact_binomial.p_value(tested, x, k, y, k)
        if p_value > significance:
            return (
                f"In {k} new processes for each dataset, {x} outputs of d0 and {y} of d1 fell into the region that the "
                "audit had found; these counts do not refute the claim"
            )
        self.confirmed = f"{k} of each dataset, p <= {upper(p_value, under=significance)}"
        return ""

    def came_to_hold(self) -> set[float]:
        """Return non-integer numbers acquired during the audit and still held; empty if every run adds some."""
        mechanism, before = self.collector.sampler.mechanism, self.collector.held
        now = fractions(held_numbers(mechanism))
        if before is None or not now - fractions(before):
            return set()
        try:
            runs = self._warmed_up()
        except NotPossible:
            return set()
        later = fractions(held_numbers(mechanism))
        return set() if len(later) >= len(now) + runs else (now & later) - fractions(before)

    def _warmed_up(self) -> int:
        """Make runs that may fill a cache or pool; return how many runs on each dataset step 1 should repeat."""
        runs = _RUNS
        for side in (0, 1):
            began = time.monotonic()
            _made(self._runs(("first", side), side, 1))
            each = max(1e-6, time.monotonic() - began)
            runs = min(runs, max(1, int(_SECONDS / each)))
            if (more := min(_WARM_UP, int(_SECONDS / each))) > 0:
                _made(self._runs(("warm up", side), side, more))
        return runs

    def _more(self, side: int) -> RawOutputs:
        """Make further runs in this process for about a second, to collect more values of a pool or a grid."""
        began = time.monotonic()
        first = _made(self._runs(("more", side), side, _RUNS))
        each = (time.monotonic() - began) / _RUNS + 1e-6
        if (more := min(_MAX_KNOWN, int(_SECONDS / each))) < _RUNS:
            return first
        return _made(self._runs(("many more", side), side, more))

    def _runs(self, path: tuple[str | int, ...], side: int, runs: int) -> Runs:
        sampler = self.collector.sampler
        pair = sampler.pairs[self.pair]
        seed = int(stream(sampler.seed, "reproduced", *path).integers(2**53))
        return Runs(
            sampler.mechanism, Dataset((pair.d0, pair.d1)[side]), seed, self.pair, side, 0, runs, sampler.execution
        )

    def _there(self, tasks: Sequence[Sequence[Runs]]) -> list[list[Runs]]:
        return [[replace(one, mechanism=self.mechanism) for one in task] for task in tasks]

    def _first(self, side: int) -> list[Output]:
        return self.collector.first(self.pair, side)

    @property
    def _workers(self) -> int:
        single = isinstance(self.mechanism, CommandMechanism | IsolatedMechanism)  # a program has one process at a time
        return 1 if single else min(4, os.cpu_count() or 1)

    @property
    def _left(self) -> float:
        return self.ends - time.monotonic()

    def _each_in_a_process(self, ask: Callable[..., Answer], tasks: Sequence[Sequence[Runs]]) -> list[Answer]:
        def answer(task: Sequence[Runs]) -> Answer:
            if self._left <= 0:
                raise NotPossible(f"{len(tasks)} new processes would take longer than {MAX_SECONDS:.0f} s")
            return ask(task, timeout=self._left)

        with ThreadPoolExecutor(self._workers) as pool:
            return list(pool.map(answer, tasks))


def _made(runs: Runs) -> RawOutputs:
    outcome: Outcome = made(runs)
    if outcome.failure:
        raise NotPossible(f"the mechanism {outcome.failure}")
    return outcome.outputs


def _scored(learner: Learner, outputs0: Sequence[Output], outputs1: Sequence[Output]) -> list[Array]:
    try:
        return [learner.score(side) for side in learner.read(list(outputs0), list(outputs1))]
    except OutputError as error:
        raise NotPossible(f"an output there cannot be read: {error}") from None


def _rate(part: Integers, whole: Integers) -> float:
    return (float(part.sum()) + 0.5) / (float(whole.sum()) + 1)


def _processes(tested: TradeoffFunction, rates: Sequence[float], significance: float, most: int) -> int:
    """Return the least k that refutes the claim if both error counts are 1 s.d. above their means; 0 if none exists."""
    for k in range(1, most + 1):
        x, z = (min(k, math.floor(k * rate + math.sqrt(k * rate * (1 - rate)))) for rate in rates)
        if x + z < k and exact_binomial.p_value(tested, x, k, k - z, k) <= significance:
            return k
    return 0
