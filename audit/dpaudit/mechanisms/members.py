"""Reads the optional members of a mechanism: each function is the only one that reads its member.

Members are looked up by `hasattr` and `getattr`, because a mechanism may forward them by `__getattr__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.mechanisms.protocol import Mechanism

if TYPE_CHECKING:
    from dpaudit.claims import TradeoffFunction
    from dpaudit.values import Dataset


def samples(mechanism: object) -> TypeGuard[Mechanism]:
    """Whether the mechanism makes many runs in one call."""
    return hasattr(mechanism, "sample")


def shares_calls(mechanism: object) -> bool:
    """Whether several outputs may come from one call of the user's code, so that numpy may have given them one type.

    An `IsolatedMechanism` has the method `sample`, but its process calls a function once for each run.  It knows what
    it calls only after it has loaded the object, so ask after the first run.
    """
    return mechanism.calls_many if isinstance(mechanism, IsolatedMechanism) else samples(mechanism)


def claim(mechanism: object) -> object:
    """Return the claim that the mechanism states, or None if there is none.  Exceptions of the attribute propagate."""
    return getattr(mechanism, "claim", None)


def address(mechanism: object) -> str:
    """Return the address from which the mechanism was loaded, or "" if the address is unknown."""
    return str(getattr(mechanism, "address", None) or "")


def named(mechanism: object) -> str:
    """Return the name for results that a mechanism of dpaudit states, or "" if there is none."""
    return str(getattr(mechanism, "named", "")) if type(mechanism).__module__.startswith("dpaudit.") else ""


def audited_class(mechanism: object) -> object:
    """Return the user's class that a mechanism of dpaudit calls, or None if the mechanism is the audited code."""
    ours = type(mechanism).__module__.startswith("dpaudit.")
    return getattr(mechanism, "audited_class", None) if ours else None


def libraries(mechanism: object) -> tuple[str, ...]:
    """Return the top-level modules of the libraries that the mechanism calls, or () if the mechanism names none."""
    named = getattr(mechanism, "libraries", ())
    return tuple(name for name in named if isinstance(name, str)) if isinstance(named, tuple) else ()


def changed_dataset(mechanism: object) -> bool:
    """Whether the mechanism reports that the last call changed the dataset in another process."""
    return bool(getattr(mechanism, "changed_dataset", False))


def check_neighbours(mechanism: object, d0: Dataset, d1: Dataset, claim: TradeoffFunction) -> None:
    """Let the mechanism check that a claim is about a pair of datasets; without this member, every pair is accepted.

    The member raises ValueError if the claim is not about this pair, because a violation would be a false accusation.
    """
    check = getattr(mechanism, "check_neighbours", None)
    if callable(check):
        check(d0, d1, claim)


def moved_to(mechanism: object) -> str:
    """Return the working directory that the mechanism set while it was loaded, or "" if none is reported."""
    return str(getattr(mechanism, "moved_to", ""))
