"""`benchmarks/growth.py` and `benchmarks/busy_core.py` measure what they say, and the figure shows the table."""

from __future__ import annotations

import importlib
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("benchmarks", "docs"):
        monkeypatch.syspath_prepend(str(ROOT / folder))


def test_a_measurement_separates_the_mechanism_from_inference() -> None:
    growth = importlib.import_module("growth")
    row = growth.measure(trials=40, columns=2, pairs=2, claims=2)
    assert row["trials"] == 80
    assert row["inference"] > row["mechanism"] > 0
    assert row["megabytes"] > 10


def test_trials_of_a_measurement_can_be_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    growth = importlib.import_module("growth")
    measured: list[dict[str, int]] = []

    def fake(sizes: dict[str, int]) -> dict[str, float]:
        measured.append(sizes)
        return {"trials": sizes["trials"], "first": 0.0, "mechanism": 0.0, "inference": 0.0, "megabytes": 0.0}

    monkeypatch.setattr(growth, "in_a_fresh_process", fake)
    monkeypatch.setattr("sys.argv", ["growth.py", "columns", "--most", "3", "--trials", "500"])
    growth.main()
    assert measured == [{"trials": 500, "columns": n, "pairs": 1, "claims": 1} for n in (1, 3)]
    assert capsys.readouterr().out.count("500 trials") == 2


def test_the_limit_on_threads_is_switched_off_where_audits_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A renamed limit would otherwise stay on in the measurement without the limit."""
    busy = importlib.import_module("busy_core")
    places = [(importlib.import_module(module), name) for module, name in busy.LIMITS]
    for module, name in places:
        monkeypatch.setattr(module, name, getattr(module, name))  # restored after the test
    busy.switch_off_the_limit()
    assert all(getattr(module, name) is nullcontext for module, name in places)
    known = {module for module, _ in busy.LIMITS}
    for file in (ROOT / "audit").rglob("*.py"):
        if re.search(r"import .*\bone_thread\b", file.read_text(encoding="utf-8")):
            assert ".".join(file.relative_to(ROOT / "audit").with_suffix("").parts) in known


def test_the_figure_of_growth_shows_the_table_of_measurements() -> None:
    rows: dict[str, Any] = importlib.import_module("drawing.growth").GROWTH
    text = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    for what, points in rows.items():
        for size, seconds, megabytes in points:
            assert f"| {what} | {size:,} | {seconds:.1f} | {megabytes:,.0f} |" in text, (what, size)
