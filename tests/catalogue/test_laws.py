"""The builtin mechanisms have the stated laws, according to exact probabilities.

Every comparison fails by chance with probability < 1 in 10**7.
"""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import chi2_contingency, chisquare, expon, kstest, laplace, norm

from dpaudit.catalogue import BUILTIN
from dpaudit.catalogue.responses import bloom
from dpaudit.claims import TradeoffFunction

ODDS = 1e-7
N = 10_000
VALUES = np.linspace(-400, 400, 80_001)  # integrals over this grid are wrong by less than 0.002


def drawn(name: str, x: list[float], n: int = N, **params: Any) -> Any:
    return BUILTIN[name](**params).sample(x, n, np.random.default_rng(5))


def same_counts(outputs: Any, law: dict[Any, float]) -> None:
    """Assert that outputs (rows or numbers) have the given law; all outcomes that it omits count as one outcome."""
    rows = [tuple(row) if np.ndim(row) else float(row) for row in np.asarray(outputs)]
    often = {key: p for key, p in law.items() if p * len(rows) >= 5}
    counts = [rows.count(key) for key in often]
    rest, chance = len(rows) - sum(counts), 1 - sum(often.values())
    if chance * len(rows) < 5:
        assert rest <= 60
        total = sum(often.values())
        assert chisquare(counts, [sum(counts) * p / total for p in often.values()]).pvalue > ODDS
    else:
        assert chisquare([*counts, rest], [len(rows) * p for p in (*often.values(), chance)]).pvalue > ODDS


def test_geometric_noise() -> None:
    law = {3 + k: math.tanh(1 / 2 / 1.5) * math.exp(-abs(k) / 1.5) for k in range(-40, 41)}
    same_counts(drawn("geometric", [1, 2], scale=1.5), law)


def test_discrete_gaussian_noise() -> None:
    total = sum(math.exp(-k * k / 8) for k in range(-60, 61))
    same_counts(
        drawn("discrete_gaussian", [1, 2], sigma=2.0), {3 + k: math.exp(-k * k / 8) / total for k in range(-9, 10)}
    )


@pytest.mark.parametrize("count", [0, 2, 5])
def test_truncated_geometric(count: int) -> None:
    cumulative = np.array(BUILTIN["truncated_geometric"]().cumulative(count))
    law = np.diff(cumulative, prepend=0) / cumulative[-1]
    same_counts(drawn("truncated_geometric", [count]), dict(enumerate(law)))


def test_truncated_geometric_is_as_private_as_published() -> None:
    """mechanisms.md: {z >= 2} has .529 on 2 and .471 on 1; ln(1 + 1/8) is exact; delta(.1) = 9.3e-3."""
    tables = np.array([BUILTIN["truncated_geometric"]().cumulative(c) for c in range(6)], dtype=float)
    shares = tables / tables[:, -1:]
    laws = np.diff(shares, axis=1, prepend=0)
    assert laws[2, 2:].sum() == pytest.approx(0.529, abs=5e-4)
    assert laws[1, 2:].sum() == pytest.approx(0.471, abs=5e-4)
    assert np.abs(np.log(laws[1:] / laws[:-1])).max() == pytest.approx(math.log(1.125))
    assert np.maximum(laws[2] - math.exp(0.1) * laws[1], 0).sum() == pytest.approx(9.3e-3, abs=5e-5)


def test_snapping() -> None:
    """Cells of the grid have the Laplace mass between their edges, the ends all that is beyond."""
    grid, scale = 16.0, 10.0
    inner = {
        k * grid: float(np.diff(laplace.cdf([(k - 0.5) * grid, (k + 0.5) * grid], 7, scale))[0]) for k in range(-6, 7)
    }
    ends = {-100.0: laplace.cdf(-6.5 * grid, 7, scale), 100.0: laplace.sf(6.5 * grid, 7, scale)}
    same_counts(drawn("snapping", [7.0]), {**inner, **ends})


@pytest.mark.parametrize(
    ("name", "x", "law"),
    [
        ("spinner", [1], {1.0: 0.75, 0.0: 0.25}),
        ("spinner_and_coin", [0], {0.0: 0.75, 1.0: 0.25}),
        ("kary_response", [2], {v: (math.e if v == 2 else 1) / (math.e + 3) for v in range(4)}),
        (
            "exponential",
            [0, 1, 2, 3, 4],
            {i: math.exp(i / 20) / sum(math.exp(j / 20) for j in range(5)) for i in range(5)},
        ),
    ],
)
def test_responses_and_selection(name: str, x: list[float], law: dict[float, float]) -> None:
    same_counts(drawn(name, x), law)


