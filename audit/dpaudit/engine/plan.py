"""The plan of an audit: the trials that dpaudit, the best single threshold and the best possible test need."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.comparison import violates
from dpaudit.engine.arguments import claim_of
from dpaudit.inference.e_bh import significance
from dpaudit.inference.fixed.regions import deviations
from dpaudit.inference.grid import BINS
from dpaudit.inference.power import Law, growths
from dpaudit.inference.sequential.alternatives import Alternative, pair_laws
from dpaudit.inference.sequential.betting import best_bet
from dpaudit.inference.sequential.planned import MIN_GROWTH, Planned
from dpaudit.inference.sequential.strategy import Strategy, log_threshold, strategy
from dpaudit.learning import FIRST_FIT
from dpaudit.numerics import Array, bisect, geometric_mean
from dpaudit.settings import DEFAULTS, POWER, check_confidence
from dpaudit.text import facts_html

LEARNING = 1.2  # mean trials with learned scores, divided by mean trials with known scores; see benchmarks/HISTORY.md

# With learned scores, a quantile of the trials is at most SLOWEST times the same quantile with known scores, plus
# HEAD_START; `benchmarks/calibration.py` checks both constants.
SLOWEST = 1.4
HEAD_START = 15.0  # trials

_RUNS = 300  # number of simulated audits; their mean has a standard error of 3 %
_SIMULATED_BEYOND = 5  # minimum number of simulated audits above a quantile; with fewer, a normal law is used
_NOTES = (
    "Estimates for one pair and outputs of at most 4 numbers; more need more runs.",
    "The numbers for the single threshold and for the fixed number of runs are normal approximations.",
)
MAX_TRIALS_STATED = 1e12  # larger numbers of trials are not stated


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan:
    """Estimated trials per dataset until a claim is refuted, if the mechanism is only as private as `truth`.

    All numbers are inf if the truth satisfies the claim (`claims.comparison.violates`), or if the violation is too
    small to be computed.  No valid test that always refutes in the end has a smaller mean than `limit_mean`, up to the
    accuracy of `betting.best_bet`.  `limit_trials` and `threshold_trials` are normal approximations.
    """

    claim: TradeoffFunction
    truth: TradeoffFunction
    power: float  # probability with which `trials`, `threshold_trials` and `limit_trials` are enough
    confidence: float
    mean_trials: float  # mean of `audit` with method "sequential", which learns its scores
    trials: float  # trials after which `audit` has refuted the claim with probability `power` or more
    mean_trials_detect: float  # as `mean_trials`, if `truth` is the `detect` of the audit
    trials_detect: float  # as `trials`, if `truth` is the `detect` of the audit
    threshold_trials: float  # trials that the best single threshold needs, if it is known in advance
    limit_trials: float  # trials that the best test with a fixed number of trials needs
    limit_mean: float  # least possible mean of a test that may stop at any time

    @property
    def ratio(self) -> float:
        """Mean trials of `audit`, divided by the mean of the best test; nan if the latter is inf."""
        return self.mean_trials / self.limit_mean if math.isfinite(self.limit_mean) else math.nan

    def __str__(self) -> str:
        if math.isinf(self.limit_mean):
            return self._head
        width = max(len(name) for name, _ in self._rows)
        lines = [f"  {name:<{width}}  {value:>13}" for name, value in self._rows]
        return "\n".join([self._head, "runs per dataset until refuted:", *lines, *_NOTES])

    def __repr__(self) -> str:
        return f"<Plan: {self._head}, mean {_number(self.mean_trials)} runs per dataset>"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook displays."""
        if math.isinf(self.limit_mean):
            return facts_html(self._head, ())
        return facts_html(f"{self._head}: runs per dataset until refuted", self._rows, _NOTES)

    @property
    def _head(self) -> str:
        if not violates(self.truth, self.claim):
            return f"{self.truth.label} satisfies {self.claim.label}: there is nothing to find"
        if math.isinf(self.limit_mean):
            return f"{self.truth.label} violates {self.claim.label}, but how many runs refute it cannot be computed"
        return f"{self.claim.label} claimed, {self.truth.label} true, confidence {self.confidence}"

    @property
    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("dpaudit, mean", self.mean_trials),
            (f"dpaudit, with probability {self.power:g} or more", self.trials),
            ("dpaudit with this truth as detect, mean", self.mean_trials_detect),
            (f"dpaudit with this truth as detect, with probability {self.power:g} or more", self.trials_detect),
            (f"best single threshold, with probability {self.power:g}", self.threshold_trials),
            (f"best test with a fixed number of runs, with probability {self.power:g}", self.limit_trials),
            ("best sequential test, mean", self.limit_mean),
        ]
        return [(name, _number(value)) for name, value in rows]


