"""A finished audit's witness, on fresh runs.

Attacks learn again, from as many fresh runs of the witness's pair as they learned from in the audit, and in the same
way.  Then they are frozen with the witness's threshold on the likelihood ratio, and further runs are counted.  The
region was settled before these, so the p-value is exact: `inference.fixed.exact_binomial`.  A sequential audit stopped
by its counts, which makes them look better than fresh ones on the average.

**When a violation is confirmed.**  A replay confirms at p <= 0.001, or at the audit's own significance if that is
smaller.  An audit at 95 % calls one true claim in twenty violated, and whoever replays such an alarm at the same level
would confirm one in twenty of those.

**Theorem (several looks).**  A replay with `extend` looks after n, 2n, 4n, ... runs per dataset, numbers that are fixed
beforehand, each time at all runs so far.  Let p_k be the exact p-value at look k = 1, 2, ...  If the claim is true,
P[some k: 2^k p_k <= s] <= s for every s.  So the least 2^k p_k so far is a p-value, whenever the replay stops.

*Proof.*  P[p_k <= s 2^-k] <= s 2^-k for each k, since region and number of runs do not depend on the outputs counted.
The sum over k is at most s (union bound).  A replay without `extend` looks once, at p_1 itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import Collector, Progress, Report, new_collector
from dpaudit.engine.constant_outputs import judged
from dpaudit.engine.fixed import STUDIED
from dpaudit.engine.provenance import changed_since
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.fixed.confirming import runs_to_confirm
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.learning import Learner
from dpaudit.learning.attack import Attack
from dpaudit.pairs.pair import Pair
from dpaudit.result.consistency import beyond, contradictions, dense, nearest_bin, pair_counts, row, unchecked
from dpaudit.result.evidence import FixedEvidence, SequentialEvidence
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Counts, Witness
from dpaudit.sampling.runs import Terms
from dpaudit.sampling.streams import fresh_seed
from dpaudit.text.printable import one_line
from dpaudit.text.rounding import lower, percent, percent_at_most, upper

__all__ = ["CONFIRMED", "Replay", "contradictions", "replay", "unchecked"]

CONFIRMED = 0.001
"""The largest fresh p-value that confirms a violation."""

_TIMES = 4  # as many runs are counted as in the audit, so that what stopped it at its luckiest moment is seen again
_LEAST = 1_000
_LEAST_LEARNED = 200
_CLEARLY = 3  # standard errors of the rates of a region
_LOOKS = 7  # of a replay that is extended: 64 times the runs of the first one
_POWER = 0.9  # with which the runs that are suggested decide
_MOST_SUGGESTED = 10**9  # runs; whoever needs more has seen no sign of a violation


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Replay:
    """What a replay found beside what the result says."""

    result: AuditResult
    counts: Counts  # of the region, on fresh runs
    learned_from: int  # fresh runs per dataset before those
    p_value: float  # of the claim, exact for all looks together; 1 if `valid` is False
    seed: int
    contradictions: tuple[str, ...]  # what the result says against its own counts
    warnings: tuple[str, ...]
    looks: int = 1  # how often the fresh counts were tested
    valid: bool = True  # False if fresh runs depended on each other or failed: they say nothing then
    unchecked: str = ""  # what could not be computed again, since another version wrote the result; "" if nothing
    runs_needed: float = math.nan  # about so many fresh runs per dataset would decide; inf if there is no sign of it

    @property
    def level(self) -> float:
        """The largest p-value at which fresh runs refute the claim: 0.001, or the audit's significance if smaller."""
        return min(CONFIRMED, 1 - self.result.confidence)

    @property
    def refuted(self) -> bool:
        """Whether the fresh runs alone refute the claim, at `level`."""
        return self.p_value <= self.level

    @property
    def reproduced(self) -> bool:
        """Whether nothing here speaks against the result.

        True if the result agrees with its own counts, the fresh runs are valid, and they refute the claim if the result
        does.  False does not show that the result is wrong: a violation may be "not confirmed yet", see `runs_needed`.
        """
        return self.valid and not self.contradictions and (self.refuted or not self.result.violated)

    def __repr__(self) -> str:
        return (
            f"<Replay of {self.result.name!r}: {self._conclusion().partition(':')[0].lower()}, "
            f"p <= {upper(self.p_value, under=self.level)}, {self.counts.n0:,} runs per dataset, seed {self.seed}>"
        )

    def __str__(self) -> str:
        witness = self.result.witness
        if witness is None:
            raise AssertionError("a replay is of a witness")
        rows = [("in the result", witness.counts), ("fresh", self.counts)]
        alpha = self.counts.false_positives / max(1, self.counts.n0)
        allowed = 1 - float(self.result.claim.symmetrized().beta(alpha))
        looked = f", corrected for {self.looks} looks" if self.looks > 1 else ""
        lines = [
            f"{self.result.name}: {self.result.verdict.value}, {self.result.claim.label}",
            f"  pair {witness.pair}, attack {witness.attack}",
            f"  region: {witness.region}",
            *(f"  {name:<14s} {row(counts)}" for name, counts in rows),
            f"  the claim allows at most {percent_at_most(allowed)} under d1 where {percent(alpha)} are under d0",
            f"  fresh exact p-value: p <= {upper(self.p_value, under=self.level)}{looked} ({self.counts.n0:,} runs per "
            f"dataset after {self.learned_from:,} to learn from, seed {self.seed})",
            *(f"  the result contradicts itself: {words}" for words in self.contradictions),
            *([f"  {self.unchecked}"] if self.unchecked else []),
            *(f"  warning: {words}" for words in self.warnings),
            self._conclusion(),
        ]
        return "\n".join(one_line(line.replace("\u00a0", " ")) for line in lines)

    def _conclusion(self) -> str:
        if self.contradictions:
            return "The evidence does not reproduce: the result is not what its own counts give."
        if not self.valid:
            return "Nothing can be said: the fresh runs failed or depended on each other, see the warnings."
        if not self.result.violated:
            return (
                "Fresh runs refute the claim; the result did not."
                if self.refuted
                else "Fresh runs do not refute the claim, either."
            )
        if self.refuted:
            return f"Confirmed: fresh runs refute the claim again; it takes p <= {lower(self.level, 2)}."
        if math.isinf(self.runs_needed):
            return (
                "Not confirmed: fresh runs give no sign of the violation.  The verdict may have been a false alarm, or "
                "the attack found another region this time; a new audit with another seed tells more."
            )
        needed = round(self.runs_needed)
        return (
            f"Not confirmed yet: it takes p <= {lower(self.level, 2)}.  About {needed:,} fresh runs per dataset would "
            f"decide: dpaudit replay FILE --trials {needed}, or --extend to go on from look to look."
        )


