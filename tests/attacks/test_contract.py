"""Tests of the contract of every attack.  These tests find a new attack without a change of this file."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.learning.attack import attack_classes, resolve_attacks
from dpaudit.learning.blocks import encoding_of
from dpaudit.numerics import Array
from dpaudit.outputs import Outputs, PlainEncoding, Timed
from dpaudit_attacks.known_noise import RESPONSES, KnownNoise, best_places
from dpaudit_attacks.logistic import Logistic
from dpaudit_attacks.ratios import FittedLaw

ATTACKS = attack_classes()


def shown(attack: Any, kind: str, shift: float, seed: int) -> Any:
    """Return outputs of a kind as the attack sees them; runs on d1 take longer."""
    matrix = outputs(kind, shift, seed)
    if attack.sees == "natural":
        return matrix if kind == "transcripts" else matrix.tolist()
    if attack.sees == "queries":
        return matrix  # the answers to queries of tables are a matrix, too
    seconds = np.random.default_rng(seed).exponential(1 + shift, len(matrix))
    block = Outputs.read([Timed(row, time) for row, time in zip(matrix, seconds, strict=True)])
    return block.view(PlainEncoding(False, matrix.shape[1], None), attack.sees)


def outputs(kind: str, shift: float, seed: int) -> Any:
    rng = np.random.default_rng([seed, round(shift * 1000)])
    match kind:
        case "number":
            return rng.normal(shift, 1, (200, 1))
        case "integer":
            return rng.binomial(1, 0.3 + shift / 2, (200, 1))
        case "vector":
            return rng.normal(shift, 1, (200, 3))
        case "few values":
            return (rng.random((200, 1)) < 0.3 + shift / 4).astype(float)
        case "constant":
            return np.zeros((200, 1))
        case "not finite":
            return np.where(rng.random((200, 2)) < 0.2, [np.inf, np.nan], rng.normal(shift, 1, (200, 2)))
        case "huge":
            return rng.normal(shift, 1, (200, 1)) * 1e300
        case "inverse Laplace":
            u = rng.random((200, 1)) - 0.5
            return shift - np.sign(u) * np.log(1 - 2 * np.abs(u))
        case "categories":
            return np.where(rng.random((200, 1)) < 0.4, round(5 * shift), rng.integers(0, 8, (200, 1))).astype(float)
        case "bits":
            return (rng.random((200, 12)) < np.where(np.arange(12) == round(8 * shift), 0.7, 0.2)).astype(float)
        case "new values":
            return (rng.random((200, 1)) < 0.4 * shift).astype(float)
        case "transcripts":
            return [tuple((0, "answer", rng.normal(shift), 0.1 * (i + 1)) for i in range(3)) for _ in range(200)]
        case "few rows":
            return rng.normal(shift, 1, (3, 1))
    raise AssertionError(kind)


KINDS = ["number", "integer", "vector", "few values", "constant", "not finite", "huge", "inverse Laplace", "few rows"]
KINDS += ["categories", "bits", "new values"]
OF_SESSIONS = {"reported_law", "session_law", "session_sums"}  # see transcripts only


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", list(ATTACKS))
def test_an_attack_scores_every_output_and_repeats_itself(name: str, kind: str) -> None:
    attack: Any = ATTACKS[name]()
    kind = "transcripts" if name in OF_SESSIONS and kind == "number" else kind
    seen0, seen1, fresh = (shown(attack, kind, shift, seed) for shift, seed in ((0.0, 1), (1.0, 2), (0.5, 3)))
    if hasattr(attack, "suits") and not attack.suits(seen0, seen1):
        pytest.skip("the attack says that it does not suit these outputs")
    copies = seen0.copy(), seen1.copy(), fresh.copy()
    scores = attack.fit(seen0, seen1, np.random.default_rng(0))(fresh)
    assert scores.shape == (len(fresh),)
    assert not np.any(np.isnan(scores))
    assert np.array_equal(scores, attack.fit(seen0, seen1, np.random.default_rng(0))(fresh))
    for given, copy in zip((seen0, seen1, fresh), copies, strict=True):
        assert given == copy if kind == "transcripts" else np.array_equal(given, copy, equal_nan=True)  # is unchanged


@pytest.mark.parametrize("name", list(ATTACKS))
def test_higher_scores_mean_d1(name: str) -> None:
    """The data suit the attack.  Fails by chance < 1 in 10**6: the margin is at least four standard errors."""
    attack: Any = ATTACKS[name]()
    seen = (
        (k, shown(attack, k, 0.0, 1), shown(attack, k, 1.0, 2))
        for k in (["transcripts"] if name in OF_SESSIONS else ["integer", *KINDS])
    )
    kind, *seen01 = next(one for one in seen if not hasattr(attack, "suits") or attack.suits(*one[1:]))
    scorer = attack.fit(*seen01, np.random.default_rng(0))
    assert scorer(shown(attack, kind, 1.0, 4)).mean() > scorer(shown(attack, kind, 0.0, 3)).mean()


def test_attacks_are_found_by_name_and_passed_through() -> None:
    own = ATTACKS["logistic"]()
    assert resolve_attacks(own) == [own]
    assert [a.name for a in resolve_attacks(["plug_in_ratio", own])] == ["plug_in_ratio", "logistic"]
    former = ["neighbours", "forms", "events", "threshold"]
    assert [a.name for a in resolve_attacks(former)] == ["knn", "derived_features", "plug_in_ratio", "median_clipped"]
    assert len(resolve_attacks(["threshold", "median_clipped"])) == 1
    not_automatic = {"float_bits", "last_bit", "reachable_floats", *OF_SESSIONS}
    assert {a.name for a in resolve_attacks("auto")} == set(ATTACKS) - not_automatic
    assert "likelihood_ratio" not in ATTACKS  # this attack cannot be created without the ratio
    with pytest.raises(ValueError, match="must have a name and fit"):
        resolve_attacks(3)  # type: ignore[arg-type]


class User:
    """An attack with a setting."""

    name = "user"

    def __init__(self, score: Any) -> None:
        self.score = score

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        return self.score


def test_no_attack_is_listed_twice() -> None:
    automatic = [attack.name for attack in resolve_attacks("auto")]
    assert len(set(automatic)) == len(automatic)
    assert [attack.name for attack in resolve_attacks(["auto", "logistic", Logistic(), "auto"])] == automatic
    user = User(np.log)
    assert resolve_attacks([user, user, "logistic", "logistic"]) == [user, Logistic()]
    assert len(resolve_attacks([User(np.log), User(np.exp)])) == 2
    assert len(resolve_attacks([User(np.array([1, 2])), User(np.array([1, 3]))])) == 2  # cannot be compared


# --- fits of randomised responses, against plain searches and exact ratios


Rng = np.random.Generator


def categories(rng: Rng, n: int, true: int, k: int = 16, epsilon: float = 1.2) -> Array:
    """K-ary response (Kairouz, Oh & Viswanath 2016): p / q = e^epsilon."""
    lies = rng.random(n) >= 1 / (1 + (k - 1) * np.exp(-epsilon))
    return np.asarray((true + lies * rng.integers(1, k, n)) % k, dtype=np.float64)[:, None]


def bits(rng: Rng, n: int, true: int, d: int = 64, p: float = 0.5, q: float = 0.23) -> Array:
    """Optimised unary encoding (Wang, Blocki, Li & Jha 2017) for epsilon = 1.2: p = 1/2 and q = 1 / (e^1.2 + 1)."""
    return (rng.random((n, d)) < np.where(np.arange(d) == true, p, q)).astype(float)


def fitted(name: str, outputs0: Array, outputs1: Array) -> FittedLaw:
    law = RESPONSES[name](outputs0, outputs1)
    assert law is not None
    return law


@pytest.mark.parametrize("seed", range(5))
def test_the_best_pair_is_that_of_a_plain_search(seed: int) -> None:
    """Small counts with many ties; the function looks only at the two highest counts of each dataset."""
    counts0, counts1 = np.random.default_rng(seed).integers(0, 4, (2, 5)).astype(float)
    for sign in (1, -1):
        best = best_places(counts0, counts1, sign)
        pairs = [counts0[a] + counts1[b] for a, b in itertools.permutations(range(5), 2)]
        assert best.place0 != best.place1
        assert best.shown == counts0[best.place0] + counts1[best.place1] == (max if sign == 1 else min)(pairs)


@pytest.mark.parametrize("epsilon", [1.2, -2.0])
def test_the_likelihood_of_categories_is_the_maximum_over_all_pairs_and_chances(epsilon: float) -> None:
    """The seed is fixed.  Second version: scipy.stats on a fine grid; all five categories occur in 200 outputs."""
    rng = np.random.default_rng(2)
    x0, x1 = (categories(rng, 100, true, 5, epsilon) for true in (1, 3))
    counts = [np.bincount(x[:, 0].astype(int), minlength=5) for x in (x0, x1)]
    chances = np.linspace(0.001, 0.999, 1997)
    plain = -np.inf
    for a, b in itertools.permutations(range(5), 2):
        hits = counts[0][a] + counts[1][b]
        plain = max(plain, np.max(hits * np.log(chances) + (200 - hits) * np.log((1 - chances) / 4)))
    penalty = 0.5 * np.log(200) + np.log(5 * 4)
    assert fitted("k-ary response", x0, x1).log_likelihood == pytest.approx(plain - penalty, abs=1e-3)


def test_the_likelihood_of_bits_is_the_maximum_over_all_pairs_and_chances() -> None:
    """The seed is fixed.  Second version: scipy.stats on a fine grid of p and q."""
    rng = np.random.default_rng(3)
    x0, x1 = bits(rng, 60, 2, 6), bits(rng, 60, 4, 6)
    chances = np.linspace(0.005, 0.995, 199)
    ones = [x.sum(axis=0) for x in (x0, x1)]
    plain = -np.inf
    for a, b in itertools.permutations(range(6), 2):
        hits = ones[0][a] + ones[1][b]
        rest = ones[0].sum() + ones[1].sum() - hits
        of_true = stats.binom.logpmf(hits, 120, chances) - stats.binom.logpmf(hits, 120, 0.5) + 120 * np.log(0.5)
        of_rest = stats.binom.logpmf(rest, 600, chances) - stats.binom.logpmf(rest, 600, 0.5) + 600 * np.log(0.5)
        plain = max(plain, of_true.max() + of_rest.max())
    assert fitted("unary response", x0, x1).log_likelihood == pytest.approx(plain - np.log(120) - np.log(30), abs=0.05)


@pytest.mark.parametrize("k", [2, 4, 16, 100])
def test_ratios_of_categories_are_exact_within_the_sampling_error(k: int) -> None:
    """Fails by chance < 1 in 10**6: six standard errors of the logit of p; the true categories are then certain."""
    rng, n = np.random.default_rng(4), 20_000
    law = fitted("k-ary response", categories(rng, n, 0, k, 1.5), categories(rng, n, 1, k, 1.5))
    p = np.exp(1.5) / (np.exp(1.5) + k - 1)
    error = 6 / np.sqrt(2 * n * p * (1 - p))
    scores = law.ratio(np.array([[0.0], [1.0], [7.0], [0.5], [np.nan]]))
    assert scores[:2] == pytest.approx([-1.5, 1.5], abs=error)
    assert scores[2:] == pytest.approx([0, 0, 0], abs=1e-6)
    assert law.agrees()


def test_ratios_of_bits_are_exact_within_the_sampling_error() -> None:
    """Fails by chance < 1 in 10**6: six standard errors of the logit of p, for two bits."""
    rng, n = np.random.default_rng(5), 20_000
    law = fitted("unary response", bits(rng, n, 7), bits(rng, n, 9))
    fresh = bits(rng, 100, 7)
    weight = np.log(0.5 / 0.5) - np.log(0.23 / 0.77)
    exact = weight * (fresh[:, 9] - fresh[:, 7])
    assert law.ratio(fresh) == pytest.approx(exact, abs=2 * 6 / np.sqrt(2 * n / 4))
    assert law.agrees()


@pytest.mark.parametrize(("d", "least"), [(16, 0.75), (300, 0.6)])
def test_fifty_vectors_of_bits_suffice(d: int, least: float) -> None:
    """Fails by chance < 1 in 10**6: a mean over 20 fits, and the margin is at least six standard errors.

    The share is that of the exact ratio's gain in log-loss over guessing.
    """
    shares = [share(bits, 50, seed, d=d, q=0.1) for seed in range(20)]
    assert np.mean(shares) > least


def test_a_hundred_categories_suffice() -> None:
    """Fails by chance < 1 in 10**6: a mean over 20 fits, and the margin is at least six standard errors."""
    assert np.mean([share(categories, 100, seed, epsilon=2.0) for seed in range(20)]) > 0.85


def share(draw: Any, n: int, seed: int, **parameters: Any) -> float:
    """Return the gain in log-loss of a score from n outputs, relative to the gain of the exact ratio."""
    rng = np.random.default_rng([seed, n])
    x0, x1, y0, y1 = (draw(rng, m, true, **parameters) for m in (n, 2000) for true in (2, 5))
    if draw is bits:
        weight = np.log(0.5 / 0.5) - np.log(parameters["q"] / (1 - parameters["q"]))
        exact = [weight * (y[:, 5] - y[:, 2]) for y in (y0, y1)]
    else:
        exact = [parameters["epsilon"] * ((y[:, 0] == 5) * 1.0 - (y[:, 0] == 2)) for y in (y0, y1)]
    scorer = KnownNoise().fit(x0, x1, rng)
    best, got = (
        2 * np.log(2) - np.logaddexp(0, s0).mean() - np.logaddexp(0, -s1).mean()
        for s0, s1 in (exact, (scorer(y0), scorer(y1)))
    )
    return float(got / best)


def test_categories_that_have_not_occurred_are_counted() -> None:
    """Fails by chance < 1 in 10**6: five standard errors of a mean over 40 fits.

    Most of the 200 categories have not occurred, because 9 of 10 outputs show the true category.
    """
    found, epsilon = [], float(np.log(9 * 199))
    for seed in range(40):
        rng = np.random.default_rng(seed)
        law = fitted("k-ary response", *(categories(rng, 500, true, 200, epsilon) for true in (0, 1)))
        found.append(float(law.ratio(np.array([[1.0]]))[0]))
    assert abs(np.mean(found) - epsilon) < 5 * np.std(found) / np.sqrt(40)


def test_outputs_of_other_laws_do_not_suit() -> None:
    """The seed is fixed."""
    rng, n = np.random.default_rng(6), 2000
    skewed0, skewed1 = (rng.choice(5, (n, 1), p=p).astype(float) for p in ([0.4, 0.3, 0.1, 0.1, 0.1], [0.2] * 5))
    assert not KnownNoise().suits(skewed0, skewed1)
    copied0, copied1 = (np.repeat(bits(rng, n, true), 2, axis=1) for true in (7, 9))  # bits that depend on each other
    assert not KnownNoise().suits(copied0, copied1)
    assert not KnownNoise().suits(bits(rng, n, 7), bits(rng, n, 9, q=0.3))


def test_texts_are_categories() -> None:
    """Fails by chance < 1 in 10**6: six standard errors."""
    names = np.array(["red", "green", "blue", "grey", "pink", "teal"])
    rng, n = np.random.default_rng(10), 4000
    sides = [Outputs.read(list(names[categories(rng, n, true, 6, 1.5)[:, 0].astype(int)])) for true in (0, 1)]
    encoding = encoding_of((sides[0], sides[1]), 2000)
    seen0, seen1 = (side.view(encoding, "features") for side in sides)
    assert KnownNoise().suits(seen0, seen1)
    at = Outputs.read(list(map(str, names))).view(encoding, "features")
    p = np.exp(1.5) / (np.exp(1.5) + 5)
    scores = KnownNoise().fit(seen0, seen1, rng)(at)
    assert scores == pytest.approx([-1.5, 1.5, 0, 0, 0, 0], abs=6 / np.sqrt(2 * n * p * (1 - p)))
