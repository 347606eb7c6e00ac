"""Protocols of local privacy, most of which show nothing unless the audit computes their hash.

    python benchmarks/local_privacy.py [--seeds N] [--only TEXT ...] [--outputs 1000000] [--jobs 2]

One person reports one record.  Each protocol states `supports`, from which the attack `supported` learns.  The tables
show the number of runs that refute half of the true epsilon, the part of the true epsilon that a fixed audit
certifies from a million outputs, and how often audits refute a claim that is exactly true.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpaudit import Pair, PureDP, audit
from measure import SECONDS, Case, Expected, Limit, Outcome, Table, count, mean, of, run, spread

Array = Any  # an array of whole numbers, bits or numbers
E = 2.0  # epsilon of most protocols
K = 16  # number of values, and of bits of a sketch
ROWS = 64  # rows of Hadamard matrices
STEPS = 4  # reports of one person over time
RANGE = 2**32  # of seeds and shares


def hashed(seeds: Array, value: int, cells: int) -> Array:
    """Hash a value under n seeds to cells 0, 1, ..., by the mixing steps of splitmix64 (Steele et al. 2014)."""
    place = np.uint64((value + 1) * 0xD1342543DE82EF95 % 2**64)
    z = np.asarray(seeds).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + place
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) % np.uint64(cells)).astype(np.int64)


def response(truth: Array, cells: int, epsilon: float, rng: np.random.Generator) -> Array:
    """Return the k-ary randomised response to n true cells."""
    other = rng.integers(cells - 1, size=len(truth))
    lies = rng.random(len(truth)) >= math.exp(epsilon) / (math.exp(epsilon) + cells - 1)
    return np.where(lies, other + (other >= truth), truth)


def bits(n: int, at: Array, yes: float, no: float, rng: np.random.Generator) -> Array:
    """Return n rows of K bits, which are 1 with probability `yes` at the places `at` (n, h), and else with `no`."""
    chance = np.full((n, K), no)
    np.put_along_axis(chance, at, yes, axis=1)
    return (rng.random((n, K)) < chance).astype(float)


def sign(rows: Array, columns: Array | int) -> Array:
    """Return the entries of a Hadamard matrix, +1 or -1."""
    both = np.asarray(rows).astype(np.int64) & columns
    for step in (4, 2, 1):
        both = both ^ (both >> step)
    return 1 - 2 * (both & 1)


def odds(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


def local_hashing(cells: int) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """Return OLH and BLH: Wang et al. 2017, section 4.4."""

    def sample(x: int, n: int, rng: np.random.Generator) -> Array:
        seeds = rng.integers(RANGE, size=n)
        return np.column_stack([seeds, response(hashed(seeds, x, cells), cells, E, rng)])

    return sample, lambda x, outputs: hashed(outputs[:, 0], x, cells) == outputs[:, 1]


def hadamard(x: int, n: int, rng: np.random.Generator) -> Array:
    """Return a random row of the matrix and the noisy entry of the value: Acharya, Sun & Zhang 2019."""
    rows = rng.integers(ROWS, size=n)
    return np.column_stack([rows, sign(rows, x) * np.where(rng.random(n) < odds(E), 1, -1)])


def count_mean_sketch(x: int, n: int, rng: np.random.Generator) -> Array:
    """Apple 2017, Algorithm 1: the number of a hash function, and the noisy indicator of the value's cell."""
    seeds = rng.integers(2**16, size=n)
    places = hashed(seeds, x, K)[:, None]
    return np.column_stack([seeds, bits(n, places, odds(E / 2), 1 - odds(E / 2), rng)])


def hadamard_sketch(x: int, n: int, rng: np.random.Generator) -> Array:
    """Apple 2017, Algorithm 4: the same with one noisy entry of the Hadamard transform of the indicator."""
    seeds, rows = rng.integers(2**16, size=n), rng.integers(ROWS, size=n)
    entries = sign(rows, hashed(seeds, x, ROWS))
    return np.column_stack([seeds, rows, entries * np.where(rng.random(n) < odds(E), 1, -1)])


def bloom(seeds: Array, x: int) -> Array:
    """Return the two places of a value in the Bloom filter of n cohorts, (n, 2)."""
    return np.column_stack([hashed(seeds, x, K), hashed(seeds, x + 1000, K)])


