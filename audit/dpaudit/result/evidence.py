"""What was counted, and what follows from it about any claim.

One class for each way to audit.  Each one can be asked about claims that nobody thought of when the audit ran: a reader
of a result file computes the verdict and the bounds again from these numbers alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.inference import power as planning
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.fixed.regions import delta_of, threshold_for_epsilon, threshold_for_mu
from dpaudit.inference.grid import BINS as BINS
from dpaudit.inference.sequential.strategy import Strategy, log_threshold, lower_bound, strategy

Counts = npt.NDArray[np.int64]

_MOST = 2**53  # outputs in one bin: sums of bins stay within 64 bits


class Evidence(Protocol):
    """What every kind of evidence answers.

    With the stated confidence all answers hold together for a sequential audit, and each one by itself otherwise.
    """

    method: ClassVar[str]

    @property
    def trials(self) -> int:
        """Runs per dataset that count; those the attacks only learned from do not."""
        ...

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        """Whether this is enough to call a claim false, which happens to a true one with 1 - confidence at most."""
        ...

    def mu_lower(self, *, confidence: float) -> float:
        """The mechanism is not mu-GDP for any mu below this."""
        ...

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        """The mechanism is not (epsilon, delta)-DP for any epsilon below this, nats."""
        ...

    def fingerprint(self) -> str:
        """SHA-256 of the counts."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequentialEvidence:
    """Counts of the estimated log-likelihood ratio on fresh outputs, in the bins of `inference.grid`.

    The bets are those placed against `target`.  All bounds and the verdict hold at once and at any stopping time, see
    `inference.sequential.strategy`.
    """

    method: ClassVar[str] = "sequential"
    target: TradeoffFunction  # the claim audited, for both orders
    counts: Counts  # (pairs, 2, BINS), outputs of d0 and of d1
    single: bool = False  # of each trial one output is counted, chosen by a coin; otherwise both are
    lost: tuple[int, ...] = ()  # pairs on which a run failed after bets had been placed: what they won is nothing

    def __repr__(self) -> str:
        return f"SequentialEvidence({self.trials:,} trials of {len(self.counts)} pairs against {self.target!s})"

    @property
    def trials(self) -> int:
        return int(self.counts.sum()) // 2

    def log_e(self, claim: TradeoffFunction) -> float:
        """Logarithm of the wealth that the bets have made if `claim` is what they are against."""
        return self._bets.log_e(claim, self.counts, self.lost, single=self.single)

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        return self.log_e(claim) >= log_threshold(confidence)

    def mu_lower(self, *, confidence: float) -> float:
        return lower_bound(lambda mu: self.refutes(GaussianDP(mu), confidence=confidence))

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        return lower_bound(lambda epsilon: self.refutes(ApproxDP(epsilon=epsilon, delta=delta), confidence=confidence))

    def fingerprint(self) -> str:
        return _sha256(self.counts)

    @property
    def _bets(self) -> Strategy:
        return strategy(self.target)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FixedEvidence:
    """Counts of one frozen score on fresh outputs, and the rejection regions that were frozen with it.

    Each answer holds with the confidence at the planned number of trials; see `inference.fixed.exact_binomial`.  The
    claim is tested on one region, bounds may use others: the pilot alone decides which.
    """

    method: ClassVar[str] = "fixed"
    pair: int  # on which all trials were spent, chosen in the pilot
    threshold: int  # the region of the claim is: bin > threshold
    pilot: (
        Counts  # (2, BINS), of that score on the pilot's latest outputs, ends merged; they choose regions, nothing else
    )
    counts: Counts  # (2, BINS)
    delta: float = math.nan  # of an (epsilon, delta) claim: the bound at this delta uses the claim's region

    def __repr__(self) -> str:
        x, n0, y, n1 = self.outcome
        return f"FixedEvidence({x:,} of {n0:,} outputs of d0 in the region, {y:,} of {n1:,} of d1)"

    @property
    def trials(self) -> int:
        return int(self.counts[0].sum())

    @property
    def outcome(self) -> tuple[int, int, int, int]:
        """(x, n0, y, n1): x of n0 outputs of d0 and y of n1 outputs of d1 were in the region of the claim."""
        return self._outcome(self.threshold)

    def _outcome(self, threshold: int) -> tuple[int, int, int, int]:
        (x, y), (n0, n1) = self.counts[:, threshold + 1 :].sum(axis=1), self.counts.sum(axis=1)
        return int(x), int(n0), int(y), int(n1)

    def p_value(self, claim: TradeoffFunction) -> float:
        """Exact p-value of a claim."""
        return exact_binomial.p_value(claim, *self.outcome)

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        return self.p_value(claim) <= 1 - confidence

    def mu_lower(self, *, confidence: float) -> float:
        threshold = threshold_for_mu(
            *self.pilot, trials=self.trials, significance=1 - confidence, otherwise=self.threshold
        )
        return exact_binomial.mu_lower(*self._outcome(threshold), significance=1 - confidence)

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        threshold = (
            self.threshold
            if delta == self.delta
            else threshold_for_epsilon(
                *self.pilot, delta=delta, trials=self.trials, significance=1 - confidence, otherwise=self.threshold
            )
        )
        return exact_binomial.epsilon_lower(*self._outcome(threshold), delta=delta, significance=1 - confidence)

    def fingerprint(self) -> str:
        return _sha256(self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRunEvidence:
    """Right guesses about who was included, in one run; see `inference.one_run`."""

    method: ClassVar[str] = "one_run"
    canaries: int
    guesses: int  # fixed beforehand
    right: int

    @property
    def trials(self) -> int:
        return 1

    def p_value(self, claim: TradeoffFunction) -> float:
        """A bound on the chance of so many right guesses under a claim."""
        return one_run.p_value(claim, self.canaries, self.guesses, self.right)

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        return one_run.refutes(claim, self.canaries, self.guesses, self.right, significance=1 - confidence)

    def least_right(self, claim: TradeoffFunction, *, confidence: float) -> int | None:
        """The fewest right guesses, of as many as were made, that refute a claim; None if no number does."""

        def enough(right: int) -> bool:
            return one_run.refutes(claim, self.canaries, self.guesses, right, significance=1 - confidence)

        if not enough(self.guesses):
            return None
        few, many = 0, self.guesses  # `many` refute the claim, `few` do not
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (few, middle) if enough(middle) else (middle, many)
        return many

    def mu_lower(self, *, confidence: float) -> float:
        return one_run.mu_lower_one_run(self.canaries, self.guesses, self.right, significance=1 - confidence)

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        return one_run.epsilon_lower_exact(
            self.canaries, self.guesses, self.right, delta=delta, significance=1 - confidence
        )

    def fingerprint(self) -> str:
        return _sha256(np.array([self.canaries, self.guesses, self.right]))


def overstated(evidence: Evidence, largest_epsilon: float, *, confidence: float) -> str:
    """How the evidence contradicts that no epsilon above `largest_epsilon` can be certified; "" if it does not.

    What `inference.power.largest_epsilon` says of so many runs is proved, and is not computed again for the exact
    test, where that takes time.
    """
    proved = planning.largest_epsilon(evidence.trials, significance=1 - confidence)
    if isinstance(evidence, FixedEvidence) and largest_epsilon >= proved * (1 - 1e-9):
        return ""
    certified = evidence.epsilon_lower(0.0, confidence=confidence)
    if certified <= largest_epsilon + 1e-6 * max(1.0, largest_epsilon):
        return ""
    return (
        f"the counts certify epsilon >= {certified:.6g} at delta = 0, beside the statement that no epsilon above "
        f"{largest_epsilon:.6g} can be certified"
    )


def _sha256(counts: Counts) -> str:
    """Of the counts in C order, as little-endian 64-bit integers."""
    return hashlib.sha256(np.ascontiguousarray(counts).astype("<i8").tobytes()).hexdigest()


# --- in result files


def written(evidence: Evidence) -> dict[str, Any]:
    """As plain JSON values.  Counts are lists of [bin, count]: most bins are empty."""
    match evidence:
        case SequentialEvidence():
            pairs = [_sparse(sides) for sides in evidence.counts]
            return {
                "method": evidence.method,
                "bins": BINS,
                "counts": pairs,
                "lost": list(evidence.lost),
                "single": evidence.single,
            }
        case FixedEvidence():
            chosen: dict[str, Any] = {"pair": evidence.pair, "threshold": evidence.threshold}
            if not math.isnan(evidence.delta):
                chosen["delta"] = evidence.delta
            counted = {"pilot": _sparse(evidence.pilot), "counts": _sparse(evidence.counts)}
            return {"method": evidence.method, **chosen, "bins": BINS, **counted}
        case OneRunEvidence():
            return {"method": evidence.method, **dataclasses.asdict(evidence)}
    raise TypeError(f"no such evidence: {type(evidence).__name__}")


def read_back(values: Mapping[str, Any], target: TradeoffFunction) -> Evidence:
    """The inverse of `written`; `target`: the claim audited, for both orders.  ValueError for impossible counts."""
    method = values["method"]
    if method == OneRunEvidence.method:
        counts = {name: int(values[name]) for name in ("canaries", "guesses", "right")}
        if not 0 <= counts["right"] <= counts["guesses"] <= counts["canaries"]:
            raise ValueError(f"evidence must have right <= guesses <= canaries, got {counts}")
        return OneRunEvidence(**counts)
    if values["bins"] != BINS:
        raise ValueError(f"evidence must be counted in {BINS} bins, got {values['bins']}")
    if method == SequentialEvidence.method:
        single = values.get("single", False) is True
        pairs = [_dense(sides) for sides in values["counts"]]
        if not single:
            for one in pairs:
                _check_trials(one)
        counted = np.array(pairs, dtype=np.int64).reshape(-1, 2, BINS)
        lost = tuple(int(i) for i in values.get("lost", ()))  # older files have none
        if any(not 0 <= i < len(counted) for i in lost):
            raise ValueError(f"evidence must name lost pairs among its {len(counted)}, got {list(lost)}")
        return SequentialEvidence(target=target, counts=counted, single=single, lost=lost)
    if method == FixedEvidence.method:
        threshold = int(values["threshold"])
        if not 0 <= threshold < BINS:
            raise ValueError(f"evidence must have a threshold among {BINS} bins, got {threshold}")
        pilot, counts_after = _dense(values["pilot"]), _dense(values["counts"])
        _check_trials(counts_after)
        delta = float(values.get("delta", math.nan))  # older files have none
        if not math.isnan(delta) and delta != delta_of(target):
            raise ValueError(f"evidence must have the delta of the claim {target.label}, got {delta}")
        return FixedEvidence(
            pair=int(values["pair"]), threshold=threshold, pilot=pilot, counts=counts_after, delta=delta
        )
    raise ValueError(f"evidence must be of method sequential, fixed or one_run, got {method!r}")


def _sparse(sides: Counts) -> list[list[list[int]]]:
    return [[[int(i), int(side[i])] for i in np.flatnonzero(side)] for side in sides]


def _whole(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _dense(sides: Sequence[Sequence[tuple[int, int]]]) -> Counts:
    counts = np.zeros((2, BINS), dtype=np.int64)
    for side, entries in zip(counts, sides, strict=True):
        for entry in entries:
            place, count = entry if isinstance(entry, list | tuple) and len(entry) == 2 else (None, None)
            if not (_whole(place, BINS - 1) and _whole(count, _MOST)):
                raise ValueError(
                    f"evidence must be [bin, count] with bins 0 to {BINS - 1} and counts >= 0, got {entry!r}"
                )
            side[place] = count
    return counts


def _check_trials(counts: Counts) -> None:
    if counts[0].sum() != counts[1].sum():
        raise ValueError(f"evidence must have as many outputs of d0 as of d1, got {counts.sum(axis=1).tolist()}")
