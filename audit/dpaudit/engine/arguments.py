"""What is said about arguments of `audit` that are none."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.mechanisms.protocol import Batched, MechanismError
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.mechanisms.worker import misfit
from dpaudit.pairs.pair import Pair
from dpaudit.sampling.runs import ExecutionSettings, resolved
from dpaudit.settings.audit import AuditSettings
from dpaudit.settings.limits import shown


def claim_of(name: str, given: Any) -> TradeoffFunction:
    """Return the claim that an argument holds or states.

    Raises:
        TypeError: If it is neither a claim nor text.
        ValueError: If the text states no claim.
    """
    if isinstance(given, TradeoffFunction):
        return given
    if isinstance(given, str):
        return parse_claim(given)
    number = isinstance(given, numbers.Real) and not isinstance(given, bool)
    example = f"{float(given):g}" if number else "1"
    hint = f'a claim such as PureDP({example}) or "pure(epsilon={example})"'
    if isinstance(given, tuple) and len(given) == 2:
        hint = "a claim such as ApproxDP(epsilon={!r}, delta={!r})".format(*given)
    if name == "detect" and number:
        hint += "; factors such as 1.2 are for assert_private"
    raise TypeError(f"{name} must be {hint}, got {shown(given)}")


def pairs_of(given: Any) -> list[Pair]:
    """Return the pairs that an argument holds.

    Raises:
        TypeError: If something in it is no pair.
        ValueError: If there is none.
    """
    if isinstance(given, Pair):
        return [given]
    example = "pairs must be a Pair such as Pair([0], [1]), several, or a SearchPairs"
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | dict):
        raise TypeError(f"{example}; got {shown(given)}")
    pairs = list(given)
    for index, pair in enumerate(pairs):
        if not isinstance(pair, Pair):
            two = isinstance(given, tuple | list) and len(pairs) == 2
            hint = f": write Pair({shown(pairs[0])}, {shown(pairs[1])})" if two else ""
            raise TypeError(f"{example}; pairs[{index}] is {shown(pair)}{hint}")
    if not pairs:
        raise ValueError("pairs must hold at least one Pair")
    return pairs


def check_mechanism(mechanism: Any) -> None:
    """Look at how a mechanism wants to be called.

    Raises:
        MechanismError: If it cannot be called as a mechanism; `audit` would fail on its first run.
    """
    found = resolved(mechanism) if isinstance(mechanism, PythonMechanism) else mechanism
    problem = misfit(found.function, True) if isinstance(found, Batched) else misfit(found)
    if problem:
        name = getattr(found, "__qualname__", type(found).__qualname__)
        raise MechanismError(f"the mechanism {name} {problem}")


def execution_settings_of(settings: AuditSettings) -> ExecutionSettings:
    """The terms on which runs are made."""
    return ExecutionSettings(observe_time=settings.observe_time, failures=settings.failures, timeout=settings.timeout)
