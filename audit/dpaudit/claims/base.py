"""The base class of privacy claims.  A claim has a trade-off function f and a privacy profile delta(epsilon).

A claim covers ALL pairs of neighbouring datasets (d0, d1), in both directions: every attack on one output with type I
error `alpha` has a type II error of at least `f(alpha)` (Dong, Roth & Su 2022, "Gaussian differential privacy", JRSS-B
84(1), section 2).  So f may always be replaced by max(f, f inverse); see `symmetrized`.

**Conventions.**  `alpha` is the probability to answer "d1" for an output of d0, and `beta` that to answer "d0" for one
of d1.  Epsilon is in nats.  With P the law of M(d0) and Q that of M(d1),

    Q(S) <= exp(epsilon) P(S) + delta(epsilon)    for every event S.

**Direction of numerical errors.**  Formulas have errors of about 1e-15.  Every other approximation gives a LOWER f and
a LARGER delta, so numerical approximation cannot refute a true claim.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, SupportsFloat, SupportsIndex, TypeVar, overload

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import Array, bisect_each
from dpaudit.values import Parameters

Operation = TypeVar("Operation", bound="Callable[..., TradeoffFunction]")

_OPERATIONS: dict[str, Callable[..., TradeoffFunction]] = {}


def operation(function: Operation) -> Operation:
    """Register a function that implements the method of `TradeoffFunction` with the same name."""
    _OPERATIONS[function.__name__] = function
    return function


class OneDirection(NamedTuple):
    """The privacy profile and the maximum privacy loss of a claim for one direction of a pair of datasets."""

    delta: Callable[[Array], Array]  # privacy profile: a function of epsilon >= 0 that maps float arrays (n,) to (n,)
    max_privacy_loss: float  # maximum privacy loss in nats: the least epsilon with delta(epsilon) = delta(inf)


class TradeoffFunction(ABC):
    """A trade-off function f: convex, nonincreasing, with f(alpha) <= 1 - alpha on [0, 1].

    Subclasses are frozen dataclasses that define `name`, `_curve`, `_profile`, `symmetric` and `mu`, and may override
    other private methods by closed forms.  A subclass may approximate f only from below, and delta only from above.
    Fields have a leading underscore, because `epsilon`, `delta` and `mu` are methods; `parameters` returns them without
    it.
    """

    name: ClassVar[str]
    """Name of the claim in configs and in `parse_claim("name(field=value)")`."""

    def __init_subclass__(cls, **settings: object) -> None:
        """Make wrong calls of the constructor, such as `ApproxDP(1.0)`, raise an error that shows the correct call."""
        super().__init_subclass__(**settings)
        if "__init__" not in cls.__dict__:
            return
        init: Callable[..., None] = cls.__init__
        signature = inspect.signature(init)
        names = [f"{p.name}=..." for p in list(signature.parameters.values())[1:] if p.default is p.empty]

        @functools.wraps(init)
        def checked(self: object, *values: object, **named: object) -> None:
            try:
                init(self, *values, **named)
            except TypeError:
                try:  # bind arguments only after a failure, because binding takes as long as constructing the claim
                    signature.bind(self, *values, **named)
                except TypeError as error:
                    raise TypeError(f"write {type(self).__name__}({', '.join(names)}): {error}") from None
                raise

        cls.__init__ = checked  # type: ignore[method-assign]

    # --- Methods that every subclass must define.  `_curve` and `_profile` map float arrays (n,) to float arrays (n,).

    @abstractmethod
    def _curve(self, alpha: Array) -> Array: ...

    @abstractmethod
    def _profile(self, epsilon: Array) -> Array: ...

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether f is its own inverse, so that the claim promises the same for (d0, d1) as for (d1, d0)."""

    @abstractmethod
    def mu(self) -> float:
        """Return the least mu >= 0 such that the claim implies mu-GDP, i.e. G_mu <= f; inf if there is none.

        Dong, Roth & Su 2022, Def. 3.  Claims that are computed numerically return an upper bound.
        """

    # --- Methods that a subclass may override to supply closed forms.

    def max_privacy_loss(self) -> float:
        """Return the maximum privacy loss in nats: the least epsilon with delta(epsilon) = delta(inf), or inf."""
        return math.inf

    def slopes(self) -> Array:
        """Return increasing log-slopes s >= 0 whose tangents 1 - delta(s) - e^s alpha approximate f well."""
        floor = float(self.delta(math.inf))
        height = float(self.delta(0.0)) - floor
        if height <= 0:
            return np.zeros(1)
        pieces, start = [np.zeros(1)], 0.0
        for level, points in _TANGENTS:
            end = min(float(self.epsilon(floor + height * level)), self.max_privacy_loss())
            if start < end < math.inf:
                pieces.append(np.linspace(start, end, points))
                start = end
        return np.unique(np.concatenate(pieces))

    def _directions(self) -> tuple[OneDirection, OneDirection]:
        """Return the promises for (d0, d1) and (d1, d0); a dataset with an additional record is d1."""
        forward, backward = (OneDirection(claim.delta, claim.max_privacy_loss()) for claim in (self, self.inverse()))
        return forward, backward

    def _repeated(self, n: int) -> TradeoffFunction | None:
        """Return the composition of n >= 2 copies as a claim of the same kind; None if no such claim exists."""
        return None

    def _composed_with(self, other: TradeoffFunction) -> TradeoffFunction | None:
        """Return the composition with `other` as a claim of the same kind; None if no such claim exists."""
        return None

    def _grouped(self, k: int) -> TradeoffFunction | None:
        """Return 1 - (1 - f)^{o k}, for k >= 2 steps, as a claim of the same kind; None if no such claim exists."""
        return None

    def _group_bound(self, k: int) -> TradeoffFunction | None:
        """Return a claim for k >= 2 steps that may exceed 1 - (1 - f)^{o k}, as f states less than the claim does."""
        return None

    def _split(self) -> tuple[TradeoffFunction, float]:
        """Return (g, m) with f = g (x) f_{0,m}, where m is the probability that an output identifies the dataset."""
        return self, 0.0

    # --- Methods for users of claims.

    @overload
    def beta(self, alpha: float) -> float: ...
    @overload
    def beta(self, alpha: npt.ArrayLike) -> Array: ...
    def beta(self, alpha: npt.ArrayLike) -> Array | float:
        """Return f(alpha), the least type II error of any attack with type I error `alpha`.

        Args:
            alpha: Type I error in [0, 1], or an array (...) of type I errors.

        Returns:
            Type II error in [0, 1]: a float for a scalar, otherwise an array (...).

        Raises:
            ValueError: If an alpha is outside [0, 1].
        """
        values = _in_unit_interval("alpha", alpha)
        return _like(alpha, np.clip(self._curve(values.ravel()).reshape(values.shape), 0.0, 1.0 - values))

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: npt.ArrayLike) -> Array: ...
    def delta(self, epsilon: npt.ArrayLike) -> Array | float:
        """Return the privacy profile: the least delta for which f implies (epsilon, delta)-DP in direction (d0, d1).

        delta(epsilon) = sup over alpha of 1 - f(alpha) - exp(epsilon) alpha; Dong, Roth & Su 2022, Prop. 6.

        Args:
            epsilon: Nats, any real number or +-inf, or an array (...) of such values.

        Returns:
            Delta in [0, 1]: a float for a scalar, otherwise an array (...).

        Raises:
            ValueError: If an epsilon is NaN.
        """
        values = np.asarray(epsilon, dtype=np.float64)
        if np.any(np.isnan(values)):
            raise ValueError("epsilon must be a number, got nan")
        # 1 - e^epsilon is a lower bound of the supremum, attained at alpha = 1
        trivial = -np.expm1(np.minimum(values, 0.0))
        profile = self._profile(values.ravel()).reshape(values.shape)
        return _like(epsilon, np.clip(profile, trivial, 1.0) + 0.0)  # adding 0.0 converts -0.0 to 0.0

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: npt.ArrayLike) -> Array: ...
    def epsilon(self, delta: npt.ArrayLike) -> Array | float:
        """Return the least epsilon >= 0 with `self.delta(epsilon) <= delta`, rounded up.

        Bisection computes epsilon with a relative precision of 1e-14.

        Args:
            delta: Probability in [0, 1], or an array (...) of probabilities.

        Returns:
            Epsilon in nats (inf if no finite epsilon suffices): a float for a scalar, otherwise an array (...).

        Raises:
            ValueError: If a delta is outside [0, 1].
        """
        values = _in_unit_interval("delta", delta)
        wanted = np.ravel(values)
        least, largest = float(self.delta(math.inf)), self.max_privacy_loss()
        # Underflow may make the profile reach its minimum delta(inf) at too small an epsilon.  For delta(inf), the
        # correct epsilon is the maximum privacy loss.
        epsilon = np.where(wanted < least, math.inf, largest)
        epsilon[wanted >= float(self.delta(0.0))] = 0.0
        search = (wanted > least) & (epsilon != 0.0)
        if np.any(search):
            sought = wanted[search]
            high = np.ones_like(sought)
            while np.any(short := (self.delta(high) > sought) & (high < 1e300)):
                high[short] *= 2
            enough = bisect_each(
                lambda x: self.delta(x) <= sought, high, np.zeros_like(high), close=lambda x, y: x - y <= 1e-14 * x
            ).inside
            epsilon[search] = np.minimum(np.where(enough < 1e300, enough, math.inf), largest)
        return _like(delta, epsilon.reshape(values.shape))

    def inverse(self) -> TradeoffFunction:
        """Return the inverse of f, which is the promise for the direction (d1, d0) and exchanges the two errors."""
        if self.symmetric:
            return self
        raise NotImplementedError(f"{type(self).__name__} is not symmetric, so it must define inverse()")

    def symmetrized(self) -> TradeoffFunction:
        """Return max(f, f inverse); see `claims.subsample.symmetrized`."""
        return _OPERATIONS["symmetrized"](self)

    def repeated(self, n: int) -> TradeoffFunction:
        """Return the claim of n composed mechanisms with this claim; see `claims.compose.repeated`."""
        return _OPERATIONS["repeated"](self, n)

    def group(self, k: int) -> TradeoffFunction:
        """Return the claim for datasets that differ by k steps; see `claims.subsample.group`."""
        return _OPERATIONS["group"](self, k)

    def subsampled(self, rate: float, *, relation: str = "unspecified") -> TradeoffFunction:
        """Return the claim of the mechanism on a random sample; see `claims.subsample.subsampled`."""
        return _OPERATIONS["subsampled"](self, rate, relation=relation)

    @property
    def parameters(self) -> Parameters:
        """The arguments of the constructor as a dictionary from names to values."""
        return {f.name.lstrip("_"): getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    @property
    def label(self) -> str:
        """A short form of `str(self)`, in which a long table is replaced by the number of its entries."""
        return self._text(brief=True)

    def __str__(self) -> str:
        """Return the claim as text that `parse_claim` reads."""
        return self._text(brief=False)

    def _text(self, *, brief: bool) -> str:
        def written(value: object) -> str:
            if isinstance(value, tuple):
                long = brief and len(value) > 8
                entries = f"{', '.join(map(written, value))}{',' * (len(value) == 1)}"
                return f"<{len(value)} values>" if long else f"({entries})"
            short = f"{value:g}" if isinstance(value, float) else str(value)
            return short if not isinstance(value, float) or float(short) == value else str(value)

        arguments = [
            value._text(brief=brief) if isinstance(value, TradeoffFunction) else f"{name}={written(value)}"
            for name, value in self.parameters.items()
        ]
        return f"{self.name}({', '.join(arguments)})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.parameters.items())})"

    def plot(
        self,
        kind: str = "tradeoff",
        ax: Any = None,
        *,
        label: str | None = None,
        color: str | None = None,
        legend: bool = True,
    ) -> Any:
        """Draw the claim on matplotlib axes, and return the axes; see `dpaudit_reports.plot_claim`."""
        from dpaudit_reports import plot_claim

        return plot_claim(self, kind, ax, label=label, color=color, legend=legend)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook displays: parameters, trade-off function and privacy profile."""
        from dpaudit_reports import claim_fragment

        return claim_fragment(self)


# pairs (level of delta relative to delta(0), number of tangents between the previous level and this one)
_TANGENTS = ((1e-4, 1201), (1e-13, 301), (1e-290, 201), (0.0, 2))


def _like(given: npt.ArrayLike, values: Array) -> Array | float:
    return float(values) if np.ndim(given) == 0 else values


def _in_unit_interval(name: str, given: npt.ArrayLike) -> Array:
    values = np.asarray(given, dtype=np.float64)
    if not np.all(legal := (values >= 0) & (values <= 1)):
        raise ValueError(f"{name} must lie in [0, 1], got {np.atleast_1d(values)[np.atleast_1d(~legal)][0]}")
    return values


def nonnegative(name: str, value: object) -> float:
    number = _number(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be finite and >= 0, got {value!r}")
    return number


def probability(name: str, value: object) -> float:
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return number


def count(name: str, value: object) -> int:
    number = _number(value)
    if not (1 <= number < math.inf and number == math.floor(number)):
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
    return int(number)


def _number(value: object) -> float:
    """Convert a number to a float; return NaN, which every range check rejects, for anything else."""
    # float and int come first, because checking the protocols takes as long as the rest of constructing a claim
    if not isinstance(value, float | int | SupportsFloat | SupportsIndex) or isinstance(value, str | bytes):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
