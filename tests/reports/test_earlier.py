"""Results that earlier versions wrote are read, reported and compared with their own counts.

The files in `earlier` were written by commit fc0de25.  It had no thresholds of witnesses, no notes and no seconds of
attacks, and no fingerprint of the outputs.  The version number was added to the files later.
"""

from __future__ import annotations

from pathlib import Path

import pypdf
import pytest

from dpaudit import AuditResult, Verdict
from dpaudit.engine.replay import contradictions

EARLIER = sorted((Path(__file__).parent / "earlier").glob("*.json"))


@pytest.mark.parametrize("file", EARLIER, ids=lambda file: file.stem)
def test_a_result_of_an_earlier_version_is_read_and_reported(file: Path, tmp_path: Path) -> None:
    result = AuditResult.from_json(file)
    assert result.verdict is Verdict.VIOLATION
    assert result.witness is not None
    assert not contradictions(result)  # its bets are unknown in this version, its witness is not
    assert result.mu_lower > 0.4
    assert 0 < result.epsilon_lower(1e-5) < 3
    result.to_pdf(tmp_path / "report.pdf")
    text = " ".join(page.extract_text() for page in pypdf.PdfReader(tmp_path / "report.pdf").pages)
    assert "Violation" in text
    assert "blake2b" not in text
    result.to_json(tmp_path / "again.json")
    again = AuditResult.from_json(tmp_path / "again.json")
    assert again.to_dict() == result.to_dict()


def test_there_are_such_results() -> None:
    assert [file.stem for file in EARLIER] == ["fixed", "sequential"]