@pytest.mark.parametrize(("name", "kept"), [("rappor", 0.0125), ("one_time_rappor", 0.025)])
def test_rappor(name: str, kept: float) -> None:
    """Six bits differ between 0 and 1, eight between 6 and 10 (mechanisms.md); each is 1/2, and `kept` more or less."""
    assert int((bloom(0, 20, 4) ^ bloom(1, 20, 4)).sum()) == 6
    assert int((bloom(6, 20, 4) ^ bloom(10, 20, 4)).sum()) == 8
    ones = drawn(name, [6]).sum(axis=0)
    expected = N * np.where(bloom(6, 20, 4), 0.5 + kept, 0.5 - kept)
    assert np.abs((ones - expected) / math.sqrt(N / 4)).max() < -norm.ppf(ODDS / 40)
    assert BUILTIN[name]().claim.epsilon(0.0) == pytest.approx(8 * math.log((0.5 + kept) / (0.5 - kept)))


def argmax_law(x: list[float], noise: Any) -> dict[float, float]:
    def density(i: int) -> Any:
        return noise.pdf(VALUES - x[i]) * math.prod(noise.cdf(VALUES - x[j]) for j in range(len(x)) if j != i)

    return {i: float(trapezoid(density(i), VALUES)) for i in range(len(x))}


@pytest.mark.parametrize(("name", "noise"), [("noisy_max_1", laplace(0, 4)), ("noisy_max_2", expon(0, 4))])
def test_noisy_maxima(name: str, noise: Any) -> None:
    x = [0.0, 2.0, 5.0]
    same_counts(drawn(name, x, epsilon=0.5), argmax_law(x, noise))


@pytest.mark.parametrize(("name", "noise"), [("noisy_max_3", laplace(0, 20)), ("noisy_max_4", expon(0, 20))])
def test_values_of_noisy_maxima(name: str, noise: Any) -> None:
    x = [0.0, 2.0, 5.0, 9.0]
    cdf = lambda v: np.prod([noise.cdf(v - answer) for answer in x], axis=0)  # noqa: E731
    assert kstest(drawn(name, x), cdf).pvalue > ODDS


@pytest.mark.parametrize(
    ("name", "pick", "noise"),
    [
        ("gaussian", lambda y: y - 3, norm(0, 1)),
        ("laplace", lambda y: y - 3, laplace(0, 1)),
        ("laplace_parallel", lambda y: y[:, 7] - 1, laplace(0, 200)),
        ("noisy_histogram_1", lambda y: y[:, 1] - 2, laplace(0, 10)),
        ("noisy_histogram_2", lambda y: y[:, 1] - 2, laplace(0, 0.1)),
        ("prefix_sum", lambda y: y[:, 1] - y[:, 0] - 2, laplace(0, 10)),
        ("noisy_sum", lambda y: y - 2, laplace(0, 1)),
        ("sensitivity_off", lambda y: y - 2, laplace(0, 1)),
        ("bounds_from_data", lambda y: y - 3, laplace(0, 2)),
        ("mean_of_true_count", lambda y: y - 1, laplace(0, 0.5)),
        ("variance_for_deviation", lambda y: y - 3, norm(0, math.sqrt(2))),
        ("laplace_inverse_cdf", lambda y: y - 1, laplace(0, 1)),
        ("gaussian_box_muller", lambda y: y - 1, norm(0, 1)),
        ("reused_noise", lambda y: y[:, 0] - 3, laplace(0, 2)),
    ],
)
def test_noise(name: str, pick: Any, noise: Any) -> None:
    assert kstest(pick(drawn(name, [1.0, 2.0])), noise.cdf).pvalue > ODDS


def test_subsampled_sums() -> None:
    """Mixtures over the sample: of two records each at rate 1/4; of four records exactly one."""
    poisson = {0: 9 / 16, 1: 3 / 16, 5: 3 / 16, 6: 1 / 16}
    outputs = drawn("subsampled_gaussian", [1.0, 5.0], sigma=0.5)
    assert kstest(outputs, lambda v: sum(p * norm.cdf(v, s, 0.5) for s, p in poisson.items())).pvalue > ODDS
    outputs = drawn("subsampled_wrongly", [0.0, 1.0, 5.0, 6.0], sigma=0.5)
    assert kstest(outputs, lambda v: sum(norm.cdf(v, s, 0.5) / 4 for s in (0, 1, 5, 6))).pvalue > ODDS


@pytest.mark.parametrize(
    ("name", "threshold", "query"), [("svt_5", laplace(1, 20), None), ("svt_6", laplace(1, 20), laplace(0, 20))]
)
def test_sparse_vector_without_a_stop(name: str, threshold: Any, query: Any) -> None:
    x = [2.0, 0.0, 30.0]

    above = [query.sf(VALUES - v) if query else v >= VALUES for v in x]

    def chance(answers: tuple[float, ...]) -> Any:
        return math.prod(p * 1.0 if answer else 1.0 - p for p, answer in zip(above, answers, strict=True))

    densities = {answers: threshold.pdf(VALUES) * chance(answers) for answers in product((0.0, 1.0), repeat=3)}
    law = {answers: float(trapezoid(density, VALUES)) for answers, density in densities.items()}
    same_counts(drawn(name, x), law)


