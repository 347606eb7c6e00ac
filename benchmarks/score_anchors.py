"""Published examples of audits with one run, beside our bounds from scores of the same law.

    python benchmarks/score_anchors.py [--seeds 9]

- dirac: Dirac canaries of DP-SGD as in Agrawal et al. 2026 ("Let's Ask Gauss", arXiv:2606.12733): 2,500 steps, sampling
  rate 4,096/50,000, and 5,000 canaries.  The published bounds are theirs, and those that they report for Steinke, Nasr
  & Jagielski 2023 and for Mahloujifar, Melis & Chaudhuri 2024 (arXiv:2410.22235).  Each score is the sum of the noisy
  gradients at the canary's coordinate, so it needs no model.
- gaussian: scores N(0, 1) and N(mu, 1) as in Xiang et al. 2025 (arXiv:2509.08704).

All bounds are lower bounds on epsilon at delta = 1e-5 with 95 % confidence; ours are medians over the seeds.  "GDP" are
bounds that assume a Gaussian trade-off function, as those of Mahloujifar et al., Xiang et al. and Agrawal et al. do.
"Limits" are limits on the medians of such bounds, of any method, with independent canaries and with nothing assumed;
the second is an estimate.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri

from dpaudit.claims import GaussianDP
from dpaudit.numerics import Array
from measure import Case, Outcome, Table, median, run
from score_bounds import DELTA, rank_test

S = 0.05  # significance of the bounds
STEPS, RATE, CANARIES = 2500, 4096 / 50_000, 5000
DIRAC = {  # sigma: the true epsilon, and the bounds of Steinke et al., Mahloujifar et al. and Agrawal et al.
    15.731: (0.975, 0.552, 0.638, 0.617),
    8.431: (1.947, 1.172, 1.427, 1.348),
    4.614: (3.895, 1.956, 2.629, 3.288),
    2.629: (7.788, 3.330, 4.697, 6.671),
}
XIANG = {0.5: (1.469, 1.828, 1.941), 1.0: (3.756, 4.179, 4.314), 2.0: (9.004, 9.688, 9.900)}
SIZES = (1_000, 10_000, 100_000)
LINES = {"independent": "independent canaries", "coins": "nothing assumed"}
Law = Callable[[np.random.Generator, Array], Array]  # from coins to scores


def dirac(sigma: float, rng: np.random.Generator, included: Array) -> Array:
    return rng.normal(0, sigma * math.sqrt(STEPS), len(included)) + included * rng.binomial(STEPS, RATE, len(included))


def gaussian(mu: float, rng: np.random.Generator, included: Array) -> Array:
    return rng.normal(mu * included, 1.0)


def mu_of(sigma: float) -> float:
    """Return mu of Dirac canaries, whose scores are Gaussian up to an error of about 1 %."""
    return STEPS * RATE / math.sqrt(STEPS * (sigma**2 + RATE * (1 - RATE) / 2))


def epsilon(mu: float) -> float:
    return float(GaussianDP(mu).epsilon(DELTA))


def bounds(law: Law, m: int, seed: int) -> Outcome:
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    scores, found = law(rng, included.astype(np.float64)), {}
    for line in LINES:
        each = partial(rank_test, scores[~included], scores[included], line)
        found[f"{line} GDP"] = epsilon(each(None, seed).mu_lower(significance=S))
        found[line] = each(DELTA, seed).epsilon_lower(DELTA, significance=S)
    return found


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


def case(name: str, law: Law, m: int, mu: float, truth: float, published: str) -> Case:
    limits = ", ".join(f"{epsilon(limit(mu, m)):.3f}" for limit in (limit_independent, limit_any))
    return Case(
        cells=(f"{name}, {m:,} canaries", f"{truth:.3f}", published, limits), measure=partial(bounds, law, m), seeds=9
    )


def tables(options: argparse.Namespace) -> list[Table]:
    cases = []
    for sigma, (truth, steinke, mahloujifar, agrawal) in DIRAC.items():
        published = f"Steinke {steinke:.3f}, Mahloujifar {mahloujifar:.3f}, Agrawal {agrawal:.3f}"
        cases.append(case(f"dirac, sigma {sigma}", partial(dirac, sigma), CANARIES, mu_of(sigma), truth, published))
    for mu, xiang in XIANG.items():
        for m, theirs in zip(SIZES, xiang, strict=True):
            law = partial(gaussian, mu)
            cases.append(case(f"gaussian, mu {mu}", law, m, mu, epsilon(mu), f"Xiang {theirs:.3f}"))
    columns = {
        f"{kind}, {words}": median(f"{line}{' GDP' if kind == 'GDP' else ''}", ".3f")
        for kind in ("GDP", "any curve")
        for line, words in LINES.items()
    }
    return [Table(headings=("scores", "true epsilon", "published", "limits"), columns=columns, cases=cases)]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables))
