"""What every privacy claim promises: a trade-off function and its privacy profile.

A claim says: for ALL pairs of neighbouring datasets (d0, d1), in both directions, no attack on one output
has type I error `alpha` and type II error below `f(alpha)`.  Dong, Roth & Su 2022, "Gaussian
differential privacy", JRSS-B 84(1), section 2.

Signs, once and for all: type I error `alpha` is the attack saying "d1" on an output of d0; type II
error `beta` is saying "d0" on an output of d1; epsilon is in nats, of d1 against d0:

    Q(S) <= exp(epsilon) P(S) + delta(epsilon)    for every event S, P = law of M(d0), Q = law of M(d1).

Since both directions are meant, f may always be replaced by max(f, f inverse): see `symmetrized`.

**Which way numbers err.**  Formulas are evaluated in double precision, to some 1e-15.  Wherever something
is approximated beyond that (a grid, a search, a Fourier transform, finitely many orders), it errs towards
a LOWER f and a LARGER delta, so that no approximation can refute a true claim.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from dpaudit.claims.envelope import Envelope, SupportingLines
from dpaudit.claims.inverse_profile import least_below
from dpaudit.numerics.arrays import Array
from dpaudit.values import Parameters

Operation = TypeVar("Operation", bound="Callable[..., TradeoffFunction]")


def _named_arguments(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor, with errors that show how the claim is written."""
    signature = inspect.signature(init)
    names = [f"{p.name}=..." for p in list(signature.parameters.values())[1:] if p.default is p.empty]

    @functools.wraps(init)
    def checked(self: object, *values: object, **named: object) -> None:
        try:
            signature.bind(self, *values, **named)
        except TypeError as error:
            raise TypeError(f"write {type(self).__name__}({', '.join(names)}): {error}") from None
        init(self, *values, **named)

    return checked


_OPERATIONS: dict[str, Callable[..., TradeoffFunction]] = {}


def operation(function: Operation) -> Operation:
    """Make a function of a claim the method of the same name.

    Operations make new claims, so they know the classes of claims and not the other way round.
    Importing `dpaudit.claims` loads all of them.
    """
    _OPERATIONS[function.__name__] = function
    return function


class OneDirection(NamedTuple):
    """What is promised in one direction of a pair."""

    delta: Callable[[Array], Array]  # of epsilon >= 0
    max_privacy_loss: float  # nats; least epsilon with delta(epsilon) = delta(inf)


