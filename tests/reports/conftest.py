"""Fixtures of the tests of reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpaudit_reports.figures import canvas, evidence, profile, tradeoff

_DRAWN: dict[tuple[Any, ...], tuple[tuple[Any, ...], str]] = {}  # kept with the drawn objects, so that no id recurs


@pytest.fixture(autouse=True)
def _each_panel_is_drawn_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the panels of one frozen result once.  Tests of the figures draw them each time."""
    if request.path.name == "test_figures.py":
        return

    def panel_svg(draw: Callable[[Any], None], **how: Any) -> str:
        drawn = tuple(cell.cell_contents for cell in draw.__closure__ or ())
        parts = (part if isinstance(part, float) else id(part) for part in drawn)
        key = (draw.__code__, *parts, *how.values())
        if key not in _DRAWN:
            _DRAWN[key] = drawn, canvas.panel_svg(draw, **how)
        return _DRAWN[key][1]

    for module in (evidence, profile, tradeoff):
        monkeypatch.setattr(module, "panel_svg", panel_svg)
