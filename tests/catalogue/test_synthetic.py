"""Builtin generators of synthetic tables: laws of the right ones, sensitivities of their proofs, and bad input."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from scipy.stats import kstest, laplace, norm

from dpaudit.catalogue import BUILTIN
from dpaudit.catalogue.synthetic_domain import SMALL, Domain, counts_of, drawn
from dpaudit.config.files import read_configs
from dpaudit.pairs.pair import contradiction
from dpaudit.pairs.search import SearchPairs

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
    audits = {str(audit.config.mechanism.builtin): audit for audit in read_configs([CONFIG])}
    assert list(audits) == NAMES
    for name, audit in audits.items():
        mechanism = BUILTIN[name]()
        assert audit.config.expect == ("no violation" if mechanism.private else "violation")
        assert audit.config.source
        assert [(p.d0, p.d1) for p in audit.pairs] == [(p.d0, p.d1) for p in SearchPairs(**mechanism.inputs)]


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
