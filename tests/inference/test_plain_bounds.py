"""Slow second versions of bounds and p-values with closed forms; the other files of this folder have longer ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, binom, hypergeom

from dpaudit.claims import parse_claim
from dpaudit.inference.e_bh import shared_confidences, significance
from dpaudit.inference.fixed.binomial import clopper_pearson_upper
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.inference.independence.same_law import newcomers_p_value
from dpaudit.inference.independence.signs import log_equal
from dpaudit.inference.one_run import coins_p_value, number_factor
from dpaudit.inference.power import largest_epsilon, rule_of_three_rate
from dpaudit.inference.scores.families import MAX_WHOLE, TextFamily, epsilon_inside, family_of, text_family
from dpaudit.inference.sequential import bands
from dpaudit.inference.sequential.bands import anytime_band, fixed_band, upper_rate
from dpaudit.result.evidence import FixedEvidence, bound_inside

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
