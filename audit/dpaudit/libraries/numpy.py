"""Makes subjects from functions plus noise that is calibrated to a stated sensitivity, which the audit thus tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.claims import GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.libraries.subject import Subject, UnknownSubject
from dpaudit.pairs.pair import Pair
from dpaudit.pairs.search import SearchPairs
from dpaudit.values import Dataset, RawOutputs

Function = Callable[..., Any]  # a function of an array of records that returns a number or an array of numbers


def subject(
    function: Function,
    *,
    sensitivity: float,
    epsilon: float | None = None,
    mu: float | None = None,
    pairs: SearchPairs | Iterable[Pair] | None = None,
    bounds: tuple[float, float] | None = None,
    size: int = 10,
    relation: str = "replace_one",
    name: str = "",
) -> Subject:
    """Add noise to a function, and state the claim that follows from its sensitivity.

    Args:
        function: The function of an array of records, such as `numpy.mean`.
        sensitivity: The stated largest change of the function between neighbouring datasets, in the L1 norm if
            `epsilon` is given, and in the L2 norm if `mu` is given.
        epsilon: The epsilon of Laplace noise with scale sensitivity / epsilon.
        mu: The mu of Gaussian noise with standard deviation sensitivity / mu.
        pairs: Pairs of neighbouring datasets; None generates pairs from the following arguments.
        bounds: The smallest and the largest record.
        size: The number of records of the larger dataset.
        relation: "replace_one" or "add_remove".
        name: The name of the audit; by default, the name of the function.

    Raises:
        UnknownSubject: If not exactly one of `epsilon` and `mu` is given, a number is not positive, or the relation is
            unknown.
        ValueError: If the pairs cannot be generated.
    """
    if (epsilon is None) == (mu is None):
        raise UnknownSubject("state exactly one of epsilon (Laplace noise) and mu (Gaussian noise)")
    noise, amount = ("laplace", epsilon) if mu is None else ("normal", mu)
    for parameter, value in (("sensitivity", sensitivity), ("epsilon" if mu is None else "mu", amount)):
        if value is None or not 0 < value < math.inf:
            raise UnknownSubject(f"{parameter} must be > 0 and finite, got {value!r}")
    assert amount is not None
    if relation not in ("replace_one", "add_remove"):
        raise UnknownSubject(f"relation must be one of replace_one, add_remove, got {relation!r}")
    search = SearchPairs(
        relation="add_remove" if relation == "add_remove" else "replace_one",  # the type of the argument is str
        size=size,
        bounds=bounds,
        out_of_domain=False,
    )
    chosen = list(search if pairs is None else pairs)
    called = name or getattr(function, "__name__", "function")
    return Subject(
        mechanism=Noisy(function, noise, sensitivity / amount),
        claim=_claim(function, noise, amount, chosen[0].d1 if chosen else []),
        pairs=chosen,
        name=f"{called} with {'Laplace' if noise == 'laplace' else 'Gaussian'} noise",
        source=f"the stated sensitivity {sensitivity!r} of {called}",
    )


def _claim(function: Function, noise: str, amount: float, dataset: Dataset) -> TradeoffFunction:
    """Return mu-GDP (Dong, Roth & Su 2022, Thm 1), epsilon-DP, or for one number the larger curve of Laplace noise."""
    if noise == "normal":
        return GaussianDP(amount)
    return LaplaceDP(amount) if np.ndim(function(np.asarray(dataset))) == 0 else PureDP(amount)


@dataclass(frozen=True, slots=True)
class Noisy:
    """A function of an array plus noise."""

    function: Function
    noise: str
    scale: float

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        value = np.asarray(self.function(np.asarray(dataset)), dtype=np.float64)
        draw = rng.laplace if self.noise == "laplace" else rng.normal
        return np.asarray(value + draw(0.0, self.scale, (n, *value.shape)))
