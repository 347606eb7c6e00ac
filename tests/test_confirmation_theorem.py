"""The theorem of `result.confirmation`: an audit states anything false with probability at most its significance.

All probabilities are exact, so no test fails by chance.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, ndtri
from scipy.stats import binom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.inference.fixed.exact_binomial import Sizes, p_value
from dpaudit.inference.grid import bin_counts
from dpaudit.inference.sequential.strategy import Strategy, log_threshold, strategy
from dpaudit.numerics import Array
from dpaudit.result.confirmation import (
    ONE_SEQUENCE,
    Confirmation,
    band_of,
    bounds_significance,
    claimed_parameter,
    sizes_significance,
)
from dpaudit.result.sequential_evidence import SequentialEvidence
from dpaudit.result.values import Counts

# --- the sum


@pytest.mark.parametrize("s", [1e-9, 1e-3, 0.01, 0.05, 0.3, 0.9])
def test_the_sum_of_the_theorem_is_at_most_the_significance_and_attains_it(s: float) -> None:
    r, sizes = bounds_significance(s), sizes_significance(s)
    p = np.concatenate([np.linspace(0, 1, 1001), [1 - r]])
    sums = np.minimum(r, 1 - p) + sizes * p
    assert sums.max() <= s
    assert sums.max() == pytest.approx(s, rel=1e-6)
    assert 0.9 * s * (1 - 1e-6) <= sizes < s


@pytest.mark.parametrize(("processes", "kept"), [(8, 8), (9, 4), (17, 2), (8, 128)])
def test_independent_processes_hardly_ever_repeat_one_sequence_that_varies(processes: int, kept: int) -> None:
    """The slow second version adds up all sequences of two values; more values make repetitions rarer."""
    p = np.linspace(1e-4, 1 - 1e-4, 5001)
    ones = np.arange(1, kept)[:, None]
    each = gammaln(kept + 1) - gammaln(ones + 1) - gammaln(kept - ones + 1)
    logs = each + processes * (ones * np.log(p) + (kept - ones) * np.log1p(-p))
    assert np.exp(logsumexp(logs, axis=0)).max() < ONE_SEQUENCE


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("k", [1, 8])
def test_more_equal_outputs_refute_whatever_fewer_refute(k: int, delta: float) -> None:
    def family(t: float) -> TradeoffFunction:
        return ApproxDP(epsilon=t, delta=delta)

    some, all_ = (Sizes.of(family, 0, n, n, n, significance=0.05) for n in (k, 3 * k))
    for claim in (
        GaussianDP(0.5),
        GaussianDP(2.0),
        LaplaceDP(1.0),
        PureDP(0.3),
        PureDP(3.0),
        ApproxDP(epsilon=1.0, delta=0.01),
    ):
        assert all_.refutes(claim) >= some.refutes(claim)
        assert p_value(claim, 0, 3 * k, 3 * k, 3 * k) <= p_value(claim, 0, k, k, k)


def doubling(wins: int, sizes: float, others: float, refuting: float) -> float:
    """Return the probability of a false statement in a game of fair coins, in which the claim is false.

    The wealth against the mechanism's curve is doubled by heads, and lost at the first tails.  It is also the wealth
    against another curve that the mechanism satisfies.  The wealth against the claim reaches 1 / `refuting` at the
    first tails.  So the claim is refuted, unless all tosses are heads.

    Args:
        wins: Number of tosses.
        sizes: Probability with which sizes are false after a refutation.
        others: The other curve is stated to be false if the wealth against it reaches 1 / `others`.
        refuting: The claim is stated to be false at this level.
    """
    false = 0.0
    for heads in range(wins + 1):  # before the first tails; `wins` if there is none
        probability = 2.0 ** -min(heads + 1, wins)
        against_claim, against_other = (1 / refuting, 0.0) if heads < wins else (1.0, 2.0**heads)
        if against_claim >= 1 / refuting:
            false += probability * sizes
        elif against_other >= 1 / others:
            false += probability
    return false


@pytest.mark.parametrize("wins", [5, 8, 12])
def test_a_game_attains_the_significance_and_other_levels_would_exceed_it(wins: int) -> None:
    r = 2.0**-wins
    s = 10 * r
    assert bounds_significance(s) == pytest.approx(r)
    attained = doubling(wins, sizes_significance(s), bounds_significance(s) * (1 + 1e-12), s)
    assert attained <= s * (1 + 1e-12)
    assert attained == pytest.approx(s, rel=1e-6)
    assert doubling(wins, s, r * (1 + 1e-12), s) > 1.05 * s  # sizes at the level of the audit
    enough = math.ceil(math.log2(1 / s))
    assert doubling(enough, sizes_significance(s), s, s) > 1.3 * s  # other bounds at the level of the audit


# --- the statements of the evidence

CLAIMS: list[TradeoffFunction] = [
    PureDP(0.4),
    ApproxDP(epsilon=0.4, delta=0.0),
    ApproxDP(epsilon=0.3, delta=0.02),
    GaussianDP(0.3),
    LaplaceDP(0.5),
]
OWN: list[tuple[TradeoffFunction, float | None]] = [
    (CLAIMS[0], 0.0),
    (CLAIMS[1], 0.0),
    (CLAIMS[2], 0.02),
    (CLAIMS[3], None),
]
DELTAS = (0.0, 0.02, 0.1)
STATED = 0.95
STRICTER = 1 - bounds_significance(1 - STATED)


def scored(inside0: int, inside1: int, n: int) -> Any:
    """Return the bin counts of n scores of each dataset, which are 1.5 inside a region and -1.5 outside it."""
    scores = (np.where(np.arange(n) < inside, 1.5, -1.5) for inside in (inside0, inside1))
    return np.array([[bin_counts(side) for side in scores]])


def evidence(claim: TradeoffFunction, counts: Any, **values: Any) -> SequentialEvidence:
    return SequentialEvidence(target=claim.symmetrized(), counts=counts, **values)


def bounds(found: SequentialEvidence, confidence: float) -> dict[float | None, float]:
    mu: dict[float | None, float] = {None: found.lower(None, confidence=confidence)}
    return mu | {delta: found.lower(delta, confidence=confidence) for delta in DELTAS}


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_without_a_refutation_only_the_family_of_the_claim_has_the_level_of_the_audit(claim: TradeoffFunction) -> None:
    found = evidence(claim, scored(240, 400, 600))
    usual, strict = bounds(found, STATED), bounds(found, STRICTER)
    own = [delta for one, delta in OWN if one is claim]
    stated = bounds(replace(found, confirms=True), STATED)
    assert stated == {key: usual[key] if key in own else strict[key] for key in usual}
    assert all(strict[key] < usual[key] for key in (None, 0.0))  # the two levels differ
    band, strict_band = (
        one.band(confidence=level, bounds_valid=True)
        for one, level in ((replace(found, confirms=True), STATED), (found, STRICTER))
    )
    assert all(np.array_equal(*sides) for sides in zip(band, strict_band, strict=True))


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_after_a_refutation_without_fresh_counts_every_bound_has_the_stricter_level(claim: TradeoffFunction) -> None:
    found, fresh = evidence(claim, scored(240, 400, 600)), Confirmation(outcome="not confirmed", reason="none is left")
    refuted = found.refutes(found.target, confidence=STATED)
    own = {delta: claimed_parameter(claim) for one, delta in OWN if one is claim and refuted}
    strict = {key: max(bound, own.get(key, 0.0)) for key, bound in bounds(found, STRICTER).items()}
    assert bounds(replace(found, confirms=True, confirmation=fresh), STATED) == strict
    uncounted = replace(fresh, runs=100)
    only = {key: own.get(key, 0.0) for key in strict}
    assert bounds(replace(found, confirms=True, confirmation=uncounted), STATED) == only


def with_delta(delta: float) -> Callable[[float], TradeoffFunction]:
    return lambda t: ApproxDP(epsilon=t, delta=delta)


@pytest.mark.parametrize("claim", [pytest.param(CLAIMS[1], marks=pytest.mark.slow), *CLAIMS[2:4]], ids=str)
def test_fresh_counts_alone_decide_all_sizes(claim: TradeoffFunction) -> None:
    counts = Counts(false_positives=15, n0=50, false_negatives=12, n1=50)
    fresh = Confirmation(outcome="confirmed", runs=50, processes=8, counts=counts, p_value=0.01)
    first, second = (
        evidence(claim, scored(a, b, 600), confirms=True, confirmation=fresh) for a, b in ((240, 400), (0, 600))
    )
    assert bounds(first, STATED) == bounds(second, STATED)
    delta = {ApproxDP: 0.02, PureDP: 0.0}.get(type(claim))
    delta = 0.0 if claim is CLAIMS[1] else delta
    family = GaussianDP if delta is None else with_delta(delta)
    sizes = Sizes.of(family, 15, 50, 38, 50, significance=sizes_significance(1 - STATED))
    assert first.lower(None, confidence=STATED) == sizes.parameter(GaussianDP) > 0
    for other in DELTAS:
        assert first.lower(other, confidence=STATED) == sizes.parameter(with_delta(other))
    alpha, _, upper = first.band(confidence=STATED, bounds_valid=True)
    assert np.array_equal(upper, band_of(sizes, alpha))


# --- whole audits of mechanisms with two outputs


def log_wealth(bets: Strategy, claim: TradeoffFunction, trials: int, most: int) -> Array:
    """Return the log-wealth against a claim for each number of outputs of d0 and of d1 inside, up to `most`."""
    inside, outside = (int(np.argmax(bin_counts(np.array([score])))) for score in (1.5, -1.5))
    k = np.arange(most + 1)[:, None]
    won0, won1 = (
        k * side[:, inside] + (trials - k) * side[:, outside] for side in (bets.log_payoffs0, bets.log_payoffs1)
    )
    spent = bets.log_weights - trials * bets.log_prices(claim)
    return np.asarray(logsumexp(spent + won0[:, None] + won1, axis=-1))


def refuted_by(claim: TradeoffFunction, alpha: float, beta: float, most: int) -> tuple[float, Array]:
    """Return the probability that an audit refutes a claim, and of each (x, y) after `most` trials without this."""
    bets, states, refuted = strategy(claim), np.zeros((most + 1, most + 1)), 0.0
    states[0, 0] = 1.0
    for trials in range(1, most + 1):
        for axis, rate in ((0, alpha), (1, 1 - beta)):
            states = (1 - rate) * states + rate * np.roll(states, 1, axis=axis)
        seen = states[: trials + 1, : trials + 1]  # no other states are possible yet
        stops = log_wealth(bets, claim, trials, trials) >= log_threshold(STATED)
        refuted += float(seen[stops].sum())
        seen[stops] = 0.0
    return refuted, states


@pytest.mark.parametrize(
    ("claim", "alpha", "beta", "likely"),
    [
        (PureDP(0.5), 0.1, 0.4, (0.2, 0.9)),  # violated
        pytest.param(PureDP(0.8), 0.2, 0.5, (1e-4, 0.05), marks=pytest.mark.slow),  # hardly violated
        pytest.param(GaussianDP(1.0), 0.2, 0.5, (0.0, 0.05), marks=pytest.mark.slow),  # true
        pytest.param(ApproxDP(epsilon=0.2, delta=0.1), 0.1, 0.4, (0.2, 1.0), marks=pytest.mark.slow),  # violated
    ],
    ids=str,
)
def test_an_audit_states_anything_false_with_probability_at_most_its_significance(
    claim: TradeoffFunction, alpha: float, beta: float, likely: tuple[float, float]
) -> None:
    """At most 40 trials with a look after each, and then eight fresh runs on each dataset."""
    s, most, fresh = 1 - STATED, 40, 8
    epsilons = {d: math.log(max((1 - beta - d) / alpha, (1 - alpha - d) / beta, 1.0)) for d in DELTAS}
    mu = float(-ndtri(alpha) - ndtri(beta))
    refuted, states = refuted_by(claim, alpha, beta, most)
    assert likely[0] <= refuted <= likely[1]
    is_true = all(claim.beta(a) <= b + 1e-12 for a, b in ((alpha, beta), (beta, alpha)))

    def false(found: SequentialEvidence) -> bool:
        if found.lower(None, confidence=STATED) > mu + 1e-9:
            return True
        return any(found.lower(d, confidence=STATED) > t + 1e-9 for d, t in epsilons.items())

    empty = scored(0, 0, 0)
    of_sizes = 0.0
    for x in range(fresh + 1):
        for z in range(fresh + 1):
            counts = Counts(false_positives=x, n0=fresh, false_negatives=z, n1=fresh)
            made = Confirmation(outcome="consistent", runs=fresh, processes=8, counts=counts)
            if false(evidence(claim, empty, confirms=True, confirmation=made)):
                of_sizes += binom.pmf(x, fresh, alpha) * binom.pmf(z, fresh, beta)
    of_bounds, true = 0.0, [GaussianDP(mu), *(ApproxDP(epsilon=t, delta=d) for d, t in epsilons.items())]
    largest = np.max([log_wealth(strategy(claim), one, most, most) for one in true], axis=0)
    for x, y in zip(*np.nonzero((states > 0) & (largest >= log_threshold(STATED))), strict=True):
        if false(evidence(claim, scored(int(x), int(y), most), confirms=True)):
            of_bounds += float(states[x, y])
    assert of_sizes <= sizes_significance(s)
    assert of_sizes > 0
    assert (refuted if is_true else refuted * of_sizes) + of_bounds <= s
