"""The figures of the documentation equal the output of `docs/figures.py`, and each page describes them in words."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
NUMBER = re.compile(r"-?\d+\.\d+")
LONG = {"score-choices"}
IMAGE = re.compile(r"!\[([^\]]*)\]\(figures/([\w-]+)\.svg\)")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], str]]:
    """Return the function that draws each figure, by name."""
    monkeypatch.syspath_prepend(str(DOCS))
    found: dict[str, Callable[[], str]] = runpy.run_path(str(DOCS / "figures.py"))["FIGURES"]
    return found


def assert_same(drawn: str, name: str) -> None:
    """Compare a figure with its file.  Positions may differ by a tenth of a pixel, as versions of SciPy do."""
    file = (DOCS / "figures" / f"{name}.svg").read_text(encoding="utf-8")
    assert NUMBER.sub("", drawn) == NUMBER.sub("", file), name
    pairs = zip(NUMBER.findall(drawn), NUMBER.findall(file), strict=True)
    assert max(abs(float(one) - float(other)) for one, other in pairs) < 0.11, name


def test_the_files_are_what_the_command_draws(figures: dict[str, Callable[[], str]]) -> None:
    """If this fails, run `python docs/figures.py`."""
    assert {file.stem for file in (DOCS / "figures").iterdir()} == set(figures)
    for name in figures.keys() - LONG:
        assert_same(figures[name](), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONG))
def test_the_file_of_a_long_simulation_is_what_the_command_draws(
    figures: dict[str, Callable[[], str]], name: str
) -> None:
    assert_same(figures[name](), name)


def test_the_picture_of_trainings_shows_the_table_of_measurements(figures: dict[str, Callable[[], str]]) -> None:
    rows: dict[float, tuple[tuple[float, ...], ...]] = sys.modules["drawing.trainings"].CERTIFIED
    text = (DOCS / "measurements.md").read_text(encoding="utf-8")
    for claimed, points in rows.items():
        for models, median, low, high in points:
            row = rf"\| {claimed:g} \| {models:,} \| \d+ \| {median:.2f} \| {low:.2f} \| {high:.2f} \|"
            assert re.search(row, text), (claimed, models)


def test_every_figure_is_shown_and_described(figures: dict[str, Callable[[], str]]) -> None:
    """The description is for readers who do not see the figure, so it is longer than a title."""
    shown = [image for page in DOCS.glob("*.md") for image in IMAGE.findall(page.read_text(encoding="utf-8"))]
    assert {name for _, name in shown} == set(figures)
    assert all(len(words.split()) >= 20 for words, _ in shown)
