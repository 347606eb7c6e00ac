"""The textbook mechanisms: how much noise a promise takes, and what is promised by how much noise.

Sources: Dwork & Roth 2014, "The algorithmic foundations of differential privacy"; Warner 1965 and Kairouz, Oh &
Viswanath 2016 for randomised response; Balle & Wang 2018 for the Gaussian mechanism.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.ranges import count, nonnegative, positive, probability
from dpaudit.claims.tabulated import TabulatedTradeoff
from dpaudit.numerics.arrays import Array


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Least standard deviation of Gaussian noise that is (epsilon, delta)-DP: exact.

    Balle & Wang 2018, "Improving the Gaussian mechanism for differential privacy", Thm 8: necessary and sufficient is
    Phi(S/(2 sigma) - epsilon sigma/S) - e^epsilon Phi(-S/(2 sigma) - epsilon sigma/S) <= delta.  Found by bisection,
    rounded up.  epsilon >= 0, 0 < delta < 1, sensitivity > 0 in the units of sigma.
    """
    epsilon, delta = nonnegative("epsilon", epsilon), _inside("delta", delta)
    sensitivity = positive("sensitivity", sensitivity)
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
    epsilon, delta = positive("epsilon", epsilon), _inside("delta", delta)
    z = -float(ndtri(delta))  # epsilon t - 1 / (2 t) = z for t = sigma / S
    root = math.sqrt(z * z + 2 * epsilon)
    t = (z + root) / (2 * epsilon) if z >= 0 else 1 / (root - z)
    return positive("sensitivity", sensitivity) * t


def laplace_scale(*, epsilon: float, sensitivity: float = 1.0) -> float:
    """Scale b = S / epsilon of Laplace noise that is epsilon-DP (Dwork & Roth 2014, Thm 3.6), and no smaller one is.

    What it promises is more than that: LaplaceDP(epsilon).
    """
    return positive("sensitivity", sensitivity) / positive("epsilon", epsilon)


def spinner_truth(epsilon: float) -> float:
    """Probability p of a true answer, else the opposite one, that is epsilon-DP; Warner 1965: p / (1-p) = e^epsilon."""
    return 1 / (1 + math.exp(-nonnegative("epsilon", epsilon)))


def spinner_epsilon(truth: float) -> float:
    """epsilon of answering truly with probability `truth`, else with the opposite: |log(p / (1 - p))|, nats."""
    p = probability("truth", truth)
    return abs(math.log(p) - math.log1p(-p)) if 0 < p < 1 else math.inf


def spinner_and_coin_truth(epsilon: float) -> float:
    """Probability p of a true answer, else a fair coin's, that is epsilon-DP: p = (e^epsilon - 1)/(e^epsilon + 1).

    The answer is then true with probability p + (1 - p)/2 = `spinner_truth(epsilon)`: it is the same mechanism.
    """
    return math.tanh(nonnegative("epsilon", epsilon) / 2)


def spinner_and_coin_epsilon(truth: float) -> float:
    """epsilon of answering truly with probability `truth`, else with a fair coin: log((1 + p)/(1 - p)), nats."""
    p = probability("truth", truth)
    return 2 * math.atanh(p) if p < 1 else math.inf


def true_rate(noisy_rate: npt.ArrayLike, truth: float) -> Array | float:
    """Unbiased estimate of the true rate of "yes" from that among spinner-and-coin answers: (pi - (1 - p)/2)/p.

    `truth`: the probability p > 0 of a true answer.  Of a plain spinner with probability t it is p = 2 t - 1.  The
    estimate may lie outside [0, 1]; its standard deviation is that of the noisy rate divided by p.
    """
    p = probability("truth", truth)
    if p == 0:
        raise ValueError("truth must lie in (0, 1], got 0: such answers say nothing about the rate")
    rates = np.asarray(noisy_rate, dtype=np.float64)
    if not np.all(legal := (rates >= 0) & (rates <= 1)):
        raise ValueError(f"noisy_rate must lie in [0, 1], got {rates[~legal].flat[0]}")
    estimate: Array = (rates - (1 - p) / 2) / p
    return float(estimate) if estimate.ndim == 0 else estimate


def k_ary_response(*, epsilon: float, k: int) -> TabulatedTradeoff:
    """Exact promise of k-ary randomised response: the true one of k answers with odds e^epsilon to each other one.

    Kairouz, Oh & Viswanath 2016, section 3.  With q = 1/(e^epsilon + k - 1) and p = e^epsilon q the corners are (0, 1),
    (q, 1 - p), ((k - 1) q, q), (1, 0).  For k = 2 it is PureDP(epsilon), for more answers stronger than that.
    """
    epsilon, k = nonnegative("epsilon", epsilon), count("k", k)
    if k < 2:
        raise ValueError(f"k must be a whole number >= 2, got {k}")
    q = math.exp(-epsilon) / (1 + (k - 1) * math.exp(-epsilon))
    rest = (k - 1) * q  # 1 - p
    corners = {0.0: 1.0, q: rest, rest: q, 1.0: 0.0} if q > 0 else {0.0: 0.0, 1.0: 0.0}
    return TabulatedTradeoff(alpha=sorted(corners), beta=[corners[a] for a in sorted(corners)])


def _inside(name: str, value: float) -> float:
    if not 0 < probability(name, value) < 1:
        raise ValueError(f"{name} must lie in (0, 1), got {value!r}")
    return float(value)
