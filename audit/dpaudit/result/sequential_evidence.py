"""The evidence of audits that may stop at any time: of pairs of datasets, or of a stream with one output each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction, parse_claim
from dpaudit.inference.fixed.exact_binomial import Sizes
from dpaudit.inference.grid import BINS
from dpaudit.inference.scores.families import Family
from dpaudit.inference.sequential.alternatives import EDITION
from dpaudit.inference.sequential.bands import Band, anytime_band, uncertified_band
from dpaudit.inference.sequential.planned import Planned
from dpaudit.inference.sequential.strategy import Strategy, log_threshold, p_value_of, strategy
from dpaudit.inference.sequential.stream_strategy import stream_strategy
from dpaudit.numerics.bisect import last_that_holds
from dpaudit.result.base_evidence import Evidence
from dpaudit.result.confirmation import (
    LEAST_PARAMETER,
    Confirmation,
    band_of,
    bounds_significance,
    claimed_parameter,
    fingerprint,
    in_family,
    sizes_of,
)
from dpaudit.result.histograms import Counts, check_bins, lost_of, pair_counts_of, peak_of, sha256, sparse
from dpaudit.result.late_bets import LateBets
from dpaudit.result.words import DONG, OF_PAIRS, Words
from dpaudit.values import Json, JsonObject

_PRECISION = 1e-4  # precision of lower bounds: absolute for bounds up to 1, relative for larger bounds

_WORDS = Words(
    principle=(
        "A claim is a trade-off function $f$: no attack with type I error $α$ has a type II error below $f(α)$ (Dong, "
        "Roth & Su 2022). A trial runs the mechanism once on each dataset. A score, learned from "
        "earlier trials only, estimates how much likelier an output is under d1 than under d0. Bets on thresholds of "
        "this score are priced by the claim's privacy profile, so that they win nothing on average under a true "
        "claim. The wealth $E$ is then a nonnegative supermartingale, and the probability that it ever reaches "
        "$1/s$ is at most $s$ (Ville 1939). So the audit may stop after any trial. "
        "The bets maximize the growth of the wealth against a range of violations (Grünwald, de Heide & Koolen 2024). "
        "The same bets test every claim, and only their prices differ, so verdict and bounds hold together. After half "
        "of the trials, all wealth may be put on one bet at a time, chosen from earlier trials to reach $1/s$ before "
        "the last trial (Clerico et al. 2026). Nothing is "
        "assumed about the noise. Trials must be independent of each other."
    ),
    references=(
        DONG,
        "Ville, J. (1939). Étude critique de la notion de collectif. Gauthier-Villars, Paris.",
        "Grünwald, P., de Heide, R. & Koolen, W. (2024). Safe testing. J. R. Stat. Soc. B 86(5), 1091–1128.",
        "Clerico, E., Wegel, T., Azangulov, I. & Rebeschini, P. (2026). arXiv:2605.06521.",
    ),
    proof="the evidence of all runs",
    **OF_PAIRS,
)
_OF_STREAMS = Words(
    principle=(
        "A claim is a trade-off function $f$: no attack with type I error $α$ has a type II error below $f(α)$ (Dong, "
        "Roth & Su 2022). Before each step a fair coin chose the dataset, and the mechanism ran once, on that dataset. "
        "A score, learned from earlier steps only, estimates how much likelier the output is under d1 than under d0. "
        "Bets on thresholds of this score are priced by the claim's privacy profile, so that under a true claim no "
        "step is expected to win. The wealth $E$ is then a nonnegative supermartingale, and the probability that it "
        "ever reaches $1/s$ is at most $s$ (Ville 1939). The claim is about each step given the past: the mechanism "
        "may keep a state, drift, and adapt to all earlier steps. The only assumption is that the mechanism learns "
        "about the coins through the chosen datasets alone."
    ),
    references=(
        DONG,
        "Ville, J. (1939). Étude critique de la notion de collectif. Gauthier-Villars, Paris.",
        "Grünwald, P., de Heide, R. & Koolen, W. (2024). Safe testing. J. R. Stat. Soc. B 86(5), 1091–1128.",
    ),
    proof="the evidence of all runs",
    went_on="the bounds come from the interim analysis with the most evidence",
    again="A stream has no fixed region to count on fresh outputs. To repeat it, make a new stream with new coins.",
    violates="Some step of the stream, given all earlier steps, does not keep the claim",
    claimed="for each step",
    somewhere="for some step",
    spent="{steps} steps",
    data="Each step ran on d0 or on d1, as a fair coin chose",
    **OF_PAIRS
    | {
        "untried": "Other datasets and other attacks: only the two datasets and the attacks of this stream were tried.",
        "others": "other datasets or attacks",
        "more": "make more steps, or use a score that differs more between the two datasets",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequentialEvidence(Evidence):
    """Counts of estimated log-likelihood ratios on fresh outputs, in the bins of `inference.grid`.

    The bets were placed against the claim `target`.  The verdict and all bounds hold jointly at any stopping time; see
    `inference.sequential.strategy`.
    """

    method: ClassVar[str] = "sequential"
    anytime: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    target: TradeoffFunction  # symmetrized form of the audited claim
    counts: Counts  # counts of outputs of d0 and d1 for each pair; shape (pairs, 2, BINS)
    coin_selected: bool = False  # whether only one output of each trial is counted, which a fair coin selects
    lost: tuple[int, ...] = ()  # indices of the pairs whose wealth is 0 because a run failed after bets had been placed
    # counts at the interim analysis with the largest wealth against `target`; None if it is the last analysis
    peak: Counts | None = None
    lost_at_peak: tuple[int, ...] = ()  # the pairs in `lost` whose wealth was 0 at this analysis
    planned: Planned | None = None  # violations on which the planned bets were placed; None without such bets
    late: LateBets | None = None  # bets before the last trial; None without such bets
    # whether fresh runs follow a refutation, so that other bounds are a tenth as likely to fail
    confirms: bool = False
    confirmation: Confirmation | None = None  # the fresh runs after a refutation

    @property
    def words(self) -> Words:
        return _WORDS

    def __repr__(self) -> str:
        return f"SequentialEvidence({self.trials:,} trials of {len(self.counts)} pairs against {self.target!s})"

    @property
    def trials(self) -> int:
        return int(self.counts.sum()) // 2

    @property
    def histograms(self) -> tuple[Counts, ...]:
        return tuple(self.counts)

    def of_pair(self, pair: int | None) -> Counts | None:
        return self.counts[pair] if pair is not None and pair < len(self.counts) else None

    def log_e(self, claim: TradeoffFunction) -> float:
        """Return the logarithm of the wealth of the bets against a claim, in nats."""
        return self._wealth()(claim)

    def p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value 1 / maximum of the initial wealth, which is 1, and the final wealth."""
        return p_value_of(max(0.0, self.log_e(claim)))

    def stated_p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value whose maximum is also taken over the wealth at the recorded peak."""
        p_value = self.p_value(claim)
        if self.peak is None:
            return p_value
        return min(p_value, p_value_of(self._wealth_on(self.peak, self.lost_at_peak)(claim)))

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        return self._largest()(claim) >= log_threshold(confidence)

    def mu_lower(self, *, confidence: float) -> float:
        return max(self._claimed(None, confidence), self._parameter(GaussianDP, None, confidence))

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        def member(epsilon: float) -> TradeoffFunction:
            return ApproxDP(epsilon=epsilon, delta=delta)

        return max(self._claimed(delta, confidence), self._parameter(member, delta, confidence))

    def _parameter(self, family: Family, delta: float | None, confidence: float) -> float:
        if (sizes := self._sizes(confidence)) is not None:
            return sizes.parameter(family)
        if self._failed:
            return 0.0
        wealth, enough = self._largest(), self._enough(delta, confidence)
        return last_that_holds(lambda t: wealth(family(t)) >= enough, precision=_PRECISION)

    def _claimed(self, delta: float | None, confidence: float) -> float:
        """Return the parameter of the audited claim if the claim was refuted and is of this family, and else 0."""
        if self.confirmation is None or not self.confirms or not in_family(self.target, delta):
            return 0.0
        return claimed_parameter(self.target) if self.refutes(self.target, confidence=confidence) else 0.0

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return a lower confidence bound, like the other bounds; after fresh runs, `precision` has no effect."""
        if (sizes := self._sizes(1 - significance)) is not None:
            return sizes.parameter(lambda t: family(max(t, LEAST_PARAMETER)))
        if self._failed:
            return 0.0
        level = bounds_significance(significance) if self.confirms else significance
        return Evidence.parameter_lower(self, family, significance=level, precision=precision)

    def band(self, *, confidence: float, bounds_valid: bool) -> Band:
        total = self.counts.sum(axis=0)
        if self.coin_selected or not bounds_valid:
            return uncertified_band(*total)
        if (sizes := self._sizes(confidence)) is not None:
            alpha, beta, _ = uncertified_band(*total)
            return alpha, beta, band_of(sizes, alpha)
        significance = 1 - confidence
        return anytime_band(*total, significance=bounds_significance(significance) if self.confirms else significance)

    def _sizes(self, confidence: float) -> Sizes | None:
        """Return what the fresh runs prove after a refutation; None if other bounds are stated."""
        found = self.confirmation
        if found is None or found.counts is None or not self.confirms:
            return None
        return sizes_of(found.counts, self.target, 1 - confidence)

    @property
    def _failed(self) -> bool:
        """Whether fresh runs were planned but not counted, so that there is only the verdict."""
        found = self.confirmation
        return self.confirms and found is not None and found.runs > 0 and found.counts is None

    def _enough(self, delta: float | None, confidence: float) -> float:
        """Return the log-wealth against a curve with which it is refuted; `delta` is None for a bound of mu."""
        full = not self.confirms or (self.confirmation is None and in_family(self.target, delta))
        return log_threshold(confidence if full else 1 - bounds_significance(1 - confidence))

    def pair_log_e(self, claim: TradeoffFunction) -> list[float]:
        bets = self._bets()
        gains = bets.gains(bets.log_prices(claim), self.counts, coin_selected=self.coin_selected)
        return [bets.log_wealth(one[None, :]) for one in gains]

    def fingerprint(self) -> str:
        return fingerprint(self.counts, self.confirmation)

    def to_json(self) -> JsonObject:
        peak = {} if self.peak is None else {"peak": [sparse(sides) for sides in self.peak]}
        violations = [] if self.planned is None else [str(violation) for violation in self.planned.violations]
        return {
            "method": self.method,
            "bins": BINS,
            "counts": [sparse(sides) for sides in self.counts],
            "lost": list(self.lost),
            "coin_selected": self.coin_selected,
            "edition": EDITION,  # of the bets' alternatives, see `alternatives`
            **peak,
            **({"lost_at_peak": list(self.lost_at_peak)} if self.lost_at_peak else {}),
            **(
                {}
                if self.planned is None
                else {"planned": {"violations": violations, "confidence": self.planned.confidence}}
            ),
            **({} if self.late is None else {"late": self.late.to_json()}),
            **({"confirms": True} if self.confirms else {}),
            **({} if self.confirmation is None else {"confirmation": self.confirmation.to_json()}),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> SequentialEvidence:
        check_bins(values)
        coin_selected = values["coin_selected"] is True
        counts = pair_counts_of(values["counts"], coin_selected=coin_selected)
        peak, fresh, late = (values.get(key) for key in ("peak", "confirmation", "late"))
        planned = None
        if (stated := values.get("planned")) is not None:
            violations = tuple(parse_claim(str(text)) for text in stated["violations"])
            planned = Planned(violations=violations, confidence=float(stated["confidence"]))
        found = cls(
            target=target,
            counts=counts,
            coin_selected=coin_selected,
            lost=lost_of(values, "lost", len(counts)),
            peak=None if peak is None else peak_of(peak, counts, coin_selected=coin_selected),
            lost_at_peak=lost_of(values, "lost_at_peak", len(counts)),
            planned=planned,
            confirms=values.get("confirms", False) is True,
            confirmation=None if fresh is None else Confirmation.from_json(fresh),
        )
        if late is None:
            return found
        lost, bets = lost_of(late, "lost", len(counts)), len(found._bets().log_weights)
        return replace(found, late=LateBets.from_json(late, counts, lost, bets=bets))

    def _wealth(self) -> Callable[[TradeoffFunction], float]:
        """Return a function that computes `log_e`, faster for many claims."""
        return self._wealth_on(self.counts, self.lost)

    def _wealth_on(self, counts: Counts, lost: tuple[int, ...]) -> Callable[[TradeoffFunction], float]:
        """Return a function that maps a claim to the log-wealth at the moment with the given counts and lost pairs."""
        if self.late is None:
            return self._bets().wealth_on(counts, lost, coin_selected=self.coin_selected)
        return self.late.wealth_on(self._bets(), counts, lost, coin_selected=self.coin_selected)

    def _largest(self) -> Callable[[TradeoffFunction], float]:
        """Return a function that maps a claim to the larger log-wealth at the first late bet and at the end."""
        end = self._wealth()
        if self.late is None:
            return end
        before = self._wealth_on(self.late.before, self.late.lost)
        return lambda claim: max(end(claim), before(claim))

    def _bets(self) -> Strategy:
        """Return the bets, which depend on the audited claim and the planned violations only."""
        return strategy(self.target, self.planned)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineEvidence(SequentialEvidence):
    """Counts of estimated log-likelihood ratios on the steps after those on which the estimate was trained.

    The stream may continue after the claim has been refuted, and the wealth may then decrease.  So a claim is refuted
    if it is by the counts at the end, or at the interim analysis with the largest wealth.  The verdict and all bounds
    hold jointly, because Ville's inequality holds for all interim analyses jointly.
    """

    method: ClassVar[str] = "online"
    coin_selected: bool = True
    steps: int  # number of steps, also those before the first score

    @property
    def words(self) -> Words:
        return _OF_STREAMS

    def _wealth(self) -> Callable[[TradeoffFunction], float]:
        """Return a function from a claim to the larger log-wealth of the bets at the two stored interim analyses."""
        end = SequentialEvidence._wealth(self)
        if self.peak is None:
            return end
        at_peak = self._bets().wealth_on(self.peak, coin_selected=True)
        return lambda claim: max(end(claim), at_peak(claim))

    def _bets(self) -> Strategy:
        return stream_strategy(self.target)

    def band(self, *, confidence: float, bounds_valid: bool) -> Band:
        return uncertified_band(*self.counts[0])  # the law may change, so no single curve exists

    def fingerprint(self) -> str:
        return sha256(self.counts if self.peak is None else np.concatenate([self.counts, self.peak]))

    def to_json(self) -> JsonObject:
        peak = {} if self.peak is None else {"peak": sparse(self.peak[0])}
        return {**SequentialEvidence.to_json(self), **peak, "steps": self.steps}

    @classmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> OnlineEvidence:
        check_bins(values)
        counts = pair_counts_of(values["counts"], coin_selected=True)
        peak = None if values.get("peak") is None else peak_of([values["peak"]], counts, coin_selected=True)
        return cls(target=target, counts=counts, peak=peak, steps=int(values["steps"]))
