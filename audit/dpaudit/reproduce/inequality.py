"""The test of a script: one inequality that the claim implies, and an exact p-value of two counts.

A claim implies P1 <= exp(epsilon) P0 + delta for the probabilities P0 and P1 of every event on the two datasets.  For
(epsilon, delta)-DP these are the numbers of the claim.  Any other claim implies the inequality for each epsilon with
delta = `claim.delta(epsilon)`, its privacy profile.  The inequality also holds with the two datasets exchanged.

Theorem (p-value of a script):
    The event and the number n of runs on each dataset are fixed before the first run.  Runs are independent.  Let x and
    y be the numbers of runs in the event.  Let u(s) be the Clopper-Pearson upper bound of P0 with significance s, that
    is, the number u with P[Bin(n, u) <= x] = s, or 1 if x = n.  Let g(u) = min(1, exp(epsilon) u + delta), and let
    p be the least s of a fixed finite set with P[Bin(n, g(u(s / 2))) >= y] <= s / 2, or 1 if there is none.  If the
    claim is true, then P[p <= t] <= t for every t.

Proof:
    For t >= 1 there is nothing to show.  As s grows, u(s / 2) falls, so P[Bin(n, g(u(s / 2))) >= y] falls, and s / 2
    rises.  So the condition holds for every s of the set above p.  Hence p <= t < 1 implies the condition for the
    largest s <= t of the set.  The event u(s / 2) < P0 has probability at most s / 2 (Clopper & Pearson 1934).  If
    u(s / 2) >= P0, then P1 <= g(P0) <= g(u(s / 2)), because g is nondecreasing.  In this case, the condition implies
    P[Bin(n, P1) >= y] <= s / 2.  This has probability at most s / 2, since the left side is the p-value of the count y
    for a known probability P1.  The sum is s <= t (union bound).

The test allows each count half of the level, and assumes the worst case of both counts at once.  So it needs up to
twice as many runs as the exact test of dpaudit (`inference.fixed.exact_binomial`), but a reader can check its four
lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.claims import ApproxDP, PureDP, TradeoffFunction
from dpaudit.result.values import Counts

_WANTED = 1e-6  # the p-value at the expected counts; chance then seldom raises it above the required level
_SLOPES = 400  # maximum number of epsilons that are tried for a claim other than (epsilon, delta)-DP
_SAFE, _TINY = 1e-9, 1e-14  # relative and absolute margins added to delta, above the errors of doubles

TEST = """\
levels = np.geomspace(1e-100, 1, 5001)
most = np.nan_to_num(beta.isf(levels / 2, x + 1, RUNS - x), nan=1)
allowed = np.minimum(1, np.exp(EPSILON) * most + DELTA)
p = levels[binom.sf(y - 1, RUNS, allowed) <= levels / 2].min(initial=1)
"""
"""The lines of a script that compute the p-value of the theorem, as `p_value` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inequality:
    """An inequality P(second) <= exp(epsilon) P(first) + delta about one event."""

    epsilon: float
    delta: float
    flipped: bool
    x: int
    n_first: int
    y: int
    n_second: int

    @property
    def sides(self) -> tuple[str, str]:
        """The names of the first and the second dataset in scripts."""
        return ("D1", "D0") if self.flipped else ("D0", "D1")

    @property
    def rates(self) -> tuple[float, float]:
        """The observed rates of both datasets, with one more output counted inside the event and one more outside."""
        return (self.x + 1) / (self.n_first + 2), (self.y + 1) / (self.n_second + 2)

    @property
    def strength(self) -> float:
        """How clearly the rates contradict the inequality, in standard deviations of one run per dataset."""
        a, b = self.rates
        slope = math.exp(min(self.epsilon, 300.0))
        spread = math.sqrt(b * (1 - b) + slope * a * slope * (1 - a))
        return (b - slope * a - self.delta) / spread

    def runs(self, seconds: float) -> int:
        """Return the number of runs per dataset of a script, if a run takes this time.

        It is twice what the observed rates need for p <= 1e-6, because the counts of an audit tend to exaggerate the
        violation.  It is at least 1,000, or the number for 15 seconds if a mechanism is slow, but no less than 200.
        """
        if self.strength <= 0:
            return 10_000
        least = 1_000 if seconds <= 0 else min(1_000, max(200, int(15.0 / (2 * seconds))))
        return 1_000_000 if (needed := self.needed) is None else max(least, 2 * needed)

    @property
    def needed(self) -> int | None:
        """Number of runs per dataset that the observed rates need for p <= 1e-6; None if no tried number suffices."""
        a, b = self.rates
        sizes = [int(m * 10.0**k) for k in range(2, 6) for m in (1, 2, 5)]
        found = (n for n in sizes if p_value(self, math.ceil(n * a), math.floor(n * b), n) <= _WANTED)
        return next(found, None) if self.strength > 0 else None


def p_value(tested: Inequality, x: int, y: int, n: int) -> float:
    """Return the p-value of the theorem of this module, as the script computes it."""
    from scipy.stats import beta, binom  # loads slowly

    levels = np.geomspace(1e-100, 1, 5001)
    most = np.nan_to_num(beta.isf(levels / 2, x + 1, n - x), nan=1)
    allowed = np.minimum(1, np.exp(tested.epsilon) * most + tested.delta)
    return float(levels[binom.sf(y - 1, n, allowed) <= levels / 2].min(initial=1))


def strongest(claim: TradeoffFunction, counts: Counts) -> Inequality:
    """Return the inequality that the counts of the audit contradict most clearly."""
    x, y = counts.false_positives, counts.n1 - counts.false_negatives
    sides = [(False, x, counts.n0, y, counts.n1), (True, counts.n1 - y, counts.n1, counts.n0 - x, counts.n0)]
    found = [
        Inequality(epsilon=epsilon, delta=delta, flipped=flipped, x=a, n_first=n, y=b, n_second=m)
        for epsilon, delta in _implied(claim)
        for flipped, a, n, b, m in sides
    ]
    return max(found, key=lambda one: one.strength)


def _implied(claim: TradeoffFunction) -> list[tuple[float, float]]:
    """Return pairs (epsilon, delta) such that the claim implies (epsilon, delta)-DP in both directions."""
    if isinstance(claim, PureDP | ApproxDP):
        return [(float(claim.parameters["epsilon"]), float(claim.parameters.get("delta", 0.0)))]
    curve = claim.symmetrized()
    slopes = curve.slopes()
    slopes = slopes[np.isfinite(slopes) & (slopes >= 0)]
    chosen = slopes[np.unique(np.linspace(0, len(slopes) - 1, min(_SLOPES, len(slopes))).astype(int))]
    if math.isfinite(largest := curve.max_privacy_loss()):
        chosen = np.append(chosen, largest)
    found = []
    for epsilon in [rounded_up(float(epsilon)) for epsilon in chosen]:
        delta = float(curve.delta(epsilon))
        found.append((epsilon, min(1.0, rounded_up(delta * (1 + _SAFE) + _TINY) if delta > 0 else 0.0)))
    return found


def rounded_up(number: float) -> float:
    """Return a number >= `number` with at most seven significant digits, or 0 for 0.

    Numbers of claims stay short in a script, and a larger epsilon or delta is a weaker claim.
    """
    if number <= 0 or float(f"{number:.6g}") == number:
        return max(number, 0.0)
    digits = 6 - math.floor(math.log10(number))
    found = float(f"{number + 10.0**-digits:.6e}")
    return found if found >= number else number
