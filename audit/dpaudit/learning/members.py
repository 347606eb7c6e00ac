"""Defines a protocol for each optional member of an attack, and functions that read these members.

A type checker can verify an optional member of an attack by its protocol.  The attack need not inherit from the
protocol.  The following line verifies a method `fit_second_stage`:

    second_stage: HasSecondStage = MyAttack()

dpaudit reads these members with `hasattr` and `getattr`.  Since Python 3.12, `isinstance` with a protocol ignores
members that an attack provides by `__getattr__`.  Only `automatic` is read from the class of the attack, by
`attack.resolve_attacks`.
"""

from __future__ import annotations

from typing import Protocol, TypeGuard

import numpy as np

from dpaudit.learning.attack import Attack, Scorer, Seen


class HasSees(Attack, Protocol):
    """An attack with the member `sees`, which requests another view of outputs than the natural view."""

    @property
    def sees(self) -> str:
        """The name of the requested view, which must be one of `dpaudit.outputs.VIEWS`."""
        ...


class HasCalibrated(Attack, Protocol):
    """An attack with the member `calibrated`, which states whether its scores are log-likelihood ratios."""

    @property
    def calibrated(self) -> bool:
        """Whether the attack's scores are log-likelihood ratios.  If False (default), dpaudit calibrates the scores."""
        ...


class HasAutomatic(Attack, Protocol):
    """An attack with the member `automatic`, which states when the argument "auto" includes the attack."""

    @property
    def automatic(self) -> bool | str:
        """If True (default), "auto" includes the attack; if False, it does not.

        If the value is "released", "auto" includes the attack only for external programs (`CommandMechanism` and
        `IsolatedMechanism`).  Users of these programs rely on every bit of their outputs.
        """
        ...


class HasFromTrials(Attack, Protocol):
    """An attack with the member `from_trials`, which delays the first fit of an attack whose fit is slow."""

    @property
    def from_trials(self) -> int:
        """Number of trials before the first fit of the attack.  Must be a nonnegative integer.

        The attack is refitted each time the number of trials has doubled.  `from_trials` is ignored if the audit uses
        only one attack.
        """
        ...


class HasQuick(Attack, Protocol):
    """An attack with the member `quick`, which states whether streams fit the attack early and often."""

    @property
    def quick(self) -> bool:
        """Whether a fit to 3 outputs of each dataset is useful, and a fit takes about a millisecond.

        If True, `OnlineAudit` fits the attack after 3 outputs of each dataset, and refits it each time the number of
        these outputs has grown by a tenth.  If False (default), the first fit takes place after 10 outputs.
        """
        ...


class HasHeadStart(Attack, Protocol):
    """An attack with the member `head_start`, for an attack that is used only where its model fits the outputs."""

    @property
    def head_start(self) -> float:
        """Log-loss in nats by which the attack counts as better than it is.  Must be nonnegative.

        The weight of the attack in the mixture is multiplied by e^head_start, relative to other attacks.
        """
        ...


class HasMostRows(Attack, Protocol):
    """An attack with the member `most_rows`, which limits the number of outputs in a slow fit."""

    @property
    def most_rows(self) -> int:
        """Maximum number of outputs of each dataset that a fit uses.  Must be a positive integer."""
        ...


class HasSuits(Attack, Protocol):
    """An attack with the method `suits`, which states whether the attack is applicable to given outputs."""

    def suits(self, outputs0: Seen, outputs1: Seen) -> bool:
        """Return whether the attack is applicable to such outputs.

        The method must not change the attack or the outputs.  It is not called if the audit uses only one attack.
        """
        ...


class HasSecondStage(Attack, Protocol):
    """An attack with the method `fit_second_stage`, which fits it to up to a million outputs of each dataset."""

    def fit_second_stage(self, outputs0: Seen, outputs1: Seen, rng: np.random.Generator) -> Scorer | None:
        """Fit the attack to the features of outputs.  The method must not change the attack or the outputs.

        Returns:
            The fitted scorer.  If None, the audit keeps the scorer that the attack had before the second stage.
        """
        ...


def sees(attack: Attack) -> str:
    """Return the name of the view of outputs that an attack requests; "natural" by default."""
    view: str = getattr(attack, "sees", "natural")
    return view


def calibrated(attack: Attack) -> bool:
    """Return whether the scores of an attack are log-likelihood ratios; False by default."""
    return bool(getattr(attack, "calibrated", False))


def from_trials(attack: Attack) -> int:
    """Return the number of trials before the first fit of an attack; 0 by default."""
    trials: int = getattr(attack, "from_trials", 0)
    return trials


def quick(attack: Attack) -> bool:
    """Return whether streams fit an attack early and often; False by default."""
    return bool(getattr(attack, "quick", False))


def head_start(attack: Attack) -> float:
    """Return the nats of log-loss by which an attack counts as better than it is; 0 by default."""
    nats: float = getattr(attack, "head_start", 0.0)
    return nats


def most_rows(attack: Attack, default: int) -> int:
    """Return the maximum number of outputs of each dataset in a fit; `default` if the attack states no limit."""
    rows: int = getattr(attack, "most_rows", default)
    return rows


def has_suits(attack: Attack) -> TypeGuard[HasSuits]:
    """Return whether an attack has a method `suits`."""
    return getattr(attack, "suits", None) is not None


def has_second_stage(attack: Attack) -> TypeGuard[HasSecondStage]:
    """Return whether an attack has a method `fit_second_stage`."""
    return hasattr(attack, "fit_second_stage")
