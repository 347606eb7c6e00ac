"""The fresh runs after a refutation: whether they confirm the violation, and how large they prove it to be.

Theorem (verdict and sizes):
    Let r = s / 10 and (1 - r)(1 - s') = 1 - s.  An audit at significance s states one of three things.
    (1) Its wealth reached 1/s, and fresh runs were counted: the claim f is false, and so are the curves that the fresh
    counts refute at level s' (Theorem 3 of `inference.fixed.exact_binomial`).
    (2) Its wealth reached 1/s, and no fresh run was planned: f is false, and so are the curves whose wealth reached
    1/r.  If fresh runs were planned, but could not be counted, it only states that f is false.
    (3) Its wealth did not reach 1/s: the curves in the family of the claim whose wealth reached 1/s are false, and so
    are other curves whose wealth reached 1/r.
    Then the probability that the audit states anything false is at most s.

Proof:
    Let T be the curve of the mechanism.  A stated curve is no error unless T satisfies it.  The bets against all curves
    are the same, and their prices fall as the curve rises, so the wealth against T is at least that against any curve
    that T satisfies.  It is a nonnegative supermartingale, so it ever reaches 1/s with probability at most s, and 1/r
    with probability at most r (Ville 1939).
    If the claim is true, T satisfies f, so each error needs the wealth against T to reach 1/s:  in (1) and (2) because
    it is at least the wealth against f, and in (3) because 1/r > 1/s.
    If the claim is false, the refutation is no error.  Nor are bounds in the family of the claim in (3):  a member
    below f is not stated, because the wealth against it is at most that against f, which did not reach 1/s; and T
    satisfies no member above f, because it would satisfy f.  So errors in (2) and (3) need the wealth against T to
    reach 1/r.  Let p be the probability that fresh runs are planned.  The region and their number are fixed before
    these runs, which are independent of the past.  So a false size has probability at most s' p.  Other runs are
    counted if all new processes repeat one sequence.  Independent runs do so with probability q below `ONE_SEQUENCE`,
    and the other runs are independent of this event.  So the counts have the level s' / (1 + q).  Errors in (2) and (3)
    need no planned runs, so they have probability at most min(r, 1 - p).  The sum min(r, 1 - p) + s' p is largest at
    p = 1 - r, where it is r + s' (1 - r) = s.

Corollary:
    If the audits of a command have significances that sum to s, then the probability that any of them states anything
    false is at most s (union bound).

The curve that an audit states in (2) and (3) is a confidence band of its own, `bands.anytime_band`.  It holds with
probability 1 - r by itself, and is not part of the theorem.  In (1) "f is false" implies a bound in the family of the
claim, which is stated where the sizes fall below the claim.

What this costs: the sizes are those of a fixed audit at level s', which is 0.9 s to 0.91 s if s <= 0.1, and bounds
outside the family of the claim need log(10) = 2.3 nats more evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.fixed.exact_binomial import Sizes, runs_to_confirm
from dpaudit.inference.fixed.regions import delta_of
from dpaudit.numerics import Array
from dpaudit.result.base_evidence import is_whole
from dpaudit.result.values import Counts
from dpaudit.rounding import upper
from dpaudit.values import Json, JsonObject

ConfirmationOutcome = Literal["confirmed", "consistent", "contradicted", "not confirmed"]
WEAKEST_PARAMETER = 1e-6  # members of a family with a smaller parameter are replaced by this weaker one
ONE_SEQUENCE = 1e-7  # bound of the probability that independent new processes repeat one sequence of outputs
_OTHER_BOUNDS = 0.1  # share r / s of the significance for bounds outside the family of the claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """Fresh runs in new processes after a refutation, counted in the region of the witness.

    Attributes:
        outcome: "confirmed" if the fresh counts alone refute the claim at the audit's significance.  "consistent" if
            they exceed what the claim allows, but do not refute it alone.  "contradicted" if runs depend on what a
            process keeps, or outputs never vary and processes are too few: inconclusive.  Or else "not confirmed".
        runs: Number of fresh runs on each dataset that was planned before the first of them.
        processes: Number of new processes that made the runs; 0 if they were made in the process of the audit.
        counts: The counts of the region on the fresh runs; None if there are none, or if they prove nothing.
        p_value: Exact p-value of the claim from these counts alone; 1 without counts.
        reason: Why the violation was contradicted or not confirmed; "" for other outcomes.
    """

    outcome: ConfirmationOutcome
    runs: int = 0
    processes: int = 0
    counts: Counts | None = None
    p_value: float = 1.0
    reason: str = ""

    def to_json(self) -> JsonObject:
        """Return the confirmation as plain JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.counts is None:
            del values["counts"]
        else:
            values["counts"] = list(astuple(self.counts))
        return values

    @classmethod
    def from_json(cls, values: Json, claim: TradeoffFunction) -> Confirmation:
        """Read a confirmation of the violation of a claim."""
        if not isinstance(values, Mapping) or values.get("outcome") not in get_args(ConfirmationOutcome):
            raise ValueError(f"the outcome of a confirmation must be one of {', '.join(get_args(ConfirmationOutcome))}")
        counts = None
        if "counts" in values:
            x, n0, z, n1 = values["counts"]
            if not all(map(is_whole, (x, n0, z, n1))) or x > n0 or z > n1:
                raise ValueError(f"a confirmation must count whole numbers of outputs, got {x} of {n0} and {z} of {n1}")
            counts = Counts(false_positives=x, n0=n0, false_negatives=z, n1=n1)
        return cls(
            outcome=values["outcome"],
            runs=int(values["runs"]),
            processes=int(values["processes"]),
            counts=counts,
            p_value=1.0 if counts is None else fresh_p_value(counts, claim),
            reason=str(values["reason"]),
        )