def rappor(x: int, n: int, rng: np.random.Generator) -> Array:
    """Erlingsson, Pihur & Korolova 2014: the permanent response, two hashes; at most four bits of two values differ."""
    seeds = rng.integers(RANGE, size=n)
    return np.column_stack([seeds, bits(n, bloom(seeds, x), odds(E / 4), 1 - odds(E / 4), rng)])


def rappor_supports(x: int, outputs: Array) -> Array:
    """Return the log-likelihood of the bits, up to a constant, in units of epsilon/4."""
    places = bloom(outputs[:, 0], x)
    found = 2 * np.take_along_axis(outputs[:, 1:], places, axis=1) - 1
    return found[:, 0] + found[:, 1] * (places[:, 0] != places[:, 1])


def subset(x: int, n: int, rng: np.random.Generator) -> Array:
    """Ye & Barg 2018: a random set of two values, which contains the true one more often than others."""
    size = 2
    keys = rng.random((n, K))
    inside = rng.random(n) < size * math.exp(E) / (size * math.exp(E) + K - size)
    keys[:, x] = np.where(inside, -1.0, 2.0)
    return (keys <= np.sort(keys, axis=1)[:, size - 1 : size]).astype(float)


def unary(yes: float, no: float) -> Callable[..., Array]:
    """Return symmetric and optimised unary encoding: Wang et al. 2017, section 4.3."""
    return lambda x, n, rng: bits(n, np.full((n, 1), x), yes, no, rng)


def histogram(x: int, n: int, rng: np.random.Generator) -> Array:
    """Summation with histogram encoding: Laplace noise with scale 2/epsilon on each entry of the indicator."""
    return rng.laplace(0, 2 / E, (n, K)) + (np.arange(K) == x)


def shares(x: int, n: int, rng: np.random.Generator) -> Array:
    """Two random shares of a bit with discrete Laplace noise, as for Prio: Corrigan-Gibbs & Boneh 2017."""
    p = -math.expm1(-E)
    first = rng.integers(RANGE, size=n)
    return np.column_stack([first, (x + rng.geometric(p, n) - rng.geometric(p, n) - first) % RANGE])


def shares_support(x: int, outputs: Array) -> Array:
    off = (outputs.sum(axis=1) - x) % RANGE
    return -E * np.minimum(off, RANGE - off)


KEPT, FRESH = 2.2, 1.5  # epsilon of the answer that is kept, and of each report about it


def longitudinal(x: int, n: int, rng: np.random.Generator) -> Array:
    """LOLOHA, Arcolezi et al. 2023: reports over time about one kept response to the hash of the value."""
    seeds = rng.integers(RANGE, size=n)
    kept = response(hashed(seeds, x, 2), 2, KEPT, rng)
    return np.column_stack([seeds, *(response(kept, 2, FRESH, rng) for _ in range(STEPS))])


def longitudinal_support(x: int, outputs: Array) -> Array:
    """Return the log-likelihood of the reports."""
    agree = (outputs[:, 1:] == hashed(outputs[:, 0], x, 2)[:, None]).sum(axis=1)
    return np.logaddexp(math.log(odds(KEPT)) + FRESH * agree, math.log(odds(-KEPT)) + FRESH * (STEPS - agree))


LONGITUDINAL = float(
    np.subtract(*(longitudinal_support(0, np.array([[0.0] + [float(b)] * STEPS])) for b in range(2))).item()
)


def multidimensional(x: tuple[int, ...], n: int, rng: np.random.Generator) -> Array:
    """Nguyen et al. 2016: one random attribute of the record is reported, here by local hashing."""
    sample, _ = local_hashing(8)
    reports = np.stack([sample(value, n, rng) for value in x])
    attributes = rng.integers(len(x), size=n)
    return np.column_stack([attributes, reports[attributes, np.arange(n)]])


def multidimensional_support(x: tuple[int, ...], outputs: Array) -> Array:
    agree = np.stack([local_hashing(8)[1](value, outputs[:, 1:]) for value in x])
    return np.asarray(agree[outputs[:, 0].astype(np.int64), np.arange(len(outputs))])


@dataclass(frozen=True)
class Protocol:
    """A protocol as a mechanism: `sample` and `supports`, and the epsilon that some report attains."""

    report: Callable[..., Array]
    supports: Callable[[Any, Array], Array]
    epsilon: float = E
    records: tuple[Any, Any] = (3, 9)

    def sample(self, dataset: list[Any], n: int, rng: np.random.Generator) -> Array:
        return self.report(dataset[0], n, rng)

    @property
    def pair(self) -> Pair:
        return Pair([self.records[0]], [self.records[1]], relation="replace_one")


