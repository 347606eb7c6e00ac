"""What every privacy claim promises: a trade-off function and its privacy profile.

A claim says: for ALL pairs of neighbouring datasets (d0, d1), in both orders, no attack on one output
has type I error `alpha` and type II error below `f(alpha)`.  Dong, Roth & Su 2022, "Gaussian
differential privacy", JRSS-B 84(1), section 2.

Signs, once and for all: type I error `alpha` is the attack saying "d1" on an output of d0; type II
error `beta` is saying "d0" on an output of d1; epsilon is in nats, of d1 against d0:

    Q(S) <= exp(epsilon) P(S) + delta(epsilon)    for every event S, P = law of M(d0), Q = law of M(d1).
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, overload

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class TradeoffFunction(ABC):
    """A trade-off function f: convex, nonincreasing, f(alpha) <= 1 - alpha on [0, 1].

    Subclasses are frozen dataclasses with a `name`, `_curve`, `_profile` and `symmetric`.  They may be
    inexact only towards a LOWER f (a larger delta), so that rounding never refutes a true claim.
    Their fields carry a leading underscore, since `epsilon`, `delta` and `mu` are what every claim
    can be asked for; `parameters` gives them under the names of the constructor.
    """

    name: ClassVar[str]
    """What the claim is called in configs: `parse_claim("name(field=value)")`."""

    # --- what a subclass provides: float arrays in, float arrays of the same shape out

    @abstractmethod
    def _curve(self, alpha: Array) -> Array: ...

    @abstractmethod
    def _profile(self, epsilon: Array) -> Array: ...

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether f is its own inverse: the promise reads the same for (d0, d1) and (d1, d0)."""

    # --- what users call

    @overload
    def beta(self, alpha: float) -> float: ...
    @overload
    def beta(self, alpha: npt.ArrayLike) -> Array: ...
    def beta(self, alpha: npt.ArrayLike) -> Array | float:
        """Least type II error f(alpha) of any attack with type I error `alpha`, in [0, 1].

        `alpha`: probability or array of them.  ValueError outside [0, 1].
        """
        values = np.asarray(alpha, dtype=np.float64)
        if not np.all((values >= 0) & (values <= 1)):
            raise ValueError(f"alpha must lie in [0, 1], got {_first(values, ~((values >= 0) & (values <= 1)))}")
        return _like(alpha, np.clip(self._curve(values), 0.0, 1.0 - values))

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: npt.ArrayLike) -> Array: ...
    def delta(self, epsilon: npt.ArrayLike) -> Array | float:
        """Privacy profile: least delta such that f is (epsilon, delta)-DP in the order (d0, d1).

        delta(epsilon) = sup over alpha of 1 - f(alpha) - exp(epsilon) alpha (Dong et al., Prop. 6), for
        every real epsilon, also negative and +-inf (nats).  ValueError for NaN.
        """
        values = np.asarray(epsilon, dtype=np.float64)
        if np.any(np.isnan(values)):
            raise ValueError("epsilon must be a number, got nan")
        with np.errstate(over="ignore", under="ignore"):
            trivial = np.where(values < 0, -np.expm1(np.minimum(values, 0.0)), 0.0)  # alpha = 0 ... 1 - alpha
        return _like(epsilon, np.clip(self._profile(values), trivial, 1.0))

    def epsilon(self, delta: float) -> float:
        """Least epsilon >= 0 (nats) with `self.delta(epsilon) <= delta`; inf if there is none.

        Found by bisection and rounded up.  `delta` in [0, 1], else ValueError.
        """
        delta = _probability("delta", delta)
        if self.delta(0.0) <= delta:
            return 0.0
        if self.delta(math.inf) > delta:
            return math.inf
        return _least(lambda e: self.delta(e) <= delta, 1.0)

    @abstractmethod
    def mu(self) -> float:
        """Least mu with G_mu <= f everywhere; inf if none.  Dong et al., Def. 3: f is then mu-GDP."""

    def symmetrized(self) -> TradeoffFunction:
        """The promise for both orders of a pair: max(f, f inverse)."""
        if self.symmetric:
            return self
        raise NotImplementedError(f"{type(self).__name__} is not symmetric")

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {f.name.lstrip("_"): getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def __str__(self) -> str:
        """The form that `parse_claim` reads."""
        return f"{self.name}({', '.join(f'{k}={_show(v)}' for k, v in self.parameters.items())})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.parameters.items())})"


def _like(given: npt.ArrayLike, values: Array) -> Array | float:
    """Scalars in, a float out; anything else stays an array."""
    return float(values) if np.ndim(given) == 0 else values


def _first(values: Array, bad: npt.NDArray[np.bool_]) -> float:
    return float(np.atleast_1d(values)[np.atleast_1d(bad)][0])


def _probability(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value}")
    return float(value)


def _show(value: Any) -> str:
    """A number as short as it can be written without changing it."""
    return format(value, ".17g") if isinstance(value, float) and float(f"{value:g}") != value else f"{value:g}"


def _least(holds: Callable[[float], bool], start: float) -> float:
    """Least x > 0 at which a monotone condition holds, to one part in 10**14, from above."""
    high = start
    while not holds(high):
        high *= 2
        if high > 1e300:
            return math.inf
    low = 0.0
    while high - low > 1e-14 * high and low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
