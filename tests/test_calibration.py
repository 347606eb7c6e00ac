"""The section "Calibration" of docs/statistics.md equals its results, and `benchmarks/calibration.py` resumes."""

from __future__ import annotations

import importlib
import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def calibration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return the command, with results and a page in a temporary folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("calibration")
    page = importlib.import_module("calibration_parts.page")
    marks = "".join(f"<!-- calibration, {name}: {end} -->\n" for name in ("versions", *page.TABLES) for end in ENDS)
    (tmp_path / "page.md").write_text(marks)
    results = importlib.import_module("calibration_parts.results")
    monkeypatch.setattr(results, "versions", lambda: VERSIONS)
    monkeypatch.setattr(results, "newest", lambda names=(): 0.0)
    monkeypatch.setattr(module, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results.json")
    return module


ENDS = ("begin", "end")
VERSIONS = {"dpaudit": "1.0", "code": "c0de", "python": "3.11", "numpy": "2.0", "scipy": "1.0", "scikit-learn": "1.0"}


def part(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(f"calibration_parts.{name}")


def test_the_page_holds_the_saved_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, run `python benchmarks/calibration.py --audits 0 --write`, or restore the page."""
    page = part("page", monkeypatch)
    results = json.loads((BENCHMARKS / "calibration.json").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    assert page.page_with(results, text) == text
    assert {row["part"] for row in results["rows"]} == set(page.TABLES)
    assert all(row["audits"] > 0 for row in results["rows"])
    with pytest.raises(ValueError, match="must contain '<!-- calibration, streams: begin -->'"):
        page.page_with(results, text.replace("<!-- calibration, streams: begin -->", ""))


def test_every_part_has_a_share_of_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part without a share ended the command with a KeyError if it was given `--minutes`."""
    budget = part("budget", monkeypatch)
    rows = importlib.import_module("calibration").rows()
    assert {row.part for row in rows} == set(budget.SHARES)
    assert sum(budget.SHARES.values()) == pytest.approx(1)
    numbers = budget.divided(rows, {row.label: 1.0 for row in rows}, seconds=3600)
    assert all(1 <= numbers[row.label] <= row.full for row in rows)


def test_a_changed_count_changes_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    page = part("page", monkeypatch)
    results = json.loads((BENCHMARKS / "calibration.json").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    row = results["rows"][0]
    row["counts"]["refuted"] = row["audits"]
    assert f"| **{row['audits']:,}** |" in page.page_with(results, text)


@pytest.mark.parametrize(("rate", "audits"), [(0.05, 30), (0.05, 1000), (0.9, 200), (0.999, 20), (1e-9, 200), (0.0, 7)])
def test_limits_are_the_first_counts_with_a_small_tail(
    rate: float, audits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow second version adds the probabilities of counts."""
    limit = part("limit", monkeypatch)
    masses = [float(binom.pmf(count, audits, rate)) for count in range(audits + 1)]
    most, least = limit.Limit(rate=rate), limit.Limit(rate=rate, least=True)
    allowed = next(count for count in range(audits + 1) if sum(masses[count + 1 :]) <= limit.BEYOND)
    assert most.allowed(audits) == allowed
    assert (most.broken(audits, allowed), most.broken(audits, allowed + 1)) == (False, True)
    allowed = next(count for count in range(audits, -1, -1) if sum(masses[:count]) <= limit.BEYOND)
    assert least.allowed(audits) == allowed
    assert (least.broken(audits, allowed), least.broken(audits, allowed - 1)) == (False, True)


EVENTS = ("refuted", "mu", "epsilon", "band", "inconclusive", "came true")  # of all parts


def rows_of(made: list[tuple[str, int]], failing: set[int]) -> list[Any]:
    """Return a row of each part, whose audit records that it was made, and fails for some seeds."""
    parts, page = importlib.import_module("calibration_parts"), importlib.import_module("calibration_parts.page")

    def audited(name: str, seed: int) -> dict[str, float]:
        if seed in failing:
            raise OSError("the machine is switched off")
        made.append((name, seed))
        return dict.fromkeys(EVENTS, float(seed == 1))

    return [
        parts.Row(
            part=name,
            cells=tuple(f"{heading} of {name}" for heading in table.cells),
            audit=partial(audited, name),
            limits={"refuted": parts.Limit(rate=0.05)},
            full=4,
            sources=("calibration.py",),
        )
        for name, table in page.TABLES.items()
    ]


def test_a_command_that_was_interrupted_makes_only_the_missing_audits(
    calibration: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[tuple[str, int]] = []
    failing = {2}
    monkeypatch.setattr(calibration, "rows", lambda: rows_of(made, failing))
    command = ["--jobs", "1", "--store", str(tmp_path / "store.jsonl")]
    assert calibration.main([*command, "--only", "streams"]) == 1
    assert made == [("streams", 0), ("streams", 1)]
    assert "streams: stream of streams, length of streams: AN AUDIT FAILED" in capsys.readouterr().out
    failing.clear()
    with (tmp_path / "store.jsonl").open("a") as file:
        file.write('{"key": "the last line was interru')
    assert calibration.main([*command, "--only", "streams", "--write"]) == 2
    assert made == [("streams", seed) for seed in range(4)]
    assert "6 rows have no audit of the present code" in capsys.readouterr().err
    assert not (tmp_path / "results.json").exists()
    assert calibration.main([*command, "--audits", "3", "--write"]) == 0
    assert made[4:] == [(row.part, seed) for row in rows_of([], set()) if row.part != "streams" for seed in range(3)]
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| stream of streams | length of streams | 4 | at most 2 | 1 |" in text
    assert "They count 22 audits" in text
    made.clear()
    assert calibration.main([*command, "--audits", "0", "--write"]) == 0
    assert (made, (tmp_path / "page.md").read_text(encoding="utf-8")) == ([], text)


def test_audits_of_other_code_are_not_counted(calibration: Any) -> None:
    results = importlib.import_module("calibration_parts.results")
    made: list[tuple[str, int]] = []
    row = rows_of(made, set())[0]
    audits = results.Audits(calibration.Store(None), [row])
    audits.make(row, 2, jobs=1)
    again = results.Audits(audits.store, [row])
    again.make(row, 2, jobs=1)
    assert len(made) == len(again.found(row)) == 2
    other = results.Audits(audits.store, [row], versions=VERSIONS | {"code": "of another version"})
    assert other.found(row) == []
    other.make(row, 1, jobs=1)
    assert len(made) == 3


def test_a_command_stops_if_the_code_changes_meanwhile(calibration: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    results = importlib.import_module("calibration_parts.results")
    times, made = itertools.count(int(results.BEGAN) + 1), list[tuple[str, int]]()
    row = rows_of(made, set())[0]
    audits = results.Audits(calibration.Store(None), [row])
    monkeypatch.setattr(results, "newest", lambda names=(): float(next(times)))
    audits.make(row, 1, jobs=1)  # a file is newer, but its code is the same
    monkeypatch.setattr(results, "versions", lambda: VERSIONS | {"code": "of another version"})
    with pytest.raises(results.CodeChangedError, match="changed during the command"):
        audits.make(row, 2, jobs=1)
    assert len(audits.found(row)) == 1
    with pytest.raises(results.CodeChangedError):  # dpaudit may have been imported before the change
        results.Audits(calibration.Store(None), [row])


def test_versions_name_the_code_and_the_libraries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = part("code", monkeypatch)
    monkeypatch.setattr(code, "PACKAGES", [tmp_path])
    (tmp_path / "some.py").write_text("x = 1\n")
    assert code.versions().keys() == VERSIONS.keys()
    assert code.versions()["code"] == code.digest([tmp_path / "some.py"])
    assert code.newest() == (tmp_path / "some.py").stat().st_mtime


def test_a_digest_notices_code_but_no_docstrings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, file = part("code", monkeypatch), tmp_path / "some.py"

    def digest(text: str) -> str:
        file.write_text(text)
        return str(code.digest([file]))

    plain = digest("def f(x):\n    return x\n")
    assert digest('"""A module."""\n\ndef f(x):\n    """Return x."""\n    return (x)  # as given\n') == plain
    assert digest("def f(x):\n    return -x\n") != plain
    assert len(plain) == 12


def test_a_budget_is_divided_among_the_rows_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """The part "stated" gets 500 of 600 seconds: 5 for the cheap row, 250 for the dear and 245 for the usual row."""
    budget = part("budget", monkeypatch)
    parts = importlib.import_module("calibration_parts")
    monkeypatch.setattr(budget, "SHARES", {"stated": 0.5, "streams": 0.1, "commands": 0.4})

    def row(name: str, cell: str, full: int = 1000) -> Any:
        return parts.Row(part=name, cells=(cell,), audit=None, limits={}, full=full, sources=())

    rows = [row("stated", "cheap", 50), row("stated", "usual"), row("stated", "dear"), row("streams", "one")]
    rows.append(row("stated", "whose audits fail"))
    costs = {"stated: cheap": 0.1, "stated: usual": 1.0, "stated: dear": 50.0, "streams: one": 2.0}
    numbers = budget.divided(rows, costs, seconds=600)
    assert numbers["stated: cheap"] == 50
    assert numbers["stated: dear"] == numbers["stated: whose audits fail"] == budget.MIN_AUDITS == 5
    assert numbers["stated: usual"] in (244, 245)  # bisection rounds down
    assert numbers["streams: one"] in (49, 50)