def _bit(x: int, outputs: Array) -> Array:
    return np.asarray(outputs[:, x])


PROTOCOLS = {
    "local hashing, 8 cells (OLH)": Protocol(*local_hashing(8)),
    "local hashing, 2 cells (BLH)": Protocol(*local_hashing(2)),
    "Hadamard response": Protocol(hadamard, lambda x, o: sign(o[:, 0], x) == o[:, 1]),
    "count-mean sketch": Protocol(count_mean_sketch, lambda x, o: o[np.arange(len(o)), 1 + hashed(o[:, 0], x, K)]),
    "Hadamard count-mean sketch": Protocol(
        hadamard_sketch, lambda x, o: sign(o[:, 1], hashed(o[:, 0], x, ROWS)) == o[:, 2]
    ),
    "RAPPOR, two hashes": Protocol(rappor, rappor_supports),
    "subset selection": Protocol(subset, _bit),
    "k-ary response": Protocol(lambda x, n, rng: response(np.full(n, x), K, E, rng), lambda x, o: o == x),
    "unary encoding, symmetric": Protocol(unary(odds(E / 2), odds(-E / 2)), _bit),
    "unary encoding, optimised": Protocol(unary(0.5, odds(-E)), _bit),
    "histogram encoding": Protocol(histogram, lambda x, o: -abs(o[:, x] - 1) + abs(o[:, x])),
    "shares with discrete Laplace noise": Protocol(shares, shares_support, records=(0, 1)),
    "longitudinal hashing": Protocol(longitudinal, longitudinal_support, LONGITUDINAL),
    "multidimensional hashing": Protocol(multidimensional, multidimensional_support, records=((1, 2, 3), (4, 5, 6))),
}


def runs(name: str, seed: int) -> Outcome:
    """Return the runs after which half of the true epsilon is refuted."""
    one = PROTOCOLS[name]
    result = audit(one, PureDP(one.epsilon / 2), one.pair, seed=seed, confidence=0.95, confirm="never", trials=5_000)
    return {"runs": float(result.trials_used), "refuted": bool(result.violated)}


def certified(name: str, outputs: int, seed: int) -> Outcome:
    """Return the part of the true epsilon that a fixed audit certifies."""
    one = PROTOCOLS[name]
    result = audit(one, PureDP(one.epsilon / 2), one.pair, seed=seed, method="fixed", trials=outputs // 2)
    return {"part": result.epsilon_lower(0.0) / one.epsilon}


def true_claim(name: str, method: str, seed: int) -> Outcome:
    """Return whether a claim that is exactly true is refuted, and whether a bound exceeds the truth."""
    one = PROTOCOLS[name]
    result = audit(one, PureDP(one.epsilon), one.pair, seed=seed, confidence=0.95, method=method, trials=1_500)
    above = result.epsilon_lower(0.0) > one.epsilon * (1 + 1e-6)
    return {"refuted": bool(result.violated), "above": bool(above)}


def tables(options: argparse.Namespace) -> list[Table]:
    def few(outcomes: Any) -> bool:
        limit, names = Limit(rate=0.05), ("refuted", "above")
        return not any(limit.broken(len(outcomes), sum(one[name] for one in outcomes)) for name in names)

    part = of("part", lambda parts: f"{min(parts):.3f}")
    return [
        Table(
            name="runs",
            headings=("protocol",),
            columns={"mean runs": mean("runs"), "spread": spread("runs"), "refuted": count("refuted")},
            cases=[Case(cells=(name,), measure=partial(runs, name), seeds=20) for name in PROTOCOLS],
        ),
        Table(
            name="certified",
            headings=("protocol", "epsilon"),
            columns={"least part": part, "s": mean(SECONDS)},
            cases=[
                Expected(
                    cells=(name, f"{one.epsilon:.3f}"),
                    measure=partial(certified, name, options.outputs),
                    right=lambda outcomes: min(one["part"] for one in outcomes) >= 0.98,
                )
                for name, one in PROTOCOLS.items()
            ],
        ),
        Table(
            name="true claims",
            headings=("protocol", "method"),
            columns={"refuted": count("refuted"), "bound too large": count("above"), "s": mean(SECONDS)},
            cases=[
                Expected(cells=(name, method), measure=partial(true_claim, name, method), seeds=200, right=few)
                for name in PROTOCOLS
                for method in ("sequential", "fixed")
            ],
        ),
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, outputs=1_000_000))
