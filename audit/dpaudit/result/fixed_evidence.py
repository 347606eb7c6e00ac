"""The evidence of an audit with a fixed number of trials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.fixed.regions import threshold_for_epsilon, threshold_for_mu
from dpaudit.inference.grid import BINS
from dpaudit.inference.scores.families import Family
from dpaudit.inference.sequential.bands import Band, fixed_band, uncertified_band
from dpaudit.result.base_evidence import Counts, Evidence, Kind, check_bins, check_trials, dense, sparse
from dpaudit.result.confirmation import LEAST_PARAMETER, Confirmation
from dpaudit.values import Json, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FixedEvidence(Evidence):
    """Counts of the values of one fixed score on fresh outputs, and the fixed rejection regions for this score.

    Each p-value and each bound is valid with the stated confidence if the audit made the planned number of trials; see
    `inference.fixed.exact_binomial`.  The claim is tested on one rejection region, and bounds may use other regions.
    All regions are selected from the outputs of the pilot phase only.
    """

    pair: int  # index of the pair that the pilot phase selected
    threshold: int  # last bin below the rejection region {bin > threshold} on which the claim is tested
    # counts of the score on the latest outputs of the pilot phase, used to select regions; shape (2, BINS); see
    # `inference.fixed.saturation.merge_saturated`
    pilot: Counts
    counts: Counts  # counts of the score on all outputs after the pilot phase; shape (2, BINS)
    # delta of an (epsilon, delta)-DP claim; the bound on epsilon at this delta uses the claim's rejection region
    delta: float = math.nan
    confirmation: Confirmation | None = None  # the fresh runs after a refutation

    @property
    def kind(self) -> Kind:
        return Kind.FIXED

    def __repr__(self) -> str:
        x, n0, y, n1 = self.outcome
        return f"FixedEvidence({x:,} of {n0:,} outputs of d0 in the region, {y:,} of {n1:,} of d1)"

    @property
    def trials(self) -> int:
        return int(self.counts[0].sum())

    @property
    def outcome(self) -> tuple[int, int, int, int]:
        """(x, n0, y, n1): the claim's region contains x of the n0 outputs of d0, and y of the n1 outputs of d1."""
        return self._outcome(self.threshold)

    def _outcome(self, threshold: int) -> tuple[int, int, int, int]:
        (x, y), (n0, n1) = self.counts[:, threshold + 1 :].sum(axis=1), self.counts.sum(axis=1)
        return int(x), int(n0), int(y), int(n1)

    @property
    def histograms(self) -> tuple[Counts]:
        return (self.counts,)

    def p_value(self, claim: TradeoffFunction) -> float:
        return exact_binomial.p_value(claim, *self.outcome)

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return Buehler's bound of the parameter; the argument `precision` has no effect.

        The exact p-value may fall as claims weaken, so the largest refuted member is no valid bound.
        """
        return exact_binomial.parameter_lower(
            lambda t: family(max(t, LEAST_PARAMETER)), *self.outcome, significance=significance
        )

    def band(self, *, confidence: float, bounds_valid: bool) -> Band:
        return fixed_band(*self.counts, significance=1 - confidence) if bounds_valid else uncertified_band(*self.counts)

    def lower(self, delta: float | None, *, confidence: float) -> float:
        significance, pilot, trials = 1 - confidence, self.pilot, self.trials
        if delta is None:
            threshold = threshold_for_mu(*pilot, trials=trials, significance=significance, otherwise=self.threshold)
            return exact_binomial.mu_lower(*self._outcome(threshold), significance=significance)
        threshold = self.threshold
        if delta != self.delta:
            threshold = threshold_for_epsilon(
                *pilot, delta=delta, trials=trials, significance=significance, otherwise=threshold
            )
        return exact_binomial.epsilon_lower(*self._outcome(threshold), delta=delta, significance=significance)

    def to_json(self) -> JsonObject:
        chosen: JsonObject = {"pair": self.pair, "threshold": self.threshold}
        if not math.isnan(self.delta):
            chosen["delta"] = self.delta
        counted: JsonObject = {"pilot": sparse(self.pilot), "counts": sparse(self.counts)}
        if self.confirmation is not None:
            counted["confirmation"] = self.confirmation.to_json()
        return {"method": self.kind.method, **chosen, "bins": BINS, **counted}

    @classmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> FixedEvidence:
        check_bins(values)
        threshold = int(values["threshold"])
        if not 0 <= threshold < BINS:
            raise ValueError(f"evidence must have a threshold among {BINS} bins, got {threshold}")
        pilot, counts = dense(values["pilot"]), dense(values["counts"])
        check_trials(counts)
        fresh = values.get("confirmation")
        return cls(
            pair=int(values["pair"]),
            threshold=threshold,
            pilot=pilot,
            counts=counts,
            delta=float(values.get("delta", math.nan)),
            confirmation=None if fresh is None else Confirmation.from_json(fresh, target),
        )
