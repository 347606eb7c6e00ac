"""The checksum of a baseline has no key, so every value is checked even if the checksum is correct."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpaudit.testing import baseline as baselines

WHOLE = Path(__file__).parents[1] / "formats" / "baseline-2.json"
NODE = "test_release.py::test_kept"


def written(values: dict[str, Any], path: Path) -> Path:
    path.write_text(json.dumps(values | {"sha256": baselines._checksum(values)}))
    return path


def test_the_sample_is_read(tmp_path: Path) -> None:
    values = json.loads(WHOLE.read_text())
    assert baselines.read(written(values, tmp_path / "b.json"), 0.001).tests[NODE].number == 1


@pytest.mark.parametrize(
    ("key", "bad", "words"),
    [
        ("tests", [], "tests should be a dict"),
        ("founders", -5, "founders should be a whole number"),
        ("runs", 2**70, "runs should be a whole number"),
        ("runs", None, "runs should be a whole number"),
        ("false_alarm", 2.0, "false_alarm"),
        ("number", 0, "number should be a whole number"),
        ("outputs", [1], "outputs should be a str"),
        ("log_invested", "inf", "out of range"),
        ("log_invested", "a", "could not convert"),
        ("refuted", "yesterday", "should be a date"),
        ("unknown", 1, "unknown is missing or unknown"),
    ],
)
def test_an_impossible_value_is_refused_although_the_checksum_is_correct(
    key: str, bad: Any, words: str, tmp_path: Path
) -> None:
    values = json.loads(WHOLE.read_text())
    entry = values["tests"][NODE]
    holder = entry if key in entry else entry["chains"][0] if key in entry["chains"][0] and key != "runs" else values
    holder[key] = bad
    with pytest.raises(baselines.BaselineError, match=words):
        baselines.read(written(values, tmp_path / "b.json"), 0.001)
