"""Violations whose outputs never vary: runs in new processes rule out a cache.

A mechanism that caches its first output on each dataset makes only one independent run on each dataset.  If its law is
continuous, the two cached outputs differ, and an audit that assumes independent runs refutes any claim.  A mechanism
without noise, or with a fixed seed, looks the same in one process, but violates its claim.

**When new processes are needed.**  New processes are needed if a violation is about to be reported and the constant
outputs on one dataset are suspicious.  They are suspicious if all outputs on the other dataset are equal, too, or if
the constant contains a non-integer number.  A constant without non-integer numbers, such as an answer that is always 0,
is not suspicious if the outputs on the other dataset vary, because the mechanism then draws fresh randomness in each
run.  Each part of an output (of a list, dict or array) is examined in the same way, because a mechanism may cache one
number and draw others in each run.

**How the processes decide.**  If the code cannot keep state (`mechanisms.stateless.forgets`), the runs share no memory,
and the violation stands.  Otherwise 2k new processes run the mechanism once each with other randomness, k on each
dataset.  The violation stands only if every output equals the constant of its own dataset and differs from the constant
of the other dataset.  A dataset without a constant imposes no condition.

Theorem:
    Let the processes be independent of each other, and the claim true.  Then a violation is reported with probability
    at most s, the significance of the audit, whatever happens within a process.

Proof:
    Let c be the constant of one dataset, or its constant parts, seen before the new processes start.  In each process,
    the event {output = c} has a fixed probability on d0 and a fixed probability on d1, and the claim relates the two.
    The violation stands only if the event occurs in all k processes on the dataset of c, and in no process on the other
    dataset.  Let p be the exact p-value of these counts (Theorem 1 of `inference.fixed.exact_binomial`), with the
    symmetrized claim.  k is the least number with p <= s, and depends on the claim alone.  So the violation stands with
    probability at most s, given all earlier events.  If the runs in this process are independent, the audit's own test
    has level s, and the additional condition lowers this level.

The same processes test all suspicious pairs, and every pair must pass, so several pairs do not raise this probability.
A few processes that agree do not prove a fixed seed, even if their outputs have many digits.  For example, an unbiased
randomised response has only two outputs, which may have many digits.  With a cache, most new processes would keep the
more likely output, and so agree.

Outputs that vary may contain noise that was drawn once; `engine.reproduced` examines such violations.

A cache outside the process, on disk or in a server, would look like a fixed seed.  So the audit is inconclusive if
Python code reads a file, connects to a server or starts a program in a new process (`sampling.fresh_process`).
Programs, isolated mechanisms, and files that a compiled library opens are not watched.  A cache in one of these places
looks like a fixed seed.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.judgement import Judgement
from dpaudit.engine.reproduced import reproduced
from dpaudit.engine.seen import MIN_OUTPUTS, Seen, not_whole, same, shown
from dpaudit.inference.fixed import exact_binomial
from dpaudit.mechanisms import CommandMechanism, IsolatedMechanism
from dpaudit.mechanisms.stateless import forgets
from dpaudit.numerics.bisect import bisect_integers
from dpaudit.outputs import Timed
from dpaudit.sampling.detached import Dataset
from dpaudit.sampling.fresh_process import (
    Missing,
    NotPossible,
    Place,
    outputs_in_a_fresh_process,
    part_of,
    sent,
    told_apart,
)
from dpaudit.sampling.runs import Runs
from dpaudit.sampling.sampler import made_in_one_process
from dpaudit.sampling.streams import stream
from dpaudit.values import Output
from dpaudit.values.content import key

if TYPE_CHECKING:
    from dpaudit.engine.collector import Collector

Constants = tuple[dict[Place, Output], dict[Place, Output]]
"""Constant parts of the outputs on d0 and on d1, by their paths."""

MAX_WORKERS = 256  # more different outputs than this number cannot come from one cache per worker
PROBED = 20  # minimum number of runs that show whether outputs vary within one process
MAX_PROBED = 1_000  # maximum number of these runs; the more frequent a value is, the more runs are needed
MAX_PROCESSES = 200  # maximum number of new processes for each dataset
_THREE_CAUSES = "the mechanism has no noise, a fixed seed, or a cache"
MAX_SECONDS = 60.0  # time limit of all new processes together; a process takes about half a second to start


def nothing_varied(collector: Collector) -> list[str]:
    """Explain why an audit could find no violation, if the outputs never varied on any pair.

    Args:
        collector: The collector after the last trial.

    Returns:
        A list of one reason; empty if some outputs varied, or if there were too few outputs.
    """
    seen = [sides for sides in collector.seen if sides[0].runs]
    if not all(side.constant for sides in seen for side in sides) or sum(sides[0].runs for sides in seen) < MIN_OUTPUTS:
        return []
    equal = [sides for sides in seen if same(sides[0].value, sides[1].value)]
    if len(equal) < len(seen):
        sides = next(sides for sides in seen if not same(sides[0].value, sides[1].value))
        return [f"{_constants(sides)}: {_THREE_CAUSES}, so only one output of each dataset was seen"]
    runs = 2 * sum(sides[0].runs for sides in seen)
    what = {shown(sides[0].value): None for sides in seen}
    if len(what) == 1:
        return [f"every one of the {runs:,} outputs was {next(iter(what))}, so no violation could have been found"]
    return [f"the {runs:,} outputs never varied on any pair, so no violation could have been found"]


def judged(
    collector: Collector,
    evidence: Mapping[int, float],
    tested: TradeoffFunction,
    significance: float,
    *,
    accused: bool = True,
) -> Judgement:
    """Judge whether a violation that is about to be reported may rest on a cache or on noise drawn once.

    Args:
        collector: The collector after the last trial.
        evidence: Pair index -> evidence against the claim, nats.
        tested: The claim, symmetrized (`TradeoffFunction.symmetrized`).
        significance: Significance of the audit, between 0 and 1.
        accused: Whether the claim is refuted.  If False, only outputs that never varied are judged.

    Returns:
        Doubts, if runs may not be independent; hints about the cause otherwise.
    """
    sampler = collector.sampler
    telling = [pair for pair, log_e in evidence.items() if log_e > 0]
    if accused and evidence and not telling:  # only all pairs together refute the claim
        telling = [max(evidence, key=lambda pair: evidence[pair])]
    if sampler.jobs != 1:
        for pair in telling:
            if words := _kept_by_workers(collector, pair):
                return Judgement(doubts=[words])
    suspects = {pair: found for pair in telling if any(found := _suspects(collector.seen[pair]))}
    if not suspects:
        return _reproduced(collector, telling, evidence, tested, significance) if accused else Judgement()
    strongest = max(suspects, key=lambda pair: evidence[pair])
    words = _constants(collector.seen[strongest], suspects[strongest])
    datasets = [dataset for pair in suspects for dataset in (sampler.pairs[pair].d0, sampler.pairs[pair].d1)]
    try:
        if not _forgets(sampler.mechanism, datasets):
            _confirm(collector, suspects, tested, significance)
    except NotPossible as error:
        return Judgement(
            doubts=[
                f"{words}: {_THREE_CAUSES}.  With a cache there was only one independent run of each dataset.  "
                f"New processes did not rule out a cache: {error}"
            ]
        )
    return Judgement(hints=[f"{words}: the mechanism has no noise or a fixed seed"])


def _reproduced(
    collector: Collector,
    telling: Sequence[int],
    evidence: Mapping[int, float],
    tested: TradeoffFunction,
    significance: float,
) -> Judgement:
    """Judge the strongest pair by `engine.reproduced`, because its outputs vary."""
    if not telling:
        return Judgement()
    pair = max(telling, key=lambda one: evidence[one])
    sides = collector.sampler.pairs[pair]
    if _forgets(collector.sampler.mechanism, (sides.d0, sides.d1)):
        return Judgement()
    return reproduced(collector, pair, tested, significance)


def _kept_by_workers(collector: Collector, pair: int) -> str:
    """Explain why each worker process may cache its output; "" if there is no sign of such caches.

    With such caches there is one output per worker, and outputs do not vary within a process.  So if there are few
    different outputs, and they contain non-integer numbers, the mechanism runs again in this process.  Outputs that
    vary in this process are not cached.
    """
    sampler = collector.sampler
    datasets = (sampler.pairs[pair].d0, sampler.pairs[pair].d1)
    for side, dataset in enumerate(datasets):
        first = [output.output if isinstance(output, Timed) else output for output in collector.first(pair, side)]
        values = Counter(key(output) for output in first)
        if not (1 < len(values) <= min(MAX_WORKERS, len(first) - 1) and not_whole(first)):
            continue
        if _forgets(sampler.mechanism, datasets):
            return ""
        share = max(values.values()) / len(first)
        runs = min(MAX_PROBED, max(PROBED, math.ceil(math.log(1e-3) / math.log(share))))
        probe = made_in_one_process(
            Runs(sampler.mechanism, Dataset(dataset), sampler.seed, pair, side, 0, runs, sampler.execution)
        )
        seen = Seen()
        seen.add(probe.outputs)
        if seen.constant and not probe.failure:
            return (
                f"the first {len(first):,} outputs of d{side} have only {len(values)} different values, and {runs} "
                "runs in one process gave a single value.  Each worker process may cache its outputs; then the runs "
                "are not independent: switch the cache off"
            )
    return ""


def _forgets(mechanism: object, datasets: Sequence[object]) -> bool:
    if isinstance(mechanism, CommandMechanism | IsolatedMechanism):
        return False
    return forgets(mechanism, *datasets)


def _suspects(sides: tuple[Seen, Seen]) -> Constants:
    """Return the parts of the outputs on each dataset that never varied and may be cached."""
    constants = sides[0].constants, sides[1].constants
    if () in constants[0] and () in constants[1]:
        return ({}, {}) if same(sides[0].value, sides[1].value) else constants
    found: Constants = ({}, {})
    for side, own in enumerate(constants):
        for path, value in own.items():
            whole = () in constants[1 - side]
            other = part_of(sides[1 - side].value, path) if whole else constants[1 - side].get(path, Missing)
            if not same(value, other) if other is not Missing else not_whole(value):
                found[side][path] = value
    return found


def _confirm(
    collector: Collector, suspects: Mapping[int, Constants], tested: TradeoffFunction, significance: float
) -> None:
    """Run the mechanism in new processes, and raise NotPossible unless these rule out a cache."""
    sampler = collector.sampler
    mechanism = sent(sampler.mechanism)
    runs = runs_needed(tested, significance)
    if not runs:
        raise NotPossible(f"under this claim more than {MAX_PROCESSES} new processes would be needed for each dataset")
    ends = time.monotonic() + MAX_SECONDS
    paths = [[list(side) for side in sides] for sides in suspects.values()]
    expected = [[[told_apart(value) for value in side.values()] for side in sides] for sides in suspects.values()]

    def disagreement(task: tuple[int, int]) -> str:
        run, side = task
        datasets = [(sampler.pairs[pair].d0, sampler.pairs[pair].d1)[side] for pair in suspects]
        rng = stream(sampler.seed, "fresh", run, side)
        seeds = [int(seed) for seed in rng.integers(2**53, size=len(datasets))]
        if (left := ends - time.monotonic()) <= 0:
            raise NotPossible(f"{2 * runs} new processes would take longer than {MAX_SECONDS:.0f} s")
        found = outputs_in_a_fresh_process(mechanism, datasets, seeds, sampler.execution, timeout=left, paths=paths)
        for output, constants in zip(found, expected, strict=True):
            own, other = constants[side], constants[1 - side]
            if output[side] != own or (other and output[1 - side] == other):
                return (
                    f"a new process gave another output of d{side}, so the mechanism caches its outputs, or draws its "
                    "noise only once"
                )
        return ""

    tasks = [(run, side) for run in range(runs) for side in (0, 1)]
    single = isinstance(mechanism, CommandMechanism | IsolatedMechanism)  # a program has one process at a time
    most = 1 if single else min(4, os.cpu_count() or 1)
    for at in range(0, len(tasks), most):
        with ThreadPoolExecutor(most) as pool:
            for words in pool.map(disagreement, tasks[at : at + most]):
                if words:
                    raise NotPossible(words)


def runs_needed(tested: TradeoffFunction, significance: float) -> int:
    """Return the least k for which the counts k of k and 0 of k refute the claim; 0 if k exceeds `MAX_PROCESSES`."""

    def enough(k: int) -> bool:
        return exact_binomial.p_value(tested, 0, k, k, k) <= significance

    if not enough(MAX_PROCESSES):
        return 0
    low, high = 0, 1
    while not enough(high):
        low, high = high, min(2 * high, MAX_PROCESSES)
    return bisect_integers(enough, inside=high, outside=low).inside


def _constants(sides: tuple[Seen, Seen], suspects: Constants = ({}, {})) -> str:
    """Describe in words which outputs never varied, for warnings."""
    found = [
        f"all {side.runs:,} outputs of d{number} were {shown(side.value)}"
        for number, side in enumerate(sides)
        if side.constant
    ]
    for number, side in enumerate(sides):
        parts = [(path, value) for path, value in suspects[number].items() if path]
        if parts:
            path, value = parts[0]
            name = "output" + "".join(f"[{part!r}]" for part in path)
            more = f" (and {len(parts) - 1} more parts never varied)" if len(parts) > 1 else ""
            found.append(f"{name} was {shown(value)} in all {side.runs:,} runs on d{number}{more}")
    return " and ".join(found)
