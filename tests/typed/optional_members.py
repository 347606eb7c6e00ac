"""Attacks and mechanisms that mypy must accept, and wrong ones that it must reject.

This file is never run: mypy reads it.  An unused `type: ignore[code]` is an error there, so a
wrong implementation that mypy accepts fails the test.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit import Pair, PureDP, audit, batched
from dpaudit.learning.attack import Attack
from dpaudit.numerics import Array
from dpaudit.running import Mechanism

Rows = Sequence[float]


class Smallest:
    """An attack with the required members only."""

    name = "smallest"

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        return lambda outputs: outputs


@dataclass(frozen=True)
class Everything:
    """An attack with all optional members, and with its name as a class variable."""

    name: ClassVar[str] = "everything"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    automatic: ClassVar[str] = "released"
    from_trials: ClassVar[int] = 100
    quick: ClassVar[bool] = True
    most_rows: int = 3000

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        return lambda outputs: outputs[:, 0]

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return True

    def fit_second_stage(
        self, outputs0: Array, outputs1: Array, rng: np.random.Generator
    ) -> Callable[[Array], Array] | None:
        return None


smallest: Attack = Smallest()
everything: Attack = Everything()


class Nameless:
    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        return lambda outputs: outputs


class WithoutGenerator:
    name = "without_generator"

    def fit(self, outputs0: Array, outputs1: Array) -> Callable[[Array], Array]:
        return lambda outputs: outputs


class NoScorer:
    name = "no_scorer"

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> float:
        return 0.0


nameless: Attack = Nameless()  # type: ignore[assignment]
without_generator: Attack = WithoutGenerator()  # type: ignore[assignment]
no_scorer: Attack = NoScorer()  # type: ignore[assignment]


class Lists:
    """A mechanism that returns lists."""

    claim = "pure(epsilon=1)"
    address = "mine.py:Lists"
    changed_dataset = False
    moved_to = ""

    def sample(self, dataset: Rows, n: int, rng: np.random.Generator) -> list[dict[str, float]]:
        return [{"sum": sum(dataset)}] * n


class Arrays:
    """A mechanism that returns an array, and states its claim as an object."""

    @property
    def claim(self) -> PureDP:
        return PureDP(1.0)

    def sample(self, dataset: Rows, n: int, rng: np.random.Generator) -> Array:
        return sum(dataset) + rng.laplace(size=n)


@batched
def release(dataset: Rows, n: int, rng: np.random.Generator) -> Array:
    return sum(dataset) + rng.laplace(size=n)


lists: Mechanism = Lists()
arrays: Mechanism = Arrays()
decorated: Mechanism = release


class OneByOne:
    def sample(self, dataset: Rows, rng: np.random.Generator) -> float:
        return 0.0


one_by_one: Mechanism = OneByOne()  # type: ignore[assignment]


@batched  # type: ignore[arg-type]
def one_output(dataset: Rows, n: int, rng: np.random.Generator) -> float:
    return 0.0


def called() -> None:
    """Pass the attacks and mechanisms to the public functions."""
    pair = Pair([0.0], [1.0])
    audit(release, PureDP(1.0), pair, attacks=[Smallest(), Everything(), "logistic"])
    audit(release, PureDP(1.0), pair, attacks=Nameless())  # type: ignore[arg-type]
