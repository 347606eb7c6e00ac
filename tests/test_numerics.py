"""The lower convex hull agrees with a comparison against every chord in exact arithmetic."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from dpaudit import numerics as logistic
from dpaudit.numerics import (
    FOLDS,
    AnyArray,
    Array,
    Bracket,
    Flags,
    Integers,
    bisect,
    bisect_each,
    bisect_each_integer,
    bisect_integers,
    fit_logistic,
    geometric_mean,
    last_that_holds,
    lower_hull,
    lowest,
    out_of_fold,
)

POINTS = st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=1, max_size=25)


def plain(points: list[tuple[int, int]], *, straight: bool) -> list[tuple[int, int]]:
    """Return the lowest point at each x, unless a chord between two other points passes below it.

    Without `straight`, a chord that passes through the point removes it, too.
    """
    lowest_at = sorted(dict(sorted(points, reverse=True)).items())

    def goes(x: int, y: int) -> bool:
        for (x0, y0), (x1, y1) in combinations(lowest_at, 2):
            if x0 < x < x1:
                chord = y0 + Fraction(y1 - y0, x1 - x0) * (x - x0)
                if chord < y or (chord == y and not straight):
                    return True
        return False

    return [(x, y) for x, y in lowest_at if not goes(x, y)]


@given(POINTS, st.booleans())
def test_what_is_kept_lies_below_every_chord(points: list[tuple[int, int]], straight: bool) -> None:
    """The comparison is exact: quotients of integers up to 40 are equal or differ by much more than rounding errors."""
    x, y = (np.array(values, dtype=np.float64) for values in zip(*points, strict=True))
    hull = lower_hull(*lowest(x, y), straight=straight)
    assert list(zip(*hull, strict=True)) == plain(points, straight=straight)


def test_another_scale_of_x_keeps_the_same_points() -> None:
    """Here x is the logarithm of an abscissa, and e^x does not overflow."""
    rng = np.random.default_rng(5)
    x, y = np.sort(rng.uniform(0, 5, 200)), np.sort(rng.uniform(0, 1, 200))[::-1]
    hull = lower_hull(np.exp(x), y)
    other = lower_hull(x, y, steepness=lambda x, y: np.diff(y) / np.diff(np.exp(x)))
    assert 5 < len(hull[0]) < 100
    assert np.array_equal(hull[0], np.exp(other[0]))
    assert np.array_equal(hull[1], other[1])


@pytest.mark.parametrize("points", [1, 2])
def test_one_or_two_points_are_their_own_hull(points: int) -> None:
    x, y = np.arange(points, dtype=np.float64), np.ones(points)
    assert np.array_equal(lower_hull(x, y), (x, y))


@pytest.mark.parametrize(("n0", "n1"), [(7, 10), (1, 1), (3, 2), (0, 4)])
def test_no_row_is_scored_by_what_was_fitted_to_it(n0: int, n1: int) -> None:
    rows0, rows1 = np.arange(n0), 100 + np.arange(n1)
    fitted: list[set[int]] = []

    def fit(rest0: AnyArray, rest1: AnyArray) -> Callable[[AnyArray], Array]:
        known = {*rest0.tolist(), *rest1.tolist()}
        fitted.append(known)

        def scorer(rows: AnyArray) -> Array:
            assert not known & {*rows.tolist()}
            return np.column_stack([rows, -rows]).astype(np.float64)

        return scorer

    held0, held1 = out_of_fold(fit, rows0, rows1)
    assert held0.tolist() == [[x, -x] for x in rows0]
    assert held1.tolist() == [[x, -x] for x in rows1]
    assert len(fitted) == FOLDS
    for row in (*rows0.tolist(), *rows1.tolist()):
        assert sum(row in known for known in fitted) == FOLDS - 1


def test_lists_are_rows_as_well() -> None:
    def fit(rest0: list[str], rest1: list[str]) -> Callable[[list[str]], Array]:
        assert isinstance(rest0, list)
        return lambda rows: np.array([len(row) for row in rows], dtype=np.float64)

    held0, held1 = out_of_fold(fit, ["a", "bb", "ccc", "dddd"], ["", "e"])
    assert held0.tolist() == [1, 2, 3, 4]
    assert held1.tolist() == [0, 1]


@pytest.mark.parametrize(("n", "columns", "shift"), [(10, 1, 1.0), (200, 5, 0.3), (3000, 3, 0.0), (50, 2, 100.0)])
def test_logistic_regression_finds_what_scikit_learn_finds(n: int, columns: int, shift: float) -> None:
    """One case is separable, so that only the penalty keeps the slopes finite."""
    rng = np.random.default_rng(n)
    rows = np.concatenate([rng.normal(0, 1, (n, columns)), rng.normal(shift, 1, (n, columns))])
    slopes, intercept = fit_logistic(rows, n)
    model = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(rows, np.repeat([0, 1], n))
    assert np.allclose(slopes, model.coef_[0], rtol=1e-2, atol=1e-3)
    assert abs(intercept - model.intercept_[0]) < 1e-2 * (1 + abs(intercept))


def plain_fit(rows: Array, n0: int, steps: int = 20) -> Array:
    """Newton's method without line search, and without any part of `fit_logistic`."""
    x = np.column_stack([rows, np.ones(len(rows))])
    penalty, beta = np.diag([1.0] * rows.shape[1] + [1e-9]), np.zeros(x.shape[1])
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-x @ beta))
        gradient = x.T @ (chance - (np.arange(len(x)) >= n0)) + penalty @ beta
        beta = beta - np.linalg.solve((x * (chance * (1 - chance))[:, None]).T @ x + penalty, gradient)
    return beta


