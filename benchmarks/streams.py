"""Counts the runs and seconds that audits of streams and of long vectors need, and refutations of true claims.

    python benchmarks/streams.py [--seeds 200] [--only TEXT ...] [--jobs 1] [--store FILE]

In the table "runs", gaussian(mu=1) is claimed, and mu is 1.5.  The ratio compares with one number with the same noise,
audited with the same seeds.  Nothing is known about the mechanism, except in rows with hints.  Prefix sums have the
noise of a square-root factorisation (Fichtenberger, Henzinger & Upadhyay 2023) or of a binary tree.  The neighbour
changes one step, the first if the row does not name one.

In the table "true", claims are exactly true, so at most 5 % of the audits may refute them.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from calibration_cases import Row, refuted
from dpaudit import Pair, audit
from dpaudit_attacks.whitened import Whitened
from measure import SECONDS, Case, Limit, Outcome, Table, count, mean, of, run

Rng = np.random.Generator
PAIR = Pair([0], [1], relation="replace_one")
CONFIDENCE = 0.95


def root_coefficients(d: int) -> Any:
    """Return the first column (d,) of the square root of the lower triangular matrix of ones."""
    k = np.arange(1, d)
    return np.cumprod(np.append(1.0, (2 * k - 1) / (2 * k)))


def tree_nodes(d: int) -> Any:
    """Return the matrix (d, nodes) that adds up the noise of the nodes of a binary tree in each of d prefix sums."""
    sums: list[set[tuple[int, int]]] = [set()]
    for t in range(1, d + 1):
        sums.append(sums[t & (t - 1)] | {(t & (t - 1), t)})
    nodes = sorted(set().union(*sums))
    return np.array([[float(node in one) for node in nodes] for one in sums[1:]])


@dataclass(frozen=True)
class Filtered:
    """A vector plus noise that a filter makes from independent Gaussian, Laplace or t noise."""

    moved: Any  # (d,), of which the first number of the dataset is the multiple; `shift` would be a hint
    coefficients: Any  # (d,)
    scale: float
    law: str = "normal"

    def sample(self, dataset: list[int], n: int, rng: Rng) -> Any:
        d = len(self.moved)
        noise = rng.standard_t(2, (n, d)) if self.law == "t" else getattr(rng, self.law)(0.0, 1.0, (n, d))
        size = next_fast_len(2 * d, real=True)
        spectrum = rfft(self.coefficients, size)
        filtered = irfft(rfft(noise, size, axis=1) * spectrum, size, axis=1)[:, :d]
        return dataset[0] * self.moved + self.scale * filtered


@dataclass(frozen=True)
class Mixed:
    """A vector plus a matrix times independent Gaussian or t noise."""

    moved: Any  # (d,)
    matrix: Any  # (d, k)
    scale: float
    freedom: float = math.inf

    def sample(self, dataset: list[int], n: int, rng: Rng) -> Any:
        size = (n, self.matrix.shape[1])
        noise = rng.normal(size=size) if self.freedom == math.inf else rng.standard_t(self.freedom, size=size)
        return dataset[0] * self.moved + self.scale * noise @ self.matrix.T


def sums(d: int, mu: float = 1.5, step: int = 0, law: str = "normal") -> Filtered:
    """Return prefix sums with correlated noise; with Laplace noise, the last step changes, and mu is epsilon."""
    factor = root_coefficients(d)
    return Filtered((np.arange(d) >= step) * 1.0, factor, float(np.linalg.norm(factor[: d - step])) / mu, law)


def by_tree(d: int, mu: float = 1.5) -> Mixed:
    matrix = tree_nodes(d)
    length = math.sqrt(np.ones(d) @ np.linalg.solve(matrix @ matrix.T, np.ones(d)))
    return Mixed(np.ones(d), matrix, length / mu)


def vector(shift: Any, mu: float = 1.5) -> Filtered:
    """Return a vector with independent noise."""
    return Filtered(shift / np.linalg.norm(shift), np.eye(1, len(shift))[0], 1 / mu)


@cache
def mechanism(kind: str, d: int) -> Any:
    match kind:
        case "prefix sums":
            return sums(d)
        case "prefix sums, the middle step":
            return sums(d, step=d // 2)
        case "tree":
            return by_tree(d)
        case "one number differs":
            return vector(np.eye(1, d, d // 3)[0])
        case "all differ by the same amount":
            return vector(np.ones(d))
        case "all differ by random amounts":
            return vector(np.random.default_rng(5).normal(size=d))
    raise ValueError(kind)


def attacks(kind: str, d: int, hints: str) -> Any:
    given: dict[str, Any] = {}
    if "factor" in hints:
        given["factor"] = tree_nodes(d) if kind == "tree" else root_coefficients(d)
    if "wrong" in hints:
        given["factor"] = np.eye(d)
    if "shift" in hints:
        given["shift"] = mechanism(kind, d).moved
    return ["auto", Whitened(**given)] if given else "auto"


def audited(release: Any, used: Any, seed: int, trials: int, claim: str = "gaussian(mu=1)") -> Any:
    return audit(release, claim, PAIR, trials=trials, seed=seed, confidence=CONFIDENCE, attacks=used, confirm="never")


@cache
def alone(seed: int) -> int:
    """Return the runs for one number."""
    return int(audited(Filtered(np.ones(1), np.ones(1), 1 / 1.5), "auto", seed, 20_000).trials_used)


def runs(kind: str, d: int, hints: str, seed: int) -> Outcome:
    result = audited(mechanism(kind, d), attacks(kind, d, hints), seed, 20_000)
    return {"trials": result.trials_used, "refuted": float(result.violated), "alone": alone(seed)}


def _ratio(_: Any, outcomes: Any) -> str:
    """Return the ratio of the means, and its standard error from paired seeds."""
    x, y = (np.array([outcome[name] for outcome in outcomes], dtype=float) for name in ("trials", "alone"))
    ratio = x.mean() / y.mean()
    error = np.std(x - ratio * y, ddof=1) / math.sqrt(len(x)) / y.mean() if len(x) > 1 else 0.0
    return f"{ratio:.2f} ± {error:.2f}"


ASKED = {
    ("prefix sums", 64, ""): "1.2",
    ("prefix sums", 1024, ""): "1.4",
    ("prefix sums", 4096, ""): "1.65",
    ("prefix sums, the middle step", 1024, ""): "",
    ("tree", 64, ""): "2.4",
    ("tree", 256, ""): "5",
    ("tree", 64, "factor"): "1.4",
    ("tree", 256, "factor"): "1.4",
    ("prefix sums", 1024, "factor"): "",
    ("prefix sums", 1024, "factor and shift"): "1.1",
    ("prefix sums", 1024, "wrong factor"): "",
    ("one number differs", 1000, ""): "1.35",
    ("all differ by the same amount", 1000, ""): "1.3",
    ("all differ by random amounts", 1000, ""): "",
}
"""Mechanism, numbers and hints -> the ratio that is at most wanted."""


# --- True claims

TRUE: dict[str, tuple[Callable[[], Any], str, int]] = {
    "prefix sums, 1,024 numbers, Gaussian": (lambda: sums(1024, 1.0), "gaussian(mu=1)", 600),
    "prefix sums, 64 numbers, Gaussian": (lambda: sums(64, 1.0), "gaussian(mu=1)", 1_000),
    "prefix sums, 128 numbers, Laplace": (lambda: sums(128, 1.0, 127, "laplace"), "laplace(epsilon=1)", 600),
    "no difference, random walk with t2 noise, 200 numbers": (
        lambda: Filtered(np.zeros(200), np.ones(200), 1.0, "t"),
        "gaussian(mu=0.01)",
        300,
    ),
    "no difference, 5 t3 numbers mixed to 200": (
        lambda: Mixed(np.zeros(200), np.random.default_rng(1).normal(size=(200, 5)), 1.0, 3.0),
        "gaussian(mu=0.01)",
        300,
    ),
    "tree, 64 numbers": (lambda: by_tree(64, 1.0), "gaussian(mu=1)", 600),
    "one of 500 numbers, fewer runs than numbers": (
        lambda: vector(np.eye(1, 500)[0], 1.0),
        "gaussian(mu=1)",
        200,
    ),
}
"""Setting -> a function that returns the mechanism, the claim, and the largest number of runs."""


@cache
def true_mechanism(name: str) -> Any:
    return TRUE[name][0]()


def true_claim(name: str, hint: bool, seed: int) -> Outcome:
    release, (_, claim, trials) = true_mechanism(name), TRUE[name]
    used = Whitened(factor=release.coefficients) if hint else "whitened"
    return {"refuted": float(audited(release, used, seed, trials, claim).violated)}


def tables(options: argparse.Namespace) -> list[Table]:
    names = [(name, hint) for name in TRUE for hint in (False, True) if not hint or name.startswith("prefix")]
    return [
        Table(
            name="runs",
            headings=("outputs", "numbers", "hints"),
            columns={
                "mean runs": mean("trials", ",.0f"),
                "ratio": _ratio,
                "asked": lambda row, _: ASKED[row.cells[0], int(row.cells[1].replace(",", "")), row.cells[2]],
                "refuted": count("refuted"),
                "s": mean(SECONDS, ".1f"),
            },
            cases=[
                Case(cells=(kind, f"{d:,}", hints), measure=partial(runs, kind, d, hints), seeds=200)
                for kind, d, hints in ASKED
            ],
        ),
        Table(
            name="true",
            headings=("outputs", "hint"),
            columns={
                "audits": of("refuted", lambda found: str(len(found))),
                "refuted": of("refuted", lambda found: f"{found.sum():.0f}"),
                "allowed": of("refuted", lambda found: Limit(rate=1 - CONFIDENCE).words(len(found))),
                "s": mean(SECONDS, ".2f"),
            },
            cases=[
                Row(
                    cells=(name, "factor" if hint else ""),
                    measure=partial(true_claim, name, hint),
                    limits=refuted(1 - CONFIDENCE),
                    seeds=100,
                )
                for name, hint in names
            ],
        ),
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables))
