"""Whiteners and shifts agree with plain matrices and integrals, and few outputs of a stream suffice."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import toeplitz

from dpaudit import GaussianDP, OnlineAudit, Pair, audit, batched
from dpaudit.learning.attack import hinted
from dpaudit.learning.blocks import encoding_of
from dpaudit.numerics import Array
from dpaudit.outputs import Outputs
from dpaudit_attacks import whitened
from dpaudit_attacks.logistic import Logistic
from dpaudit_attacks.whitened import Whitened, haar, haar_inverse, posterior
from dpaudit_attacks.whiteners import Filter, Whitener, autoregression, banded, covariance, given, tree

RNG = np.random.default_rng(0)
NOISE = np.cumsum(RNG.normal(size=(30, 12)), axis=1) * np.linspace(1, 2, 12)
ROOT = np.cumprod(np.append(1.0, (2 * np.arange(1, 64) - 1) / (2 * np.arange(1, 64))))  # of the matrix of prefix sums


def stream(mu: float, step: int = 0) -> Any:
    """Prefix sums of 64 steps of which one changes, with the noise of a square-root factorisation."""
    factor, shift = toeplitz(ROOT, np.zeros(64)), (np.arange(64) >= step) * 1.0
    scale = float(np.linalg.norm(ROOT[: 64 - step]))
    return batched(lambda dataset, n, rng: dataset[0] * shift + rng.normal(0, scale / mu, (n, 64)) @ factor.T)


@pytest.mark.parametrize(
    "whitener",
    [
        tree(12),
        autoregression(NOISE, 3),
        banded(NOISE, 2),
        covariance(NOISE[:8], 0.2),
        given(RNG.normal(size=(12, 15))),
        given(ROOT[:12]),
    ],
    ids=["tree", "autoregression", "banded", "covariance", "matrix", "filter"],
)
def test_a_whitener_is_the_matrix_that_it_stands_for(whitener: Whitener) -> None:
    matrix = whitener.forward(np.eye(12)).T
    precisions = np.ones(12) if whitener.scaled else np.linspace(0.5, 2, 12)
    assert whitener.backward(NOISE[0]) == pytest.approx(matrix.T @ NOISE[0])
    assert whitener.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1])
    spikes, steps = whitener.norms(precisions)
    assert spikes == pytest.approx(precisions @ matrix**2)
    assert steps == pytest.approx([precisions @ (matrix @ (np.arange(12) >= k)) ** 2 for k in range(12)])


def test_noise_of_a_tree_becomes_independent() -> None:
    """Second version: the nodes of each prefix by repeated removal of the last bit."""
    sums = [set[tuple[int, int]]()]
    for t in range(1, 14):
        sums.append(sums[t & (t - 1)] | {(t & (t - 1), t)})
    products = np.array([[len(a & b) for a in sums[1:]] for b in sums[1:]], dtype=float)
    matrix = tree(13).forward(np.eye(13)).T
    assert matrix @ products @ matrix.T == pytest.approx(np.eye(13))


def test_fits_agree_with_regressions_row_by_row() -> None:
    """Second version: penalised least squares, one equation for each number of each output."""
    n, d = NOISE.shape
    past = np.array([[[row[t - k] if t >= k else 0.0 for k in (1, 2, 3)] for t in range(d)] for row in NOISE])
    x, y = past.reshape(-1, 3), NOISE.ravel()
    small = 1e-9 * (y @ y)
    rest = y @ y - (x.T @ y) @ np.linalg.solve(x.T @ x + small * np.eye(3), x.T @ y)
    prior = small + 4 * rest / (n * d) * np.array([1, 4, 9])
    found = np.linalg.solve(x.T @ x + np.diag(prior), x.T @ y)
    assert autoregression(NOISE, 3).coefficients == pytest.approx([1, *-found])
    matrix = banded(NOISE, 3).forward(np.eye(d)).T
    for t in range(3, d):
        products = past[:, t].T @ past[:, t]
        own = np.linalg.solve(products + np.diag(np.diag(products)) * 2 / n, past[:, t].T @ NOISE[:, t])
        assert matrix[t, t - 3 : t][::-1] == pytest.approx(-own, rel=1e-6, abs=1e-9)
    shrunken = 0.8 * NOISE[:8].T @ NOISE[:8] / 8 + 0.2 * np.mean(NOISE[:8] ** 2) * np.eye(d)
    root = covariance(NOISE[:8], 0.2).forward(np.eye(d))
    assert root @ shrunken @ root == pytest.approx(np.eye(d), abs=1e-6)


@pytest.mark.parametrize("factor", [ROOT, toeplitz(ROOT, np.zeros(64)), RNG.normal(size=(64, 80))])
def test_a_given_factor_whitens_its_noise(factor: Array) -> None:
    matrix = factor if factor.ndim == 2 else toeplitz(factor, np.zeros(64))
    white = given(factor).forward(matrix.T)
    assert white.T @ white == pytest.approx(np.eye(64), abs=1e-6)


def test_wavelets_are_orthonormal() -> None:
    basis = np.array([haar(row) for row in np.eye(8)])
    assert basis @ basis.T == pytest.approx(np.eye(8))
    assert haar_inverse(haar(NOISE[0]))[:12] == pytest.approx(NOISE[0])


def test_the_posterior_mean_of_one_shift_is_an_integral() -> None:
    """Second version: sums over all directions, and over a fine grid of sizes for each standard deviation."""
    products, norms, prior = np.array([3.0, -0.5, 1.0]), np.array([4.0, 1.0, 0.25]), np.log([0.5, 0.3, 0.2])
    at = np.linspace(-40, 40, 40_001)
    total, means = 0.0, np.zeros(3)
    for j in range(3):
        for deviation in whitened._AMPLITUDES:  # of the shift along a direction of length 1
            sizes = at * deviation / 4
            masses = stats.norm(0, deviation).pdf(sizes) * (sizes[1] - sizes[0]) / 7 * np.exp(prior[j])
            masses = masses * np.exp((products[j] / np.sqrt(norms[j]) * sizes - sizes**2 / 2) / 0.3)
            total += masses.sum()
            means[j] += masses @ sizes / np.sqrt(norms[j])
    evidence, found = whitened._one_of(products, norms, prior, 0.3)
    assert evidence == pytest.approx(np.log(total), abs=1e-4)
    assert found == pytest.approx(means / total, abs=1e-4)


@pytest.mark.parametrize("shift", [np.eye(64)[20], (np.arange(64) >= 9) * 1.0, np.sin(np.arange(64.0))])
def test_a_clear_shift_is_found_whatever_its_form(shift: Array) -> None:
    """Fails by chance < 1 in 10**6: the shift is at least 20 standard errors long."""
    rng, filter_ = np.random.default_rng(1), Filter(ROOT)
    precise = shift + filter_.forward(rng.normal(size=(1, 64)) / 100)[0]
    whitener = given(ROOT)
    white, found = (whitener.forward(one[None])[0] for one in (shift, precise))
    mean = posterior(found, 1e-4, whitener, np.ones(64), None)
    assert np.linalg.norm(mean - white) < 0.5 * np.linalg.norm(white)


@pytest.mark.parametrize(("hints", "least"), [({}, 0.8), ({"factor": ROOT, "shift": np.ones(64)}, 0.95)])
def test_forty_outputs_of_a_stream_suffice(hints: Any, least: float) -> None:
    """Fails by chance < 1 in 10**6: the margin is six standard errors of the mean over ten fits."""
    release, found = stream(1.5), []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        score = Whitened(**hints).fit(release([0], 40, rng), release([1], 40, rng), rng)
        scores = [score(release(dataset, 2000, rng)) for dataset in ([0], [1])]
        found.append((scores[1].mean() - scores[0].mean()) / np.std(scores[0]))
    assert np.mean(found) > least * 1.5


def test_a_shift_of_zero_is_no_hint() -> None:
    x0, x1 = np.random.default_rng(8).normal(size=(2, 20, 6))
    given, blind = (Whitened(shift=hint).fit(x0, x1, RNG) for hint in (np.zeros(6), None))
    assert np.corrcoef(given(x0), blind(x0))[0, 1] > 0.99


def test_wrong_hints_do_not_hide_a_shift() -> None:
    """Fails by chance < 1 in 10**6: the shift is 3 standard deviations long, and 60 outputs show its place."""
    rng, release = np.random.default_rng(2), stream(3.0, step=20)
    wrong = Whitened(factor=np.eye(64) + np.ones((64, 64)), shift=rng.normal(size=(2, 64)))
    score = wrong.fit(release([0], 60, rng), release([1], 60, rng), rng)
    assert score(release([1], 500, rng)).mean() > 1 > -1 > score(release([0], 500, rng)).mean()


@pytest.mark.parametrize(
    ("factor", "words"), [(np.array([0.0, 1.0]), "not 0"), (np.array([[1, np.nan], [0, 1]]), "finite")]
)
def test_an_impossible_factor_is_an_error(factor: Array, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Whitened(factor=factor)


def test_a_hint_for_other_outputs_is_reported() -> None:
    rng = np.random.default_rng(3)
    x0, x1 = rng.normal(size=(2, 20, 5))
    for attack in (Whitened(factor=ROOT), Whitened(shift=np.ones(7))):
        with pytest.raises(ValueError, match="numbers"):
            attack.fit(x0, x1, rng)


def spoiled(kind: str, rows: Array) -> Array:
    rows = rows.copy()
    match kind:
        case "missing":
            rows[::3, 1] = np.nan
        case "never known":
            rows[:, 2] = np.nan
        case "infinite":
            rows[0, 0], rows[1, 3] = np.inf, -np.inf
        case "constant":
            rows[:, 5:] = 7.0
        case "all equal":
            rows[:] = 1.0
        case "huge":
            rows *= 1e300
        case "tiny":
            rows *= 1e-300
        case "exact copies":
            rows[:, 1:] = rows[:, :1]
        case "mostly zero":
            rows[rows < 2] = 0.0
    return rows


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [2, 40])
@pytest.mark.parametrize(
    "kind",
    ["missing", "never known", "infinite", "constant", "all equal", "huge", "tiny", "exact copies", "mostly zero"],
)
def test_every_output_gets_a_finite_score(kind: str, n: int) -> None:
    rng = np.random.default_rng(4)
    rows = spoiled(kind, rng.normal(size=(3 * n, 9)))
    score = Whitened().fit(rows[:n], rows[n : 2 * n], rng)
    fresh = spoiled("infinite", np.concatenate([rows, rng.normal(size=(2, 9))]))
    assert np.isfinite(score(fresh)).all()
    assert score(fresh)[3:4].tolist() == score(fresh[3:4]).tolist()


def test_long_vectors_take_bounded_memory() -> None:
    with pytest.MonkeyPatch.context() as patched:
        for name, limit in (("_LARGEST", 400), ("_NOISE", (200, 100)), ("_COMPARED", (100, 50))):
            patched.setattr(whitened, name, limit)
        rng = np.random.default_rng(5)
        x0, x1 = rng.normal(size=(2, 500, 20))
        score = Whitened().fit(x0, x1, rng)
        assert np.array_equal(score(x0), Whitened().fit(x0[-20:], x1[-20:], rng)(x0))


def test_a_stream_of_vectors_is_audited_online_and_saved(tmp_path: Any) -> None:
    """Fails by chance < 1 in 10**6: a true claim is refuted with probability 1e-6, and a false one far earlier."""
    release, rng = stream(6.0), np.random.default_rng(6)
    online, true = (OnlineAudit(GaussianDP(mu), attacks="whitened", confidence=1 - 1e-6, seed=1) for mu in (0.5, 6.0))
    for _ in range(100):
        for one in (online, true):
            one.update(release([one.coin()], 1, rng)[0])
    assert online.refuted
    assert not true.refuted
    online.to_json(tmp_path / "stream.json")
    again = OnlineAudit.from_json(tmp_path / "stream.json")
    assert (again.log_e, again.steps, again.refuted) == (online.log_e, 100, True)
    again.update(release([again.coin()], 1, rng)[0])


def test_streams_need_hardly_more_runs_than_one_number() -> None:
    """Fails by chance < 1 in 10**6: one number needs 122 runs on average, and few of 40 audits needed 300."""
    used = [
        audit(stream(1.5), GaussianDP(1.0), Pair([0], [1]), confidence=0.95, seed=seed, trials=1000, confirm="never")
        for seed in range(2)
    ]
    assert all(result.violated for result in used)
    assert np.mean([result.trials_used for result in used]) < 500


class Hinting:
    """A mechanism with members that may be hints."""

    def __init__(self, factor: Any, shift: Any = None) -> None:
        self.factor, self.shift = factor, shift


def test_attacks_take_the_hints_of_a_mechanism() -> None:
    own, plain = Whitened(shift=np.ones(64)), Logistic()
    found: Any = hinted([Whitened(), plain, own], Hinting(ROOT, np.zeros(64)))
    assert found[0].factor is ROOT
    assert found[0].shift.tolist() == [0.0] * 64
    assert found[1] is plain
    assert found[2].shift is own.shift
    for other in (Hinting("a word"), Hinting(2.0), Hinting(None, 0.5), object(), stream(1.0)):
        assert hinted([own, plain], other) == [own, plain]


def test_vectors_of_thousands_of_numbers_are_seen_whole() -> None:
    rows = Outputs.read(np.random.default_rng(7).normal(size=(12, 4096)))
    assert rows.view(encoding_of((rows, rows), 100), "features").shape == (12, 4096)


UNUSUAL: dict[str, Callable[[Array], Any]] = {
    "changing length": lambda row: row[: 5 + int(abs(row[0]))].tolist(),
    "missing steps": lambda row: np.where(np.abs(row) < 0.1, np.nan, row),
    "complex": lambda row: row + 1j * row[::-1],
    "integers near the largest": lambda row: (np.round(row * 100).astype(np.int64) + 2**62).tolist(),
    "constant numbers": lambda row: np.where(np.arange(9) < 4, 1.0, row),
}


@pytest.mark.parametrize("kind", list(UNUSUAL))
def test_unusual_vectors_are_audited(kind: str) -> None:
    """Fails by chance < 1 in 10**6: the confidence, for a claim that is true."""

    def release(dataset: Any, rng: np.random.Generator) -> Any:
        return UNUSUAL[kind](rng.normal(size=9))

    result = audit(
        release, "gaussian(mu=0.1)", Pair([0], [1]), attacks="whitened", trials=60, seed=1, confidence=1 - 1e-6
    )
    assert not result.violated
    assert not [words for words in result.warnings if "whitened" in words]
