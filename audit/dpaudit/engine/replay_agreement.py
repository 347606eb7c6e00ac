"""Compares the claim of a result with that of the config or the test whose mechanism and pairs its replay ran."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.replay_outcome import Replay
from dpaudit.inference.sequential.planned import Planned

_CLOSE = 1e-9  # relative difference of numbers in claims that accountants compute on different machines
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:e[+-]?\d+)?")


def compared(
    found: Replay, origin: str, claim: TradeoffFunction, violations: Sequence[TradeoffFunction] | None
) -> Replay:
    """Return a replay with the differences between its result and the "config" or "test" that it ran.

    The violations are those that the audit should detect, because the bets depend on them; None compares none.
    """
    differences = tuple(_differences(found, claim, violations))
    return replace(found, differences=differences, origin=origin)


def _differences(
    found: Replay, claim: TradeoffFunction, violations: Sequence[TradeoffFunction] | None
) -> Iterator[str]:
    result, planned = found.result, found.result.evidence.planned
    if not same_claim(result.claim, claim):
        yield differs("claim", result.claim.label, claim.label)
    if planned is not None and violations is not None and not _same(planned, violations):
        stated, here = (", ".join(one.label for one in claims) for claims in (planned.violations, violations))
        yield differs("violation to detect", stated or "nothing", here or "nothing")


def _same(planned: Planned, violations: Sequence[TradeoffFunction]) -> bool:
    return len(planned.violations) == len(violations) and all(map(same_claim, planned.violations, violations))


def differs(what: str, stated: str, here: str) -> str:
    """Return a sentence about a difference between a result and its replay."""
    return f"the {what} is {stated} in the result, but {here} in the replay"


def same_claim(one: TradeoffFunction, other: TradeoffFunction) -> bool:
    """Whether two claims have the same text, except for rounding errors of their numbers."""
    a, b = str(one), str(other)
    if _NUMBER.sub("0", a) != _NUMBER.sub("0", b):
        return False
    numbers = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    return all(math.isclose(float(x), float(y), rel_tol=_CLOSE) for x, y in numbers)