def replay(
    result: AuditResult,
    mechanism: Any,
    pairs: Pair | Iterable[Pair],
    *,
    attacks: str | Attack | Sequence[str | Attack] = "auto",
    trials: int | None = None,
    extend: bool = False,
    seed: int | None = None,
    jobs: int = 1,
    terms: Terms | None = None,
    progress: Report | None = None,
) -> Replay:
    """Repeat the witness of `result` on fresh runs of its mechanism, and compare.

    Args:
        result: A finished audit with a witness.
        mechanism: As in the audit.
        pairs: As in the audit; only the witness's is used.
        attacks: As in the audit.
        trials: Runs per dataset on which the region is counted.  Unless given, as many as the witness counts, four
            times as many for a violation, at least 1,000.  Before them come as many as the attacks had of that pair in
            the audit, at least 200.
        extend: Double the counted runs, up to 64 times `trials`, until they refute the claim or give no sign of a
            violation.  The p-value is corrected for the looks; see the module's theorem.
        seed: Of the fresh randomness; drawn unless given.  That of a fixed audit is refused: its runs would be
            counted again.
        jobs: As in the audit.
        terms: The audit's `observe_time`, `failures` and `timeout`.
        progress: Called after each block of runs.

    Returns:
        Fresh counts and their exact p-value, beside what the result says.

    Raises:
        ValueError: The result has no witness that can be replayed, its pair is not among `pairs`, `trials` < 1, or
            `seed` is that of a fixed audit.
        MechanismError: The mechanism fails at once.
    """
    witness = result.witness
    if witness is None or result.method not in (SequentialEvidence.method, FixedEvidence.method):
        raise ValueError(f"{result.name} has no witness that could be replayed (method {result.method})")
    if trials is not None and trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}")
    if terms is not None and terms.observe_time:
        raise ValueError(
            f"{result.name} is about running times; these are not independent from run to run, so that there is no "
            "exact p-value of a region: audit again with another seed instead"
        )
    pair = _pair_of(witness, [pairs] if isinstance(pairs, Pair) else list(pairs))
    counted = witness.counts.n0 if result.method == FixedEvidence.method else 0  # by a score that was frozen before
    rows = [row.trials - counted for row in result.pairs if row.label == witness.pair]
    learned_from = max([_LEAST_LEARNED, *rows])
    if seed is None:
        seed = fresh_seed()
    elif counted and seed == result.environment.get("seed"):  # else the counted runs come after those of the audit
        raise ValueError(
            f"seed {seed} is that of the audit: the runs that it counted would be counted again; give another, or none"
        )
    if trials is None:
        trials = max(_LEAST, (_TIMES if result.violated else 1) * witness.counts.n0)
    tested = result.claim.symmetrized()
    collector = new_collector(mechanism, [pair], attacks, learned_from + trials, seed, jobs, terms or Terms(), tested)
    said = result.environment.get(STUDIED)
    studied = said if isinstance(said, int) and 0 < said < learned_from else 0  # a file may say anything
    _learn(collector, learned_from - studied, progress)
    if studied and collector.learners[0].most_studied:
        collector.learners[0].study(_study_blocks(collector, studied, progress))
    learned_from = collector.trials
    level = min(CONFIRMED, 1 - result.confidence)
    fresh = _Fresh(collector, _settled(collector.learners[0], _threshold(witness, result), witness))
    looks, p_value = 0, 1.0
    while True:
        looks += 1
        collector.allowed = learned_from + trials * 2 ** (looks - 1)
        fresh.count(progress)
        p_now = fresh.p_value(tested)
        p_value = min(p_value, 2**looks * p_now) if extend else p_now
        needed = runs_to_confirm(tested, fresh.rates, fresh.counts.n0, level=level, power=_POWER, most=_MOST_SUGGESTED)
        hopeless = looks > 1 and math.isinf(needed)
        if not extend or not fresh.valid or p_value <= level or hopeless or looks == _LOOKS:
            break
    fresh.judge(tested, 1 - result.confidence, refuted=p_value <= level)
    return Replay(
        result=result,
        counts=fresh.counts,
        learned_from=learned_from,
        p_value=min(1.0, p_value) if fresh.valid else 1.0,
        seed=seed,
        contradictions=tuple(contradictions(result)),
        warnings=(*changed_since(result.environment, mechanism), *fresh.warnings),
        looks=looks,
        valid=fresh.valid,
        unchecked=unchecked(result),
        runs_needed=needed,
    )