class TradeoffFunction(ABC):
    """A trade-off function f: convex, nonincreasing, f(alpha) <= 1 - alpha on [0, 1].

    Subclasses are frozen dataclasses with a `name`, `_curve`, `_profile`, `symmetric` and `mu`; hooks further
    below tell operations about closed forms.  They may be inexact only towards a LOWER f (a larger delta).
    Their fields carry a leading underscore, since `epsilon`, `delta` and `mu` are what every claim
    can be asked for; `parameters` gives them under the names of the constructor.
    """

    name: ClassVar[str]
    """What the claim is called in configs: `parse_claim("name(field=value)")`."""

    def __init_subclass__(cls, **settings: object) -> None:
        """Make `ApproxDP(1.0)` say how the claim is written."""
        super().__init_subclass__(**settings)
        if "__init__" in cls.__dict__:
            cls.__init__ = _named_arguments(cls.__init__)  # type: ignore[method-assign]

    # --- what a subclass provides: float arrays of one dimension in, of the same shape out

    @abstractmethod
    def _curve(self, alpha: Array) -> Array: ...

    @abstractmethod
    def _profile(self, epsilon: Array) -> Array: ...

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether f is its own inverse: the promise reads the same for (d0, d1) and (d1, d0)."""

    @abstractmethod
    def mu(self) -> float:
        """Least mu with G_mu <= f everywhere; inf if none.  Dong et al., Def. 3: f is then mu-GDP.

        Of a claim that is computed numerically: an upper bound of it.
        """

    # --- what a subclass may provide, where it knows better

    def _max_privacy_loss(self) -> float:
        """Least epsilon at which delta(epsilon) has fallen to delta(inf), nats; inf if it never does."""
        return math.inf

    def _slopes(self) -> Array:
        """Log-slopes s >= 0, increasing, whose tangents 1 - delta(s) - e^s alpha describe f well."""
        floor = float(self.delta(math.inf))
        height = float(self.delta(0.0)) - floor
        if height <= 0:
            return np.zeros(1)
        pieces, start = [np.zeros(1)], 0.0
        for level, points in _TANGENTS:
            end = min(float(self.epsilon(floor + height * level)), self._max_privacy_loss())
            if start < end < math.inf:
                pieces.append(np.linspace(start, end, points))
                start = end
        return np.unique(np.concatenate(pieces))

    def _directions(self) -> tuple[OneDirection, OneDirection]:
        """The promises for (d0, d1) and (d1, d0), where d1 is the dataset with one record more if there is one."""
        inverse = self.inverse()
        return OneDirection(self.delta, self._max_privacy_loss()), OneDirection(
            inverse.delta, inverse._max_privacy_loss()
        )

    def _repeated(self, n: int) -> TradeoffFunction | None:
        """The claim of n >= 2 such mechanisms, if it is one of the same kind."""
        return None

    def _composed_with(self, other: TradeoffFunction) -> TradeoffFunction | None:
        """The claim of both mechanisms, if it is one of the same kind."""
        return None

    def _grouped(self, k: int) -> TradeoffFunction | None:
        """The claim for datasets that differ in k >= 2 records, if it is one of the same kind."""
        return None

    def _split(self) -> tuple[TradeoffFunction, float]:
        """(g, m) with f = g (x) f_{0,m}: with probability m everything is revealed."""
        return self, 0.0

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
        if not np.all(legal := (values >= 0) & (values <= 1)):
            raise ValueError(f"alpha must lie in [0, 1], got {_first(values, ~legal)}")
        return _like(alpha, np.clip(self._curve(values.ravel()).reshape(values.shape), 0.0, 1.0 - values))

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: npt.ArrayLike) -> Array: ...
    def delta(self, epsilon: npt.ArrayLike) -> Array | float:
        """Privacy profile: least delta such that f is (epsilon, delta)-DP in the direction (d0, d1).

        delta(epsilon) = sup over alpha of 1 - f(alpha) - exp(epsilon) alpha (Dong et al., Prop. 6), for
        every real epsilon, also negative and +-inf (nats).  ValueError for NaN.
        """
        values = np.asarray(epsilon, dtype=np.float64)
        if np.any(np.isnan(values)):
            raise ValueError("epsilon must be a number, got nan")
        trivial = -np.expm1(np.minimum(values, 0.0))  # what alpha = 1 gives: no f can do better than 1 - alpha
        profile = self._profile(values.ravel()).reshape(values.shape)
        return _like(epsilon, np.clip(profile, trivial, 1.0) + 0.0)  # no -0.0

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: npt.ArrayLike) -> Array: ...
    def epsilon(self, delta: npt.ArrayLike) -> Array | float:
        """Least epsilon >= 0 (nats) with `self.delta(epsilon) <= delta`; inf if there is none.

        Found by bisection to one part in 10**14 and rounded up.  `delta` in [0, 1], else ValueError.
        """
        values = np.asarray(delta, dtype=np.float64)
        if not np.all(legal := (values >= 0) & (values <= 1)):
            raise ValueError(f"delta must lie in [0, 1], got {_first(values, ~legal)}")
        wanted = np.ravel(values)
        least = float(self.delta(math.inf))
        # At the floor itself the profile may merely have underflowed to it: ask for the largest loss instead.
        largest = self._max_privacy_loss()
        found = np.where(wanted < least, math.inf, largest)
        found[wanted >= float(self.delta(0.0))] = 0.0
        search = (wanted > least) & (found != 0.0)
        if np.any(search):
            found[search] = np.minimum(least_below(self.delta, wanted[search]), largest)
        return _like(delta, found.reshape(values.shape))

    def inverse(self) -> TradeoffFunction:
        """f inverse: the promise with the roles of d0 and d1, and of the two errors, exchanged."""
        if self.symmetric:
            return self
        raise NotImplementedError(f"{type(self).__name__} must say what its inverse is")

    def symmetrized(self) -> TradeoffFunction:
        """The promise for both directions of a pair, in one curve: max(f, f inverse).

        T(Q, P) is the inverse of T(P, Q).  So a claim, which holds for (d0, d1) and for (d1, d0), says
        T(P, Q) >= f and T(P, Q) >= f inverse (Dong et al., Prop. 2).  The maximum is convex; its profile is the
        sup over alpha of 1 - max(f, f inverse)(alpha) - exp(epsilon) alpha.  This is what an audit tests.
        """
        if self.symmetric:
            return self
        return Symmetrized(self)

    def repeated(self, n: int) -> TradeoffFunction:
        """The promise of n such mechanisms on the same data, each free to depend on earlier outputs."""
        return _OPERATIONS["repeated"](self, n)

    def group(self, k: int) -> TradeoffFunction:
        """The promise for datasets that are k neighbours apart.  See `claims.operations.group`."""
        return _OPERATIONS["group"](self, k)

    def subsampled(self, rate: float, *, relation: str = "unspecified") -> TradeoffFunction:
        """The promise when the mechanism sees a random sample of the data.  See `claims.operations.subsample`."""
        return _OPERATIONS["subsampled"](self, rate, relation=relation)

    @property
    def parameters(self) -> Parameters:
        """The constructor's arguments by name."""
        return {f.name.lstrip("_"): getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    @property
    def label(self) -> str:
        """`str(self)` for people: the entries of a long table are counted instead of written out."""
        return self._text(brief=True)

    def __str__(self) -> str:
        """The form that `parse_claim` reads."""
        return self._text(brief=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.parameters.items())})"

    def _text(self, *, brief: bool) -> str:
        return f"{self.name}({', '.join(_argument(k, v, brief=brief) for k, v in self.parameters.items())})"


