"""A finished audit's witness, on fresh runs.

Attacks learn again, from as many fresh runs of the witness's pair as they learned from in the audit, and in the same
way.  Then they are frozen with the witness's threshold on the likelihood ratio, and further runs are counted.  The
region was settled before these, so the p-value is exact: `inference.exact_binomial`.  The counts of a sequential audit
were used to choose the region, which makes them look better than fresh ones on the average.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from dpaudit.engine.collecting import Collector, Progress, Report, new_collector
from dpaudit.engine.constant import judged
from dpaudit.engine.fixed import STUDIED
from dpaudit.evidence import FixedEvidence, SequentialEvidence
from dpaudit.inference import exact_binomial
from dpaudit.inference.grid import BINS, EDGES, bin_counts
from dpaudit.neighbours import Pair
from dpaudit.provenance import changed_since
from dpaudit.registry import Attack
from dpaudit.result import AuditResult, Counts, Verdict, Witness
from dpaudit.trials.runs import Terms
from dpaudit.trials.streams import fresh_seed

_TIMES = 4  # as many runs are counted as in the audit, so that what stopped it at its luckiest moment is seen again
_LEAST = 1_000
_LEAST_LEARNED = 200
_NEARLY = 1e-6  # relative; what a file says of its own counts is computed again with other roundings at the most


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a replay found beside what the result says."""

    result: AuditResult
    counts: Counts  # of the region, on fresh runs
    learned_from: int  # fresh runs per dataset before those
    p_value: float  # of the claim, exact; 1 if the runs were not independent or could not be completed
    seed: int
    contradictions: tuple[str, ...]  # what the result says against its own counts
    warnings: tuple[str, ...]

    @property
    def refuted(self) -> bool:
        """Whether the fresh runs alone refute the claim, at the result's confidence."""
        return self.p_value <= 1 - self.result.confidence

    @property
    def reproduced(self) -> bool:
        """Whether the result agrees with itself, and a violation that it reports shows again."""
        return not self.contradictions and (self.refuted or not self.result.violated)

    def __str__(self) -> str:
        witness = self.result.witness
        assert witness is not None
        rows = [("in the result", witness.counts), ("fresh", self.counts)]
        lines = [
            f"{self.result.name}: {self.result.verdict.value}, {self.result.claim.label}",
            f"  pair {witness.pair}, attack {witness.attack}",
            f"  region: {witness.region}",
            *(f"  {name:<14s} {_row(counts)}" for name, counts in rows),
            f"  the claim allows at most {_percent(1 - self._claimed_beta)} under d1 where {_percent(self._alpha)} "
            "are under d0",
            f"  fresh exact p-value: {self.p_value:.2g} ({self.counts.n0:,} runs per dataset after "
            f"{self.learned_from:,} to learn from, seed {self.seed})",
            *(f"  the result contradicts itself: {words}" for words in self.contradictions),
            *(f"  warning: {words}" for words in self.warnings),
        ]
        return "\n".join([*lines, self._conclusion()])

    @property
    def _alpha(self) -> float:
        return self.counts.false_positives / max(1, self.counts.n0)

    @property
    def _claimed_beta(self) -> float:
        return float(self.result.claim.symmetrized().beta(self._alpha))

    def _conclusion(self) -> str:
        if self.contradictions:
            return "The evidence does not reproduce: the result is not what its own counts give."
        if self.result.violated:
            return (
                "The evidence reproduces: fresh runs refute the claim again."
                if self.refuted
                else "The evidence does not reproduce: fresh runs do not refute the claim."
            )
        return (
            "Fresh runs refute the claim, which the result did not."
            if self.refuted
            else "Fresh runs do not refute the claim either."
        )


