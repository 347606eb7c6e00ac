"""Claims derived from one claim: for random samples of the records, for groups, and for both directions together.

**Subsampling.**  The mechanism runs on a random sample of the records.

Let f be the claim of the mechanism on its sample, p the sampling rate, and f_p(alpha) = p f(alpha) + (1 - p)(1 -
alpha).

- **"add_remove"**: Neighbours differ in the presence of one record, and f must hold for this relation.  Each record is
  in the sample with probability p, independently (Poisson sampling, as in DP-SGD).  Let d1 be the dataset with the
  record.  Then T(P, Q) >= f_p, and T(Q, P) >= the inverse of f_p (Bu, Dong, Long & Su 2020, "Deep learning with
  Gaussian differential privacy", section 3).
- **"replace_one"**: Neighbours differ in the value of one record.  The sample is a uniformly random subset of m = p n
  of the n records.  Both directions satisfy C_p(f), the largest convex function below f_p and its inverse (Dong, Roth &
  Su 2022, Thm 9).  Poisson sampling also satisfies C_p(f) if f holds for adding, removing and replacing one record.
- **"unspecified"**: The promise is C_p(f), which holds in all these cases.

For both directions of a pair together, all three relations promise C_p(f), the curve that an audit tests.  The
relations differ only in compositions.  With "add_remove", the two directions are composed separately, as in privacy
accountants.  The claim for n steps is then f_p (x) ... (x) f_p in one direction, and the inverse of this curve in the
other direction.  This claim is much stronger than the n-fold composition of C_p(f).  For example, for the base claim mu
= 1, p = 0.01 and n = 10,000, delta(1) is 0.24 instead of 0.39.

C_p(f) is symmetric.  Its privacy profile is delta'(eps) = p delta(log(1 + (e^eps - 1)/p)) for eps >= 0 (Balle, Barthe &
Gaboardi 2018, Thm 8).  C_p is defined only for symmetric f, so other curves f are first replaced by max(f, f inverse).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpaudit.claims.base import OneDirection, TradeoffFunction, count, operation, probability
from dpaudit.claims.envelope import Envelope, PolygonalClaim
from dpaudit.claims.standard import PureDP
from dpaudit.numerics import Array, bisect, bisect_each
from dpaudit.text import relation_meant


@operation
def symmetrized(claim: TradeoffFunction) -> TradeoffFunction:
    """Return max(f, f inverse), the claim for both directions of a pair, which an audit tests.

    T(Q, P) is the inverse of T(P, Q), so the claim f implies T(P, Q) >= f and >= f inverse (Dong, Roth & Su 2022, Prop.
    2).
    """
    return claim if claim.symmetric else Symmetrized(claim)


@dataclass(frozen=True, init=False, repr=False)
class Symmetrized(PolygonalClaim):
    """The claim max(f, f inverse); Dong, Roth & Su 2022, Prop. 2."""

    name: ClassVar[str] = "symmetrized"
    _claim: TradeoffFunction

    def __init__(self, claim: TradeoffFunction) -> None:
        object.__setattr__(self, "_claim", claim)

    symmetric = True

    @cached_property
    def _envelope(self) -> Envelope:
        return Envelope.of(self._claim).maximum(Envelope.of(self._claim.inverse()))

    def _curve(self, alpha: Array) -> Array:
        return np.maximum(self._claim.beta(alpha), self._claim.inverse().beta(alpha))


MAX_NESTED = 3
"""Maximum number of subsamplings inside each other: with each level, the curve takes several times as long."""

RELATIONS = ("unspecified", "add_remove", "replace_one")


@operation
def subsampled(claim: TradeoffFunction, rate: float, *, relation: str = "unspecified") -> TradeoffFunction:
    """Amplify a claim by subsampling: the mechanism runs on a random sample, as the module describes."""
    rate = probability("rate", rate)
    if relation not in RELATIONS:
        meant = relation_meant(relation, RELATIONS)
        raise ValueError(f"relation must be one of {', '.join(RELATIONS)}, got {relation!r}{meant}")
    if subsamplings(claim) >= MAX_NESTED:
        raise ValueError(
            f"more than {MAX_NESTED} subsamplings are nested; without compositions in between, one subsampling with "
            "the product of the rates gives the same curve"
        )
    if rate == 0:
        return PureDP(0.0)
    if rate == 1:
        return claim.symmetrized()
    return Subsampled(claim, rate, relation)


def subsamplings(claim: TradeoffFunction) -> int:
    """Return the number of subsamplings that are nested in a claim; 0 if the claim contains none."""
    parts = (part for part, _ in getattr(claim, "_parts", ()))
    inner = [one for one in (getattr(claim, "_claim", None), *parts) if isinstance(one, TradeoffFunction)]
    return max(map(subsamplings, inner), default=0) + isinstance(claim, Subsampled)


@dataclass(frozen=True, init=False, repr=False)
class Subsampled(TradeoffFunction):
    """The claim C_p(f) of a subsampled mechanism; compositions with "add_remove" use f_p and its inverse instead."""

    name: ClassVar[str] = "subsampled"
    _claim: TradeoffFunction
    _rate: float  # sampling rate p, in (0, 1)
    relation: str

    def __init__(self, claim: TradeoffFunction, rate: float, relation: str = "unspecified") -> None:
        object.__setattr__(self, "_claim", claim)
        object.__setattr__(self, "_rate", rate)
        object.__setattr__(self, "relation", relation)

    symmetric = True

    @cached_property
    def _base(self) -> TradeoffFunction:
        return self._claim.symmetrized()

    @cached_property
    def _fixed_point(self) -> float:
        """The solution x of x = f(x) for the base claim f, at which f_p has slope -1; computed by bisection."""
        return bisect(lambda x: self._base.beta(x) > x, inside=0.0, outside=0.5).inside

    def _mixed(self, alpha: Array) -> Array:
        return self._rate * self._base.beta(alpha) + (1 - self._rate) * (1 - alpha)

    def _curve(self, alpha: Array) -> Array:
        """Return C_p(f): f_p up to the fixed point, a line of slope -1, and the inverse of f_p, rounded down."""
        fixed = self._fixed_point
        # the line of slope -1 that touches f_p at the fixed point
        middle = 1 - self._rate * self._base.delta(0.0) - alpha
        beta = np.where(alpha <= fixed, self._mixed(alpha), middle)
        beyond = middle < fixed
        if np.any(beyond):
            wanted = alpha[beyond]
            log_beta = bisect_each(
                lambda log_beta: self._mixed(np.exp(log_beta)) > wanted,
                inside=np.full_like(wanted, -746.0),
                outside=np.full_like(wanted, math.log(fixed) if fixed else -745.0),
                steps=64,
            ).inside
            beta[beyond] = np.minimum(np.exp(log_beta), fixed)
        return beta

    def _profile(self, epsilon: Array) -> Array:
        size = np.abs(epsilon)
        with np.errstate(divide="ignore"):  # log(1 + (e^eps - 1)/p), where p is the sampling rate
            lifted = np.logaddexp(size + np.log(-np.expm1(-size)) - math.log(self._rate), 0.0)
        amplified = self._rate * self._base.delta(lifted)
        finite = np.minimum(epsilon, 0.0)
        return np.where(epsilon >= 0, amplified, -np.expm1(finite) + np.exp(finite) * amplified)

    def _directions(self) -> tuple[OneDirection, OneDirection]:
        forward = OneDirection(self.delta, self.max_privacy_loss())
        if self.relation != "add_remove":
            return forward, forward
        return forward, OneDirection(self._reverse, min(-math.log1p(-self._rate), forward.max_privacy_loss))

    def _reverse(self, epsilon: Array) -> Array:
        """Return the profile of f_p's inverse, (1 - (1-p) e^eps) delta(-t) with e^t = (e^-eps - (1-p))/p, eps >= 0."""
        possible = epsilon < -math.log1p(-self._rate)
        inside = np.where(possible, epsilon, 0.0)
        with np.errstate(divide="ignore"):
            t = np.log1p(np.maximum(np.expm1(-inside) / self._rate, -1.0))
        share = np.maximum(-np.expm1(inside + math.log1p(-self._rate)), 0.0)
        return np.where(possible, share * self._base.delta(-t), 0.0)

    def mu(self) -> float:
        """Return an upper bound of the mu of the subsampled claim, at most the mu of the base claim.

        Corners of the curve may give less if losses are bounded; otherwise sampling reduces no mu: C_p(G_mu) >= G_m iff
        m >= mu.
        """
        bound = self._base.mu()
        # If privacy losses are unbounded, underflow removes vertices far in the tail, so the mu of the envelope may be
        # too small.
        return min(Envelope.of(self).mu(), bound) if self.max_privacy_loss() < math.inf else bound

    def max_privacy_loss(self) -> float:
        """Return log(1 + p (e^L - 1)), where L is the maximum privacy loss of the base and p the rate."""
        loss = self._base.max_privacy_loss()
        return loss if loss == math.inf else float(self._sampled(np.array([loss]))[0])

    def slopes(self) -> Array:
        """Return the log-slopes of the base claim after subsampling, and 0, the log-slope of the middle of C_p(f)."""
        return np.unique(np.concatenate([[0.0], self._sampled(self._base.slopes())]))

    def _sampled(self, epsilon: Array) -> Array:
        """Return log(1 + p (e^eps - 1)) for eps >= 0, where p is the sampling rate."""
        small = np.log1p(self._rate * np.expm1(np.minimum(epsilon, 1.0)))
        return np.where(epsilon < 1, small, np.logaddexp(epsilon + math.log(self._rate), math.log1p(-self._rate)))


