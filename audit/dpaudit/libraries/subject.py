"""Defines a subject: a mechanism with the claim and the pairs that were read from an object of a library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from dpaudit.claims import ApproxDP, PureDP, TradeoffFunction
from dpaudit.engine.audit import audit
from dpaudit.pairs.pair import Pair
from dpaudit.result.model import AuditResult
from dpaudit.values import Dataset, RawOutputs


class UnknownSubject(ValueError):
    """Raised if a claim or pairs cannot be read from an object.  The message says what is known and what to give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A mechanism, its claim and pairs of neighbouring datasets, ready for `audit_subject`.

    Args:
        mechanism: The mechanism, in a form that `audit` accepts.
        claim: The claim of the library for neighbouring datasets.
        pairs: Pairs of plain values such as numbers, lists and dicts, which the mechanism converts to the library's
            types.
        name: The name of the audit in reports.
        source: The object, its library and the version from which the claim was read.
        claim_stated_by: Who states the claim, as recorded in results; None if this is not recorded.
    """

    mechanism: Any
    claim: TradeoffFunction
    pairs: Sequence[Pair]
    name: str
    source: str
    claim_stated_by: str | None = None

    def __post_init__(self) -> None:
        if not self.pairs:
            raise UnknownSubject(f"{self.name}: there are no pairs; pass pairs=[Pair(d0, d1)]")


@dataclass(frozen=True, slots=True)
class LibraryObject:
    """An object of a library as a mechanism.  It uses the operating system's randomness, and not `rng`."""

    made: Any

    inside: ClassVar[ModuleType]  # the module of `dpaudit.libraries.inside` that runs the object

    def __init_subclass__(cls, *, inside: ModuleType | None = None) -> None:
        if inside is not None:
            cls.inside = inside

    @property
    def libraries(self) -> tuple[str, ...]:
        return (self.inside.MODULE,)

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        outputs: RawOutputs = self.inside.sample(self.made, dataset, n)
        return outputs


def stated_claim(name: str, epsilon: Any, delta: float) -> TradeoffFunction:
    """Return (epsilon, delta)-DP with the numbers that an object states."""
    if not isinstance(epsilon, int | float) or not math.isfinite(epsilon):
        raise UnknownSubject(f"{name} states epsilon={epsilon!r}, which is no claim that could be refuted")
    return ApproxDP(epsilon=epsilon, delta=delta) if delta else PureDP(epsilon)


def audit_subject(subject: Subject, **settings: Any) -> AuditResult:
    """Audit a subject: `audit(subject.mechanism, subject.claim, subject.pairs, name=subject.name, **settings)`.

    A generator of synthetic tables returns its own exceptions as outputs, unless `failures` is "stop" or "retry".

    Args:
        subject: The subject.
        **settings: Other arguments of `audit`, such as `trials`, `confidence` and `seed`.

    Returns:
        The result of `audit`, which records who states the claim.

    Raises:
        TypeError: If `subject` is not a `Subject`.
    """
    if not isinstance(subject, Subject):
        raise TypeError(
            f"audit_subject takes a Subject, such as dpaudit.libraries.opendp.subject(measurement), got "
            f"{type(subject).__name__}"
        )
    mechanism, settings = subject.mechanism, {"name": subject.name, **settings}
    if "failures" in settings and hasattr(mechanism, "raising"):
        mechanism = mechanism.raising(settings["failures"] != "outcome")
        if settings["failures"] == "outcome":
            settings["failures"] = "stop"  # the generator itself returns the exceptions
    result = audit(mechanism, subject.claim, subject.pairs, **settings)
    return replace(result, provenance=replace(result.provenance, claim_stated_by=subject.claim_stated_by))