def sparse_vector(name: str, x: list[float], c: int, rng: np.random.Generator, eps: float = 0.1) -> list[float]:
    """A second version, one query at a time: after c answers above the noisy threshold, all others are below."""
    limit, answers = {  # scales of the noise of the threshold and of the compared answers
        "svt_1": (2 / eps, 4 * c / eps),
        "svt_2": (2 * c / eps, 4 * c / eps),
        "svt_3": (2 / eps, 2 * c / eps),
        "svt_4": (4 / eps, 4 / (3 * eps)),
        "numerical_svt": (3 / eps, 6 * c / eps),
    }[name]
    threshold = 0.5 if name == "svt_1" else 1.0
    below, stopped = {"svt_3": (np.nan, np.nan), "numerical_svt": (0.0, 0.0)}.get(name, (0.0, -1.0))
    rho, count, out = rng.laplace(0, limit), 0, []
    for q in x:
        noisy = q + rng.laplace(0, answers)
        if count == c:
            out.append(stopped)
        elif noisy < threshold + rho:
            out.append(below)
        else:
            count += 1
            fresh = q + rng.laplace(0, 3 * c / eps)
            out.append({"svt_3": noisy, "numerical_svt": fresh}.get(name, 1.0))
            rho = rng.laplace(0, limit) if name == "svt_2" else rho
    return out


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("name", ["svt_1", "svt_2", "svt_3", "svt_4", "numerical_svt"])
def test_many_at_once_are_as_one_by_one(name: str, most: int) -> None:
    """Which queries are above, and the numbers if any, against the plain version."""
    x, n = [0.0, 20.0, 1.0, 40.0], 4000
    rng = np.random.default_rng(6)
    plain = np.array([sparse_vector(name, x, most, rng) for _ in range(n)])
    many = drawn(name, x, n, most=most)
    shapes = [[tuple(row) for row in np.where(np.isnan(y), 0, np.where(y % 1 == 0, y, 9))] for y in (plain, many)]
    kinds = sorted({*shapes[0], *shapes[1]})
    table = np.array([[side.count(kind) for kind in kinds] for side in shapes])
    often = table.sum(axis=0) >= 10
    folded = np.column_stack([table[:, often], table[:, ~often].sum(axis=1) + 1])
    assert chi2_contingency(folded).pvalue > ODDS
    numbers = [np.sort(y[~np.isnan(y) & (y % 1 != 0)]) for y in (plain, many)]
    if len(numbers[0]):
        assert kstest(numbers[0], numbers[1]).pvalue > ODDS


def test_cells_that_are_released() -> None:
    outputs = drawn("missing_cells", [0, 0, 3], 1000)
    assert {tuple(sorted(output)) for output in outputs} == {("0", "3")}
    assert kstest([output["0"] - 2 for output in outputs], laplace.cdf).pvalue > ODDS
    shown = sum("3" in output for output in drawn("threshold_release", [0, 0, 3], N))
    chance = math.exp(-3) / 2
    assert abs(shown - N * chance) < -norm.ppf(ODDS) * math.sqrt(N * chance)


def test_records_that_no_one_expects() -> None:
    strange = [0.5, math.nan, 1e300, -math.inf]
    assert np.isfinite(drawn("noisy_sum", strange, 10)).all()
    assert np.isnan(drawn("nan_survives", strange, 10)).all()
    assert len(set(drawn("fixed_seed", [1.0], 10))) == 1
    assert np.all(drawn("mean_of_true_count", [], 10) == 0)


def test_counting_trials_gives_geometric_noise() -> None:
    mechanism = BUILTIN["geometric_by_trials"](epsilon=1.0, most=2)
    rng = np.random.default_rng(5)
    outputs = [mechanism([1], rng) for _ in range(4_000)]
    same_counts(outputs, {1 + k: math.tanh(1 / 4) * math.exp(-abs(k) / 2) for k in range(-60, 61)})


@pytest.mark.parametrize("name", list(BUILTIN))
def test_every_mechanism_says_what_it_is(name: str) -> None:
    mechanism = BUILTIN[name]()
    assert isinstance(mechanism.claim, TradeoffFunction)
    assert isinstance(mechanism.private, bool)
    first = (type(mechanism).__doc__ or "").strip().split("\n")[0]
    assert first.endswith(".") or "\n" in (type(mechanism).__doc__ or "")
    assert mechanism.private or first.startswith("Wrong")


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("gaussian", {"sigma": -1}, "sigma must be > 0"),
        ("truncated_geometric", {"most": 40}, r"most must be in 1\.\.12"),
        ("kary_response", {"k": 1}, "k must be at least 2"),
        ("subsampled_gaussian", {"rate": 2.0}, "rate must lie strictly between"),
    ],
)
def test_impossible_parameters_are_refused(name: str, params: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BUILTIN[name](**params)
