"""Limits on the median of any valid lower bound on mu from the scores of canaries in one run."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri

S = 0.05  # significance of the bounds


def limit_independent(mu: float, m: int) -> float:
    """Return an upper limit on the median of any valid lower bound on mu from m independent canaries.

    For a given mu0, let scores have the law N(c + mu0, 1) with the canary and N(c, 1) without the canary.  For c = (mu
    - mu0)/2, consider the most powerful test of this null hypothesis against mu with c = 0.  By the Neyman-Pearson
    lemma, the test has power 1/2 if sqrt(m) (mu - mu0)/2 = z.  A valid bound that does not know c exceeds mu0 with at
    most this power.  This is true even if the bound assumes the unit variance.
    """
    return mu + 2 * float(ndtri(S)) / math.sqrt(m)


def limit_any(mu: float, m: int) -> float:
    """Estimate the largest median of any valid bound on mu that assumes nothing about the canaries.

    With probability w, the considered mechanism releases independent information about each canary; otherwise, it
    reveals nothing.  For all u in (0, 1], let e'(u) be its error rate among the most confident share u of the guesses.
    The mechanism satisfies G_mu0 if e' is at least the error rate of a mechanism with the privacy profile delta_mu0 /
    w.  Let e(u) be the error rate of G_mu.  A bound above mu0 must therefore distinguish e' from e at significance S /
    w, where S is the significance of the bound.  For each w, the function finds the mu0 at which this test has power
    1/2.  It uses a normal approximation of the log-likelihood ratio, and returns the smallest mu0 over a grid of w.
    The result is an estimate and not an exact limit.
    """
    t = np.linspace(7, 0, 1501)
    wrong = ndtr(-(t + mu / 2))
    share = wrong + ndtr(-(t - mu / 2))
    width = np.diff(share)
    grid = np.linspace(0, 12 * max(mu, 0.3), 500)

    def separation(mu0: float, w: float) -> float:
        delta = np.minimum((ndtr(-grid / mu0 + mu0 / 2) - np.exp(grid) * ndtr(-grid / mu0 - mu0 / 2)) / w, 1.0)
        least = np.maximum(((share[:, None] - delta) / (1 + np.exp(grid))).max(axis=1), 0.0)
        e = np.diff(wrong) / width
        other = np.clip(np.diff(np.maximum(least, wrong)) / width, 1e-12, 0.5)
        return math.sqrt(m * float(((e - other) ** 2 / (other * (1 - other)) * width).sum())) + float(ndtri(S / w))

    best = mu
    for w in (0.12, 0.16, 0.2, 0.25, 0.3, 0.4):
        low, high = 0.02 * mu, mu
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (middle, high) if separation(middle, w) > 0 else (low, middle)
        best = min(best, low)
    return best
