"""Checks the arguments of `audit`.  Each error message states an allowed value."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

from dpaudit.claims import Reported, TradeoffFunction, parse_claim
from dpaudit.claims.comparison import pair_curves, violates
from dpaudit.inference.sequential.planned import Planned
from dpaudit.pairs.pair import Pair, check_relation
from dpaudit.result.base_evidence import MAX_PAIRS
from dpaudit.running import CommandMechanism, IsolatedMechanism, Service
from dpaudit.running.backends import on_this_machine
from dpaudit.running.foreign import MechanismError, check_supported
from dpaudit.running.mechanisms import Batched, resolved
from dpaudit.running.outcomes import in_words
from dpaudit.running.runs import ExecutionSettings
from dpaudit.running.worker import misfit
from dpaudit.settings import AuditSettings, check_memory, shown

EQUAL = "d0 and d1 are equal, so no claim could be refuted; give two datasets that differ"


def claim_of(name: str, given: object, *, sessions: bool = False) -> TradeoffFunction:
    """Return the claim that an argument states, as a claim object or as text; "reported" only for sessions."""
    if isinstance(given, TradeoffFunction | str):
        claim = parse_claim(given) if isinstance(given, str) else given
        if isinstance(claim, Reported) and not sessions:
            raise ValueError(f"{name} must be a claim about outputs; audit_interactive tests what sessions report")
        return claim
    number = float(given) if isinstance(given, numbers.Real) and not isinstance(given, bool) else None
    example = "1" if number is None else f"{number:g}"
    hint = f'a claim such as PureDP({example}) or "pure(epsilon={example})"'
    if isinstance(given, tuple) and len(given) == 2:
        hint = "a claim such as ApproxDP(epsilon={!r}, delta={!r})".format(*given)
    if name == "detect" and number is not None:
        hint += "; factors such as 1.2 are for assert_private"
    raise TypeError(f"{name} must be {hint}, got {shown(given)}")


def violation_of(given: object) -> TradeoffFunction | None:
    """Return the violation that the argument `detect` states, as a claim object or as text; None if there is none."""
    if given is None:
        return None
    found = claim_of("detect", given)
    pair_curves(found)
    return found


def planned_of(violations: Sequence[TradeoffFunction], claim: TradeoffFunction, confidence: float) -> Planned | None:
    """Return the plan of a sequential audit that should detect given violations early; None if there are none."""
    for violation in violations:
        if not violates(violation, claim):
            raise ValueError(
                f"detect must be a violation of {claim.label}, but every mechanism that is {violation.label} satisfies "
                "this claim; give a claim that allows more, such as the same claim with a larger parameter"
            )
    return Planned(violations=tuple(violations), confidence=confidence) if violations else None


def pairs_of(given: object) -> list[Pair]:
    """Return the list of pairs that an argument states, as a `Pair` or as an iterable of pairs."""
    example = "pairs must be a Pair such as Pair([0], [1]), several of them, or a SearchPairs"
    if not isinstance(given, Iterable | Pair) or isinstance(given, str | bytes | dict):
        raise TypeError(f"{example}; got {shown(given)}")
    pairs = [given] if isinstance(given, Pair) else list(given)
    for index, pair in enumerate(pairs):
        name = "pairs" if pair is given else f"pairs[{index}]"
        if not isinstance(pair, Pair):
            raise TypeError(f"{example}; {name} is {shown(pair)}{_meant(given, pairs, pair)}")
        try:
            check_relation(pair)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if not pairs:
        raise ValueError("pairs must hold at least one Pair")
    if len(pairs) > MAX_PAIRS:
        raise ValueError(
            f"pairs must hold at most {MAX_PAIRS:,} pairs, got {len(pairs):,}; audit them in several parts"
        )
    return pairs


def _meant(given: object, pairs: list[Any], wrong: object) -> str:
    """Return a hint if the user passed two datasets as a tuple or list instead of a `Pair`."""
    alone = isinstance(given, tuple | list) and not any(isinstance(one, Pair) for one in pairs)
    two = pairs if alone and len(pairs) == 2 else wrong
    if not isinstance(two, tuple | list) or len(two) != 2:
        return ""
    return f": write Pair({shown(two[0])}, {shown(two[1])})"


def check_mechanism(mechanism: object) -> None:
    """Check the signature of a mechanism before the first run."""
    found: Any = resolved(mechanism)
    problem = misfit(found.function, True) if isinstance(found, Batched) else misfit(found)
    if problem:
        name = getattr(found, "__qualname__", type(found).__qualname__)
        raise MechanismError(f"the mechanism {name} {problem}")


def check_neighbours(mechanism: object, pairs: Iterable[Pair], claim: TradeoffFunction) -> None:
    """Let the mechanism check that the claim is about each pair, if it has a method `check_neighbours`."""
    found: Any = resolved(mechanism)
    check = getattr(found, "check_neighbours", None)
    if not callable(check):
        return
    for pair in pairs:
        try:
            check(pair.d0, pair.d1, claim)
        except ValueError as error:
            raise ValueError(f"{error} (pair {pair})") from None
        except Exception as error:
            raise MechanismError(f"the mechanism's method check_neighbours raised {in_words(error)}") from error


def check_timing(mechanism: object, settings: AuditSettings) -> None:
    """Check that running times can be observed with these settings."""
    programs = isinstance(mechanism, CommandMechanism | IsolatedMechanism)
    if programs and settings.observe_time and settings.failures != "stop":
        raise ValueError(
            f'observe_time needs failures="stop" for a mechanism in another process, got {settings.failures!r}'
        )


def execution_settings_of(settings: AuditSettings) -> ExecutionSettings:
    """Return the settings of an audit that apply to each run: timing, failures, timeout and memory."""
    return ExecutionSettings(
        observe_time=settings.observe_time,
        failures=settings.failures,
        timeout=settings.timeout,
        memory=check_memory(settings.memory),
    )


def limited(mechanism: object, settings: AuditSettings) -> object:
    """Return the mechanism with the memory limit of the audit, which worker processes set for Python mechanisms."""
    if (memory := check_memory(settings.memory)) is None:
        return mechanism
    check_supported()
    if isinstance(mechanism, Service):
        raise ValueError("memory limits programs and functions, not a service; remove it")
    if isinstance(mechanism, CommandMechanism | IsolatedMechanism):
        return mechanism.with_memory(memory)
    if not on_this_machine():
        raise ValueError("memory limits Python mechanisms only with the backend loky; set memory limits in the cluster")
    return mechanism
