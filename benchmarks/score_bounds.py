"""Bounds from two lists of scores, beside textbook bounds, and how often they are wrong.

    python benchmarks/score_bounds.py --only power [--seeds 101] [--uneven]
    python benchmarks/score_bounds.py --only validity [--seeds 1000] [--uneven]

`power` prints medians of bounds of epsilon at delta = 1e-5 and 95 % confidence, from the same scores:

    independent   `RankTest` for independent canaries or runs
    coins         `RankTest` for canaries that may depend on each other, if coins decided
    number        the same, if a fixed number was included
    thresholds    Clopper-Pearson bounds at ten quantiles of all scores, in both directions, corrected by Bonferroni
    half          one threshold, chosen with half of the scores, and Clopper-Pearson bounds with the other half
    published     the bound of Steinke, Nasr & Jagielski 2023 for one run, made exact, with m^0.75 guesses

`validity` prints the share of bounds above the true epsilon or mu for claims that are exactly true.  Sides have the
same size, or coins decide; with --uneven, 1,000 are left out and 100 or 20 included, whatever the size.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import beta

from dpaudit.inference import one_run
from dpaudit.inference.one_run import number_factor
from dpaudit.inference.scores.rank_bounds import Path as Claims
from dpaudit.inference.scores.rank_bounds import RankTest
from dpaudit.inference.scores.rank_laws import Inclusion, Independent
from dpaudit.inference.scores.ranks import Blocks
from dpaudit.numerics import Array, bisect
from measure import Case, Column, Outcome, Outcomes, Table, run

DELTA, LEVEL = 1e-5, 0.05
BOUNDS = "independent", "coins", "number", "thresholds", "half", "published"
MU_BOUNDS = "independent, mu", "coins, mu", "number, mu"
LINES = {"coins": "coins", "fixed": "number", "1000:100": "number", "1000:20": "number"}
Law = Callable[[np.random.Generator, int, int], tuple[Array, Array]]  # scores of n0 and of n1


def gaussian(mu: float) -> Law:
    return lambda rng, n0, n1: (rng.normal(size=n0), rng.normal(mu, 1, size=n1))


def laplace(shift: float) -> Law:
    return lambda rng, n0, n1: (rng.laplace(size=n0), rng.laplace(shift, 1, size=n1))


def memorised(share: float) -> Law:
    return lambda rng, n0, n1: (rng.normal(size=n0), rng.normal(size=n1) + 8 * (rng.random(n1) < share))


def response(epsilon: float) -> Law:
    """Exactly (epsilon, DELTA)-DP: surely right with probability DELTA, and otherwise a randomised response."""

    def draw(rng: np.random.Generator, n: int, sure: float, p: float) -> Array:
        return np.where(rng.random(n) < DELTA, sure, np.where(rng.random(n) < p, 1.0, -1.0))

    return lambda rng, n0, n1: (draw(rng, n0, -2.0, 1 - expit(epsilon)), draw(rng, n1, 2.0, expit(epsilon)))


def levels(rng: np.random.Generator, n0: int, n1: int) -> tuple[Array, Array]:
    return rng.integers(0, 3, n0).astype(float), rng.integers(0, 3, n1).astype(float)


def heavy(rng: np.random.Generator, n0: int, n1: int) -> tuple[Array, Array]:
    return rng.standard_cauchy(n0), rng.standard_cauchy(n1)


SHIFTS = {
    **{f"gaussian {mu:g}": gaussian(mu) for mu in (0.5, 1, 2, 3, 4)},
    **{f"laplace {shift:g}": laplace(shift) for shift in (1, 3)},
    "memorised 5 %": memorised(0.05),
}
TRUE: dict[str, tuple[Law, float | None, float | None]] = {  # law, true epsilon, true mu
    "no effect": (gaussian(0), 0.0, 0.0),
    "three levels": (levels, 0.0, 0.0),
    "heavy tails": (heavy, 0.0, 0.0),
    **{f"response {e:g}": (response(e), e, None) for e in (0.5, 1, 2, 3.3)},
    **{f"gaussian {mu:g}": (gaussian(mu), None, mu) for mu in (0.5, 1, 2)},
}


def scores_of(law: Law, n: int, design: str, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng([seed, n, design == "coins"])
    if ":" in design:
        left_out, included = map(int, design.split(":"))
        return law(rng, left_out, included)
    included = int(rng.binomial(2 * n, 0.5)) if design == "coins" else n
    return law(rng, 2 * n - included, included)


def rank_test(scores0: Array, scores1: Array, line: str, delta: float | None, seed: int) -> RankTest:
    both = np.concatenate([scores0, scores1])
    order = np.random.default_rng(seed).permutation(len(both))
    of_d1 = (order >= len(scores0))[np.argsort(-both[order], kind="stable")]
    top = len(both) // 2 if line == "coins" else len(scores1)
    blocks = Blocks(top, len(both) - top)
    share = top / len(both)
    factor = number_factor(len(both), top, share) if line == "number" else 1.0
    law = Independent(blocks) if line == "independent" else Inclusion(blocks, 0.5 if line == "coins" else share, factor)
    return RankTest(law, tuple(blocks.right(of_d1).tolist()), Claims(delta), LEVEL)


def clopper_pearson(scores0: Array, scores1: Array, cuts: Array, level: float) -> Array:
    """Return bounds of epsilon at each cut, in the better of both directions; each side has half of the level."""
    n0, n1 = len(scores0), len(scores1)
    high0, high1 = ((scores[None] > cuts[:, None]).sum(axis=1) for scores in (scores0, scores1))
    found = [np.zeros(len(cuts))]
    for few, n, many, m in ((high0, n0, high1, n1), (n1 - high1, n1, n0 - high0, n0)):
        most = np.where(few < n, beta.ppf(1 - level / 2, few + 1, np.maximum(n - few, 1e-9)), 1.0)
        least = np.where(many > 0, beta.ppf(level / 2, np.maximum(many, 1e-9), m - many + 1), 0.0)
        found.append(np.log(np.maximum(least - DELTA, 1e-300) / most))
    return np.asarray(np.max(found, axis=0))


def thresholds(scores0: Array, scores1: Array) -> float:
    cuts = np.quantile(np.concatenate([scores0, scores1]), np.linspace(0.05, 0.99, 10))
    return float(clopper_pearson(scores0, scores1, cuts, LEVEL / 20).max())


def half(scores0: Array, scores1: Array, seed: int) -> float:
    rng = np.random.default_rng(seed)
    first, second = rng.permutation(scores0), rng.permutation(scores1)
    n0, n1 = len(first) // 2, len(second) // 2
    cuts = np.quantile(np.concatenate([scores0, scores1]), np.linspace(0.02, 0.995, 60))
    best = cuts[np.argmax(clopper_pearson(first[:n0], second[:n1], cuts, 0.3))]
    return float(clopper_pearson(first[n0:], second[n1:], np.array([best]), LEVEL / 2)[0])


def published(scores0: Array, scores1: Array) -> float:
    m = len(scores0) + len(scores1)
    r = min(m, max(math.ceil(m**0.75), 30))
    order = np.argsort(-np.concatenate([scores0, scores1]), kind="stable")
    right = int((order[: r - r // 2] >= len(scores0)).sum() + (order[m - r // 2 :] < len(scores0)).sum())
    found = bisect(
        lambda epsilon: bool(one_run.p_value_exact(epsilon, DELTA, m, r, right) <= LEVEL),
        inside=0.0,
        outside=50.0,
        close=lambda inside, outside: outside - inside < 1e-3,
    )
    return found.inside


def bound(scores: tuple[Array, Array], line: str, seed: int) -> float:
    return rank_test(*scores, line, DELTA, seed).epsilon_lower(DELTA, significance=LEVEL)


def power(n: int, name: str, design: str, seed: int) -> Outcome:
    scores = scores_of(SHIFTS[name], n, design, seed)
    found = {
        "independent": bound(scores, "independent", seed),
        "thresholds": thresholds(*scores),
        "half": half(*scores, seed),
    }
    line = LINES[design]
    found[line] = bound(scores, line, seed)
    if design == "coins":
        found["published"] = published(*scores)
    return found


def validity(n: int, name: str, design: str, seed: int) -> Outcome:
    """Return for each bound whether it exceeds the truth."""
    law, epsilon, mu = TRUE[name]
    scores, found = scores_of(law, n, design, seed), {}
    for line in ("independent", LINES[design]):
        if epsilon is not None:
            found[line] = float(bound(scores, line, seed) > epsilon)
        if mu is not None:
            test = rank_test(*scores, line, None, seed)
            found[f"{line}, mu"] = float(test.mu_lower(significance=LEVEL) > mu)
    return found


def _cases(
    measure: Callable[[int, str, str, int], Outcome],
    laws: Iterable[str],
    sizes: Iterable[int],
    seeds: int,
    uneven: bool,
) -> list[Case]:
    designs = ("1000:100", "1000:20") if uneven else ("fixed", "coins")
    return [
        Case(cells=(str(n), name, design), measure=partial(measure, n, name, design), seeds=seeds)
        for n in sizes
        for name in laws
        for design in designs
    ]


def _each(middle: Callable[[Any], float]) -> dict[str, Column]:
    """Return a column of each bound; bounds that do not exist for a case are left out."""

    def column(name: str, _: Case, outcomes: Outcomes) -> str:
        return f"{middle([one[name] for one in outcomes]):.3f}" if name in outcomes[0] else ""

    return {name: partial(column, name) for name in (*BOUNDS, *MU_BOUNDS)}


def tables(options: argparse.Namespace) -> list[Table]:
    setting = ("size", "scores", "design")
    return [
        Table(
            name="power",
            headings=setting,
            columns=_each(np.median),
            cases=_cases(power, SHIFTS, (100, 500, 1000, 5000), 101, options.uneven),
        ),
        Table(
            name="validity",
            headings=setting,
            columns=_each(np.mean),
            cases=_cases(validity, TRUE, (100, 500), 1000, options.uneven),
        ),
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, uneven=False))
