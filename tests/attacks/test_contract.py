"""Tests of the contract of every attack.  These tests find a new attack without a change of this file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.learning.attack import attack_classes, resolve_attacks
from dpaudit.outputs import Outputs, PlainEncoding, Timed
from dpaudit_attacks.logistic import Logistic

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
        case "transcripts":
            return [tuple((0, "answer", rng.normal(shift), 0.1 * (i + 1)) for i in range(3)) for _ in range(200)]
        case "few rows":
            return rng.normal(shift, 1, (3, 1))
    raise AssertionError(kind)


KINDS = ["number", "integer", "vector", "few values", "constant", "not finite", "huge", "inverse Laplace", "few rows"]
KINDS += ["categories", "bits"]
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
