"""Audits whose violation new processes must confirm."""

from __future__ import annotations

from typing import Any

from dpaudit import AuditResult, Pair, Verdict, audit

PAIR = Pair([0], [1])
ONCE = "noise may have been drawn once and used again"


def audited(mechanism: Any, **settings: Any) -> AuditResult:
    settings = {
        "trials": 1000,
        "seed": 0,
        "confidence": 0.8,
    } | settings  # then few processes suffice
    return audit(mechanism, "pure(epsilon=1)", PAIR, **settings)


def is_in_doubt(result: AuditResult, words: str = "") -> None:
    text = " ".join(result.warnings)
    assert result.verdict is Verdict.INCONCLUSIVE, text
    assert not result.bounds_valid
    assert (result.p_value, result.mu_lower) == (1.0, 0.0)
    assert ONCE in text, text
    assert words in text, text
