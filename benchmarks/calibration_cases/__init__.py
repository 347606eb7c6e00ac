"""The rows of the calibration: settings in which an event has at most, or at least, a stated probability."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dpaudit import AuditResult
from measure import SECONDS, Case, Limit, Outcome, Outcomes


def as_events(outcome: Outcome) -> Mapping[str, bool]:
    """Return the events of an outcome that consists of events."""
    return {name: bool(value) for name, value in outcome.items() if name != SECONDS}


@dataclass(frozen=True, kw_only=True)
class Row(Case):
    """One setting of the calibration."""

    limits: Mapping[str, Limit]  # maps the name of an event to its stated probability
    events: Callable[[Outcome], Mapping[str, bool]] = as_events  # returns which events occurred in an audit

    def counts(self, outcomes: Outcomes) -> dict[str, int]:
        events = [self.events(outcome) for outcome in outcomes]
        return {name: sum(each[name] for each in events) for name in events[0]}

    def passed(self, outcomes: Outcomes) -> bool:
        counts = self.counts(outcomes)
        return not any(limit.broken(len(outcomes), counts[name]) for name, limit in self.limits.items())


@dataclass(frozen=True)
class Misbehaving:
    """A setting in which the claim is exactly true, but something misbehaves."""

    name: str  # the unusual condition, e.g. "an attack that returns NaN for a rare output"
    audit: Callable[[int], AuditResult]  # runs the audit with a given seed, at 95 % confidence
    audits: int = 60
    conclusive: bool = False  # whether no audit may be inconclusive
    mu: float | None = None  # the mechanism's true mu; a certified mu_lower above it counts as a false bound


def refuted(rate: float, *others: str) -> dict[str, Limit]:
    """Return the limits of refutations and of other errors that have the same stated probability."""
    return dict.fromkeys(("refuted", *others), Limit(rate=rate))


def too_large(bound: Any, truth: Any, tolerance: float = 1e-6) -> float:
    """Return 1.0 if a lower bound exceeds the truth by more than errors of computed true values."""
    return float(float(bound) > float(truth) * (1 + tolerance))
