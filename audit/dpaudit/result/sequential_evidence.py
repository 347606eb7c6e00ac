"""The evidence of audits that may stop at any time: of pairs of datasets, or of a stream with one output each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction, parse_claim
from dpaudit.inference.fixed.exact_binomial import Sizes
from dpaudit.inference.fixed.regions import delta_of
from dpaudit.inference.grid import BINS
from dpaudit.inference.scores.families import Family, largest_refuted
from dpaudit.inference.sequential.alternatives import EDITION
from dpaudit.inference.sequential.bands import Band, anytime_band, uncertified_band
from dpaudit.inference.sequential.planned import Planned
from dpaudit.inference.sequential.strategy import (
    Strategy,
    log_threshold,
    measuring_strategy,
    p_value_of,
    strategy,
    stream_strategy,
)
from dpaudit.numerics import last_that_holds
from dpaudit.result.base_evidence import (
    Counts,
    Evidence,
    Kind,
    check_bins,
    dense,
    is_whole,
    lost_of,
    pair_counts_of,
    peak_of,
    sparse,
)
from dpaudit.result.confirmation import (
    WEAKEST_PARAMETER,
    Confirmation,
    band_of,
    bounds_significance,
    claimed_parameter,
    sizes_of,
)
from dpaudit.values import Json, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """Outputs that were counted while all wealth was on one bet and one pair."""

    pair: int  # index of the pair
    bet: int  # index of the bet in `strategy`
    left: int  # number of trials that were left when the bet was chosen
    counts: Counts  # counts of outputs of d0 and d1 of the pair; shape (2, BINS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LateBets:
    """The counts before the first late bet, and the late bets."""

    before: Counts  # counts of all pairs before the first late bet; shape (pairs, 2, BINS)
    lost: tuple[int, ...]  # indices of the pairs whose wealth was 0 before the first late bet
    stages: tuple[Stage, ...]  # at least one; all but the last are complete

    @property
    def counts(self) -> Counts:
        """The counts of all outputs; shape (pairs, 2, BINS)."""
        total = self.before.copy()
        for stage in self.stages:
            total[stage.pair] += stage.counts
        return total

    def wealth_on(
        self, bets: Strategy, counts: Counts, lost: Collection[int], *, coin_selected: bool
    ) -> Callable[[TradeoffFunction], float]:
        """Return a function that maps a claim to the log-wealth at a moment of the audit."""
        parts = self.until(counts)
        if parts is None:
            return bets.wealth_on(counts, lost, coin_selected=coin_selected)
        if not set(lost) <= set(self.lost):  # all wealth was on the pair on which a run failed
            return lambda claim: -math.inf
        early = bets.wealth_on(self.before, self.lost, coin_selected=coin_selected)

        def log_e(claim: TradeoffFunction) -> float:
            prices = bets.log_prices(claim)
            won = (bets.gains(prices, part.counts[None], coin_selected=coin_selected)[0, part.bet] for part in parts)
            return early(claim) + float(sum(won))

        return log_e

    def until(self, counts: Counts) -> tuple[Stage, ...] | None:
        """Return the stages until a moment, the last one with its counts until then; None before the first late bet."""
        if (left := counts.sum() - self.before.sum()) <= 0:
            return None
        rest = counts - self.before
        for at, stage in enumerate(self.stages):
            if left <= stage.counts.sum() or at == len(self.stages) - 1:
                break
            rest[stage.pair] -= stage.counts
            left -= stage.counts.sum()
        return (*self.stages[:at], replace(stage, counts=rest[stage.pair]))

    def to_json(self) -> JsonObject:
        stages = [asdict(stage) | {"counts": sparse(stage.counts)} for stage in self.stages]
        return {"lost": list(self.lost), "stages": stages}

    @classmethod
    def from_json(cls, values: Mapping[str, Json], counts: Counts, lost: tuple[int, ...], *, bets: int) -> LateBets:
        """Read late bets."""
        stages, before = [], counts.copy()
        for stage in values["stages"]:
            pair, bet = stage["pair"], stage["bet"]
            if not (is_whole(pair, len(counts) - 1) and is_whole(bet, bets - 1)):
                raise ValueError(f"a late bet must name one of its pairs and bets, got {pair!r}, {bet!r}")
            stages.append(Stage(pair=pair, bet=bet, left=int(stage["left"]), counts=dense(stage["counts"])))
            before[pair] -= stages[-1].counts
        if np.any(before < 0):
            raise ValueError("evidence must count no more outputs during late bets than in all")
        return cls(before=before, lost=lost, stages=tuple(stages))


_PRECISION = 1e-4  # precision of lower bounds: absolute for bounds up to 1, relative for larger bounds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequentialEvidence(Evidence):
    """Counts of estimated log-likelihood ratios on fresh outputs, in the bins of `inference.grid`.

    The bets were placed against the claim `target`; verdict and bounds hold jointly at any time
    (`inference.sequential`).
    """

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
    measures: bool = False  # whether the bets are those of `measuring_strategy`

    kind = Kind.SEQUENTIAL

    def __repr__(self) -> str:
        return f"SequentialEvidence({self.trials:,} trials of {len(self.counts)} pairs against {self.target!s})"

    @property
    def trials(self) -> int:
        return int(self.counts.sum()) // 2

    @property
    def histograms(self) -> tuple[Counts, ...]:
        return tuple(self.counts)

    def log_e(self, claim: TradeoffFunction) -> float:
        """Return the logarithm of the wealth of the bets against a claim, in nats."""
        return self._wealth()(claim)

    def final_log_e(self, claim: TradeoffFunction) -> float:
        """Return the log-wealth at the last moment."""
        return self._wealth_on(self.counts, self.lost)(claim)

    def p_value(self, claim: TradeoffFunction) -> float:
        """Return 1 / the maximum of the initial wealth, which is 1, the final wealth and, for `target`, the peak."""
        most = max(0.0, self.log_e(claim))
        if self.peak is not None and claim == self.target:
            most = max(most, self._wealth_on(self.peak, self.lost_at_peak)(claim))
        return p_value_of(most)

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        return self._largest()(claim) >= log_threshold(confidence)

    def lower(self, delta: float | None, *, confidence: float) -> float:
        def member(parameter: float) -> TradeoffFunction:
            return GaussianDP(parameter) if delta is None else ApproxDP(epsilon=parameter, delta=delta)

        claimed = 0.0  # or the parameter of the audited claim, if it was refuted and is of this family
        own = isinstance(self.target, GaussianDP) if delta is None else delta_of(self.target) == delta
        if self.confirmation is not None and self.confirms and own and self.refutes(self.target, confidence=confidence):
            claimed = claimed_parameter(self.target)
        if (sizes := self._sizes(confidence)) is not None:
            return max(claimed, sizes.parameter(member))
        if self._failed:
            return claimed
        full = not self.confirms or (self.confirmation is None and own)
        enough = log_threshold(confidence if full else 1 - bounds_significance(1 - confidence))
        wealth = self._largest()
        return max(claimed, last_that_holds(lambda t: wealth(member(t)) >= enough, precision=_PRECISION))

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return a lower confidence bound, like the other bounds; after fresh runs, `precision` has no effect."""
        if (sizes := self._sizes(1 - significance)) is not None:
            return sizes.parameter(lambda t: family(max(t, WEAKEST_PARAMETER)))
        if self._failed:
            return 0.0
        wealth = self._wealth()
        return largest_refuted(
            family,
            lambda claim: p_value_of(max(0.0, wealth(claim.symmetrized()))),
            significance=bounds_significance(significance) if self.confirms else significance,
            precision=precision,
        )

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

    def pair_log_e(self, claim: TradeoffFunction) -> list[float]:
        bets = self._bets()
        gains = bets.gains(bets.log_prices(claim), self.counts, coin_selected=self.coin_selected)
        return [bets.log_wealth(pair[None, :]) for pair in gains]

    def to_json(self) -> JsonObject:
        planned, late, fresh = self.planned, self.late, self.confirmation
        values: JsonObject = {
            "method": self.kind.method,
            "bins": BINS,
            "counts": [sparse(sides) for sides in self.counts],
            "lost": list(self.lost),
            "coin_selected": self.coin_selected,
            "edition": EDITION,  # of the bets' alternatives, see `alternatives`
            "peak": None if self.peak is None else [sparse(sides) for sides in self.peak],
            "lost_at_peak": list(self.lost_at_peak) or None,
            "planned": planned and {"violations": list(map(str, planned.violations)), "confidence": planned.confidence},
            "late": late and late.to_json(),
            "confirms": self.confirms or None,
            "measures": self.measures or None,
            "confirmation": fresh and fresh.to_json(),
        }
        return {key: value for key, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> SequentialEvidence:
        check_bins(values)
        coin_selected, late, fresh = values["coin_selected"] is True, values.get("late"), values.get("confirmation")
        counts, planned = pair_counts_of(values["counts"], coin_selected=coin_selected), None
        if (stated := values.get("planned")) is not None:
            violations = tuple(parse_claim(str(text)) for text in stated["violations"])
            planned = Planned(violations=violations, confidence=float(stated["confidence"]))
        found = cls(
            target=target,
            counts=counts,
            coin_selected=coin_selected,
            lost=lost_of(values, "lost", len(counts)),
            peak=peak_of(values["peak"], counts, coin_selected=coin_selected) if "peak" in values else None,
            lost_at_peak=lost_of(values, "lost_at_peak", len(counts)),
            planned=planned,
            confirms=values.get("confirms", False) is True,
            measures=values.get("measures", False) is True,
            confirmation=None if fresh is None else Confirmation.from_json(fresh, target),
        )
        if late is None:
            return found
        bets = len(found._bets().log_weights)
        return replace(found, late=LateBets.from_json(late, counts, lost_of(late, "lost", len(counts)), bets=bets))

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
        """Return the bets, which depend on the audited claim, the planned violations and `measures` only."""
        return (measuring_strategy if self.measures else strategy)(self.target, self.planned)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineEvidence(SequentialEvidence):
    """Counts of estimated log-likelihood ratios on the steps after those on which the estimate was trained.

    A claim is refuted by the counts at the end, or at the interim analysis with the largest wealth, since a stream may
    go on.  Verdict and bounds hold jointly, because Ville's inequality holds for all interim analyses jointly.
    """

    coin_selected: bool = True
    steps: int  # number of steps, also those before the first score

    kind = Kind.ONLINE

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

    def to_json(self) -> JsonObject:
        peak = {} if self.peak is None else {"peak": sparse(self.peak[0])}
        return {**SequentialEvidence.to_json(self), **peak, "steps": self.steps}

    @classmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> OnlineEvidence:
        check_bins(values)
        counts = pair_counts_of(values["counts"], coin_selected=True)
        peak = peak_of([values["peak"]], counts, coin_selected=True) if "peak" in values else None
        return cls(target=target, counts=counts, peak=peak, steps=int(values["steps"]))