@pytest.mark.parametrize(("n", "columns"), [(3000, 2), (6000, 40), (30, 200)])
def test_rows_in_several_parts_give_the_fit_of_a_plain_implementation(n: int, columns: int) -> None:
    """The second case has enough rows for a warm start, and more numbers than one product takes.

    The third has more columns than rows, and is solved in the space of the rows.
    """
    rng = np.random.default_rng(n)
    rows = np.concatenate([rng.normal(0, 1, (n, columns)), rng.normal(0.1, 1, (n, columns))])
    assert (2 * n * columns > 2**17) == (columns == 40)
    slopes, intercept = fit_logistic(rows, n)
    assert np.allclose([*slopes, intercept], plain_fit(rows, n), atol=1e-4)


@pytest.mark.parametrize("shift", [0.01, 3.0])
def test_fits_to_many_rows_stop_early_and_still_reach_the_minimum(shift: float) -> None:
    rng = np.random.default_rng(1)
    n = 60_000
    rows = np.concatenate([rng.normal(0, 1, (n, 4)), rng.normal(shift / 2, 1, (n, 4))])
    steps = 0
    products = logistic._weighted_products

    def counted(x: Array, weights: Array) -> Array:
        nonlocal steps
        steps += x.shape[1] == len(rows)
        return products(x, weights)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(logistic, "_weighted_products", counted)
        slopes, intercept = fit_logistic(rows, n)
    assert steps <= 2
    found, best = np.append(slopes, intercept), plain_fit(rows, n)
    x = np.column_stack([rows, np.ones(len(rows))])
    losses = [logistic.log_loss(x @ beta, n) + 0.5 * float(beta[:-1] @ beta[:-1]) for beta in (found, best)]
    assert losses[0] - losses[1] < 0.01  # nats, over 120,000 rows


def test_the_loss_of_extreme_log_odds_is_finite_and_exact() -> None:
    margins = np.array([-800.0, -1.0, 0.0, 2.0, 800.0, -800.0, -3.0, 0.5])
    signs = np.where(np.arange(8) < 3, 1.0, -1.0)
    assert logistic.log_loss(margins, 3) == pytest.approx(np.logaddexp(0.0, signs * margins).sum(), rel=1e-14)


# --- bisection agrees with scans at both ends of the bracket, and every search terminates


FINITE = st.floats(-8e307, 8e307)  # the sum of two is finite, too
SMALL = st.integers(-50, 50)


def scan(holds: Callable[[int], bool], inside: int, outside: int) -> Bracket[int]:
    """Scan the integers one by one, starting at the inner end."""
    step = 1 if inside < outside else -1
    at = inside
    while at + step != outside and holds(at + step):
        at += step
    return Bracket(at, at + step)


def turning(edge: float, *, below: bool) -> Callable[[float], bool]:
    """Return a condition that changes once: it holds up to the edge, or from the edge upwards."""
    return (lambda x: x <= edge) if below else (lambda x: x >= edge)


@given(SMALL, SMALL, SMALL, st.booleans())
def test_integers_are_found_as_by_a_scan(a: int, b: int, edge: int, below: bool) -> None:
    holds = turning(edge, below=below)
    inside, outside = sorted((a, b), reverse=not below)
    if not holds(inside) or holds(outside):
        return
    assert bisect_integers(holds, inside, outside) == scan(holds, inside, outside)


@given(FINITE, FINITE, FINITE, st.booleans())
def test_the_ends_are_neighbours_with_different_answers(a: float, b: float, edge: float, below: bool) -> None:
    holds = turning(edge, below=below)
    inside, outside = sorted((a, b), reverse=not below)
    if not holds(inside) or holds(outside):
        return
    found = bisect(holds, inside, outside)
    assert holds(found.inside)
    assert not holds(found.outside)
    assert found.outside == math.nextafter(found.inside, outside)


