"""Audits without fresh runs that continue after a refutation, to measure how large the violation is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit_reports
from dpaudit import AuditResult, GaussianDP, Pair, audit, batched
from dpaudit.result.checks import contradictions
from dpaudit.settings.audit import AuditSettings

PAIR = Pair([0.0], [1.0])
STOPPED = "stopped at the first proof; the bounds do not estimate the size of the violation"

UNMEASURED = "The true loss may be much larger: the audit stopped at its first proof and did not measure the size."


@batched
def noise(dataset: list[float], n: int, rng: np.random.Generator) -> Any:
    """Return noise that is exactly 1-GDP on `PAIR`."""
    return rng.normal(dataset[0], 1.0, n)


def audited(**settings: Any) -> AuditResult:
    return audit(noise, GaussianDP(0.5), PAIR, seed=1, attacks="logistic", confirm="never", **settings)


def test_it_goes_on_to_the_trials_and_certifies_more(tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6: the bounds hold at confidence 1 - 1e-6."""
    stopped, measured = (audited(trials=4000, measure=measure, confidence=1 - 1e-6) for measure in (False, True))
    assert stopped.violated
    assert measured.violated
    assert stopped.trials_used < measured.trials_used == 4000
    assert stopped.refuted_at is not None
    assert measured.refuted_at is not None
    assert measured.refuted_at <= stopped.trials_used + 100
    assert (stopped.stopped_by, measured.stopped_by) == ("evidence", "trials")
    assert stopped.mu_lower < 0.8 * measured.mu_lower
    assert 0.8 < measured.mu_lower <= 1.0
    for result in (stopped, measured):
        assert contradictions(result) == []
        result.to_json(tmp_path / "r.json")
        back = AuditResult.from_json(tmp_path / "r.json")
        assert back.to_dict() == result.to_dict()
        assert back.refuted_at == result.refuted_at


def test_outputs_say_whether_it_stopped_at_its_proof() -> None:
    stopped, measured = (audited(trials=2000, measure=measure) for measure in (False, True))
    assert STOPPED in str(stopped)
    assert UNMEASURED in dpaudit_reports.to_html([stopped])
    for text in (str(measured), dpaudit_reports.to_html([measured])):
        assert STOPPED not in text
        assert UNMEASURED not in text
        assert "the bounds are from the end of the audit" in text


def test_a_claim_that_is_kept_is_never_measured_as_false() -> None:
    result = audit(noise, GaussianDP(1.5), PAIR, seed=1, attacks="logistic", trials=1000, measure=True)
    assert not result.violated
    assert result.refuted_at is None
    assert result.trials_used == 1000


def test_a_fixed_number_of_trials_measures_anyway() -> None:
    stopped, measured = (audited(trials=2000, measure=measure, method="fixed") for measure in (False, True))
    assert stopped.mu_lower == measured.mu_lower
    assert measured.refuted_at is None
    assert STOPPED not in str(measured)


def test_measure_is_yes_or_no() -> None:
    with pytest.raises(TypeError, match="measure must be True or False"):
        AuditSettings(measure=1)  # type: ignore[arg-type]
