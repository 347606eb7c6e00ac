"""Claims with closed forms: pure, approximate and Gaussian DP, claims about Laplace noise and what sessions report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from dpaudit.claims.base import TradeoffFunction, nonnegative, probability
from dpaudit.numerics import Array


@dataclass(frozen=True, init=False, repr=False)
class PureDP(TradeoffFunction):
    """epsilon-DP: Q(S) <= exp(epsilon) P(S) for every event S.

    The trade-off curve is f(alpha) = max{0, 1 - e^eps alpha, e^-eps (1 - alpha)}; see Wasserman & Zhou 2010, and Dong,
    Roth & Su 2022, Eq. (5).  Randomised response attains this curve, and so does geometric noise on an integer query of
    sensitivity 1.

    Args:
        epsilon: Privacy parameter in nats.  Must be finite and >= 0.
    """

    name: ClassVar[str] = "pure"
    _epsilon: float  # epsilon of the pure DP claim in nats, >= 0

    def __init__(self, epsilon: float) -> None:
        object.__setattr__(self, "_epsilon", nonnegative("epsilon", epsilon))

    symmetric = True

    def _curve(self, alpha: Array) -> Array:
        with np.errstate(over="ignore", divide="ignore"):
            steep = 1 - np.exp(self._epsilon + np.log(alpha))
        return np.asarray(np.maximum(steep, np.exp(-self._epsilon) * (1 - alpha)))

    def _profile(self, epsilon: Array) -> Array:
        # For -eps <= t <= eps, the kink of f attains the supremum, so delta(t) = (e^eps - e^t) / (1 + e^eps).
        middle = -np.expm1(np.minimum(epsilon - self._epsilon, 0)) / (1 + np.exp(-self._epsilon))
        # for t < -eps, the method `delta` applies the lower bound 1 - e^t
        return np.where(epsilon <= -self._epsilon, 0.0, middle)

    def mu(self) -> float:
        """Return mu = 2 Phi^-1(e^eps / (1 + e^eps)), for which G_mu contains the kink of f."""
        # The trade-off curve has its kink at alpha = beta = 1 / (1 + e^eps).
        return max(0.0, float(-2 * ndtri_exp(-np.logaddexp(0.0, self._epsilon))))

    def max_privacy_loss(self) -> float:
        return self._epsilon

    def slopes(self) -> Array:
        return np.array([self._epsilon])


@dataclass(frozen=True, init=False, repr=False)
class ApproxDP(TradeoffFunction):
    """(epsilon, delta)-DP: Q(S) <= exp(epsilon) P(S) + delta for every event S.

    The trade-off curve is f(alpha) = max{0, 1 - delta - e^eps alpha, e^-eps (1 - delta - alpha)}; see Dong, Roth & Su
    2022, Eq. (5).

    Args:
        epsilon: Privacy parameter in nats.  Must be finite and >= 0.
        delta: Probability in [0, 1).
    """

    name: ClassVar[str] = "approximate"
    _epsilon: float  # epsilon of the (epsilon, delta)-DP claim in nats, >= 0
    _delta: float  # delta of the (epsilon, delta)-DP claim, in [0, 1)

    def __init__(self, *, epsilon: float, delta: float) -> None:
        object.__setattr__(self, "_epsilon", nonnegative("epsilon", epsilon))
        object.__setattr__(self, "_delta", probability("delta", delta))
        if self._delta == 1:
            raise ValueError(f"delta must lie in [0, 1), got {delta!r}")

    symmetric = True

    def _curve(self, alpha: Array) -> Array:
        with np.errstate(over="ignore", divide="ignore"):
            steep = 1 - self._delta - np.exp(self._epsilon + np.log(alpha))
        return np.asarray(np.maximum(np.maximum(steep, np.exp(-self._epsilon) * (1 - self._delta - alpha)), 0.0))

    def _profile(self, epsilon: Array) -> Array:
        # The trade-off curve of ApproxDP is the curve of PureDP(epsilon), scaled to the square [0, 1 - delta]^2.
        return self._delta + (1 - self._delta) * PureDP(self._epsilon).delta(epsilon)

    def mu(self) -> float:
        """Return mu of the claim; inf if delta > 0, because then f(0) < 1 and no Gaussian curve lies below f."""
        return PureDP(self._epsilon).mu() if self._delta == 0 else math.inf

    def max_privacy_loss(self) -> float:
        return self._epsilon

    def slopes(self) -> Array:
        return np.array([self._epsilon])

    def _split(self) -> tuple[TradeoffFunction, float]:
        """Split the claim by f_{eps,delta} = f_{eps,0} (x) f_{0,delta}; Dong, Roth & Su 2022, section 3."""
        return PureDP(self._epsilon), self._delta


@dataclass(frozen=True, init=False, repr=False)
class GaussianDP(TradeoffFunction):
    """mu-GDP: distinguishing d0 from d1 by one output is at least as hard as distinguishing N(0, 1) from N(mu, 1).

    The trade-off curve is G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu); see Dong, Roth & Su 2022, Eq. (6), and Cor. 1 for
    the privacy profile.  If a query has sensitivity S, adding Gaussian noise of standard deviation sigma is mu-GDP for
    mu = S / sigma.

    Args:
        mu: Distance between the two means in standard deviations.  Must be finite and >= 0.
    """

    name: ClassVar[str] = "gaussian"
    _mu: float  # distance between the two means in standard deviations, >= 0

    def __init__(self, mu: float) -> None:
        object.__setattr__(self, "_mu", nonnegative("mu", mu))

    symmetric = True

    def _curve(self, alpha: Array) -> Array:
        if self._mu == 0:
            return 1 - alpha
        return ndtr(-ndtri(alpha) - self._mu)

    def _profile(self, epsilon: Array) -> Array:
        """Return the privacy profile Phi(upper) - e^eps Phi(lower), with relative precision in the tail.

        With h(z) = log Phi(z), the profile equals the product e^h(upper) (1 - e^(eps + h(lower) - h(upper))).  The
        precision of the product is limited only by the rounding of epsilon / mu.
        """
        if self._mu == 0:
            return np.zeros_like(epsilon)
        with np.errstate(over="ignore"):
            ratio = epsilon / self._mu
        # If epsilon / mu > 1e8, delta is 0 in double precision.  If epsilon / mu < -1e8, delta is 1 - e^eps, a lower
        # bound for every claim.
        sure = np.abs(ratio) < 1e8 + self._mu
        inside = np.where(sure, epsilon, 0.0)
        upper = log_ndtr(-inside / self._mu + self._mu / 2)
        lower = log_ndtr(-inside / self._mu - self._mu / 2)
        with np.errstate(under="ignore"):
            value = -np.expm1(np.minimum(inside + lower - upper, 0.0)) * np.exp(upper)
        return np.where(sure, value, 0.0)

    def mu(self) -> float:
        """Return the parameter mu."""
        return self._mu

    def max_privacy_loss(self) -> float:
        return 0.0 if self._mu == 0 else math.inf

    def _repeated(self, n: int) -> TradeoffFunction:
        """Compose n Gaussian claims by G_mu (x) ... (x) G_mu = G_{mu sqrt n}; Dong, Roth & Su 2022, Cor. 2."""
        return GaussianDP(self._mu * math.sqrt(n))

    def _composed_with(self, other: TradeoffFunction) -> TradeoffFunction | None:
        return GaussianDP(math.hypot(self._mu, other._mu)) if isinstance(other, GaussianDP) else None

    def _grouped(self, k: int) -> TradeoffFunction:
        """Compute group privacy by the identity 1 - (1 - G_mu)^{o k} = G_{k mu}; Dong, Roth & Su 2022, section 2.4."""
        return GaussianDP(self._mu * k)


@dataclass(frozen=True, init=False, repr=False)
class LaplaceDP(TradeoffFunction):
    """Distinguishing d0 from d1 is at least as hard as distinguishing Laplace(0, 1) from Laplace(epsilon, 1).

    If a query has sensitivity S, adding Laplace noise of scale b satisfies this claim for epsilon = S / b.  The claim
    implies PureDP(epsilon).
    The trade-off curve is 1 - e^eps alpha for alpha <= e^-eps / 2, e^-eps / (4 alpha) for e^-eps / 2 <= alpha <= 1/2,
    and e^-eps (1 - alpha) for alpha >= 1/2.  The privacy profile is 1 - e^((t - eps) / 2) for |t| <= eps.  See Dong,
    Roth & Su 2022, section 2 (T(Lap(0, 1), Lap(mu, 1))).

    Args:
        epsilon: Distance between the two means in units of the scale, equal to the maximum privacy loss in nats.  Must
            be finite and >= 0.
    """

    name: ClassVar[str] = "laplace"
    _epsilon: float  # maximum privacy loss in nats, >= 0

    def __init__(self, epsilon: float) -> None:
        object.__setattr__(self, "_epsilon", nonnegative("epsilon", epsilon))

    symmetric = True

    def _curve(self, alpha: Array) -> Array:
        with np.errstate(over="ignore", divide="ignore"):
            log_alpha = np.log(alpha)
            steep = 1 - np.exp(np.minimum(self._epsilon + log_alpha, 0.0))
            middle = np.exp(-self._epsilon - np.log(4) - np.maximum(log_alpha, -self._epsilon - np.log(2)))
        flat = np.exp(-self._epsilon) * (1 - alpha)
        edge = -self._epsilon - np.log(2)
        return np.where(log_alpha < edge, steep, np.where(alpha <= 0.5, middle, flat))

    def _profile(self, epsilon: Array) -> Array:
        inside = -np.expm1(np.minimum(epsilon - self._epsilon, 0.0) / 2)
        # for t < -epsilon, the method `delta` applies the lower bound 1 - e^t
        return np.where(epsilon <= -self._epsilon, 0.0, inside)

    def mu(self) -> float:
        """Return the mu for which G_mu contains the point alpha = beta = e^(-eps/2) / 2.

        The middle part of the curve is a hyperbola, on which log alpha + log beta is constant.  Since log Phi is
        concave, -Phi^-1(alpha) - Phi^-1(beta) is maximal at alpha = beta.  The two straight parts of the curve lie
        above G_mu, because G_mu is convex.
        """
        return max(0.0, float(-2 * ndtri_exp(-self._epsilon / 2 - np.log(2))))

    def max_privacy_loss(self) -> float:
        return self._epsilon

    def _grouped(self, k: int) -> TradeoffFunction:
        """Multiply epsilon by k.

        The Laplace density is log-concave, so k steps in the same direction are the worst case.
        """
        return LaplaceDP(self._epsilon * k)


@dataclass(frozen=True, repr=False)
class Reported(TradeoffFunction):
    """Ex-post privacy: a session's privacy loss is at most the epsilon that it reports at its end.

    p(o) <= exp(epsilon(o)) q(o) for every transcript o, in both orders of the datasets; Ligett, Neel, Roth, Waggoner &
    Wu 2017, "Accuracy first", Def. 2.2.  The curve, 1 - alpha, is that of the laws after the thinning of
    `engine.interactive`, in one order.  It says nothing about transcripts themselves, so no bound follows from it.
    """

    name: ClassVar[str] = "reported"
    symmetric = True

    def _curve(self, alpha: Array) -> Array:
        return 1 - alpha

    def _profile(self, epsilon: Array) -> Array:
        return np.zeros_like(epsilon)

    def mu(self) -> float:
        return 0.0

    def max_privacy_loss(self) -> float:
        return 0.0

    @property
    def label(self) -> str:
        return "what the session reports"