def plan(
    claim: TradeoffFunction | str,
    truth: TradeoffFunction | str,
    *,
    power: float = POWER,
    confidence: float = DEFAULTS.confidence,
    seed: int = 0,
) -> Plan:
    """Estimate the trials per dataset that refute a claim if the mechanism is exactly as private as `truth`.

    The mechanism is run on a pair that exists: with subsampling, one dataset has an additional record
    (`claims.comparison`).  If its two directions differ, each number is the larger one.

    *The best test.*  KL* is the least divergence KL(P1||P) + KL(Q1||Q) from the truth (P1, Q1) to a pair (P, Q) that
    satisfies the claim: the growth rate of the best bet, for outputs grouped into the audit's bins.  A sequential test
    with significance s needs at least ln(1/s)/KL* trials on average (Wald 1945), and the best test with a fixed number
    about (z_{1-s} + z_w)^2 / (2 KL*) trials for power w, for violations near the claim.

    *The audit.*  Its bets are simulated without planned violation and with `truth` as `detect`, with the true
    likelihood ratio as the score, looking whenever the trials have grown by 1/32.  The average cost of learning the
    score, measured by `benchmarks/calibration.py`, is added to the mean, and the maximum cost to `trials`.

    Args:
        claim: The claim, or text for `parse_claim`.
        truth: The mechanism's true trade-off function, or text for `parse_claim`.  A bound that the mechanism does not
            attain, such as zcdp(rho=1) for Gaussian noise, gives too small numbers.
        power: Probability of a refutation, between 1 - confidence and 1.
        confidence: Confidence of the audit, between 0 and 1.

    Raises:
        TypeError: If `claim` or `truth` is neither a claim nor text.
        ValueError: If a number is out of its range, or no pair of datasets is known that attains `truth`.
    """
    claim, truth = claim_of("claim", claim), claim_of("truth", truth)
    check_confidence(confidence)
    if not 1 - confidence < power < 1:
        raise ValueError(
            f"power must lie between 1 - confidence = {float(significance(confidence))} and 1, got {power}"
        )
    planned = Planned(violations=(truth,), confidence=confidence)
    laws = pair_laws(truth) if violates(truth, claim) else ()
    each = [_for_law(claim.symmetrized(), law, power, planned, seed) for law in laws] or [_NEVER]
    worst = {name: max(numbers[name] for numbers in each) for name in each[0]}
    return Plan(claim=claim, truth=truth, power=power, confidence=confidence, **worst)


def _for_law(tested: TradeoffFunction, law: Law, power: float, planned: Planned, seed: int) -> dict[str, float]:
    """Return the numbers of trials of a `Plan` for one pair of datasets."""
    nearest = best_bet(Alternative(p=law[0], q=law[1], weight=1.0), tested, thresholds=BINS)
    growth = float(growths(Strategy.of([nearest], np.ones(1)), tested, law)[0][0])
    if growth <= MIN_GROWTH:
        return _NEVER
    needed = float(ndtri(planned.confidence) + ndtri(power))
    threshold = log_threshold(planned.confidence)
    audits = [
        _audits(bets, tested, law, threshold, power, seed, first=int(threshold / growth / 20))
        for bets in (strategy(tested), strategy(tested, planned))
    ]
    others = _threshold_trials(tested, law, needed), needed**2 / (2 * growth), threshold / growth
    return dict(zip(_NUMBERS, (*audits[0], *audits[1], *others), strict=True))


_NUMBERS = (
    "mean_trials",
    "trials",
    "mean_trials_detect",
    "trials_detect",
    "threshold_trials",
    "limit_trials",
    "limit_mean",
)
_NEVER = dict.fromkeys(_NUMBERS, math.inf)


def _audits(
    bets: Strategy, tested: TradeoffFunction, law: Law, threshold: float, power: float, seed: int, *, first: int
) -> tuple[float, float]:
    """Return the mean trials of audits with given bets, and the trials that suffice with a given probability."""
    stops = stopping_times(bets, tested, law, threshold, seed, first=first)
    # one standard error of the simulation is added; interpolation between infinite values would give nan
    level = min(1.0, power + math.sqrt(power * (1 - power) / len(stops)))
    unknown = math.isinf(np.quantile(stops, level, method="higher"))
    known = math.inf if unknown else float(np.quantile(stops, level))
    if len(stops) * (1 - power) < _SIMULATED_BEYOND:
        known = max(known, by_then(bets, tested, law, threshold, power))
    return FIRST_FIT + LEARNING * float(np.mean(stops)), FIRST_FIT + HEAD_START + SLOWEST * known


