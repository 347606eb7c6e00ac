"""Intervals and bands that hold at any stopping time, and the selection among e-values of many audits."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, binom, hypergeom

from dpaudit.claims import GaussianDP, parse_claim
from dpaudit.inference.e_bh import e_bh, shared_confidences, significance
from dpaudit.inference.fixed.binomial import clopper_pearson, clopper_pearson_upper
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.inference.independence.same_law import newcomers_p_value
from dpaudit.inference.independence.signs import log_equal
from dpaudit.inference.one_run import coins_p_value, number_factor
from dpaudit.inference.power import largest_epsilon, rule_of_three_rate
from dpaudit.inference.scores.families import MAX_WHOLE, TextFamily, epsilon_inside, family_of, text_family
from dpaudit.inference.sequential import bands
from dpaudit.inference.sequential.bands import anytime_band, anytime_interval, fixed_band, upper_rate
from dpaudit.result.evidence import FixedEvidence, bound_inside


@pytest.mark.parametrize(
    ("rate", "prior"), [(0.02, (0.5, 0.5)), (0.25, (3.0, 9.0)), (0.25, (0.5, 0.5)), (0.5, (40.0, 2.0))]
)
def test_the_interval_covers_the_rate_at_any_stopping_time(rate: float, prior: tuple[float, float]) -> None:
    """Computes the exact probability that any of the first 60 intervals misses the rate, by counting paths."""
    inside, missed = np.array([1.0]), 0.0  # probability of covered paths, by number of successes
    for n in range(1, 61):
        inside = np.append((1 - rate) * inside, 0.0) + np.append(0.0, rate * inside)
        for k in np.flatnonzero(inside):
            low, high = anytime_interval(int(k), n, significance=0.1, prior=prior)
            if not low <= rate <= high:
                missed += inside[k]
                inside[k] = 0.0
    assert math.isclose(missed + inside.sum(), 1.0)
    assert missed <= 0.1


def test_the_coverage_test_detects_intervals_for_a_fixed_number_of_trials() -> None:
    """Intervals of Clopper and Pearson miss the rate too often at some stopping time."""
    inside, missed = np.array([1.0]), 0.0
    for n in range(1, 61):
        inside = np.append(0.5 * inside, 0.0) + np.append(0.0, 0.5 * inside)
        for k in np.flatnonzero(inside):
            low, high = clopper_pearson(int(k), n, significance=0.1)
            if not low <= 0.5 <= high:
                missed += inside[k]
                inside[k] = 0.0
    assert missed > 0.1


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 500), (500, 500), (3, 1000), (250_000, 1_000_000)])
def test_the_interval_contains_the_observed_rate_and_the_clopper_pearson_interval(k: int, n: int) -> None:
    low, high = anytime_interval(k, n, significance=0.05)
    assert 0 <= low <= k / n <= high <= 1
    exact = clopper_pearson(k, n, significance=0.05)
    assert low <= exact[0] + 1e-12  # equal for one output
    assert high >= exact[1] - 1e-12
    assert (low == 0) == (k == 0)
    assert (high == 1) == (k == n)


def test_the_likelihood_ratio_of_the_mixture_at_both_ends_is_one_over_the_significance() -> None:
    """The reference integrates the likelihood numerically over a uniform prior."""
    k, n, significance = 7, 40, 0.05
    p = (np.arange(200_000) + 0.5) / 200_000
    mixture = float(np.mean(binom.pmf(k, n, p)))
    for end in anytime_interval(k, n, significance=significance, prior=(1.0, 1.0)):
        assert math.isclose(mixture / binom.pmf(k, n, end), 1 / significance, rel_tol=1e-6)


def test_impossible_arguments_are_refused() -> None:
    assert anytime_interval(0, 0, significance=0.05) == (0.0, 1.0)
    with pytest.raises(ValueError, match="a count must lie between"):
        anytime_interval(3, 2, significance=0.05)
    with pytest.raises(ValueError, match="significance must lie in"):
        anytime_interval(1, 2, significance=0.0)


def plain(e_values: list[float], rate: float) -> list[int]:
    """Find the largest k such that k e-values are at least m / (k rate); return their positions."""
    m = len(e_values)
    for k in range(m, 0, -1):
        if sum(e >= m / (k * rate) for e in e_values) >= k:
            cutoff = sorted(e_values, reverse=True)[k - 1]
            return [i for i, e in enumerate(e_values) if e >= cutoff][:k]
    return []


def test_agrees_with_a_plain_version() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        e_values = np.exp(rng.normal(2, 3, rng.integers(1, 12))).tolist()
        assert e_bh(e_values, false_discovery_rate=0.1) == plain(e_values, 0.1)


def test_the_false_discovery_rate_is_at_most_the_stated_one() -> None:
    """Simulates 2,000 suites in which ten true claims rarely have large e-values.  Fails by chance < 1 in 10**6."""
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(2_000):
        true = np.where(rng.random(10) < 0.01, 100.0, 0.0)
        named = e_bh([*true.tolist(), 1e9, 1e9], false_discovery_rate=0.2)
        shares.append(np.mean([i < 10 for i in named]))
    assert np.mean(shares) <= 0.2 + 5 * 0.2 / math.sqrt(2_000)


@pytest.mark.parametrize(("e_values", "rate"), [([math.nan], 0.1), ([-1.0], 0.1), ([1.0], 0.0), ([1.0], 1.0)])
def test_impossible_input_is_refused(e_values: list[float], rate: float) -> None:
    with pytest.raises(ValueError, match=r"e-values must be|false_discovery_rate must lie"):
        e_bh(e_values, false_discovery_rate=rate)


def plain_upper_rate(k: int, n: int, significance: float) -> float:
    """Compute `upper_rate` by a scan over rates, with an explicit mixture."""
    tilts = -0.002 * (12 / 0.002) ** (np.arange(24) / 23)
    rates = np.linspace(k / n, 1, 20001)[:-1, None]
    wealth = np.logaddexp.reduce(tilts * k - n * np.log1p(rates * np.expm1(tilts)) - math.log(24), axis=1)
    refuted = np.flatnonzero(wealth >= -math.log(significance))
    return float(rates[refuted[0], 0]) if len(refuted) else 1.0


@pytest.mark.parametrize(("k", "n"), [(0, 10), (10, 10), (3, 10), (0, 1000), (1, 1000), (500, 1000), (999, 1000)])
def test_the_bound_agrees_with_the_reference_implementation(k: int, n: int) -> None:
    assert float(upper_rate(k, n, significance=0.01)) == pytest.approx(plain_upper_rate(k, n, 0.01), abs=1e-4)


def test_the_bound_holds_at_all_times_simultaneously() -> None:
    """At most 5 % of 400 paths may exceed the bound at any of 80 times.  Fails by chance < 1 in 10**6."""
    rng = np.random.default_rng(5)
    left = 0
    for rate in (0.03, 0.5):
        successes = np.cumsum(rng.random((200, 2000)) < rate, axis=1)
        looks = np.unique(np.geomspace(1, 2000, 80).astype(int))
        bounds = np.array([upper_rate(successes[:, n - 1], n, significance=0.05) for n in looks])
        left += int(np.sum(bounds.min(axis=0) < rate))
    assert left <= binom.ppf(1 - 1e-6, 400, 0.05)


def test_the_band_covers_the_curve_of_gaussian_noise() -> None:
    """The score is the exact likelihood ratio, so the curve is G_1.  Fails by chance < 1 in 10**6."""
    rng = np.random.default_rng(9)
    missed = 0
    for _ in range(60):
        n = int(rng.integers(50, 3000))
        counts0, counts1 = bin_counts(rng.normal(-0.5, 1, n)), bin_counts(rng.normal(0.5, 1, n))
        alpha, _, upper = anytime_band(counts0, counts1, significance=0.05)
        missed += bool(np.any(upper < GaussianDP(1.0).beta(np.clip(alpha, 0, 1)) - 1e-12))
    assert missed <= binom.ppf(1 - 1e-6, 60, 0.05)


def test_the_band_is_near_the_curve_with_many_trials() -> None:
    rng = np.random.default_rng(1)
    counts0, counts1 = bin_counts(rng.normal(-0.5, 1, 200_000)), bin_counts(rng.normal(0.5, 1, 200_000))
    alpha, beta, upper = anytime_band(counts0, counts1, significance=0.05)
    curve = GaussianDP(1.0).beta(np.clip(alpha, 0, 1))
    assert np.max(np.abs(beta - curve)) < 0.01
    assert np.max(upper - curve) < 0.02


def test_without_trials_the_band_is_trivial() -> None:
    nothing = np.zeros_like(bin_counts(np.zeros(0)))
    alpha, beta, upper = anytime_band(nothing, nothing, significance=0.05)
    assert alpha.tolist() == [1.0, 1.0, 0.0]
    assert np.all(upper >= 1 - alpha - 1e-12)
    assert len(alpha) == len(beta) == len(upper)


# --- slow second versions of bounds and p-values with closed forms; the other files of this folder have longer ones


Upper = Callable[[int, int, float], float]


def plain_band(counts: np.ndarray, at: np.ndarray, upper: Upper, level: float) -> np.ndarray:
    """Return the least line between any two points, of two bounds for each threshold, over each alpha."""
    points, (n0, n1) = [(0.0, 1.0), (1.0, 0.0)], counts.sum(axis=1)
    for cut in bands._THRESHOLDS:
        x, z = counts[0, cut + 1 :].sum(), counts[1, : cut + 1].sum()
        share = level / (2 * len(bands._THRESHOLDS))
        points.append((upper(int(x), int(n0), share), upper(int(z), int(n1), share)))
    found = np.ones_like(at)
    for a, b in points:
        for c, d in points:
            if a < c:
                line = b + (d - b) * (at - a) / (c - a)
                found = np.where((at >= a) & (at <= c), np.minimum(found, line), found)
    return found


@pytest.mark.parametrize(
    ("band", "upper"),
    [
        (anytime_band, lambda k, n, s: float(upper_rate(k, n, significance=s))),
        (fixed_band, lambda k, n, s: float(beta.isf(s, k + 1, n - k)) if k < n else 1.0),
    ],
)
def test_a_band_is_the_lower_hull_of_its_points(band: Callable[..., bands.Band], upper: Upper) -> None:
    rng = np.random.default_rng(0)
    counts = np.array([bin_counts(side) for side in (rng.normal(-1, 1.5, 300), rng.normal(1, 1.5, 300))])
    alpha, _, bound = band(*counts, significance=0.05)
    assert bound == pytest.approx(plain_band(counts, alpha, upper, 0.05), abs=1e-9)


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 10), (10, 10), (40, 1000)])
def test_the_upper_end_of_an_interval_is_where_the_tail_is_the_significance(k: int, n: int) -> None:
    found = clopper_pearson_upper(k, n, significance=0.01)
    exact = 1.0 if k == n else brentq(lambda p: binom.cdf(k, n, p) - 0.01, k / n + 1e-12, 1 - 1e-12, xtol=1e-14)
    assert found == pytest.approx(exact, abs=1e-9)
    assert found >= exact - 1e-12


@pytest.mark.parametrize(("n", "level"), [(1, 0.5), (10, 0.05), (10_000, 1e-6)])
def test_no_epsilon_above_the_resolution_is_refuted(n: int, level: float) -> None:
    def excess(epsilon: float) -> float:
        return math.log(level) + 2 * n * math.log1p(math.exp(-epsilon))

    exact = brentq(excess, -50, 50) if excess(0) > 0 else 0.0
    assert largest_epsilon(n, significance=level) == pytest.approx(max(0.0, exact), abs=1e-9)
    assert (1 - rule_of_three_rate(n)) ** n == pytest.approx(0.05)


@pytest.mark.parametrize(("m", "included", "share"), [(10, 5, 0.5), (10, 0, 0.5), (40, 10, 0.25), (1, 1, 0.9)])
def test_the_factor_of_a_fixed_number_is_one_over_its_chance(m: int, included: int, share: float) -> None:
    exact = max(1.0, 1 / binom.pmf(included, m, share))
    assert exact <= number_factor(m, included, share) * (1 + 1e-12)
    assert number_factor(m, included, share) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("n0", "n1"), [(0, 10), (3, 9), (5, 5), (60, 40)])
def test_the_p_value_of_coins_is_twice_the_tail(n0: int, n1: int) -> None:
    tail = sum(math.comb(n0 + n1, k) for k in range(min(n0, n1) + 1)) / 2 ** (n0 + n1)
    assert coins_p_value(n0, n1) == pytest.approx(min(1.0, 2 * tail))


def test_the_p_value_of_new_values_is_a_tail_of_the_hypergeometric_law() -> None:
    known, new = [0, 0, 1, 2, 3, 4, 4, 5], [6, 7, 7, 0, 8]
    tails = []
    for most in (1, len(new)):
        rare = {value for value in [*known, *new] if [*known, *new].count(value) <= most}
        only = len(rare - set(known))
        tails.append(hypergeom.sf(only - 1, len(known) + len(new), len(rare), len(new)))
    assert newcomers_p_value(known, new) == pytest.approx(min(1.0, 2 * min(tails)), rel=1e-6)


@pytest.mark.parametrize(("k", "pairs", "equal", "n"), [(0, 5, 4, 12), (2, 5, 4, 12), (4, 5, 20, 30)])
def test_the_bound_of_repeated_outputs_is_the_least_product(k: int, pairs: int, equal: int, n: int) -> None:
    bounds = [
        math.comb(pairs, j) * math.prod(equal / ((n - 2 * i) * (n - 2 * i - 1)) for i in range(j)) for j in range(k + 1)
    ]
    assert log_equal(k, pairs, equal, n) == pytest.approx(math.log(min(bounds)))


def test_shared_confidences_spend_the_mean_of_the_significances() -> None:
    asked = [0.99, 0.95, 0.9]
    spent = sum(significance(one) for one in shared_confidences(asked))
    mean = sum(map(significance, asked)) / len(asked)
    assert 0.999 * mean <= spent <= mean


# --- families of claims that are written as text, with any one parameter free


COUNTS = np.zeros((2, BINS), dtype=np.int64)
COUNTS[:, [BINS // 2, BINS // 2 + 1]] = [[320, 80], [80, 320]]
EVIDENCE = FixedEvidence(pair=0, threshold=BINS // 2, pilot=COUNTS, counts=COUNTS)


def refuted(text: str, parameter: float) -> bool:
    shown = str(int(parameter)) if parameter == int(parameter) else repr(parameter)
    return EVIDENCE.p_value(parse_claim(text.replace("?", shown)).symmetrized()) <= 0.05


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("mu=?", "gaussian(mu=?)"),
        ("rho=?", "zcdp(rho=?)"),
        ("(?, 1e-5)", "approximate(epsilon=?, delta=1e-5)"),
        ("(0.1, ?)", "approximate(epsilon=0.1, delta=?)"),
        ("gaussian(?)", "gaussian(mu=?)"),
        ("repeated(gaussian(μ=?), n=4)", "repeated(gaussian(mu=?), n=4)"),
    ],
)
def test_short_forms_and_positions_name_the_same_parameter(text: str, complete: str) -> None:
    for place in (0.5, 21.0):
        assert text_family(text)(place) == text_family(complete)(place)


@pytest.mark.parametrize(
    "text",
    [
        "repeated(gaussian(mu=0.1), n=?)",
        "repeated(pure(epsilon=0.1), n=?)",
        "group(gaussian(mu=0.3), k=?)",
        "repeated(group(gaussian(mu=0.1), k=?), n=4)",
    ],
)
def test_bounds_of_whole_numbers_are_the_largest_refuted(text: str) -> None:
    bound = bound_inside(EVIDENCE, 1e-5, text, confidence=0.95, valid=True)
    assert bound.parameter == int(bound.parameter) > 1
    assert refuted(text, bound.parameter)
    assert not refuted(text, math.ceil(1.005 * bound.parameter) + 1)
    assert float(bound) == parse_claim(text.replace("?", str(int(bound.parameter)))).epsilon(1e-5)


@pytest.mark.parametrize("text", ["approximate(epsilon=0.1, delta=?)", "subsampled(gaussian(mu=3), rate=?)"])
def test_bounds_of_shares_lie_between_0_and_1(text: str) -> None:
    bound = bound_inside(EVIDENCE, 0.3, text, confidence=0.95, valid=True)
    assert 0 < bound.parameter < 1
    assert refuted(text, 0.999 * bound.parameter)
    assert not refuted(text, 1.003 * bound.parameter)


def test_parameters_cover_their_range_and_do_not_fall() -> None:
    places = [0.0, 1e-6, *(i / 4 for i in range(1, 257))]
    for name, first, last in (("n=?", 1.0, MAX_WHOLE), ("delta=?", 2e-9, 1.0), ("rate=?", 2e-9, 1.0)):
        values = [TextFamily("", name[:-2], "", "").parameter(place) for place in places]
        assert values == sorted(values)
        assert values[0] == pytest.approx(first, rel=0.1)
        assert values[-1] == pytest.approx(last)
    assert text_family("approximate(epsilon=1, delta=?)")(64.0).delta(0.0) < math.nextafter(1.0, 2.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("repeated(gaussian(mu=0.1) n=?)", "must take the place of a number"),
        ("renyi(order=?, epsilon=1)", "takes the place of order; allowed are mu, epsilon"),
        ("repeated(gaussian(mu=-1), n=?)", r"gaussian\(mu=-1\), n=\?\)' has no member at n = 2: mu"),
        ("(" * 20_000 + "?", "20,001 characters"),
    ],
)
def test_texts_that_are_no_family_are_explained(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        family_of(text)(1.0)


def test_epsilon_is_that_of_the_parameter() -> None:
    family = family_of("repeated(gaussian(mu=0.1), n=?)")
    assert epsilon_inside(family, math.log(4.5), 1e-5) == parse_claim("repeated(gaussian(mu=0.1), n=4)").epsilon(1e-5)
