"""Fits that raise an exception for one of the two tables: the witness states the exception."""

from __future__ import annotations

import numpy as np
import pandas

from dpaudit import Pair, audit
from dpaudit.outputs.outcomes import Raised
from dpaudit.outputs.parts import parts_of
from dpaudit_reports.sections.witness import query_of

_RAISED = {"raised": "ValueError", "message": "need at least 5 rows"}


def test_a_dict_of_an_exception_has_the_parts_of_an_exception() -> None:
    assert parts_of(_RAISED) == parts_of(Raised("ValueError", "need at least 5 rows"))
    assert parts_of({"raised": 1, "message": "a"}).labels["type of output"] == "dict"


def test_the_witness_states_the_exception_instead_of_a_query() -> None:
    """Every output shows the dataset."""

    def fitted(rows: list[int], rng: np.random.Generator) -> object:
        return pandas.DataFrame({"age": rng.normal(9, 1, 20)}) if len(rows) == 5 else _RAISED

    for pair, sides in (
        (Pair([1] * 4, [1] * 5, "add_remove"), ("raised ValueError: 'need at least 5 rows'", "a table")),
        (Pair([1] * 5, [1] * 4, "add_remove"), ("a table", "raised ValueError: 'need at least 5 rows'")),
    ):
        result = audit(fitted, "pure(epsilon=1)", pair, trials=100, seed=1, confirm="never")
        assert result.violated
        assert result.witness is not None
        assert result.witness.query.startswith(f"output: {sides[0]} ")
        assert f", {sides[1]} " in result.witness.query
        assert "raised ValueError" in result.witness.region
        assert result.witness.query in str(result)
        assert any("Outcome of the runs: " in str(block) for block in query_of(result.witness))
