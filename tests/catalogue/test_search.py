"""The search yields few pairs, always the same, with known patterns, and these pairs reveal wrong mechanisms."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from scipy.stats import kstest, laplace, norm

from dpaudit import Pair, audit
from dpaudit.catalogue import BUILTIN
from dpaudit.catalogue.synthetic_domain import SMALL, Domain, counts_of, drawn
from dpaudit.config.files import read_configs
from dpaudit.config.pair_models import SearchConfig
from dpaudit.pairs.pair import contradiction
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
            assert repr(pair.d0) in (repr(pair.d1[:-1]), repr(pair.d1[1:]))
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


# --- builtin generators of synthetic tables: laws of the right ones, sensitivities of their proofs, and bad input


ODDS = 1e-7
NAMES = [name for name in BUILTIN if name.startswith("synthetic_")]
ROWS = [
    {"city": "Bonn", "sex": "f", "age": 0},
    {"city": "Ulm", "sex": "f", "age": 99.0},
    {"city": "Ulm", "sex": "m", "age": 260},
]
DOMAIN = Domain.of(SMALL, 4)


def drawn_from(name: str, n: int = 3000, **params: Any) -> Any:
    return BUILTIN[name](**params).sample(ROWS, n, np.random.default_rng(5))


def test_the_noise_of_counts_is_laplace_or_gaussian() -> None:
    """Fails by chance < 1 in 10**6: five comparisons with probability 1e-7 each."""
    marginals = np.array([output["city"] for output in drawn_from("synthetic_marginals", epsilon=0.5, white_box=True)])
    assert kstest(marginals[:, 2] - 2, laplace(0, 6).cdf).pvalue > ODDS
    cells = np.array([output["counts"] for output in drawn_from("synthetic_histogram", epsilon=0.5, white_box=True)])
    assert cells.shape[1] == 24
    assert kstest(cells[:, 0] - 1, laplace(0, 2).cdf).pvalue > ODDS
    roots = np.array([output["root"] for output in drawn_from("synthetic_privbayes", 400, white_box=True)])
    assert kstest(roots[:, 2] - 2, laplace(0, 6).cdf).pvalue > ODDS
    roots = np.array([output["root"] for output in drawn_from("synthetic_mst", 400, sigma=2.0, white_box=True)])
    assert kstest(roots[:, 0] - 1, norm(0, 2).cdf).pvalue > ODDS
    rounds = np.array([output["counts"] for output in drawn_from("synthetic_rounds", rounds=2, white_box=True)])
    assert kstest(rounds[:, 0, 0] - 1, laplace(0, 6).cdf).pvalue > ODDS


def test_the_claim_of_the_tree_composes_noise_and_choice() -> None:
    claim = BUILTIN["synthetic_mst"](epsilon=0.25, sigma=2.0).claim
    assert str(claim) == "compose(gaussian(mu=1.118033988749895), pure(epsilon=0.25))"
    assert str(BUILTIN["synthetic_mst"](schema={"a": [0, 1]}, sigma=2.0).claim) == "gaussian(mu=0.5)"


def neighbours() -> Iterator[tuple[Any, Any]]:
    """Yield the cells of many tables, and of the same tables with one more record, which may lack entries."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        cells = rng.integers(-1, (3, 2, 4), (rng.integers(0, 8), 3))
        yield cells, np.vstack([cells, rng.integers(-1, (3, 2, 4))])


def test_one_record_changes_counts_and_scores_as_the_proofs_state() -> None:
    sizes = DOMAIN.sizes
    for fewer, more in neighbours():
        for size in (1, 2, 3):
            for columns in itertools.combinations(range(3), size):
                changed = counts_of(more, columns, sizes) - counts_of(fewer, columns, sizes)
                assert changed.sum() == np.abs(changed).sum() <= 1
        scores = [counts_of(cells, [0, 2], sizes).max(axis=1).sum() for cells in (fewer, more)]
        assert 0 <= scores[1] - scores[0] <= 1
        votes = []
        for cells in (fewer, more):
            agree = np.ones((len(cells), 1), dtype=bool)
            votes.append(BUILTIN["synthetic_pate"]().votes(agree, np.random.default_rng(1)))
        assert 0 <= votes[1] - votes[0] <= 1  # the generator gives the first records the same teachers


def test_cells_are_drawn_in_proportion_to_positive_counts() -> None:
    uniform = np.linspace(0.001, 0.999, 1000)[None]
    assert np.bincount(drawn(np.array([[1.0, -5.0, 3.0]]), uniform)[0]).tolist() == [250, 0, 750]
    assert np.bincount(drawn(np.array([[-1.0, -1.0]]), uniform)[0]).tolist() == [500, 500]
    assert drawn(np.array([[1.0]]), uniform).max() == 0


@pytest.mark.parametrize("name", [name for name in NAMES if BUILTIN[name]().private])
def test_tables_stay_in_the_public_domain(name: str) -> None:
    for table in drawn_from(name, 5):
        assert list(table) == list(SMALL)
        assert len({len(column) for column in table.values()}) == 1
        assert {*table["city"].tolist()} <= {*SMALL["city"]}
        assert ((table["age"] >= 0) & (table["age"] <= 100)).all()


