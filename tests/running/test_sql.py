"""Databases behind Python's DB-API: sqlite3 with a function of the user, and DuckDB in an environment."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from dpaudit.libraries.inside.sql import Queries

from .programs import needs_registry

PAGE = (Path(__file__).parents[2] / "docs" / "programs.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```\w+\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))
INSERT = "INSERT INTO t VALUES ({dataset})"


def queries(folder: Path, query: str, table: str = "t (a, b)", insert: str = INSERT) -> Queries:
    (folder / "bank.py").write_text(FILES["bank.py"])
    return Queries("bank.py:connect", query, [f"CREATE TABLE {table}", insert], str(folder))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("dataset", "rows"),
    [
        ([[1, "x"], [2, None]], [(1, "x"), (2, None)]),
        ([{"a": 1, "b": "x"}, {"a": 2}], [(1, "x"), (2, None)]),
        ({"a": [1, 2], "b": ["x", "y"]}, [(1, "x"), (2, "y")]),
        ([], []),
        (pd.DataFrame({"a": [1.5], "b": ["x"]}).to_dict("list"), [(1.5, "x")]),
    ],
)
def test_a_dataset_becomes_rows_and_the_rows_of_a_query_the_output(dataset: Any, rows: Any, tmp_path: Path) -> None:
    assert queries(tmp_path, "SELECT * FROM t").sample(dataset, 2, rng()) == [rows, rows]


def test_one_entry_is_a_number_and_each_run_has_its_own_seed(tmp_path: Path) -> None:
    mechanism = queries(tmp_path, "SELECT SUM(a) FROM t", "t (a)")
    assert [mechanism.sample(dataset, 1, rng()) for dataset in ([1, 2.5], 7)] == [[3.5], [7]]
    seeds = queries(tmp_path, "SELECT {seed}").sample([], 3, rng())
    assert len(set(map(str, seeds))) == 3
    noise = queries(tmp_path, "SELECT laplace(1.0)")
    assert noise.sample([], 2, rng(1)) == noise.sample([], 2, rng(1))


@pytest.mark.parametrize(("scale", "code"), [("0.4", 1), ("1.0", 0)])
def test_the_config_of_the_page_gets_the_right_verdict(
    scale: str, code: int, tmp_path: Path, command: Callable[..., Result]
) -> None:
    (tmp_path / "bank.py").write_text(FILES["bank.py"])
    (tmp_path / "query.yaml").write_text(FILES["query.yaml"].replace("laplace(0.5)", f"laplace({scale})"))
    done = command("run", "query.yaml", "--no-pdf", "--seed", "1", "--trials", "600", "--confirm", "50")
    assert done.exit_code == code, done.output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("laplace(0.5)", "laplce(0.5)", "raised OperationalError: no such function: laplce"),
        ("bank.py:connect", "bank.py:conect", "bank.py.* has no .*conect"),
        ("bank.py:connect", "sqlite3:connect", "sql.connect must not name a module of Python's standard library"),
        ("({dataset})", "(1)", "prepare must have a statement such as INSERT"),
        ("  sql:", "  batched: true\n  sql:", "are not allowed with http and sql"),
        ("pure(epsilon=1)", "from mechanism", "is not allowed with mechanism.sql"),
    ],
)
def test_mistakes_are_told_in_one_sentence(
    old: str, new: str, message: str, tmp_path: Path, command: Callable[..., Result]
) -> None:
    (tmp_path / "bank.py").write_text(FILES["bank.py"])
    (tmp_path / "query.yaml").write_text(FILES["query.yaml"].replace(old, new))
    done = command("run", "query.yaml", "--no-pdf", "--seed", "1")
    assert done.exit_code in (2, 3)
    assert re.search(message, done.output.replace("\n", " ")), done.output


@needs_registry
@pytest.mark.slow
def test_duckdb_answers_in_an_environment(
    tmp_path: Path, command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB draws its own noise; the test fails by chance < 1 in 10**6, since the claim is far from true."""
    monkeypatch.delenv("DPAUDIT_CACHE")
    noise = "0.2 * ln(random()) * (CASE WHEN random() < 0.5 THEN -1 ELSE 1 END)"
    config = FILES["query.yaml"].replace("bank.py:connect", "duckdb:connect").replace("laplace(0.5)", noise)
    (tmp_path / "query.yaml").write_text(config.replace("pairs:", "  requires: [duckdb]\npairs:"))
    done = command("run", "query.yaml", "--no-pdf", "--seed", "1")
    assert done.exit_code == 1, done.output
