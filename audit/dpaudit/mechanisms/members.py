"""Optional members of a mechanism: a protocol for each, and the only function that looks it up.

With the protocols a type checker can compare a mechanism with what dpaudit reads; a mechanism need not name them.
dpaudit looks members up by `hasattr` and `getattr`, because a mechanism may forward them by `__getattr__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeGuard

from dpaudit.mechanisms.protocol import Mechanism

if TYPE_CHECKING:
    from dpaudit.claims import TradeoffFunction


class HasClaim(Protocol):
    """A mechanism that states a claim, for configs with `claim: from mechanism`."""

    @property
    def claim(self) -> TradeoffFunction | str:
        """The claim, or its text, such as "pure(epsilon=1)"."""
        ...


class HasAddress(Protocol):
    """A mechanism that was loaded from an address."""

    @property
    def address(self) -> str:
        """The address: `module:object` or `file.py:object`."""
        ...


class HasChangedDataset(Protocol):
    """A mechanism that runs in another process, and reports changes of its dataset there."""

    @property
    def changed_dataset(self) -> bool:
        """Whether the last call of `sample` changed its dataset in place."""
        ...


class HasMovedTo(Protocol):
    """A mechanism that reports a change of the working directory, which was undone."""

    @property
    def moved_to(self) -> str:
        """The working directory that the mechanism set while it was loaded; "" if it set none."""
        ...


def samples(mechanism: object) -> TypeGuard[Mechanism]:
    """Whether the mechanism makes many runs in one call."""
    return hasattr(mechanism, "sample")


def claim(mechanism: object) -> object:
    """Return the claim that the mechanism states; None if it states none.  Exceptions of the attribute propagate."""
    return getattr(mechanism, "claim", None)


def address(mechanism: object) -> str:
    """Return the address from which the mechanism was loaded; "" if it is unknown."""
    return str(getattr(mechanism, "address", None) or "")


def changed_dataset(mechanism: object) -> bool:
    """Whether the mechanism reports that its last call changed the dataset in another process."""
    return bool(getattr(mechanism, "changed_dataset", False))


def moved_to(mechanism: object) -> str:
    """Return the working directory that the mechanism set while it was loaded; "" if it reports none."""
    return str(getattr(mechanism, "moved_to", ""))
