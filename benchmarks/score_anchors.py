"""Published examples of audits with one run, beside our bounds from scores of the same law.

    python benchmarks/score_anchors.py [--seeds 9] [--file FILE]

- dirac: Dirac canaries of DP-SGD as in Agrawal et al. 2026 ("Let's Ask Gauss", arXiv:2606.12733): 2,500 steps, sampling
  rate 4,096/50,000, and 5,000 canaries.  The published bounds are theirs, and those that they report for Steinke, Nasr
  & Jagielski 2023 and for Mahloujifar, Melis & Chaudhuri 2024 (arXiv:2410.22235).  Each score is the sum of the noisy
  gradients at the canary's coordinate, so it needs no model.
- gaussian: scores N(0, 1) and N(mu, 1) as in Xiang et al. 2025 (arXiv:2509.08704).

All bounds are lower bounds on epsilon at delta = 1e-5 with 95 % confidence; ours are medians over the seeds.  "GDP" are
bounds that assume a Gaussian trade-off function, as those of Mahloujifar et al., Xiang et al. and Agrawal et al. do.
"limit" are limits on the medians of such bounds (`one_run_limits`); the limit without an assumption is an estimate.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from audit_store import Row, Store
from one_run_limits import S, limit_any, limit_independent
from score_bounds import DELTA, rank_test

from dpaudit.claims import GaussianDP
from dpaudit.numerics import Array

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


def bounds(law: Law, m: int, seed: int) -> Row:
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    scores, found = law(rng, included.astype(np.float64)), {}
    for line in LINES:
        each = partial(rank_test, scores[~included], scores[included], line)
        found[f"{line} GDP"] = epsilon(each(None, seed).mu_lower(significance=S))
        found[line] = each(DELTA, seed).epsilon_lower(DELTA, significance=S)
    return found


def show(store: Store, name: str, law: Law, m: int, mu: float, truth: float, published: str, seeds: int) -> None:
    rows = [store.row(f"{name} {seed}", partial(bounds, law, m, seed)) for seed in range(seeds)]
    print(f"{name}: true {truth:.3f}; published: {published}")
    for (line, words), limit in zip(LINES.items(), (limit_independent, limit_any), strict=True):
        gdp, any_curve = (np.median([row[key] for row in rows]) for key in (f"{line} GDP", line))
        print(
            f"    {words:20}  GDP {gdp:.3f} (limit {epsilon(limit(mu, m)):.3f})  any curve {any_curve:.3f}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--file", type=Path, help="a file of finished audits, to go on with")
    options = parser.parse_args()
    store = Store(options.file)
    for sigma, (truth, steinke, mahloujifar, agrawal) in DIRAC.items():
        published = f"Steinke {steinke:.3f}, Mahloujifar {mahloujifar:.3f}, Agrawal {agrawal:.3f}"
        name = f"dirac, sigma {sigma}, {CANARIES:,} canaries"
        show(store, name, partial(dirac, sigma), CANARIES, mu_of(sigma), truth, published, options.seeds)
    for mu, xiang in XIANG.items():
        for m, theirs in zip(SIZES, xiang, strict=True):
            name = f"gaussian, mu {mu}, {m:,} canaries"
            show(store, name, partial(gaussian, mu), m, mu, epsilon(mu), f"Xiang {theirs:.3f}", options.seeds)


if __name__ == "__main__":
    main()
