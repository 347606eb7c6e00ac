"""Measure certified bounds from the scores of canaries in one run, and compare them with two published tables.

    python benchmarks/one_run_tables.py [PART ...] [--seeds 9] [--first 0] [--store FILE]

PART is one of:

- table1: Dirac canaries of DP-SGD as in Agrawal et al. 2026, arXiv:2606.12733.  The training has 2,500 steps, the
  sampling rate 4,096/50,000 and 5,000 canaries.  The table shows median bounds on epsilon at delta = 1e-5 under three
  assumptions.  The first column assumes independent canaries and a Gaussian trade-off function.  The second column
  assumes independent canaries and the trade-off functions of DP-SGD.  The third column assumes nothing about the
  canaries.
- table2: scores with the laws N(0, 1) and N(mu, 1) as in Xiang et al. 2025, arXiv:2509.08704.  The table assumes
  independent canaries and a Gaussian trade-off function.
- limits: upper limits on the median of any valid bound; see `one_run_limits`.  It takes minutes.
- validity: the share of bounds in both tables that exceed the true value; use --seeds 1000.
- counterexample: a mechanism that satisfies G_1 although its canaries are dependent.  With probability 0.3937, it
  applies randomised response with epsilon = 1.5 to all records.  Otherwise, its output reveals nothing.  The part
  also shows how often `audit_scores` with independence="canaries" warns of dependence, in several runs and in one.
- guesses: several rules for the number of guesses without assumptions about the canaries; use --seeds 101.

Every audit has a separate seed.  The result of each audit is saved in the store, so that an interrupted command can be
resumed.  The confidence is 95 %.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from audit_store import Row, Store
from dependent_canaries import ORDERED, gaussian_runs, ordered, response, warned
from one_run_limits import S, limit_any, limit_independent, limit_mixture

from dpaudit.claims import GaussianDP
from dpaudit.inference import one_run
from dpaudit.inference.scores import both_sides, confident, levels, several, tight, weighted
from dpaudit.inference.scores.families import epsilon_inside, family_of
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.bisect import bisect_integers

DELTA = 1e-5
STEPS, RATE, CANARIES = 2500, 4096 / 50_000, 5000
FAMILY = f"repeated(subsampled(gaussian(mu=?), rate={RATE}, relation='add_remove'), n={STEPS})"
# maps the noise multiplier sigma to the true epsilon at delta = 1e-5
TABLE1 = {15.731: 0.975, 8.431: 1.947, 4.614: 3.895, 2.629: 7.788}
XIANG = {0.5: (1.469, 1.828, 1.941), 1.0: (3.756, 4.179, 4.314), 2.0: (9.004, 9.688, 9.900)}
SIZES = (1_000, 10_000, 100_000)
# the largest count, the p-value of a count, and the function from scores to a pair that ends with the count
Test = tuple[int, Callable[[int], float], Callable[..., tuple[Any, int]]]


def dirac(sigma: float, seed: int, m: int = CANARIES) -> tuple[Array, Any]:
    """Return the scores of Dirac canaries, and whether a fair coin included each canary."""
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    return rng.normal(0, sigma * math.sqrt(STEPS), m) + included * rng.binomial(STEPS, RATE, m), included


def gaussian(mu: float, m: int, seed: int) -> tuple[Array, Any]:
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    return rng.normal(mu * included, 1.0), included


def mu_of(sigma: float) -> float:
    """Return mu of the scores in table 1.

    Each score is a sum over the steps.  Its law is Gaussian with an error of about 1 %.
    """
    return STEPS * RATE / math.sqrt(STEPS * (sigma**2 + RATE * (1 - RATE) / 2))


def counts(scores: Array, included: Any, r: int) -> tuple[int, int]:
    answers = both_sides.guess(scores, r)
    return r, int(np.count_nonzero(answers == np.where(included, 1, -1)))


def points(scores: Array, included: Any) -> tuple[levels.Numbers, int]:
    """Return the default levels, and the total weight of the right guesses."""
    m = len(scores)
    numbers = levels.default_numbers(m)
    one, two, three = (counts(scores, included, r)[1] for r in (*numbers, m))
    return numbers, levels.points((one, two, three))


def epsilon(mu: float) -> float:
    return float(GaussianDP(mu).epsilon(DELTA))


def independent(scores: Array, included: Any) -> Row:
    m, began = len(scores), time.process_time()
    mu = levels.mu_lower(m, *points(scores, included), significance=S)
    return {"mu": mu, "epsilon": epsilon(mu), "seconds": time.process_time() - began}


def inside_family(sigma: float, seed: int) -> Row:
    scores, included = dirac(sigma, seed)
    began = time.process_time()
    family = family_of(FAMILY)
    t = levels.parameter_lower(family, CANARIES, *points(scores, included), significance=S, precision=1e-3)
    return {"mu": t, "epsilon": epsilon_inside(family, t, DELTA), "seconds": time.process_time() - began}


def anything(scores: Array, included: Any) -> Row:
    m, began = len(scores), time.process_time()
    r, v = counts(scores, included, several.default_guesses(m))
    mu = tight.mu_lower(m, r, v, significance=S)
    return {"mu": mu, "epsilon": epsilon(mu), "seconds": time.process_time() - began}


def counterexample(seed: int, m: int = 1000) -> Row:
    scores, included = response(seed, m, 1)
    claim = GaussianDP(1.0)
    found = {"independent": float(levels.p_value(claim, m, *points(scores[:, 0], included[:, 0])) <= S)}
    r, v = counts(scores[:, 0], included[:, 0], several.default_guesses(m))
    found["anything"] = float(one_run.refutes(claim, m, r, v, significance=S))
    for runs in (2, 5):
        scores, included = response(seed + 10**6, m, runs)
        shows = len(np.unique(np.abs(scores[0]))) > 1  # informative and uninformative runs both occurred
        found |= {f"shows{runs}": float(shows), f"warned{runs}": warned(scores, included, seed)}
        found[f"false{runs}"] = warned(*gaussian_runs(m, runs, seed), seed)
    for kind in ORDERED:
        found[f"ordered {kind}"] = warned(*ordered(kind, seed, m), seed)
    found["false1"] = warned(*gaussian_runs(m, 1, seed), seed)
    return found


def on(method: Callable[[Array, Any], Row], scores: Callable[[int], tuple[Array, Any]], seed: int) -> Row:
    return method(*scores(seed))


def audits(store: Store, name: str, seeds: range, make: Callable[[int], Row]) -> list[Row]:
    return [store.row(f"{name} {seed}", partial(make, seed)) for seed in seeds]


def settings() -> Iterator[tuple[str, float, float, int, Callable[[int], tuple[Array, Any]]]]:
    """Yield the settings of both tables.

    Each setting has a name, the true mu, the true epsilon, the number of canaries, and a function from a seed to
    scores.
    """
    for sigma, eps in TABLE1.items():
        yield f"dirac {sigma}", mu_of(sigma), eps, CANARIES, partial(dirac, sigma)
    for mu in XIANG:
        for m in SIZES:
            yield f"gauss {mu} {m}", mu, epsilon(mu), m, partial(gaussian, mu, m)


def medians(rows: list[Row]) -> str:
    return f"{np.median([row['epsilon'] for row in rows]):7.3f} ({np.max([row['seconds'] for row in rows]):4.1f} s)"


def table(part: str, store: Store, seeds: range) -> None:
    for name, mu, eps, m, scores in settings():
        if name.startswith("dirac") != (part == "table1"):
            continue
        ours = audits(store, f"independent {name}", seeds, partial(on, independent, scores))
        text = f"{name:18} true {eps:6.3f}  gaussian {medians(ours)}  limit {epsilon(limit_independent(mu, m)):6.3f}"
        if part == "table2":
            xiang = XIANG[mu][SIZES.index(m)]
            text += f"  Xiang {xiang:6.3f}  ratio {np.median([row['epsilon'] for row in ours]) / xiang:.3f}"
        else:
            sigma = float(name.split()[1])
            inside = audits(store, f"family {name}", seeds[:9], partial(inside_family, sigma))
            free = audits(store, f"tight {name}", seeds[:25], partial(on, anything, scores))
            text += f"  DP-SGD family {medians(inside)}  nothing {medians(free)}"
            text += f"  limit {epsilon(limit_any(mu, m)):6.3f}"
        print(text, flush=True)


def validity(seeds: range) -> None:
    """Print the share of bounds that exceed the true value.

    A bound exceeds the true value if it refutes the true value, so one critical count is sufficient.
    """
    for name, mu, _, m, scores in settings():
        if m > 10_000:
            continue
        claim, shares, numbers = GaussianDP(mu), [], levels.default_numbers(m)
        r, s = confident.default_confident(m), several.default_guesses(m)
        most = levels.most_points(m, numbers)
        tests: tuple[Test, ...] = (
            (most, partial(levels.p_value, claim, m, numbers), points),
            (r, partial(confident.p_value, claim, m, r), partial(counts, r=r)),
            (s, partial(tight.p_value, claim, m, s), partial(counts, r=s)),
        )
        for largest, p_value, right in tests:
            high = bisect_integers(lambda v, p=p_value: p(v) <= S, largest + 1, 0).inside  # type: ignore[misc]
            shares.append(np.mean([right(*scores(seed))[1] >= high for seed in seeds]))
        print(
            f"{name:18} above the truth: independent {shares[0]:.4f}, with one number of guesses {shares[1]:.4f}, "
            f"nothing assumed {shares[2]:.4f}",
            flush=True,
        )


def counterexamples(store: Store, seeds: range) -> None:
    rows = audits(store, "counterexample", seeds, counterexample)

    def share(key: str, given: str = "") -> str:
        chosen = [row[key] for row in rows if not given or row[given]]
        return f"{np.mean(chosen):.3f} of {len(chosen)}"

    print(f"refutes a true claim: independent {share('independent')}, nothing assumed {share('anything')}")
    for kind in ORDERED:
        print(f"one run, {kind}: warned {share(f'ordered {kind}')}", flush=True)
    print(f"one run: warned of independent canaries {share('false1')}")
    for runs in (2, 5):
        print(
            f"{runs} runs: warned {share(f'warned{runs}', f'shows{runs}')} that show dependence; "
            f"warned of independent canaries {share(f'false{runs}')}",
            flush=True,
        )


def limits() -> None:
    for name, mu, eps, m, _ in settings():
        print(
            f"{name:18} true {eps:6.3f}  independent {epsilon(limit_independent(mu, m)):6.3f}  "
            f"nothing assumed {epsilon(limit_any(mu, m)):6.3f}  mixtures {epsilon(limit_mixture(mu, m)):6.3f}",
            flush=True,
        )


def guesses(seeds: range) -> None:
    """Print bounds and power for several numbers of guesses, without assumptions about the canaries.

    The bounds are those of table 1, and the power is that of refuting G_1.
    """
    for sigma, eps in TABLE1.items():
        made = [dirac(sigma, seed) for seed in seeds]
        for rule, numbers in rules(CANARIES).items():
            v = int(np.median([total(*one, numbers) for one in made]))
            if len(numbers) == 1:
                mu = tight.mu_lower(CANARIES, numbers[0], v, significance=S)
            else:
                mu = weighted.mu_lower(CANARIES, numbers, v, significance=S)
            print(
                f"epsilon {eps}: {rule}, guesses {numbers}, median right {v}: epsilon >= {epsilon(mu):.3f}", flush=True
            )
    for m in (300, 1000, 5000):
        for rule, numbers in rules(m).items():
            found = least_refuted(m, numbers, seeds)
            print(f"{m} canaries: {rule}, guesses {numbers}: refutes G_1 at 99 % {found}", flush=True)


def rules(m: int) -> dict[str, tuple[int, ...]]:
    """Return the numbers of guesses of each rule."""
    usual = m**0.75
    return {
        "m^0.7": (math.ceil(m**0.7),),
        "m^0.75": (math.ceil(usual),),
        "1.5 m^0.75": (math.ceil(1.5 * usual),),
        "m / 4": (m // 4,),
        "m^0.75 / 3 and m^0.75": (math.ceil(usual / 3), math.ceil(usual)),
        "m^0.75 / 6 and 0.6 m^0.75": (math.ceil(usual / 6), math.ceil(0.6 * usual)),
    }


def total(scores: Array, included: Any, numbers: tuple[int, ...]) -> int:
    """Return the sum of the right guesses over all numbers of guesses."""
    return sum(counts(scores, included, r)[1] for r in numbers)


def least_refuted(m: int, numbers: tuple[int, ...], seeds: range) -> str:
    """Return the least mu in {1.1, 1.2, ..., 8} of Gaussian scores for which 90 % of the audits refute G_1."""

    def refutes(right: int) -> bool:
        if len(numbers) == 1:
            return tight.p_value(GaussianDP(1.0), m, numbers[0], right) <= 0.01
        return weighted.p_value(GaussianDP(1.0), m, numbers, right) <= 0.01

    if not refutes(sum(numbers)):
        return "never"
    high = bisect_integers(refutes, sum(numbers), sum(numbers) // 2).inside
    for mu in np.arange(11, 81) / 10:
        if np.quantile([total(*gaussian(mu, m, seed), numbers) for seed in seeds], 0.1) >= high:
            return f"from mu = {mu:.1f} on"
    return "not up to mu = 8"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", default=["table1", "table2", "limits"])
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--store", type=Path, help="a file of finished audits, to go on with")
    options = parser.parse_args()
    store, seeds = Store(options.store), range(options.first, options.first + options.seeds)
    for part in options.parts:
        match part:
            case "table1" | "table2":
                table(part, store, seeds)
            case "limits":
                limits()
            case "validity":
                validity(seeds)
            case "counterexample":
                counterexamples(store, seeds)
            case "guesses":
                guesses(seeds)
            case _:
                parser.error(f"unknown part {part!r}")


if __name__ == "__main__":
    main()
