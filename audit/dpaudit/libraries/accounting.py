"""Makes subjects from events of dp-accounting: a simulation of the event, with known laws, tests the accountant."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

import numpy as np

from dpaudit.claims import PrivacyLoss, TradeoffFunction
from dpaudit.libraries.subject import Subject, UnknownSubject
from dpaudit.numerics import Array
from dpaudit.pairs.pair import Pair
from dpaudit.values import Dataset, RawOutputs

_EPSILONS = tuple(i / 16 for i in range(161))  # epsilons at which the accountant states delta


def subject(event: Any, *, accountant: Any = None, name: str = "") -> Subject:
    """Simulate an event on zero records and on one record, and read the claim from an accountant.

    Args:
        event: A `DpEvent`: noise, compositions and Poisson subsampling of noise, in any nesting.
        accountant: One that has composed nothing, for adding or removing one record; copied.  None: `PLDAccountant`.
        name: The name of the audit; by default, the text of the event.

    Raises:
        UnknownSubject: If the event cannot be simulated, or the accountant is not of this kind or does not support it.
        ImportError: If dp-accounting is not installed.
    """
    _simulated(event, np.zeros(1), np.random.default_rng(0))
    if accountant is None:
        accountant = import_module("dp_accounting.pld").PLDAccountant()
    kind, relation = type(accountant).__name__, accountant.neighboring_relation.name
    if relation != "ADD_OR_REMOVE_ONE":
        raise UnknownSubject(f"the pair adds one record, but the relation of the {kind} is {relation}; pass {kind}()")
    if type(accountant.ledger).__name__ != "NoOpDpEvent":
        raise UnknownSubject(f"the {kind} has composed {str(accountant.ledger)[:200]}; pass a new accountant: {kind}()")
    if not accountant.supports(event):
        raise UnknownSubject(f"{kind} does not support {type(event).__name__}")
    accountant = copy.deepcopy(accountant)
    accountant.compose(event)
    return Subject(
        mechanism=Simulation(event),
        claim=_claim(accountant),
        pairs=[Pair([], [1.0], "add_remove", "no record and one record")],
        name=(name or str(event))[:200],
        source=f"dp-accounting {metadata.version('dp-accounting')}, {kind}: delta(epsilon)",
    )


@dataclass(frozen=True, slots=True)
class Simulation:
    """A mechanism that adds the numbers of a list, and simulates an event on the sum."""

    event: Any

    @property
    def libraries(self) -> tuple[str, ...]:
        return ("dp_accounting",)

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        return _simulated(self.event, np.full(n, float(sum(dataset))), rng)


def _simulated(event: Any, sums: Array, rng: np.random.Generator) -> Array:
    """Return one output of an event for each sum, (n, d)."""
    n = len(sums)
    match type(event).__name__:
        case "GaussianDpEvent":
            return (sums + rng.normal(0.0, event.noise_multiplier, n))[:, None]
        case "LaplaceDpEvent":
            return (sums + rng.laplace(0.0, event.noise_multiplier, n))[:, None]
        case "DiscreteLaplaceDpEvent":  # P[noise = k] is proportional to exp(-a |k|)
            stop = -np.expm1(-event.noise_parameter)
            noise = rng.geometric(stop, n) - rng.geometric(stop, n)
            return np.asarray((event.sensitivity * sums + noise)[:, None])
        case "PoissonSampledDpEvent":
            return _simulated(event.event, np.where(rng.random(n) < event.sampling_probability, sums, 0.0), rng)
        case "ComposedDpEvent":
            parts = event.events
        case "SelfComposedDpEvent":
            parts = [event.event] * event.count
        case kind:
            raise UnknownSubject(
                f"{kind} cannot be simulated; known are ComposedDpEvent, DiscreteLaplaceDpEvent, GaussianDpEvent, "
                "LaplaceDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent"
            )
    return np.concatenate([_simulated(part, sums, rng) for part in parts], axis=1)


def _claim(accountant: Any) -> TradeoffFunction:
    """Read the accountant's delta at finitely many epsilons, a part of its profile (Dong, Roth & Su 2022, Prop. 6)."""
    deltas = np.minimum.accumulate([min(1.0, float(accountant.get_delta(epsilon))) for epsilon in _EPSILONS])
    return PrivacyLoss(epsilon=_EPSILONS, delta=deltas)