class _Fresh:
    """A region that is frozen, and what was counted of it."""

    def __init__(self, collector: Collector, threshold: int) -> None:
        self._collector, self._threshold = collector, threshold
        self._total = np.zeros((2, BINS), dtype=np.int64)
        self.valid = True
        self.warnings: list[str] = []

    def count(self, progress: Report | None) -> None:
        """All runs that the collector allows."""
        collector, learner = self._collector, self._collector.learners[0]
        if learner.ready:
            for outputs0, outputs1 in collector.blocks(0, collector.allowed):
                self._total += [bin_counts(side) for side in learner.score_counted(outputs0, outputs1)]
                _tell(collector, collector.allowed, progress)
        dependent = collector.dependence()
        self.warnings = [*learner.warnings, *dependent, *([collector.failure] if collector.failure else [])]
        self.valid = not dependent and not collector.failure and bool(self._total.any())

    def judge(self, claim: TradeoffFunction, significance: float, *, refuted: bool) -> None:
        """Doubt counts that may rest on noise drawn once: there may have been few independent runs of each dataset."""
        if self.valid:
            doubts = judged(self._collector, {0: math.inf}, claim, significance, accused=refuted).doubts
            self.valid, self.warnings = not doubts, [*self.warnings, *doubts]

    @property
    def counts(self) -> Counts:
        return beyond(self._total, self._threshold)

    @property
    def rates(self) -> tuple[float, float]:
        """Share of the outputs of d0 in the region, and of those of d1 outside."""
        counts = self.counts
        return counts.false_positives / max(1, counts.n0), counts.false_negatives / max(1, counts.n1)

    def p_value(self, claim: TradeoffFunction) -> float:
        counts = self.counts
        y = counts.n1 - counts.false_negatives
        return exact_binomial.p_value(claim, counts.false_positives, counts.n0, y, counts.n1)


