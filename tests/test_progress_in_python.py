"""`progress=True` shows a line with a bar and the time left, in a terminal, in a notebook and in a log."""

from __future__ import annotations

import io
import math
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from dpaudit import Pair, audit
from dpaudit.engine import progress_line
from dpaudit.engine.collector import Progress


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def noisy_sum(dataset: list[float], rng: np.random.Generator) -> float:
    return sum(dataset) + rng.normal()


def at(trials: int) -> Progress:
    return Progress(trials=trials, allowed=1000, log_e=0.0, log_threshold=math.log(100))


def test_a_terminal_shows_one_line_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, times = Terminal(), iter(range(100))
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: SimpleNamespace(columns=110))
    line = progress_line._Line("sum", None, stream, lambda: float(next(times)))
    for trials in (0, 250, 500):
        line(at(trials))
    line.end()
    drawn = stream.getvalue().split("\r")
    assert drawn[3].startswith(
        "[##########          ] sum · 500 of 1,000 runs · 125 runs/s · ≤ 4 s left · evidence 1 of"
    )
    assert drawn[-1] == ""
    assert drawn[-2].strip() == "", "the line is removed at the end"
    assert all(len(part) < 110 for part in drawn)


def test_a_log_gets_a_line_every_few_seconds() -> None:
    stream, times = io.StringIO(), iter(range(100))
    line = progress_line._Line("sum", None, stream, lambda: float(next(times)))
    for trials in range(0, 1000, 100):
        line(at(trials))
    line.end()
    assert "\r" not in stream.getvalue()
    assert 2 <= len(stream.getvalue().splitlines()) <= 4


def test_true_and_false_are_allowed_and_other_values_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    """The evidence and the output of an audit do not depend on the display."""
    results = [
        audit(noisy_sum, "gaussian(mu=1)", Pair([0], [1]), trials=60, seed=1, progress=progress)
        for progress in (True, False)
    ]
    assert results[0].e_value == results[1].e_value
    assert capsys.readouterr().out == ""
    with pytest.raises(TypeError, match="progress must be True, or a function"):
        audit(noisy_sum, "gaussian(mu=1)", Pair([0], [1]), seed=1, progress="yes")  # type: ignore[arg-type]