@operation
def group(claim: TradeoffFunction, k: int) -> TradeoffFunction:
    """Extend a claim from neighbours to datasets that differ by k steps: 1 - (1 - f)^{o k}.

    Dong, Roth & Su 2022, Thm 2.14 of the arXiv version (1905.02383).  Gaussian and Laplace claims have a closed form.
    For PureDP(epsilon), the result is stronger than PureDP(k epsilon).  For rho-zCDP, it is the maximum with (k^2
    rho)-zCDP.
    """
    k = count("k", k)
    if k == 1:
        return claim
    if isinstance(claim, Group):
        return group(claim._claim, claim._k * k)
    return claim._grouped(k) or Group(claim, k)


@dataclass(frozen=True, init=False, repr=False)
class Group(PolygonalClaim):
    """The trade-off function 1 - (1 - f)^{o k}, or the maximum of it and of another bound, computed from tangents of f.

    It is exact if f is a polygon, and otherwise slightly too low; so it is if lines beyond 6,000 are omitted.  If c +
    e^s alpha and c' + e^s' alpha are upper bounds of 1 - f, c' + e^s' c + e^(s + s') alpha is one for two steps.
    """

    name: ClassVar[str] = "group"
    _claim: TradeoffFunction
    _k: int

    def __init__(self, claim: TradeoffFunction, k: int) -> None:
        object.__setattr__(self, "_claim", claim)
        object.__setattr__(self, "_k", count("k", k))

    @property
    def symmetric(self) -> bool:
        return self._claim.symmetric

    def inverse(self) -> TradeoffFunction:
        """Return the claim for the chain of neighbours in reverse order."""
        return self if self.symmetric else Group(self._claim.inverse(), self._k)

    @cached_property
    def _envelope(self) -> Envelope:
        iterated, other = Envelope.of(self._claim).iterated(self._k), self._claim._group_bound(self._k)
        return iterated if other is None else iterated.maximum(Envelope.of(other))

    def _repeated(self, n: int) -> TradeoffFunction | None:
        """Return the k-step claim of n composed mechanisms if one step has further bounds, which composition loses."""
        closed = self._claim._repeated(n) if self._claim._group_bound(self._k) else None
        return closed and group(closed, self._k)

    def _composed_with(self, other: TradeoffFunction) -> TradeoffFunction | None:
        if not isinstance(other, Group) or other._k != self._k or not self._claim._group_bound(self._k):
            return None
        closed = self._claim._composed_with(other._claim)
        return closed and group(closed, self._k)

    def mu(self) -> float:
        """Return an upper bound of mu: at most k times the mu of one step, because 1 - (1 - G_mu)^{o k} = G_{k mu}."""
        bound = self._k * self._claim.mu()
        return min(self._envelope.mu(), bound) if bound < math.inf else bound
