"""Fixtures of the tests of reports."""

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest

from dpaudit.result.model import AuditResult
from dpaudit.result.values import Witness
from dpaudit_reports import figures
from dpaudit_reports.figures import evidence, tradeoff
from dpaudit_reports.figures.evidence import Scores

_DRAWN: dict[Hashable, tuple[tuple[Any, ...], str]] = {}  # kept with the drawn objects, so that no id recurs
_WORDS = {"name", "pairs", "attacks", "warnings", "provenance", "elapsed_s", "detectable", "pair", "attack", "region"}
"""Fields of a result and of its witness that change no panel, as a test of the figures shows."""


def _identity(drawn: object) -> Hashable:
    """Return what equals that of another object only if both have the same panels."""
    match drawn:
        case None | str() | int() | float():
            return drawn
        case np.ndarray():
            return drawn.tobytes()
        case AuditResult() | Witness() | Scores():
            shown = (field.name for field in dataclasses.fields(drawn) if field.init and field.name not in _WORDS)
            return tuple(_identity(getattr(drawn, name)) for name in shown)
    return id(drawn)


@pytest.fixture(autouse=True)
def _each_panel_is_drawn_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw equal panels once.  Tests of the figures draw them each time."""
    if request.path.name == "test_figures.py":
        return

    def panel_svg(draw: Callable[[Any], None], **how: Any) -> str:
        drawn = tuple(cell.cell_contents for cell in draw.__closure__ or ())
        key = (draw.__code__, *map(_identity, drawn), *how.values())
        if key not in _DRAWN:
            _DRAWN[key] = drawn, figures.panel_svg(draw, **how)
        return _DRAWN[key][1]

    for module in (evidence, tradeoff):
        monkeypatch.setattr(module, "panel_svg", panel_svg)
