"""Text and rows that a mechanism or a file could make endless are cut, and stdout is kept for results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import dpaudit_reports
from dpaudit import AuditResult, Pair, audit
from dpaudit.catalogue import Gaussian
from dpaudit.mechanisms import CommandMechanism, MechanismError
from dpaudit_reports.numbers import MAX_ENTRIES

from .command_line import CONFIG, Command


def test_what_a_module_prints_on_import_is_not_among_the_results(folder: Path, command: Command) -> None:
    (folder / "mine.py").write_text("print('on import')\ndef f(d, rng): return d[0] + rng.normal()\n")
    (folder / "c.yaml").write_text(CONFIG.replace("{builtin: gaussian, params: {sigma: 1.0}}", "{python: 'mine.py:f'}"))
    done = command("run", "c.yaml", "--no-pdf", "--format", "json")
    assert json.loads(done.stdout)[0]["name"] == "noise"
    assert "on import" in done.stderr


def test_an_error_quotes_a_part_of_a_long_line_of_stderr() -> None:
    code = "import sys; sys.stdin.readline(); sys.stderr.write('x' * 60_000); sys.exit(3)"
    with CommandMechanism([sys.executable, "-c", code]) as mechanism, pytest.raises(MechanismError) as error:
        mechanism.sample([0], 1, np.random.default_rng(0))
    assert "x" * 500 + "…" in str(error.value)
    assert len(str(error.value)) < 2_000


@pytest.mark.parametrize("key", ["pairs", "attacks", "warnings"])
def test_a_report_shows_a_part_of_very_many_entries_and_says_so(key: str) -> None:
    values = audit(Gaussian(1.0), "gaussian(mu=1)", Pair([0], [1]), trials=60, seed=0, confidence=0.95).to_dict()
    values[key] = (["a warning"] if key == "warnings" else values[key][:1]) * 20_000
    text = dpaudit_reports.to_html([AuditResult.from_dict(values)])
    assert f"These are the first {MAX_ENTRIES} of 20,000 {key}" in text
    assert len(text) < 1_000_000
