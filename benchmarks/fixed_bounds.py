"""Certified lower bounds on mu and epsilon from a fixed number of trials, beside those of Clopper-Pearson intervals.

    python benchmarks/fixed_bounds.py [--outcomes 200] [--markdown]

The mechanism is Gaussian noise with mu = 1, the region is the half-line above the midpoint, and the confidence is 95 %.
There are n outputs of each dataset.  Medians are over the law of the counts; a lattice of quantiles makes them far more
precise than random draws would.  "Split": Clopper-Pearson bounds from half of the trials; the other half chose the
threshold.  "Limit": the median bound from the most powerful test of each smaller mu against the truth.  No valid bound
from this region has a larger median (Neyman-Pearson; normal approximation).
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from dpaudit.inference.fixed.binomial import clopper_pearson_lower, clopper_pearson_upper
from dpaudit.inference.fixed.exact_binomial import epsilon_lower, mu_lower

SIGNIFICANCE = 0.05
TRIALS = (1_000, 10_000, 100_000)


def outcomes(n: int, count: int) -> list[tuple[int, int]]:
    """Return counts (x, y) from n outputs each, spread evenly over their joint law."""
    i = np.arange(count)
    u, v = (i + 0.5) / count, (0.5 + i * (math.sqrt(5) - 1) / 2) % 1
    rate = float(ndtr(-0.5))
    return list(
        zip(binom.ppf(u, n, rate).astype(int).tolist(), binom.ppf(v, n, 1 - rate).astype(int).tolist(), strict=True)
    )


def clopper_pearson_mu(x: int, y: int, n: int) -> float:
    """Return mu at the corner of two one-sided intervals that share the significance."""
    alpha = clopper_pearson_upper(x, n, significance=SIGNIFICANCE / 2)
    power = clopper_pearson_lower(y, n, significance=SIGNIFICANCE / 2)
    return float(ndtri(power) - ndtri(alpha))


def clopper_pearson_epsilon(x: int, y: int, n: int, delta: float) -> float:
    """Return epsilon at the corner of two one-sided intervals that share the significance."""
    alpha = clopper_pearson_upper(x, n, significance=SIGNIFICANCE / 2)
    power = clopper_pearson_lower(y, n, significance=SIGNIFICANCE / 2)
    return max(math.log((power - delta) / alpha), math.log((1 - alpha - delta) / (1 - power)))


def limit(n: int) -> float:
    """Solve mu + z sd(mu) = 1, where sd is that of the estimate from the two rates at the midpoint."""
    mu = 1.0
    for _ in range(50):
        rate, density = ndtr(-mu / 2), math.exp(-((mu / 2) ** 2) / 2) / math.sqrt(2 * math.pi)
        mu = 1 + ndtri(SIGNIFICANCE) * math.sqrt(2 * rate * (1 - rate) / n) / density
    return float(mu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outcomes", type=int, default=200)
    parser.add_argument("--markdown", action="store_true", help="print a table for the docs")
    options = parser.parse_args()
    heads = ["n", "mu: exact", "Clopper-Pearson", "split", "limit", "epsilon at 1e-5: exact", "Clopper-Pearson", "ms"]
    print(("| {} |" if options.markdown else "{}").format(" | ".join(heads)))
    if options.markdown:
        print("|" + "---|" * len(heads))
    for n in TRIALS:
        drawn = outcomes(n, options.outcomes)
        started = time.process_time()
        exact = np.median([mu_lower(x, n, y, n, significance=SIGNIFICANCE) for x, y in drawn])
        milliseconds = 1000 * (time.process_time() - started) / len(drawn)
        row = [
            exact,
            np.median([clopper_pearson_mu(x, y, n) for x, y in drawn]),
            np.median([clopper_pearson_mu(x, y, n // 2) for x, y in outcomes(n // 2, options.outcomes)]),
            limit(n),
            np.median([epsilon_lower(x, n, y, n, delta=1e-5, significance=SIGNIFICANCE) for x, y in drawn]),
            np.median([clopper_pearson_epsilon(x, y, n, 1e-5) for x, y in drawn]),
        ]
        cells = " | ".join([str(n), *(f"{value:.4f}" for value in row), f"{milliseconds:.0f}"])
        print(("| {} |" if options.markdown else "{}").format(cells), flush=True)


if __name__ == "__main__":
    main()
