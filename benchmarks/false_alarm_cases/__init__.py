"""Audits of true claims under conditions in which dpaudit once refuted true claims, with one module for each kind.

Each module holds `CASES`, a list of `Case`.  `benchmarks/calibration.py` counts how often the audits end with the
verdict VIOLATION.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpaudit import AuditResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One setting in which the claim is exactly true."""

    name: str  # the unusual condition, e.g. "an attack that returns NaN for a rare output"
    audit: Callable[[int], AuditResult]  # function that runs the audit with a given seed
    audits: int = 60  # default number of audits
    significance: float = 0.05  # 1 - the confidence of these audits: the maximum rate of false alarms
    inconclusive_allowed: int | None = None  # maximum number of inconclusive audits; None for no limit
    mu: float | None = None  # the mechanism's true mu; a certified mu_lower above it counts as a false bound