def replay(
    result: AuditResult,
    mechanism: Any,
    pairs: Pair | Iterable[Pair],
    *,
    attacks: str | Attack | Sequence[str | Attack] = "auto",
    trials: int | None = None,
    seed: int | None = None,
    jobs: int = 1,
    terms: Terms | None = None,
    progress: Report | None = None,
) -> Replay:
    """Repeat the witness of `result` on fresh runs of its mechanism, and compare.

    `mechanism`, `pairs`, `attacks`, `jobs`: as in the audit; of `pairs` only the witness's is used.  `terms`: the
    audit's `observe_time`, `failures` and `timeout`.
    `trials`: runs per dataset on which the region is counted; unless given, as many as in the result, four times as
    many for a violation, at least 1,000.  Before them come as many as the attacks had of that pair in the audit, at
    least 200.  `seed`: of the fresh randomness; drawn unless given.

    Raises ValueError if the result has no witness, its pair is not among `pairs`, or `trials` is below 1;
    MechanismError if the mechanism fails at once.
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
    collector.allowed = learned_from + trials
    counts = _count(collector, _threshold(witness, result), progress)
    dependent = collector.dependence()
    warnings = [*collector.learners[0].warnings, *dependent]
    if collector.failure:
        warnings.append(collector.failure)
    warnings = [*changed_since(result.environment, mechanism), *warnings]
    certified = not dependent and not collector.failure and counts.n0 > 0
    y = counts.n1 - counts.false_negatives
    if certified:
        constants = judged(collector, {0: math.inf}, tested, 1 - result.confidence)
        certified, warnings = not constants.doubts, [*warnings, *constants.doubts]
    return Replay(
        result=result,
        counts=counts,
        learned_from=learned_from,
        p_value=exact_binomial.p_value(tested, counts.false_positives, counts.n0, y, counts.n1) if certified else 1.0,
        seed=seed,
        contradictions=tuple(contradictions(result)),
        warnings=tuple(warnings),
    )


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


def _count(collector: Collector, threshold: int, progress: Report | None) -> Counts:
    learner = collector.learners[0]
    total = np.zeros((2, BINS), dtype=np.int64)
    if not learner.ready:
        return _beyond(total, threshold)
    for outputs0, outputs1 in collector.blocks(0, collector.allowed):
        total += [bin_counts(side) for side in learner.score_counted(outputs0, outputs1)]
        _tell(collector, collector.allowed, progress)
    return _beyond(total, threshold)


def _tell(collector: Collector, until: int, progress: Report | None) -> None:
    if progress is not None:
        progress(Progress(trials=collector.trials, allowed=until, log_e=math.nan, log_threshold=math.nan))


def _beyond(counts: np.ndarray[Any, Any], threshold: int) -> Counts:
    (n0, n1), (x, y) = counts.sum(axis=1), counts[:, threshold + 1 :].sum(axis=1)
    return Counts(false_positives=int(x), n0=int(n0), false_negatives=int(n1 - y), n1=int(n1))


def _threshold(witness: Witness, result: AuditResult) -> int:
    """The last bin outside the region.  A file of before it was written has counts that name it."""
    if not math.isnan(witness.threshold):
        return int(np.argmin(np.abs(EDGES - witness.threshold)))
    counts = _pair_counts(result)
    fitting = [k for k in range(BINS - 1) if counts is not None and _beyond(counts, k) == witness.counts]
    if not fitting:
        raise ValueError(f"{result.name}: the witness's counts are not among the evidence; its region is not known")
    return fitting[len(fitting) // 2]


def contradictions(result: AuditResult) -> list[str]:
    """What a result says that its own counts do not give, in words; empty if it agrees with itself."""
    found = _of_witness(result)
    made_by = result.environment.get("packages")
    if not isinstance(made_by, dict) or made_by.get("dpaudit") != metadata.version("dpaudit"):
        return found  # another version bets in other ways
    p_value = _p_value(result)
    if not math.isclose(p_value, result.p_value, rel_tol=_NEARLY, abs_tol=1e-300):
        found.append(f"the p-value is {result.p_value:.4g}, its counts give {p_value:.4g}")
    if result.violated and p_value > 1 - result.confidence:
        found.append(f"a violation is reported, at a p-value of {p_value:.4g} and confidence {result.confidence:g}")
    if result.verdict is Verdict.NO_VIOLATION and p_value <= 1 - result.confidence:
        found.append(f"no violation is reported, at a p-value of {p_value:.4g} and confidence {result.confidence:g}")
    if result.certified:
        mu = result.evidence.mu_lower(confidence=result.confidence)
        if not math.isclose(mu, result.mu_lower, rel_tol=_NEARLY, abs_tol=_NEARLY):
            found.append(f"mu is certified above {result.mu_lower:.6g}, its counts give {mu:.6g}")
    return found


def _of_witness(result: AuditResult) -> list[str]:
    witness, counts = result.witness, _pair_counts(result)
    if witness is None or counts is None:
        return []
    found = []
    told = witness.counts
    if not math.isnan(witness.threshold):
        given = _beyond(counts, _threshold(witness, result))
        if given != told:
            found.append(f"the witness counts {_row(told)}, the evidence {_row(given)}")
    rates = (told.false_positives / max(1, told.n0), told.false_negatives / max(1, told.n1))
    for name, rate, said in zip(("alpha", "beta"), rates, (witness.alpha, witness.beta), strict=True):
        if not math.isclose(rate, said, rel_tol=_NEARLY, abs_tol=1e-12):
            found.append(f"the witness's {name} is {said:.6g}, its counts give {rate:.6g}")
    claimed = float(result.claim.symmetrized().beta(witness.alpha))
    if not math.isclose(claimed, witness.claimed_beta, rel_tol=1e-4, abs_tol=1e-9):
        found.append(f"the claim allows a beta of {claimed:.6g} there, not {witness.claimed_beta:.6g}")
    return found


def _p_value(result: AuditResult) -> float:
    """The p-value again, from the counts; for a sequential audit also from the path that its evidence took."""
    if not result.certified:
        return 1.0
    if isinstance(result.evidence, SequentialEvidence):
        at_the_end = result.evidence.log_e(result.claim.symmetrized())
        path = result.history.log_e
        if len(path) and not math.isclose(float(path[-1]), at_the_end, rel_tol=_NEARLY, abs_tol=_NEARLY):
            return min(1.0, math.exp(-max(0.0, at_the_end)))
        return min(1.0, math.exp(-max(0.0, at_the_end, float(path.max(initial=0.0)))))
    if isinstance(result.evidence, FixedEvidence):
        return result.evidence.p_value(result.claim.symmetrized())
    return result.p_value


def _pair_counts(result: AuditResult) -> np.ndarray[Any, Any] | None:
    evidence = result.evidence
    if isinstance(evidence, FixedEvidence):
        return evidence.counts
    if not isinstance(evidence, SequentialEvidence) or result.witness is None:
        return None
    at = [i for i, row in enumerate(result.pairs) if row.label == result.witness.pair]
    return evidence.counts[at[0]] if at and at[0] < len(evidence.counts) else None


def _row(counts: Counts) -> str:
    x, y = counts.false_positives, counts.n1 - counts.false_negatives
    return (
        f"d0 {x:,} of {counts.n0:,} ({_percent(x / max(1, counts.n0))}), "
        f"d1 {y:,} of {counts.n1:,} ({_percent(y / max(1, counts.n1))})"
    )


def _percent(rate: float) -> str:
    return f"{100 * rate:.3g} %"
