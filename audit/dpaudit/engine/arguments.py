"""What is said about arguments of `audit` that are none."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any, get_args

from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.mechanisms.protocol import Batched, MechanismError
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.mechanisms.worker import misfit
from dpaudit.pairs.pair import Pair
from dpaudit.sampling.runs import Failures, Terms, resolved

METHODS = ("sequential", "fixed")


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
    number = _is_number(given)
    example = f"{float(given):g}" if number else "1"
    hint = f'a claim such as PureDP({example}) or "pure(epsilon={example})"'
    if isinstance(given, tuple) and len(given) == 2:
        hint = "a claim such as ApproxDP(epsilon={!r}, delta={!r})".format(*given)
    if name == "detect" and number:
        hint += "; factors such as 1.2 are for assert_private"
    raise TypeError(f"{name} must be {hint}, got {_shown(given)}")


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
        raise TypeError(f"{example}; got {_shown(given)}")
    pairs = list(given)
    for index, pair in enumerate(pairs):
        if not isinstance(pair, Pair):
            two = isinstance(given, tuple | list) and len(pairs) == 2
            hint = f": write Pair({_shown(pairs[0])}, {_shown(pairs[1])})" if two else ""
            raise TypeError(f"{example}; pairs[{index}] is {_shown(pair)}{hint}")
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


def check_numbers(trials: Any, confidence: Any) -> int:
    """Return the trials as an int; whole floats such as 1e5 are allowed.

    Raises:
        TypeError: If one of the two is no number.
        ValueError: If it is out of its range.
    """
    if not _is_number(trials):
        raise TypeError(f"trials must be a whole number, got {_shown(trials)}")
    if not trials >= 1:
        raise ValueError(f"trials must be at least 1, got {trials}")
    if trials > 2**53 or trials != int(trials):
        raise ValueError(f"trials must be a whole number up to 2**53, got {trials}")
    if not _is_number(confidence):
        raise TypeError(f"confidence must be a number such as 0.99, got {_shown(confidence)}")
    if not 0 < confidence < 1:
        hint = f"; did you mean {confidence / 100:g}?" if 1 < confidence < 100 else ""
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}{hint}")
    return int(trials)


def check_progress(progress: Any) -> None:
    """Look at what is to be called after each block.

    Raises:
        TypeError: If it cannot be called.
    """
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function that is called after each block, such as print, got {progress!r}")


def terms_of(method: str, *, observe_time: bool, failures: Failures, timeout: float | None) -> Terms:
    """Return the terms on which runs are made.

    Raises:
        ValueError: If there is no such method, or the terms are impossible or do not go with it.
    """
    if method not in METHODS:
        raise ValueError(f"method must be {' or '.join(METHODS)}, got {method!r}")
    if observe_time and method != "sequential":
        raise ValueError(
            f"observe_time needs method sequential, got {method}: times are not independent from run to run"
        )
    if failures not in get_args(Failures):
        raise ValueError(f"failures must be {', '.join(get_args(Failures))}, got {failures!r}")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be above 0 seconds, got {timeout}")
    return Terms(observe_time=observe_time, failures=failures, timeout=timeout)


def _is_number(given: Any) -> bool:
    return isinstance(given, numbers.Real) and not isinstance(given, bool)


def _shown(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:60]}…"
