"""The textbook mechanisms: how much noise a promise takes, and what is promised by how much noise.

Sources: Balle & Wang 2018 and Dwork & Roth 2014 for the Gaussian mechanism; Kairouz, Oh & Viswanath 2016 for k-ary
randomised response.
"""

from __future__ import annotations

import math

from scipy.special import ndtri

from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.tabulated import TabulatedTradeoff


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Least standard deviation of Gaussian noise that is (epsilon, delta)-DP: exact.

    Balle & Wang 2018, "Improving the Gaussian mechanism for differential privacy", Thm 8: necessary and sufficient is
    Phi(S/(2 sigma) - epsilon sigma/S) - e^epsilon Phi(-S/(2 sigma) - epsilon sigma/S) <= delta.  Found by bisection,
    rounded up.  epsilon >= 0, 0 < delta < 1, sensitivity > 0 in the units of sigma.
    """
    low, high = 0.0, 1.0  # of mu = S / sigma
    while GaussianDP(high).delta(epsilon) <= delta:
        low, high = high, 2 * high
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if GaussianDP(middle).delta(epsilon) <= delta else (low, middle)
    return sensitivity / low if low else math.inf


def gaussian_sigma_classical(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Standard deviation at which P[privacy loss > epsilon] = delta: sufficient for (epsilon, delta)-DP, not tight.

    The privacy loss of Gaussian noise is N(mu^2/2, mu^2) with mu = S / sigma, so the condition reads
    Phi(S/(2 sigma) - epsilon sigma/S) = delta.  Since delta(epsilon) = E(1 - e^(epsilon - loss))_+ <=
    P[loss > epsilon], it suffices; what it asks for is more noise than `gaussian_sigma`.  The simpler
    sigma = S sqrt(2 log(1.25/delta)) / epsilon of Dwork & Roth 2014, Thm 3.22 (epsilon < 1) bounds it from above.
    epsilon > 0, 0 < delta < 1, sensitivity > 0 in the units of sigma.
    """
    z = -float(ndtri(delta))  # epsilon t - 1 / (2 t) = z for t = sigma / S
    root = math.sqrt(z * z + 2 * epsilon)
    t = (z + root) / (2 * epsilon) if z >= 0 else 1 / (root - z)
    return sensitivity * t


def k_ary_response(*, epsilon: float, k: int) -> TabulatedTradeoff:
    """Exact promise of k-ary randomised response: the true one of k >= 2 answers with odds e^epsilon to each other one.

    Kairouz, Oh & Viswanath 2016, section 3.  With q = 1/(e^epsilon + k - 1) and p = e^epsilon q the corners are (0, 1),
    (q, 1 - p), ((k - 1) q, q), (1, 0).  For k = 2 it is PureDP(epsilon), for more answers stronger than that.
    """
    q = math.exp(-epsilon) / (1 + (k - 1) * math.exp(-epsilon))
    rest = (k - 1) * q  # 1 - p
    corners = {0.0: 1.0, q: rest, rest: q, 1.0: 0.0} if q > 0 else {0.0: 0.0, 1.0: 0.0}
    return TabulatedTradeoff(alpha=sorted(corners), beta=[corners[a] for a in sorted(corners)])
