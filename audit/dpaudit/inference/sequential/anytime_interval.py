"""Two-sided interval of one proportion that holds whenever counting stops."""

from __future__ import annotations

import math

from scipy.special import betaln

from dpaudit.numerics.bisect import bisect

_STEPS = 60  # halvings of [0, 1]: to the last bit


def anytime_interval(
    successes: int, trials: int, *, significance: float, prior: tuple[float, float] = (0.5, 0.5)
) -> tuple[float, float]:
    """Confidence interval of a proportion, valid at any stopping time.

    **Theorem.**  Let X_1, X_2, ... be independent Bernoulli(p), K_n their sums, and (a, b) > 0 settled before X_1.
    Then P[there is n: p is not in anytime_interval(K_n, n, prior=(a, b))] <= significance.

    *Proof.*  M_n = B(a + K_n, b + n - K_n) / (B(a, b) p^K_n (1 - p)^(n - K_n)), the likelihood of a Beta(a, b) mixture
    over that of p, is a nonnegative martingale with M_0 = 1.  The interval holds all p with M_n < 1/significance; the
    likelihood is log-concave in p, so these make an interval.  Ville 1939; Robbins 1970, Ann. Math. Stat. 41.

    Args:
        successes: K_n.
        trials: n.
        significance: In (0, 1), of both ends together.
        prior: What was known of p before; it decides the width, never the guarantee.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"a count must lie between 0 and the number of outputs, got {successes} of {trials}")
    if not 0 < significance < 1:
        raise ValueError(f"significance must lie in (0, 1), got {significance}")
    if trials == 0:
        return 0.0, 1.0
    failures = trials - successes
    mixture = betaln(prior[0] + successes, prior[1] + failures) - betaln(*prior)
    least = float(mixture) + math.log(significance)

    def likely(p: float) -> bool:
        hit = successes * math.log(p) if successes else 0.0
        return hit + (failures * math.log1p(-p) if failures else 0.0) > least

    def end(outside: float) -> float:
        """Between the observed rate and an end of [0, 1], which is not likely: rounded to the outer side."""
        return bisect(likely, inside=successes / trials, outside=outside, steps=_STEPS).outside

    return (end(0.0) if successes else 0.0), (end(1.0) if failures else 1.0)