def _threshold_trials(claim: TradeoffFunction, law: Law, needed: float) -> float:
    """Find the least n for which the best threshold's deviation is `needed` standard deviations; inf if too large."""

    def enough(n: float) -> bool:
        return bool(np.max(deviations(claim, n * law[0], math.ceil(n), n * law[1], math.ceil(n))) >= needed)

    high = 2.0
    while not enough(high):
        high *= 2
        if high > MAX_TRIALS_STATED:
            return math.inf
    found = bisect(
        enough, inside=high, outside=high / 2, close=lambda high, low: high / low <= 1.001, mean=geometric_mean
    )
    return math.ceil(found.inside)


def stopping_times(
    bets: Strategy, claim: TradeoffFunction, law: Law, threshold: float, seed: int, *, first: int = 2
) -> Array:
    """Simulate audits with a known score; return trials until the threshold, beyond `first`, or inf, (_RUNS,)."""
    rng = np.random.default_rng(seed)
    prices = bets.log_prices(claim)
    drawn_from = []
    for side, payoffs in zip(law, (bets.log_payoffs0, bets.log_payoffs1), strict=True):
        bins = np.flatnonzero(side > 0)
        drawn_from.append((side[bins] / side.sum(), payoffs[:, bins].T))
    gains = np.zeros((_RUNS, len(prices)))
    stops = np.full(_RUNS, math.inf)
    trials = 0
    while np.any(running := np.isinf(stops)) and trials < MAX_TRIALS_STATED:
        block = max(2, trials // 32) if trials else max(2, first)
        trials += block
        won = sum(rng.multinomial(block, masses, size=int(running.sum())) @ pays for masses, pays in drawn_from)
        gains[running] += won - block * prices
        wealth = np.logaddexp.reduce(bets.log_weights + gains, axis=1)
        stops[running & (wealth >= threshold)] = trials
    return stops


def by_then(
    bets: Strategy, claim: TradeoffFunction, law: Law, threshold: float, power: float, *, coin_selected: bool = False
) -> float:
    """Approximate the quantile `power` of the trials by a normal law of the best bet's gains."""
    growth, variance = growths(bets, claim, law, coin_selected=coin_selected)
    grows = growth > MIN_GROWTH
    if not np.any(grows):
        return math.inf
    g, v, needed = growth[grows], variance[grows], threshold - bets.log_weights[grows]
    z = float(ndtri(power))
    return float(np.min((z * np.sqrt(v) + np.sqrt(z**2 * v + 4 * g * needed)) / (2 * g))) ** 2


def _number(trials: float) -> str:
    """Return a number with three digits; larger numbers than `MAX_TRIALS_STATED` are not stated."""
    if math.isinf(trials):
        return f"over {MAX_TRIALS_STATED:.0g}"
    return f"{round(trials, -max(0, math.ceil(math.log10(trials)) - 3)):,.0f}"


def enough_trials(
    bets: Strategy,
    claim: TradeoffFunction,
    truth: TradeoffFunction,
    *,
    confidence: float,
    power: float = POWER,
    pairs: int = 1,
    coin_selected: bool = False,
) -> int | None:
    """Estimate the trials of a sequential audit if one pair attains the truth, rounded up to two digits.

    Each of several pairs gets enough trials.  None if the truth satisfies the claim, or the number is too large.
    """
    threshold = log_threshold(confidence) + (math.log(2 * pairs) if pairs > 1 else 0.0)
    laws = pair_laws(truth)
    known = max(by_then(bets, claim, law, threshold, power, coin_selected=coin_selected) for law in laws)
    trials = pairs * (1 + coin_selected) * (FIRST_FIT + HEAD_START + SLOWEST * known)
    if not trials < MAX_TRIALS_STATED:
        return None
    unit: int = 10 ** max(0, len(str(math.ceil(trials))) - 2)
    return math.ceil(trials / unit) * unit


def would_do(trials: int | None, what: str, *, revealing: bool) -> str:
    """Return the end of a sentence that states how many trials would be enough; "" if the number is unknown."""
    if trials is None:
        return ""
    return f"; about {trials:,} {what} would do{' if every output revealed its dataset' if revealing else ''}"