class PolygonalClaim(TradeoffFunction):
    """A claim whose f is a polygon: `_make_envelope` says which.  f and its profile are then exact duals."""

    @abstractmethod
    def _make_envelope(self) -> Envelope: ...

    @cached_property
    def _envelope(self) -> Envelope:
        return self._make_envelope()

    def _curve(self, alpha: Array) -> Array:
        return self._envelope.beta(alpha)

    def _profile(self, epsilon: Array) -> Array:
        return self._envelope.delta(epsilon)

    def mu(self) -> float:
        """Least mu with G_mu <= f, found at the corners of f; inf if f(0) < 1."""
        return self._envelope.mu()

    def _max_privacy_loss(self) -> float:
        return float(self._envelope.steep.slope[-1])

    def _slopes(self) -> Array:
        return self._envelope.steep.slope


@dataclass(frozen=True, init=False, repr=False)
class Symmetrized(PolygonalClaim):
    """max(f, f inverse); Dong, Roth & Su 2022, Prop. 2.  The lines of both are lines of the maximum."""

    name: ClassVar[str] = "symmetrized"
    _claim: TradeoffFunction

    def __init__(self, claim: TradeoffFunction) -> None:
        object.__setattr__(self, "_claim", claim)

    symmetric = True

    def _make_envelope(self) -> Envelope:
        ours, theirs = Envelope.of(self._claim), Envelope.of(self._claim.inverse())
        both = SupportingLines.hull(
            np.concatenate([ours.steep.slope, theirs.steep.slope]), np.concatenate([ours.steep.gap, theirs.steep.gap])
        )
        return Envelope(both, both)

    def _curve(self, alpha: Array) -> Array:
        return np.maximum(self._claim.beta(alpha), self._claim.inverse().beta(alpha))


_TANGENTS = ((1e-4, 1201), (1e-13, 301), (1e-290, 201), (0.0, 2))
"""Up to which delta, relative to delta(0), and how many: the curve, its tail, its far end, the largest loss."""


def _like(given: npt.ArrayLike, values: Array) -> Array | float:
    """Scalars in, a float out; anything else stays an array."""
    return float(values) if np.ndim(given) == 0 else values


def _first(values: Array, bad: npt.NDArray[np.bool_]) -> float:
    return float(np.atleast_1d(values)[np.atleast_1d(bad)][0])


def _argument(name: str, value: object, *, brief: bool) -> str:
    if isinstance(value, TradeoffFunction):
        return value._text(brief=brief)
    if isinstance(value, tuple):
        if brief and len(value) > 8:
            return f"{name}=<{len(value)} values>"
        return f"{name}=({', '.join(map(_show, value))}{',' * (len(value) == 1)})"
    return f"{name}={_show(value)}"


def _show(value: object) -> str:
    """A number as short as it can be written without changing it."""
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
