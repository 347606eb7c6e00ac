"""Optional members of an attack: a protocol for each, and functions that look for them.

The protocols let a type checker compare an attack with what dpaudit reads.  An attack need not name them:

    studies: HasSecondStage = MyAttack()

dpaudit itself looks members up by `hasattr` and `getattr`.  `isinstance` with a protocol would overlook a member that
an attack hands on by `__getattr__`, from Python 3.12 on.
`attack.resolve_attacks` reads `automatic`, from the class.
"""

from __future__ import annotations

from typing import Protocol, TypeGuard

import numpy as np

from dpaudit.learning.attack import Attack, Scorer, Seen


class HasSees(Attack, Protocol):
    """Asks for another view of outputs than the natural one."""

    @property
    def sees(self) -> str:
        """One of `dpaudit.outputs.VIEWS`."""
        ...


class HasCalibrated(Attack, Protocol):
    """Says whether its scores are log-likelihood ratios already."""

    @property
    def calibrated(self) -> bool:
        """False, the default: dpaudit calibrates the scores."""
        ...


class HasAutomatic(Attack, Protocol):
    """Says when the list "auto" holds it."""

    @property
    def automatic(self) -> bool | str:
        """True, the default: always.  False: never.  "released": for finished programs."""
        ...


class HasFromTrials(Attack, Protocol):
    """Is expensive, and so is first fitted late."""

    @property
    def from_trials(self) -> int:
        """Trials per dataset before the first fit, >= 0.  Beside others only; refitted when they have doubled."""
        ...


class HasMostRows(Attack, Protocol):
    """Is expensive, and so is fitted to few outputs."""

    @property
    def most_rows(self) -> int:
        """Outputs of each dataset, the latest, that a fit looks at; >= 1."""
        ...


class HasSuits(Attack, Protocol):
    """Says for which outputs it is meant."""

    def suits(self, outputs0: Seen, outputs1: Seen) -> bool:
        """Whether to fit it to such outputs of d0 and d1.  Asked beside other attacks only.  Changes nothing."""
        ...


class HasSecondStage(Attack, Protocol):
    """Learns once more from very many outputs before a fixed audit freezes its score."""

    def fit_second_stage(self, outputs0: Seen, outputs1: Seen, rng: np.random.Generator) -> Scorer | None:
        """As `fit`, but outputs are features (n, d); None if there is nothing to add.  Changes nothing."""
        ...


def sees(attack: Attack) -> str:
    """The view of outputs that an attack asks for; "natural" if it does not say."""
    view: str = getattr(attack, "sees", "natural")
    return view


def calibrated(attack: Attack) -> bool:
    """Whether its scores are log-likelihood ratios already; False if it does not say."""
    return bool(getattr(attack, "calibrated", False))


def from_trials(attack: Attack) -> int:
    """Trials before its first fit; 0 if it does not say."""
    trials: int = getattr(attack, "from_trials", 0)
    return trials


def most_rows(attack: Attack, default: int) -> int:
    """Outputs of each dataset that a fit looks at."""
    rows: int = getattr(attack, "most_rows", default)
    return rows


def has_suits(attack: Attack) -> TypeGuard[HasSuits]:
    """Whether it says for which outputs it is meant."""
    return getattr(attack, "suits", None) is not None


def has_second_stage(attack: Attack) -> TypeGuard[HasSecondStage]:
    """Whether it can study."""
    return hasattr(attack, "fit_second_stage")
