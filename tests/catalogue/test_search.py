"""The search yields few pairs, always the same, with known patterns, and these pairs reveal wrong mechanisms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit import Pair, audit
from dpaudit.catalogue import BUILTIN
from dpaudit.config.pair_models import SearchConfig
from dpaudit.pairs.search import SearchPairs


def labels(search: SearchPairs) -> dict[str, Pair]:
    return {pair.label: pair for pair in search}


def test_queries_get_the_patterns_of_statdp() -> None:
    pairs = labels(SearchPairs(relation="all_values", size=4, most=12))
    assert list(labels(SearchPairs(relation="all_values", size=4))) == list(pairs)[:4]
    assert all(pair.d0 == [1, 1, 1, 1] for label, pair in pairs.items() if label != "extremes")
    assert {label: pair.d1 for label, pair in pairs.items()} == {
        "half-half": [2, 2, 0, 0],
        "all above": [2, 2, 2, 2],
        "one below, rest above": [0, 2, 2, 2],
        "all below": [0, 0, 0, 0],
        "one above, rest below": [2, 0, 0, 0],
        "one above": [2, 1, 1, 1],
        "one below": [0, 1, 1, 1],
        "extremes": [0, 0, 1, 1],
    }
    assert pairs["extremes"].d0 == [1, 1, 0, 0]


@pytest.mark.parametrize("bounds", [None, (-3.0, 5.0)])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one", "one_value", "all_values"])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_pairs_are_few_different_repeatable_and_neighbours(relation: Any, size: int, bounds: Any) -> None:
    search = SearchPairs(relation=relation, size=size, bounds=bounds)
    pairs = list(search)
    assert 1 <= len(pairs) <= 12
    assert repr(pairs) == repr(list(search))
    assert len({repr((p.d0, p.d1)) for p in pairs}) == len(pairs)
    for pair in pairs:
        if relation == "add_remove":
            assert len(pair.d1) <= size
            assert repr(pair.d1[:-1]) == repr(pair.d0)
        else:
            changed = [(a, b) for a, b in zip(pair.d0, pair.d1, strict=True) if repr(a) != repr(b)]
            assert len(pair.d0) == size
            assert len(changed) == 1 or relation == "all_values"
        if relation in ("one_value", "all_values"):
            low, high = bounds or (0.0, 2.0)
            assert all(low <= v <= high for v in (*pair.d0, *pair.d1))


def test_records_out_of_the_domain_come_with_bounds() -> None:
    def values(search: SearchPairs) -> list[float]:
        return [value for pair in search for value in (*pair.d0, *pair.d1)]

    inside = values(SearchPairs(relation="add_remove"))
    assert all(0 <= value <= 1 for value in inside)
    bounded = values(SearchPairs(relation="add_remove", bounds=(0.0, 1.0)))
    assert any(math.isnan(value) for value in bounded)
    assert any(value > 100 for value in bounded)
    assert any(value < -100 for value in bounded)
    kept = values(SearchPairs(relation="add_remove", bounds=(0.0, 1.0), out_of_domain=False))
    assert all(0 <= value <= 1 for value in kept)
    assert [] in [pair.d0 for pair in SearchPairs(relation="add_remove")]


def test_steps_and_whole_numbers() -> None:
    search = SearchPairs(relation="one_value", size=1, bounds=(0, 5), step=1, whole=True)
    assert all(isinstance(pair.d0[0], int) and abs(pair.d0[0] - pair.d1[0]) == 1 for pair in search)


def test_tables_follow_their_schema() -> None:
    schema = {"age": (0, 100), "pay": (0.0, 1.5), "sex": ["f", "m", "x"]}
    search = SearchPairs(relation="replace_one", size=4, schema=schema)
    pairs = labels(search)
    assert pairs["one above"].d1[-1] == {"age": 100, "pay": 1.5, "sex": "x"}
    assert pairs["one above"].d0 == [{"age": 0, "pay": 0.0, "sex": "f"}] * 4
    assert math.isnan(pairs["one NaN"].d1[-1]["age"])
    assert pairs["one without a category"].d1[-1]["sex"] is None
    built = next(iter(SearchPairs(relation="replace_one", schema=schema, build=lambda rows: {"rows": rows})))
    assert set(built.d0) == {"rows"}


def test_a_generator_of_ones_own() -> None:
    removed = list(SearchPairs(relation="add_remove", generator=lambda rng: list(rng.integers(0, 9, 5)), most=6))
    assert [len(pair.d1) - len(pair.d0) for pair in removed] == [1] * 6
    replaced = list(SearchPairs(relation="replace_one", generator=lambda rng: list(rng.random(5)), most=3))
    assert all(np.not_equal(pair.d0, pair.d1).sum() == 1 for pair in replaced)
    own = list(SearchPairs(relation="one_value", generator=lambda rng: Pair([0], [float(rng.random())]), most=3))
    assert len(own) == 3
    assert repr(own) == repr(
        list(SearchPairs(relation="one_value", generator=lambda rng: Pair([0], [float(rng.random())]), most=3))
    )
    with pytest.raises(ValueError, match="200 calls of the generator gave no two different datasets"):
        list(SearchPairs(relation="replace_one", generator=lambda rng: [1, 1], most=2))
    with pytest.raises(ValueError, match="must return a Pair"):
        list(SearchPairs(relation="one_value", generator=lambda rng: [1, 1]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"relation": "swap"}, "relation must be one of"),
        ({"relation": "add_remove", "size": 0}, "size must be at least 1"),
        ({"relation": "one_value", "step": -1.0}, "step must be > 0"),
        ({"relation": "add_remove", "bounds": (0.2, 0.8), "whole": True}, "with whole=True, bounds and step must be"),
        ({"relation": "one_value", "bounds": (1, 1)}, "low < high"),
        ({"relation": "one_value", "schema": {"a": (0, 1)}}, "a schema needs relation .* without bounds"),
        ({"relation": "add_remove", "schema": {"a": "xy"}}, "a must be"),
    ],
)
def test_impossible_searches_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchPairs(**arguments)


ATTACKS = {"noisy_histogram_2": "logistic", "fixed_seed": "histogram", "nan_survives": "histogram"}


@pytest.mark.parametrize("name", ATTACKS)
def test_strong_leaks_are_found_within_2000_trials(name: str) -> None:
    """When the test was written, no audit needed 250 trials; each further 250 trials multiply the wealth by 20."""
    mechanism = BUILTIN[name]()
    search = SearchPairs(**mechanism.inputs)
    given: dict[str, Any] = {"trials": 2000, "seed": 1, "confidence": 0.95, "attacks": ATTACKS[name]}
    given["confirm"] = None if name == "fixed_seed" else "never"  # constant outputs need new processes
    assert audit(mechanism, mechanism.claim, list(search), **given).violated


@pytest.mark.parametrize("name", ["noisy_sum", pytest.param("spinner", marks=pytest.mark.slow)])
def test_right_ones_are_not_refuted(name: str) -> None:
    """A refutation by chance has probability < 1 in 10**6 at this confidence."""
    mechanism = BUILTIN[name]()
    search = SearchPairs(**mechanism.inputs)
    how: Any = {"trials": 200, "attacks": "logistic", "confidence": 1 - 1e-6, "seed": 1}
    assert not audit(mechanism, mechanism.claim, list(search), **how).violated


def test_two_numbers_in_the_schema_of_a_config_are_bounds() -> None:
    """YAML has lists only, so that bounds were read as two categories."""
    search = SearchConfig.model_validate(
        {"relation": "add_remove", "size": 3, "schema": {"a": [0, 10], "b": ["x", "y"]}}
    )
    expected = SearchPairs(relation="add_remove", size=3, schema={"a": (0, 10), "b": ["x", "y"]})
    assert repr(search.pairs()) == repr(list(expected))
    assert any(row["a"] == 5 for pair in search.pairs() for row in pair.d1)


def test_every_builtin_mechanism_states_the_inputs_of_a_search() -> None:
    """`benchmarks/catalogue.py` ended in an AttributeError for a mechanism without them."""
    for name, make in BUILTIN.items():
        assert next(iter(SearchPairs(**make().inputs)), None) is not None, name
