"""A result follows from its counts: what the audit saw while it ran, and what a reader computes from the file."""

from __future__ import annotations

import json
import math

import pytest

from dpaudit import AuditResult


def read_again(result: AuditResult) -> AuditResult:
    return AuditResult.from_dict(json.loads(json.dumps(result.to_dict())))


def check_agreement(result: AuditResult) -> AuditResult:
    """Return the result as it is read back.  The history holds the wealth that decided when the audit ended."""
    wealth = result.history.log_e
    if result.evidence.kind.anytime and result.bounds_valid and len(wealth):
        assert result.p_value == pytest.approx(math.exp(-max(0.0, *wealth, 0.0)), rel=1e-6, abs=1e-300)
        if result.stopped_by != "failure":
            assert math.log(result.e_value) == pytest.approx(wealth[-1], rel=1e-6, abs=1e-6) or wealth[-1] > 700
    back = read_again(result)
    assert back.to_dict() == result.to_dict()
    return back
