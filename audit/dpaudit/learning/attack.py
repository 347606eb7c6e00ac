"""Defines the protocol of attacks, and finds attacks in `dpaudit_attacks` and in the entry points of other packages."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np

from dpaudit.numerics import Array
from dpaudit.text import hint

Seen = Any  # a batch of n outputs in the view that an attack requests; the attack's member `sees` determines the type

Scorer = Callable[[Seen], Array]
"""Maps n outputs, in the attack's view, to n scores, higher for d1; infinite ones are allowed, and NaN is not."""

ENTRY_POINTS = "dpaudit.attacks"  # name of the entry-point group in which other packages register attacks


@runtime_checkable
class Attack(Protocol):
    """A method that learns to distinguish outputs of runs on d0 from outputs of runs on d1.

    By default an attack sees outputs in their natural form: an array (n,) of numbers, an array (n, d) of vectors, or a
    list of n outputs of another kind.  The class variable `sees` selects another view, for outputs of any kind:

    - "features": an array (n, d) of numbers, in which NaN marks a missing number.
    - "derived": the columns of "features", and numbers derived from these columns (`dpaudit.outputs.derived`).
    - "bits": the exact exponent and the last bits of each number (`dpaudit.outputs.derived`).
    - "queries": an array (n, k) of answers to counting queries of tables (`dpaudit.outputs.queries`); k is 0 without
      tables.
    - "timed": the running time of each run in seconds, followed by the columns of "features".

    An attack may have the following members:

    - `calibrated = True`: the scores are log-likelihood ratios; otherwise the engine calibrates them.
    - `automatic`: False excludes the attack from "auto"; "released" includes it only if the mechanism is an external
      program, `CommandMechanism` or `IsolatedMechanism`, on every bit of whose outputs users rely.
    - `suits(outputs0, outputs1) -> bool`: whether the attack is applicable to such outputs; not called for a single
      attack.
    - `from_trials = n`: the attack is first fitted after n trials, and refitted at each doubling, because its fit is
      slow; without effect on a single attack.
    - `first_fit = n`: all attacks are first fitted after n outputs of each dataset, in place of 10.
    - `unused = words`: a warning of the result, if the attack suited no outputs of the audit.
    - `quick = True`: `OnlineAudit` fits the attack after 3 outputs of each dataset, not 10, and after each growth by a
      tenth.
    - `head_start = nats`: log-loss by which the attack counts as better in the mixture, if `suits` tests its model.
    - `identifies = True`: the scores of few values identify a dataset, so bets on them get all wealth (`late_bets`).
    - `most_rows = n`: a fit uses at most the n latest outputs of runs on each dataset.
    - `hints`: settings that are taken from members of the mechanism with these names, where the setting is None.
    - `fit_second_stage(outputs0, outputs1, rng)`: an additional fit in audits with `method="fixed"` and more than three
      million trials, before the score is frozen, to up to a million outputs of each dataset.  For every value of
      `sees`, this method and `suits` get features (n, d).  If it returns None, the previous score is kept.

    A third-party attack, or one that calls a user's function, receives copies of the outputs.  After each call, the
    global random state (`random`, `numpy.random`, torch) is restored; during it, native libraries (BLAS, OpenMP) use
    one thread.  Some of the counted outputs are scored a second time in another block; if the two scores of an output
    differ by more than 1e-9, the verdict of the audit is INCONCLUSIVE.
    """

    if TYPE_CHECKING:  # a protocol with a property also accepts attacks with a class variable

        @property
        def name(self) -> str: ...
    else:
        name: str

    def fit(self, outputs0: Seen, outputs1: Seen, rng: np.random.Generator) -> Scorer:
        """Fit the attack to outputs.  The method must not change the attack or the outputs.

        Args:
            outputs0: Outputs of runs on d0, in the view that the attack requests.
            outputs1: Outputs of runs on d1, in the view that the attack requests.
            rng: Random generator for the fit.

        Returns:
            A function that computes scores.  The score of an output must depend on this output only.
        """
        ...


class AttackClass(Protocol):
    """A class of attacks that has a name and can be instantiated without arguments."""

    name: str

    def __call__(self) -> Attack: ...


def sees(attack: Attack) -> str:
    """Return the name of the view of outputs that an attack requests."""
    view: str = getattr(attack, "sees", "natural")
    return view


@cache
def attack_classes() -> dict[str, AttackClass]:
    """Return the attack classes that can be instantiated without arguments by name, those of `dpaudit_attacks` first.

    The position of an attack selects its random stream.  So an attack keeps its position when it is renamed or moved:
    the attacks of `dpaudit_attacks` are sorted by their first former name, or else by the name of their class.
    """
    package = importlib.import_module("dpaudit_attacks")
    places: dict[str, AttackClass] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        kinds: list[tuple[str, Any]] = inspect.getmembers(module, inspect.isclass)
        for title, kind in kinds:
            if kind.__module__ == module.__name__ and hasattr(kind, "fit") and hasattr(kind, "name"):
                words = re.sub(r"(?<!^)(?=[A-Z])", "_", title).lower()
                places[_former_names(kind)[0] if _former_names(kind) else words] = kind
    found = [kind for _, kind in sorted(places.items())]
    found += [point.load() for point in entry_points(group=ENTRY_POINTS)]
    optional = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return {
        kind.name: kind
        for kind in found
        if all(p.default is not p.empty or p.kind in optional for p in inspect.signature(kind).parameters.values())
    }


def _former_names(kind: AttackClass) -> tuple[str, ...]:
    """Return the names that an attack had in earlier versions, oldest first.  Users may still pass a former name."""
    return tuple(getattr(kind, "former_names", ()))


def resolve_attacks(wanted: str | Attack | Sequence[str | Attack], *, released: bool = False) -> list[Attack]:
    """Return the attacks that the argument `attacks` of `audit` selects."""
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
        kind = known.get(wanted) or next((k for k in known.values() if wanted in _former_names(k)), None)
        if kind is None:
            otherwise = f"attacks must be auto or among {', '.join(known)}"
            several = f"a list of attacks is written [{wanted[:100]}]" if "," in wanted else ""
            meant = several or hint(wanted, ["auto", *known], otherwise)
            raise ValueError(f"unknown attack {wanted!r}; {meant}  `dpaudit list attacks` explains them")
        return [kind()]
    if not (hasattr(wanted, "fit") and hasattr(wanted, "name")):
        raise ValueError(f"an attack must have a name and fit(outputs0, outputs1, rng), got {type(wanted).__name__}")
    return [wanted]


def hinted(attacks: Sequence[Attack], mechanism: object) -> list[Attack]:
    """Pass members of a mechanism, such as `factor` and `shift`, to attacks that take these hints and do not have them.

    A hint that an attack refuses is ignored.
    """
    found = list(attacks)
    for place, attack in enumerate(attacks):
        wanted = [name for name in getattr(attack, "hints", ()) if getattr(attack, name) is None]
        with suppress(Exception):  # members of a mechanism with these names may be anything
            given = {name: hint for name in wanted if (hint := getattr(mechanism, name, None)) is not None}
            found[place] = replace(cast(Any, attack), **given) if given else attack
    return found


def _same(attack: Attack, other: Attack) -> bool:
    if attack is other:
        return True
    if type(attack) is not type(other) or attack.name != other.name:
        return False
    with suppress(Exception):  # the comparison of some settings, such as arrays, raises an exception
        return bool(attack == other) or (hasattr(attack, "__dict__") and bool(vars(attack) == vars(other)))
    return False