def test_datasets_of_all_kinds_and_strange_records_are_read() -> None:
    frame = pandas.DataFrame(ROWS)
    cells = DOMAIN.cells(ROWS).tolist()
    assert cells == [[0, 0, 0], [2, 0, 3], [2, 1, 3]]
    assert (
        DOMAIN.cells(frame).tolist() == DOMAIN.cells({name: frame[name].tolist() for name in frame}).tolist() == cells
    )
    strange = [{"city": None, "sex": ["f"], "age": math.nan}, {}, {"city": "Rome", "sex": "f", "age": -math.inf}]
    assert DOMAIN.cells(strange).tolist() == [[-1, -1, -1], [-1, -1, -1], [-1, 0, 0]]
    for name in NAMES:
        assert len(BUILTIN[name]().sample(strange, 2, np.random.default_rng(0))) == 2
        assert len(BUILTIN[name](white_box=True).sample([], 2, np.random.default_rng(0))) == 2


def test_the_mistakes_are_mistakes() -> None:
    """Early stopping decides before the first round without noise."""
    assert BUILTIN["synthetic_marginals_bounds_from_data"]().domain_for(ROWS).bounds[2] == (0, 260)
    assert {city for table in drawn_from("synthetic_marginals_domain_from_data", 3) for city in table["city"]} <= {
        "Bonn",
        "Ulm",
    }
    cells = np.zeros((8, 3), dtype=int)
    assert BUILTIN["synthetic_marginals_noise_for_shares"]().noise_scale(cells) == 3 / 8
    one, none = BUILTIN["synthetic_rounds_early_stopping"](), [dict(ROWS[0])]
    assert [len(one.sample(rows, 1, np.random.default_rng(0))[0]["age"]) == 0 for rows in ([], none)] == [True, False]
    agree = np.array([[True, False]])
    assert BUILTIN["synthetic_pate_shared_records"]().votes(agree, np.random.default_rng(0)).tolist() == [50, 0]


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("synthetic_marginals", {"rows": 0}, "rows must be a whole number >= 1, got 0"),
        ("synthetic_marginals", {"bins": 2.5}, "bins must be a whole number"),
        ("synthetic_marginals", {"schema": {}}, "schema must have at least one column"),
        ("synthetic_marginals", {"schema": {"city": "Ulm"}}, r"schema: city must be \(low, high\) or a list"),
        ("synthetic_marginals", {"schema": {"age": [3, 2]}}, "schema: age must be .* low < high"),
        ("synthetic_mst", {"sigma": 0}, "sigma must be > 0"),
        ("synthetic_rounds", {"rounds": 1000}, r"rounds must be in 1\.\.rows"),
        ("synthetic_pate", {"teachers": 0}, "teachers must be a whole number >= 1"),
    ],
)
def test_impossible_parameters_are_refused(name: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BUILTIN[name](**params)


CONFIG = Path(__file__).parents[2] / "configs" / "synthetic" / "builtin.yaml"


def test_every_builtin_generator_has_a_config_with_its_expectation() -> None:
    audits = {str(planned.config.mechanism.builtin): planned for planned in read_configs([CONFIG])}
    assert list(audits) == NAMES
    for name, planned in audits.items():
        mechanism = BUILTIN[name]()
        assert planned.config.expect == ("no violation" if mechanism.private else "violation")
        assert planned.config.source
        assert [(p.d0, p.d1) for p in planned.pairs] == [(p.d0, p.d1) for p in SearchPairs(**mechanism.inputs)]


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_tiny_tables_are_neighbours_with_new_extreme_and_far_rows(relation: Any) -> None:
    search = SearchPairs(relation=relation, schema=SMALL, tiny=True, out_of_domain=True)
    pairs = {pair.label: pair for pair in search}
    assert [contradiction(pair) for pair in pairs.values()] == [""] * len(pairs)
    assert {2, 10} <= {len(pair.d1) for pair in pairs.values()} <= set(range(2, 11))
    assert {row["city"] for row in pairs["new categories"].d0[:9]} == {"Bonn"}
    assert pairs["new categories"].d1[-1] == {"city": "Ulm", "sex": "m", "age": 0.0}
    assert pairs["extreme values"].d1[-1] == {"city": "Bonn", "sex": "f", "age": 100.0}
    assert pairs["a row far from all"].d1[-1] == {"city": "Ulm", "sex": "m", "age": 100.0}
    assert pairs["unknown categories"].d1[-1]["city"] == "not Bonn"
    assert len(SearchPairs(relation=relation, schema={"a": (0, 1)}, tiny=True, size=2)) >= 2


@pytest.mark.parametrize("form", [list, pandas.DataFrame])
def test_a_pair_that_differs_in_more_than_one_row_is_refused(form: Any) -> None:
    generator = BUILTIN["synthetic_marginals"]()
    others = [{"city": "Bonn", "sex": "f", "age": 0}] * 4
    with pytest.raises(ValueError, match="lacks 2 rows of the other dataset"):
        generator.check_neighbours(form(ROWS), form(others), None)
    generator.check_neighbours(form(others[:-1]), form(others), None)


def test_records_far_outside_the_schema_are_moved_to_its_bounds_or_not_counted() -> None:
    """A right generator that failed on a record would reveal it."""
    cells = DOMAIN.cells([{"city": ([],), "sex": "m", "age": 10**400}, {"city": "Ulm", "sex": None, "age": -(10**400)}])
    assert cells.tolist() == [[-1, 1, 3], [2, -1, 0]]


def test_pairs_reveal_code_that_depends_on_the_order_and_on_odd_and_even_numbers() -> None:
    """A first record changes the last one's sign in a sum whose signs alternate, for odd and for even numbers."""

    def alternating(records: list[float]) -> float:
        return sum(record * (1 - place % 2 * 2) for place, record in enumerate(records))

    pairs = list(SearchPairs(relation="add_remove", size=10, bounds=(0, 1), out_of_domain=False))
    found = [pair for pair in pairs if abs(alternating(pair.d1) - alternating(pair.d0)) == 2]
    assert {len(pair.d0) % 2 for pair in found} == {0, 1}
