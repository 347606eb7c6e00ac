"""Attacks and where they come from: the files of dpaudit_attacks, and other people's entry points."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.text.spelling import hint

Seen = Any
"""n outputs as an attack sees them.  Which type that is follows from what the attack `sees`."""

Scorer = Callable[[Seen], Array]
"""n outputs, as the attack sees them -> (n,) scores, higher = more like d1; +-inf is legal, NaN is not."""

ENTRY_POINTS = "dpaudit.attacks"


@runtime_checkable
class Attack(Protocol):
    """Learns to tell outputs of d0 from outputs of d1.

    What it sees: outputs as they came, an array (n,) if they are numbers, (n, d) if they are vectors of d numbers, and
    otherwise a list of n outputs.  Or, as its class variable `sees` says, for outputs of any kind:
    "features": numbers (n, d), NaN where one is missing;
    "derived":  these, and what `dpaudit.outputs.derived` derives from them;
    "bits":     exponents and last bits of the numbers, exactly (`dpaudit.outputs.bits`);
    "timed":    running times in seconds, and the features.

    Optional members, each with a protocol in `dpaudit.learning.members`:
    `calibrated = True` if scores are log-likelihood ratios already (otherwise the engine calibrates them).
    `automatic = False` if "auto" is to leave it out, "released" if it is only for finished programs.  Used beside
    others: `suits(outputs0, outputs1) -> bool` is asked
    first; with `from_trials = n`, for an expensive one, it is first fitted after n trials, and again when they have
    doubled.  `most_rows = n`: the outputs of each dataset, the latest, that a fit looks at.
    `fit_second_stage(outputs0, outputs1, rng)`, as `fit`:
    learns once more, before an audit with `method="fixed"` and more than three million trials freezes
    its score, from up to a million outputs of each dataset, whatever it `sees` as features (n, d); None if it has
    nothing to add.  `suits` is asked about these.

    An attack from outside the package gets copies of the outputs.  The global random state (`random`, `numpy.random`,
    torch) is put back after each call, and native threads (BLAS, OpenMP) are limited to one during it.  Some of the
    outputs that count are asked about a second time, in other company: if a score differs by more than 1e-9 from what
    it was, the audit ends INCONCLUSIVE.
    """

    if TYPE_CHECKING:  # a property, so that an attack may state its name as a class variable, too

        @property
        def name(self) -> str: ...
    else:
        name: str

    def fit(self, outputs0: Seen, outputs1: Seen, rng: np.random.Generator) -> Scorer:
        """Outputs of d0 and of d1.  Changes nothing."""
        ...


class AttackClass(Protocol):
    """A class whose objects are attacks, and that names them."""

    name: str

    def __call__(self) -> Attack: ...


@cache
def attack_classes() -> dict[str, AttackClass]:
    """Every attack that is known by name: those that can be made without arguments."""
    package = importlib.import_module("dpaudit_attacks")
    places: list[tuple[str, AttackClass]] = []
    for module_info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__ and _is_attack(kind):
                places.append((_former_names(kind)[0] if _former_names(kind) else module_info.name, kind))
    # An attack's place is part of the address of its randomness, so one that got another name stays where it was.
    found = [kind for _, kind in sorted(places, key=lambda place: place[0])]
    found += [point.load() for point in entry_points(group=ENTRY_POINTS)]
    return {kind.name: kind for kind in found if _needs_nothing(kind)}


def _is_attack(kind: object) -> TypeGuard[AttackClass]:
    return hasattr(kind, "fit") and hasattr(kind, "name")


def _former_names(kind: AttackClass) -> tuple[str, ...]:
    """Names that an attack had in earlier versions, which are still understood; the first one first."""
    return tuple(getattr(kind, "former_names", ()))


def _needs_nothing(kind: AttackClass) -> bool:
    return all(
        parameter.default is not parameter.empty or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        for parameter in inspect.signature(kind).parameters.values()
    )


def resolve_attacks(wanted: str | Attack | Sequence[str | Attack], *, released: bool = False) -> list[Attack]:
    """The attacks that "auto", a name, an Attack object or a sequence of those stand for.

    `released`: whether the mechanism is someone's finished program, whose every bit its user relies on.  "auto" then
    also holds attacks that say `automatic = "released"`.  No attack is listed twice.  ValueError names the known
    attacks for an unknown name.
    """
    if wanted == "auto":
        used = (True, "released") if released else (True,)
        return [kind() for kind in attack_classes().values() if getattr(kind, "automatic", True) in used]
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        if not wanted:
            raise ValueError("attacks must name at least one attack")
        found: list[Attack] = []
        for attack in (attack for one in wanted for attack in resolve_attacks(one, released=released)):
            if not any(_same(attack, other) for other in found):
                found.append(attack)
        return found
    if isinstance(wanted, str):
        known = attack_classes()
        former = {name: kind for kind in known.values() for name in _former_names(kind)}
        if wanted in former and wanted not in known:
            return [former[wanted]()]
        if wanted not in known:
            otherwise = f"attacks must be auto or among {', '.join(known)}"
            meant = hint(wanted, ["auto", *known], otherwise)
            raise ValueError(f"unknown attack {wanted!r}; {meant}  `dpaudit list attacks` explains them")
        return [known[wanted]()]
    if not (hasattr(wanted, "fit") and hasattr(wanted, "name")):
        raise ValueError(f"an attack must have a name and fit(outputs0, outputs1, rng), got {type(wanted).__name__}")
    return [wanted]


def _same(attack: Attack, other: Attack) -> bool:
    """Whether two attacks are one, so that listing both would count it twice: of one class, with equal settings."""
    if attack is other:
        return True
    if type(attack) is not type(other) or attack.name != other.name:
        return False
    with suppress(Exception):  # settings that cannot be compared, such as arrays
        return bool(attack == other) or (hasattr(attack, "__dict__") and bool(vars(attack) == vars(other)))
    return False
