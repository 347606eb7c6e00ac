"""The programs of `benchmarks/` do what they say, and pages show their results."""

import dataclasses
import importlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def calibration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    module, measure = importlib.import_module("calibration"), importlib.import_module("measure")
    marks = "".join(f"<!-- calibration, {name}: {end} -->\n" for name in ("versions", *module.PARTS) for end in ENDS)
    (tmp_path / "page.md").write_text(marks)
    monkeypatch.setattr(measure, "versions", lambda: VERSIONS)
    monkeypatch.setattr(measure, "newest", lambda: 0.0)
    monkeypatch.setattr(measure, "files_of", lambda case: (BENCHMARKS / "calibration.py",))
    monkeypatch.setattr(module, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results.json")
    return module


ENDS = ("begin", "end")
VERSIONS = {"dpaudit": "1.0", "code": "c0de", "python": "3.11", "numpy": "2.0", "scipy": "1.0", "scikit-learn": "1.0"}


def saved() -> tuple[Any, dict[str, Any], str]:
    results = json.loads((BENCHMARKS / "calibration.json").read_text(encoding="utf-8"))
    page = (BENCHMARKS / "calibration.md").read_text(encoding="utf-8")
    return importlib.import_module("calibration"), results, page


def test_the_page_holds_the_saved_results() -> None:
    """If this fails, run `python benchmarks/calibration.py --seeds 0 --write`, or restore the page."""
    module, results, text = saved()
    assert module.page_with(results, text) == text
    assert {row["part"] for row in results["rows"]} == {name for name, part in module.PARTS.items() if part.on_page}
    assert all(row["audits"] > 0 for row in results["rows"])
    with pytest.raises(ValueError, match="must contain '<!-- calibration, streams: begin -->'"):
        module.page_with(results, text.replace("<!-- calibration, streams: begin -->", ""))


def test_every_saved_row_can_be_measured_again() -> None:
    module, results, _ = saved()
    rows = {(table.name, case.cells): case for table in module.tables(None) for case in table.cases}
    for row in results["rows"]:
        limits = rows[row["part"], tuple(row["cells"])].limits
        assert {name: {"rate": limit.rate, "least": limit.least} for name, limit in limits.items()} == row["limits"]


EVENTS = ("refuted", "mu", "epsilon", "band", "inconclusive", "found", "false", "came true")  # of all parts


def rows_of(module: Any, name: str, made: list[tuple[str, int]], failing: set[int]) -> list[Any]:
    """Return a row of a part, whose audit records that it was made, and fails for some seeds."""
    cases, measure = importlib.import_module("calibration_cases"), importlib.import_module("measure")

    def audited(seed: int) -> dict[str, float]:
        if seed in failing:
            raise OSError("the machine is switched off")
        made.append((name, seed))
        return dict.fromkeys(EVENTS, float(seed == 1))

    cells = tuple(f"{heading} of {name}" for heading in module.PARTS[name].cells)
    return [cases.Row(cells=cells, measure=audited, limits={"refuted": measure.Limit(rate=0.05)}, seeds=4)]


def test_a_command_that_was_interrupted_makes_only_the_missing_audits(
    calibration: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[tuple[str, int]] = []
    failing = {2}
    parts = {name: partial(rows_of, calibration, name, made, failing) for name in calibration.PARTS}
    changed = {name: dataclasses.replace(part, rows=parts[name]) for name, part in calibration.PARTS.items()}
    monkeypatch.setattr(calibration, "PARTS", changed)
    command = ["--jobs", "1", "--store", str(tmp_path / "store.jsonl")]
    assert calibration.main([*command, "--only", "streams"]) == 1
    assert made == [("streams", 0), ("streams", 1)]
    assert "streams: stream of streams, length of streams: A REPETITION FAILED" in capsys.readouterr().out
    failing.clear()
    with (tmp_path / "store.jsonl").open("a") as file:
        file.write('{"key": "the last line was interru')
    assert calibration.main([*command, "--only", "streams", "--write"]) == 2
    assert made == [("streams", seed) for seed in range(4)]
    assert "6 rows have no outcome of the present code" in capsys.readouterr().err
    assert not (tmp_path / "results.json").exists()
    assert calibration.main([*command, "--seeds", "3", "--write"]) == 0
    assert made[4:] == [(name, seed) for name in parts if name != "streams" for seed in range(3)]
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| stream of streams | length of streams | 4 | at most 2 | 1 |" in text
    assert "They count 22 audits" in text
    made.clear()
    assert calibration.main([*command, "--seeds", "0", "--write"]) == 0
    assert (made, (tmp_path / "page.md").read_text(encoding="utf-8")) == ([], text)


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("benchmarks", "docs"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
