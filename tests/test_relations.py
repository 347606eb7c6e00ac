"""A pair whose datasets contradict the stated relation is refused, because it could refute a true claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import Pair, SearchPairs, audit
from dpaudit.config import ConfigError, read_configs
from dpaudit.pairs.pair import contradiction


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (
            Pair([0], [1], relation="add_remove"),
            "d0 has 1 record and d1 has 1 (rows or items count as records): no record was added or removed",
        ),
        (Pair([0, 1], [0], relation="replace_one"), "replace_one, but d0 has 2 records and d1 has 1"),
        (Pair(np.zeros((3, 2)), np.zeros((5, 2)), relation="add_remove"), "neighbours differ by one record"),
        (Pair([0, 1], [0], relation="add_remove"), ""),
        (Pair((0, 1), (0, 2), relation="replace_one"), ""),
        (Pair(100, 101, relation="add_remove"), ""),
        (Pair({"a": 1}, {"a": 1, "b": 2}, relation="replace_one"), ""),
        (Pair([0], [1, 2, 3]), ""),
        (
            Pair([0, 0, 0], [0, 0, 1, 1], relation="add_remove"),
            "d1 lacks 1 of d0's records and d0 lacks 2 of d1's records",
        ),
        (Pair([0, 0, 0], [0, 1, 1], relation="replace_one"), "d0 and d1 differ in 2 records"),
        (Pair([0, 1, 2], [2, 1, 0], relation="replace_one"), ""),
        (Pair([1, float("nan")], [float("nan"), 2], relation="replace_one"), ""),
        (Pair([{"a": 1}, {"a": 2}], [{"a": 1}], relation="add_remove"), ""),
        (Pair([object(), 1], [object(), 2], relation="replace_one"), ""),
    ],
)
def test_a_relation_that_contradicts_the_pair_is_doubted(pair: Pair, words: str) -> None:
    assert words in contradiction(pair)
    assert bool(words) == bool(contradiction(pair))


def test_a_pair_that_contradicts_its_relation_is_refused_before_any_run() -> None:
    calls: list[object] = []
    wrong, right = Pair([0, 1], [0], relation="replace_one"), Pair([0], [1])
    for pairs, name in ((wrong, "pairs"), ([right, wrong], r"pairs\[1\]")):
        with pytest.raises(
            ValueError, match=f"^{name}: the relation is replace_one, but d0 has 2 records and d1 has 1"
        ):
            audit(lambda d, rng: calls.append(d), "gaussian(mu=1)", pairs, trials=40, seed=0)
    assert not calls


def test_in_a_config_the_error_names_the_pair(tmp_path: Path) -> None:
    file = tmp_path / "audit.yaml"
    file.write_text(
        "name: noise\nclaim: gaussian(mu=1)\nmechanism: {builtin: gaussian, params: {sigma: 1.0}}\n"
        "pairs:\n  - {d0: [0], d1: [1]}\n  - {d0: [0], d1: [0, 1, 1], relation: add_remove}\n"
    )
    with pytest.raises(ConfigError, match=r"audit.yaml:6: pairs\[1\]: the relation is add_remove, .*is unspecified"):
        read_configs([file])


@pytest.mark.parametrize("relation", ["add_remove", "replace_one", "one_value", "all_values"])
def test_pairs_of_a_search_are_not_doubted(relation: Any) -> None:
    assert not any(contradiction(pair) for pair in SearchPairs(relation=relation, size=4, bounds=(0, 1)))


def test_records_that_are_shared_at_the_ends_do_not_hide_a_contradiction() -> None:
    """The records are the same objects in both lists, as in neighbours that were made from one file."""
    rows = [{"a": 1}, {"a": 1}, {"a": 2}, {"a": 3}]
    assert contradiction(Pair(rows, [rows[0], rows[2], rows[3]], "add_remove")) == ""
    assert contradiction(Pair(rows, [*rows, rows[0]], "add_remove")) == ""
    assert contradiction(Pair(rows, [rows[0], {"a": 9}, *rows[2:]], "replace_one")) == ""
    assert "differ in 2 records" in contradiction(Pair(rows, [rows[0], {"a": 9}, {"a": 9}, rows[3]], "replace_one"))
    assert "d0 lacks 1" in contradiction(Pair(rows, [rows[0], {"a": 9}, rows[3]], "add_remove"))