@settings(max_examples=40)
@given(FINITE, FINITE, st.lists(st.booleans(), min_size=1), st.sampled_from([lambda a, b: (a + b) / 2, geometric_mean]))
def test_every_search_ends_within_its_ends(
    a: float, b: float, answers: list[bool], mean: Callable[[float, float], float]
) -> None:
    """The condition may answer at random.  The limit of 2,200 steps is twice that of the longest known search."""
    inside, outside = (abs(a), abs(b)) if mean is geometric_mean else (a, b)
    asked: list[float] = []

    def holds(x: float) -> bool:
        asked.append(x)
        return answers[len(asked) % len(answers)]

    found = bisect(holds, inside, outside, mean=mean)
    assert len(asked) <= 2_200
    assert all(min(inside, outside) < x < max(inside, outside) for x in asked)
    assert {*found} <= {inside, outside, *asked}


def test_the_longest_search_between_0_and_1() -> None:
    asked: list[float] = []
    found = bisect(lambda x: bool(asked.append(x)), inside=0.0, outside=1.0)  # type: ignore[func-returns-value]
    assert found == (0.0, 5e-324)
    assert len(asked) == 1_074


@pytest.mark.parametrize(
    ("inside", "outside"), [(math.nan, 1.0), (0.0, math.nan), (0.0, math.inf), (-math.inf, math.inf), (1.0, 1.0)]
)
def test_nothing_lies_between_such_ends(inside: float, outside: float) -> None:
    def never(x: float) -> bool:
        raise AssertionError(x)

    np.testing.assert_equal(tuple(bisect(never, inside, outside)), (inside, outside))
    with np.errstate(invalid="ignore"):
        arrays = bisect_each(never, np.array([inside]), np.array([outside]))  # type: ignore[arg-type]
    np.testing.assert_equal(np.concatenate(arrays), [inside, outside])


def test_a_bracket_that_overflows_is_returned_as_it_is() -> None:
    assert bisect(lambda x: x <= 1.5e308, 1.2e308, 1.7e308) == (1.2e308, 1.7e308)


def test_an_end_that_never_moved_is_unchecked() -> None:
    assert bisect(lambda _: True, 0.0, 1.0).outside == 1.0
    assert bisect(lambda _: False, 0.0, 1.0, steps=3) == (0.0, 0.125)


@given(st.floats(1e-300, 1e300))
def test_the_geometric_mean_needs_few_steps_on_any_scale(edge: float) -> None:
    asked: list[float] = []

    def holds(x: float) -> bool:
        asked.append(x)
        return x <= edge

    found = bisect(holds, 1e-308, 1e308, close=lambda low, high: high / low <= 1.001, mean=geometric_mean)
    assert found.inside <= edge < found.outside <= 1.001 * found.inside
    assert len(asked) <= 21  # log2(log(10^616) / log(1.001))


@settings(max_examples=40)
@given(st.lists(st.tuples(SMALL, SMALL, SMALL), max_size=20))
def test_each_integer_is_found_as_if_alone(rows: list[tuple[int, int, int]]) -> None:
    rows = [(min(a, b), max(a, b), edge) for a, b, edge in rows if min(a, b) <= edge < max(a, b)]
    low, high, edge = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))

    def holds(x: Integers) -> Flags:
        return np.asarray(x <= edge)

    found = bisect_each_integer(holds, low, high)
    assert found.inside.tolist() == edge.tolist()
    assert found.outside.tolist() == (edge + 1).tolist()
    turned = bisect_each_integer(lambda x: ~holds(x), high, low)
    assert turned.inside.tolist() == (edge + 1).tolist()
    assert turned.outside.tolist() == edge.tolist()


@settings(max_examples=20)
@given(st.lists(st.floats(0.0, 1e300), max_size=20), st.sampled_from([None, 7, 60]), st.sampled_from([0.0, 1e-3]))
def test_each_element_is_found_as_if_alone(edges: list[float], steps: int | None, width: float) -> None:
    edge = np.array(edges)

    def close(x: Array, y: Array) -> Flags:
        return np.asarray(np.abs(x - y) <= width * np.abs(y))

    found = bisect_each(lambda x: x <= edge, np.zeros_like(edge), np.full_like(edge, 1e301), steps=steps, close=close)
    for i, one in enumerate(edges):
        alone = bisect(
            turning(one, below=True), 0.0, 1e301, steps=steps, close=lambda x, y: abs(x - y) <= width * abs(y)
        )
        assert (found.inside[i], found.outside[i]) == alone


@pytest.mark.parametrize("precision", [1e-4, 1e-6])
@pytest.mark.parametrize("edge", [0.0, 3e-7, 3e-5, 0.31234567, 0.7, 1.0000001, 7.7, 12.3, 63.999, 64.0, 70.0, 1e9])
def test_the_last_that_holds_is_just_below_the_edge(edge: float, precision: float) -> None:
    found = last_that_holds(lambda x: x <= edge, precision=precision)
    true = min(edge, 64.0)
    assert found <= true
    assert found >= true - precision * max(1.0, true)
    assert found == 0 or found >= precision