def _pair_of(witness: Witness, pairs: Sequence[Pair]) -> Pair:
    found = [pair for pair in pairs if str(pair) == witness.pair]
    if not found:
        raise ValueError(
            f"the witness is of the pair {witness.pair}, which is not among the pairs given: "
            f"{', '.join(map(str, pairs)) or 'none'}"
        )
    return found[0]


def _study_blocks(collector: Collector, trials: int, progress: Report | None) -> list[Any]:
    until, found = collector.trials + trials, []
    for block in collector.blocks(0, until):
        found.append(block)
        _tell(collector, collector.allowed, progress)
    return found


def _learn(collector: Collector, trials: int, progress: Report | None) -> None:
    """As an audit learns: each block is scored by what was learned before it, which tells how good each attack is."""
    learner = collector.learners[0]
    until, collector.allowed = collector.allowed, trials
    while collector.open:
        for outputs0, outputs1 in collector.next_block(0):
            if learner.ready:
                learner.score_fresh(outputs0, outputs1)
            learner.learn(outputs0, outputs1)
        _tell(collector, until, progress)
    collector.allowed = until


def _tell(collector: Collector, until: int, progress: Report | None) -> None:
    if progress is not None:
        progress(Progress(trials=collector.trials, allowed=until, log_e=math.nan, log_threshold=math.nan))


def _settled(learner: Learner, threshold: int, witness: Witness) -> int:
    """The last bin outside the region, for a score that was learned anew; settled before the runs that are counted.

    It is the witness's threshold, unless the rates there are clearly not the witness's and another threshold's are.  So
    it is where many outputs have the same score, and that score came out on the other side of the threshold this time.
    """
    if not learner.ready:
        return threshold
    scores = [bin_counts(learner.score(side)) for side in learner.outputs()]
    n = int(scores[0].sum())
    if n == 0:
        return threshold
    alpha = 1 - np.cumsum(scores[0])[:-1] / n
    beta = np.cumsum(scores[1])[:-1] / n
    away = np.abs(alpha - witness.alpha) + np.abs(beta - witness.beta)
    error = sum(math.sqrt(rate * (1 - rate) / n) for rate in (witness.alpha, witness.beta))
    if away[threshold] <= away.min() + _CLEARLY * error:
        return threshold
    best = np.flatnonzero(away == away.min())
    return int(best[len(best) // 2])


def _threshold(witness: Witness, result: AuditResult) -> int:
    """The last bin outside the region.  A file of before it was written has counts that name it."""
    if not math.isnan(witness.threshold):
        return nearest_bin(witness)
    counts = dense(witness) if witness.scores else pair_counts(result)
    fitting = [k for k in range(BINS - 1) if counts is not None and beyond(counts, k) == witness.counts]
    if not fitting:
        raise ValueError(f"{result.name}: the witness's counts are not among the evidence; its region is not known")
    return fitting[len(fitting) // 2]