def confirmation_words(found: Confirmation) -> str:
    """Write what the fresh runs say, on one line of plain text."""
    if found.counts is None:
        return f"{found.outcome}: {found.reason}"
    runs = f"{found.counts.n0:,} fresh runs per dataset"
    runs += f" in {found.processes} new processes" if found.processes else ""
    match found.outcome:
        case "confirmed":
            return f"confirmed by {runs}: p <= {upper(found.p_value)} from these runs alone"
        case "consistent":
            return f"consistent with {runs}, which are too few to confirm it alone (p <= {upper(found.p_value)})"
    return f"{found.outcome} by {runs}: {found.reason}"


def fresh_p_value(counts: Counts, claim: TradeoffFunction) -> float:
    """Return the p-value of a claim from the counts of fresh runs alone; see `ONE_SEQUENCE`."""
    return min(1.0, exact_binomial.p_value(claim, *counts.hits) * (1 + ONE_SEQUENCE))


def bounds_significance(significance: float) -> float:
    """Return the significance r of bounds outside the family of the claim; see the theorem of this module."""
    return _OTHER_BOUNDS * significance


def sizes_significance(significance: float) -> float:
    """Return the significance s' of sizes, rounded down; see the theorem of this module."""
    r = bounds_significance(significance)
    return (significance - r) / (1 - r) / (1 + ONE_SEQUENCE)


def claimed_parameter(claim: TradeoffFunction) -> float:
    """Return mu of a Gaussian claim, or epsilon of a claim with a `delta_of`."""
    return float(claim.parameters["mu" if isinstance(claim, GaussianDP) else "epsilon"])


def family_of(claim: TradeoffFunction) -> Callable[[float], TradeoffFunction]:
    """Return the family that ranks the outcomes of fresh runs: epsilon at the delta of a claim, if any, and else mu."""
    delta = delta_of(claim)
    return GaussianDP if math.isnan(delta) else lambda t: ApproxDP(epsilon=t, delta=delta)


def runs_for_size(found: Confirmation, claim: TradeoffFunction, significance: float) -> float | None:
    """Estimate how many fresh runs on each dataset would show how much more than claimed the loss is.

    Inf without sign of a violation; None without fresh counts or if the sizes exceed the claim.
    """
    counts = found.counts
    if counts is None or sizes_of(counts, claim, significance).refutes(claim):
        return None
    return runs_to_confirm(claim, counts.rates, counts.n0, level=sizes_significance(significance))


@lru_cache(maxsize=64)
def sizes_of(counts: Counts, claim: TradeoffFunction, significance: float) -> Sizes:
    """Return which curves the fresh counts refute at once."""
    return Sizes.of(family_of(claim), *counts.hits, significance=sizes_significance(significance))


def band_of(sizes: Sizes, alpha: Array) -> Array:
    """Return upper bounds of the trade-off curve at some type I errors; see `Sizes.boundary`."""
    a, b = sizes.boundary()
    # The curve is convex, at most 1 at 0 and 0 at 1, and at most b at a.
    with np.errstate(divide="ignore", invalid="ignore"):
        left = 1 - (1 - b) * alpha[..., None] / a
        right = b * (1 - alpha[..., None]) / (1 - a)
    each = np.nan_to_num(np.where(alpha[..., None] <= a, left, right), nan=1.0)
    return np.asarray(np.minimum(each.max(axis=-1, initial=0.0), 1 - alpha))
