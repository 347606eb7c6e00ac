"""Optional members of a mechanism: a protocol for each, and the one place where dpaudit looks for it.

The protocols let a type checker compare a mechanism with what dpaudit reads.  A mechanism need not name them.  dpaudit
looks members up by `hasattr` and `getattr`, since a mechanism may hand them on by `__getattr__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeGuard

from dpaudit.mechanisms.protocol import Mechanism

if TYPE_CHECKING:
    from dpaudit.claims import TradeoffFunction


class HasClaim(Protocol):
    """States its own claim, for configs that say `claim: from mechanism`."""

    @property
    def claim(self) -> TradeoffFunction | str:
        """The claim, or its text, such as "pure(epsilon=1)"."""
        ...


class HasAddress(Protocol):
    """Was loaded from somewhere."""

    @property
    def address(self) -> str:
        """Where it was loaded from: `module:object` or `file.py:object`."""
        ...


class HasChangedDataset(Protocol):
    """Runs elsewhere, and reports what happened to its dataset there."""

    @property
    def changed_dataset(self) -> bool:
        """Whether the last call of `sample` changed the dataset it was given."""
        ...


class HasMovedTo(Protocol):
    """Reports a change of the working directory that was undone."""

    @property
    def moved_to(self) -> str:
        """The directory that loading it changed to; "" if it did not."""
        ...


def samples(mechanism: object) -> TypeGuard[Mechanism]:
    """Whether it makes many runs in one call."""
    return hasattr(mechanism, "sample")


def claim(mechanism: object) -> object:
    """What it states as its claim; None if it states none.  Raises what the attribute raises."""
    return getattr(mechanism, "claim", None)


def address(mechanism: object) -> str:
    """Where it was loaded from; "" if that is not known."""
    return str(getattr(mechanism, "address", None) or "")


def changed_dataset(mechanism: object) -> bool:
    """Whether it reports that its last call changed the dataset, in another process."""
    return bool(getattr(mechanism, "changed_dataset", False))


def moved_to(mechanism: object) -> str:
    """The working directory that loading it changed to; "" if it reports none."""
    return str(getattr(mechanism, "moved_to", ""))
