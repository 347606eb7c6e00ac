"""Whether a violation shows in new processes as well, or only with the state that this process has kept.

A mechanism may draw noise once and use it again: from a pool of a few values, or with fresh jitter added.  Its runs
look independent.  They are independent given the kept noise, and the audit refutes the law of outputs given that noise.
The claim is about another law, in which all noise is drawn anew.

**When this is asked.**  A violation is about to be reported, its outputs vary (`engine.constant_outputs` judges those
that do not), and the code may keep something (`mechanisms.stateless.forgets`).  Of a program or an isolated mechanism,
whose state cannot be looked at, it is asked only if outputs that are not whole were repeated (`engine.pools`).

**How it is answered**, by the first that decides:

1. Twins.  Some runs are made here, where much may be kept, and the same runs, with the same randomness, in two new
   processes.  If all outputs agree, they depend on the dataset and the given randomness alone: the violation stands.
2. State.  The numbers that the mechanism holds in these two processes are compared (`mechanisms.held`).  If they
   agree, and no output that is not whole was repeated, neither process holds noise of its own: the violation stands.
   The mechanism then has its own source of randomness.  The violation also stands if the numbers that differ are
   whole, and the outputs are not.
3. Values.  If most outputs of both datasets were repeated, 12 new processes give one output of each dataset.  The
   violation stands unless values that were never seen here come too often, at level 1e-6 for each dataset
   (`inference.fixed.newcomers`).  This is not asked if even twelve values never seen would not be too many.
4. The claim.  A score and a region are frozen, and a number k is fixed.  2k new processes give one output each.  The
   violation stands if their counts refute the claim at the audit's significance (`inference.fixed.exact_binomial`).

Otherwise the audit is inconclusive.

Theorem:
    Let the processes be independent of each other, and the claim true of the first run in a process.  Then 4 lets a
    violation stand with probability at most s, the significance of the audit, whatever happens within a process.
Proof:
    Score, region and k are fixed before the processes start, and each gives one output.  So the counts are independent
    and binomial, and Theorem 1 of `inference.fixed.exact_binomial` applies, given everything before.

Theorem:
    Let outputs have a law without atoms over processes, given the randomness of the run.  Then 1 lets a violation that
    rests on kept noise stand with probability 0.
Proof:
    The outputs here and there are independent, given that randomness, so they agree with probability 0.

Steps 1 to 3 bound no probability that a violation stands wrongly.  In 1, kept noise on a grid may agree by chance, or
show in few runs: 32 are repeated.  Step 2 sees numbers in Python objects only.  The level of 3 bounds how often an
honest mechanism is doubted; values that few runs show may not be among twelve outputs.  A pool so large that few
outputs were repeated does not get to 3.

The audit's p-value and bounds are of the runs in this process, also if 4 lets the violation stand: a hint says so.
Step 4 loses power.  It sees only first runs, at most 60 of each dataset, in a region that was learned here.  Slight
violations, those of later runs, and those that the region does not show under other noise end inconclusive.

Where no new process can run the mechanism, only a strong suspicion makes the audit inconclusive: a pool on no grid, or
numbers that the mechanism has kept since the audit began.  Otherwise a hint says what was assumed, if outputs that are
not whole were repeated or a number that is not whole is held.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.judgement import Judgement
from dpaudit.engine.pools import Pool, pool_of
from dpaudit.engine.seen import not_whole, shown
from dpaudit.inference.fixed import exact_binomial, newcomers
from dpaudit.inference.fixed.regions import threshold_for_claim
from dpaudit.inference.grid import bin_counts
from dpaudit.inference.independence import key
from dpaudit.learning import Learner
from dpaudit.mechanisms import CommandMechanism, IsolatedMechanism
from dpaudit.mechanisms.held import fractions, held_numbers
from dpaudit.numerics.arrays import Array
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

if TYPE_CHECKING:
    from dpaudit.engine.collector import Collector

MAX_SECONDS = 60.0  # for all processes of an audit together
TWINS = 2  # processes that repeat runs of this one
NEWCOMERS = 12  # processes that are asked for values never seen
_MAX_KNOWN = 4_000  # further runs here, in which these may be seen
_SURELY = 1e-6  # level at which values never seen came too often
_MAX_CONFIRMING = 60  # processes for each dataset
_RUNS, _WARM_UP = 8, 100  # of each dataset that are repeated, and before these
_SECONDS = 1.0  # for the runs of one dataset before these

WAY_OUT = "Let the mechanism draw all noise from the rng that it is given, and switch caches off"

ONLY_HERE = "The audit's p-value and bounds are of the runs in this process, and hold only if these are independent"


def reproduced(collector: Collector, pair: int, tested: TradeoffFunction, significance: float) -> Judgement:
    """Judge a violation by a mechanism that may keep something from run to run.

    Args:
        collector: with all its trials.
        pair: on which the evidence is strongest.
        tested: the claim for both orders.
        significance: of the audit.
    """
    sampler = collector.sampler
    if sampler.execution.observe_time:  # the first run of a process takes longer
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
    return f"the mechanism holds other numbers in each new process, such as {shown(min(drawn, key=abs))}"


def _unasked(collector: Collector, asking: _Asking, pool: Pool | None, why: str) -> Judgement:
    """What holds where no new process could be asked."""
    if pool is not None and pool.strong:
        found = f"{pool.words}; they lie on no grid, and the other dataset never gives them"
    elif new := asking.came_to_hold():
        found = f"the mechanism has kept numbers since the audit began, such as {shown(min(new, key=abs))}"
    elif isinstance(collector.sampler.mechanism, CommandMechanism | IsolatedMechanism):
        words = f"runs of the program were assumed to be independent; new ones could not test that: {why}"
        return Judgement(hints=[words])
    else:
        held = fractions(held_numbers(collector.sampler.mechanism))
        words = f"runs in this process were assumed to be independent; new processes could not test that: {why}"
        return Judgement(hints=[words] if held or pool is not None else [])
    return Judgement(
        doubts=[f"{found}: noise may have been drawn once and used again.  New processes could not test that: {why}"]
    )


@dataclass
class _Asking:
    """Runs of the mechanism, here and in new processes."""

    collector: Collector
    pair: int
    ends: float  # on the clock
    mechanism: Any = None  # what `sent` gave
    confirmed: str = ""
    _each: float = 0.5  # seconds that a process takes

    def twins(self) -> set[float] | None:
        """None if runs here and the same runs in new processes agree, else numbers that only one of these holds."""
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
        """Whether most of the first outputs of a dataset were repeated."""
        return any(2 * len(set(map(key, self._first(side)))) <= len(self._first(side)) for side in (0, 1))

    @property
    def whole(self) -> bool:
        """Whether no first output of a dataset holds a number that is not whole."""
        return any(not any(map(not_whole, self._first(side))) for side in (0, 1))

    def values_recur(self) -> bool:
        """Whether values in new processes are not too often ones that were never seen here.

        False as well if twelve values never seen would not be too many on some dataset, so that nothing can be told.
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
        """Why one output each of new processes does not refute the claim; "" if it does."""
        learner = self.collector.learners[self.pair]
        most = int(min(_MAX_CONFIRMING, max(0.0, self._left) * self._workers / self._each / 2.5))
        seen0, seen1 = (bin_counts(side) for side in _scored(learner, self._first(0), self._first(1)))
        region = threshold_for_claim(seen0, seen1, tested, trials=max(1, most), significance=significance)
        rates = [_rate(seen0[region + 1 :], seen0), _rate(seen1[: region + 1], seen1)]
        k = _processes(tested, rates, significance, most)
        if not k:
            if most < _MAX_CONFIRMING:
                return f"There was time for {most} new processes for each dataset, too few to confirm the violation"
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
        """Numbers that are not whole and held since the audit began; none if each run adds some, as a history does."""
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
        """Fill what may be kept here.  How many runs of each dataset may be repeated."""
        runs = _RUNS
        for side in (0, 1):
            began = time.monotonic()
            _made(self._runs(("first", side), side, 1))
            each = max(1e-6, time.monotonic() - began)
            runs = min(runs, max(1, int(_SECONDS / each)))
            if (more := min(_WARM_UP, int(_SECONDS / each))) > 0:
                _made(self._runs(("warm up", side), side, more))
        return runs

    def _more(self, side: int) -> Sequence[Any] | np.ndarray[Any, Any]:
        """Outputs of further runs here, in about a second: more values of a pool, and of a grid."""
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

    def _first(self, side: int) -> list[Any]:
        return self.collector.first(self.pair, side)

    @property
    def _workers(self) -> int:
        single = isinstance(self.mechanism, CommandMechanism | IsolatedMechanism)  # one program runs under its name
        return 1 if single else min(4, os.cpu_count() or 1)

    @property
    def _left(self) -> float:
        return self.ends - time.monotonic()

    def _each_in_a_process(self, ask: Callable[..., Any], tasks: Sequence[Sequence[Runs]]) -> list[Any]:
        def answer(task: Sequence[Runs]) -> Any:
            if self._left <= 0:
                raise NotPossible(f"{len(tasks)} new processes would take longer than {MAX_SECONDS:.0f} s")
            return ask(task, timeout=self._left)

        with ThreadPoolExecutor(self._workers) as pool:
            return list(pool.map(answer, tasks))


def _made(runs: Runs) -> Sequence[Any] | np.ndarray[Any, Any]:
    outcome: Outcome = made(runs)
    if outcome.failure:
        raise NotPossible(f"the mechanism {outcome.failure}")
    return outcome.outputs


def _scored(learner: Learner, outputs0: Sequence[Any], outputs1: Sequence[Any]) -> list[Array]:
    try:
        return [learner.score(side) for side in learner.read(list(outputs0), list(outputs1))]
    except OutputError as error:
        raise NotPossible(f"an output there cannot be read: {error}") from None


def _rate(part: Any, whole: Any) -> float:
    return (float(part.sum()) + 0.5) / (float(whole.sum()) + 1)


def _processes(tested: TradeoffFunction, rates: Sequence[float], significance: float, most: int) -> int:
    """The least number for each dataset that refutes the claim with mistakes a little above their means; 0 if none."""
    for k in range(1, most + 1):
        x, z = (min(k, math.floor(k * rate + math.sqrt(k * rate * (1 - rate)))) for rate in rates)
        if x + z < k and exact_binomial.p_value(tested, x, k, k - z, k) <= significance:
            return k
    return 0
