"""Several pairs with one label: a result, its checks and its replay are about the same pair."""

from __future__ import annotations

import numpy as np

from dpaudit import AuditResult, Pair, audit
from dpaudit.engine.replay import replay
from dpaudit.pairs.pair import distinct
from dpaudit.result.consistency import contradictions

PAIRS = [Pair([0, 0], [0, 0.1], "replace_one", "edge"), Pair([0, 0], [0, 9], "replace_one", "edge")]


def mechanism(dataset: list[float], rng: np.random.Generator) -> float:
    return sum(dataset) + float(rng.normal())


def test_names_that_occurred_before_get_numbers() -> None:
    names = [Pair(0, 1, label=label) for label in ("a", "a (2)", "b", "a", "a")]
    assert [str(pair) for pair in distinct(names)] == ["a", "a (2)", "b", "a (3)", "a (4)"]
    assert distinct(names)[2] is names[2]


def test_the_witness_of_the_second_pair_is_checked_and_replayed_on_this_pair() -> None:
    """Fails by chance < 1 in 10**6: the two datasets differ by 9 standard deviations of the noise."""
    result = audit(mechanism, "gaussian(mu=1)", PAIRS, trials=2_000, confidence=1 - 1e-9, seed=0)
    assert result.violated
    assert result.witness is not None
    assert result.witness.pair == "edge (2)"
    assert [row.label for row in result.pairs] == ["edge", "edge (2)"]
    assert contradictions(AuditResult.from_dict(result.to_dict())) == []
    assert replay(result, mechanism, PAIRS, seed=1).reproduced
