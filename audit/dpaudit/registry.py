"""Attacks and where they come from: the files of dpaudit_attacks, and other people's entry points."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol, runtime_checkable

import numpy as np

from dpaudit.claims import Array

Scorer = Callable[[Array], Array]
"""(n, d) outputs -> (n,) scores, higher = more like d1; +-inf is legal, NaN is not."""

ENTRY_POINTS = "dpaudit.attacks"


@runtime_checkable
class Attack(Protocol):
    """Learns to tell outputs of d0 from outputs of d1.

    Optional: `calibrated = True` if scores are log-likelihood ratios already (otherwise the engine calibrates them);
    `suits(outputs0, outputs1) -> bool`, which "auto" asks before it uses the attack.
    """

    name: str

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Scorer:
        """outputs0, outputs1: (n, d) features of outputs of d0 and of d1.  Changes nothing."""
        ...


@cache
def attack_classes() -> dict[str, type[Attack]]:
    """Every known attack by name."""
    package = importlib.import_module("dpaudit_attacks")
    found: list[type[Attack]] = []
    for module_info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        found += [
            kind
            for _, kind in inspect.getmembers(module, inspect.isclass)
            if kind.__module__ == module.__name__ and hasattr(kind, "fit") and hasattr(kind, "name")
        ]
    found += [point.load() for point in entry_points(group=ENTRY_POINTS)]
    return {kind.name: kind for kind in found}


def resolve_attacks(wanted: str | Attack | Sequence[str | Attack]) -> list[Attack]:
    """The attacks that "auto", a name, an Attack object or a sequence of those stand for.

    ValueError names the known attacks for an unknown name.
    """
    if wanted == "auto":
        return [kind() for kind in attack_classes().values()]
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        if not wanted:
            raise ValueError("attacks must name at least one attack")
        return [attack for one in wanted for attack in resolve_attacks(one)]
    if isinstance(wanted, str):
        known = attack_classes()
        if wanted not in known:
            raise ValueError(f"attacks must be auto or among {', '.join(known)}; got {wanted!r}")
        return [known[wanted]()]
    if not (hasattr(wanted, "fit") and hasattr(wanted, "name")):
        raise ValueError(f"an attack must have a name and fit(outputs0, outputs1, rng), got {type(wanted).__name__}")
    return [wanted]
