"""Textbook mechanisms: the noise that a promise requires, and the promise that noise satisfies.

Sources: Balle & Wang 2018 and Dwork & Roth 2014 for the Gaussian mechanism; Kairouz, Oh & Viswanath 2016 for k-ary
randomised response.
"""

from __future__ import annotations

import math

from dpaudit.claims.standard import GaussianDP
from dpaudit.claims.tabulated import TabulatedTradeoff


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the least standard deviation of Gaussian noise that is (epsilon, delta)-DP.

    Balle & Wang 2018, "Improving the Gaussian mechanism for differential privacy", Thm 8: the condition
    Phi(S/(2 sigma) - epsilon sigma/S) - e^epsilon Phi(-S/(2 sigma) - epsilon sigma/S) <= delta is necessary and
    sufficient.  Bisection computes sigma, rounded up.

    Args:
        epsilon: Nats, >= 0.
        delta: Probability in (0, 1).
        sensitivity: > 0, in the units of sigma.
    """
    low, high = 0.0, 1.0  # bracket of mu = S / sigma
    while GaussianDP(high).delta(epsilon) <= delta:
        low, high = high, 2 * high
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if GaussianDP(middle).delta(epsilon) <= delta else (low, middle)
    return sensitivity / low if low else math.inf


def k_ary_response(*, epsilon: float, k: int) -> TabulatedTradeoff:
    """Return the exact promise of k-ary randomised response.

    Of k >= 2 answers, the true one has odds e^epsilon against each other answer.

    Source: Kairouz, Oh & Viswanath 2016, section 3.  With q = 1/(e^epsilon + k - 1) and p = e^epsilon q, the corners
    are (0, 1), (q, 1 - p), ((k - 1) q, q), (1, 0).  For k = 2, it is PureDP(epsilon); for larger k, it is stronger.
    """
    q = math.exp(-epsilon) / (1 + (k - 1) * math.exp(-epsilon))
    rest = (k - 1) * q  # 1 - p
    corners = {0.0: 1.0, q: rest, rest: q, 1.0: 0.0} if q > 0 else {0.0: 0.0, 1.0: 0.0}
    return TabulatedTradeoff(alpha=sorted(corners), beta=[corners[a] for a in sorted(corners)])
