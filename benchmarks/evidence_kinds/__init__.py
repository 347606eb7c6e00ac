"""Seeded audits of every kind for `benchmarks/same_evidence.py`, with one module for each group of kinds.

Each module defines a list `FAMILIES`.  The modules use only the public names of `dpaudit` and its command line.  So the
audits run unchanged on commits that name files and classes differently.

Running times are evidence only if `observe_time` is True, and no seed reproduces them.  So no audit in this package
observes running times.  Attacks on running times get outputs that contain simulated times.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import Pair, batched

Found = Any
"""What a kind returns: an `AuditResult`, or a dict of such and of plain values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A group of kinds of audits that are run together."""

    names: tuple[str, ...]
    # maps some names of kinds and an empty folder to the results
    run: Callable[[Sequence[str], Path], Mapping[str, Found]]


def _alone(kind: Callable[[Path], Found], names: Sequence[str], folder: Path) -> Mapping[str, Found]:
    return {names[0]: kind(folder)}


def family(group: str, kinds: Mapping[str, Callable[[Path], Found]]) -> list[Family]:
    """Return one family for each of the given kinds.  The function of each kind gets an empty folder."""
    return [Family(names=(f"{group}/{name}",), run=partial(_alone, kind)) for name, kind in kinds.items()]


# --- Small mechanisms: datasets are lists of numbers, and outputs depend on their sum

Rng = np.random.Generator
PAIR = Pair([0], [1])
SEVERAL = [Pair([0], [0.25], label="a quarter"), Pair([0], [1], label="one"), Pair([1, 1], [1], label="one less")]


def noisy_sum(dataset: Sequence[float], rng: Rng) -> float:
    """Return the sum of the dataset plus N(0, 1) noise."""
    return float(sum(dataset) + rng.normal())


@batched
def noisy_sums(dataset: Sequence[float], n: int, rng: Rng) -> Any:
    """Return n independent outputs, each the sum of the dataset plus N(0, 1) noise."""
    return sum(dataset) + rng.normal(size=n)


def noisy_vector(dataset: Sequence[float], rng: Rng) -> Any:
    """Return three noisy numbers, of which only the second depends on the dataset."""
    return np.array([0.0, sum(dataset), 0.0]) + rng.normal(size=3)


class NoisyRecords:
    """A mechanism that releases the sum and the number of records with Laplace noise.

    Records that are None or NaN are ignored.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def sample(self, dataset: Sequence[Any], n: int, rng: Rng) -> Any:
        """Return n outputs, each with two numbers."""
        numbers = [float(record) for record in dataset if isinstance(record, int | float) and record == record]
        return np.array([sum(numbers), len(dataset)]) + rng.laplace(0.0, self.scale, (n, 2))


# --- The command line and pytest, in another process that imports the same dpaudit

_INTERNAL_ERROR = 4
_HERE = Path(__file__).resolve().parent.parent


def dpaudit(*words: str | Path) -> str:
    """Run `dpaudit` with the given arguments and return its output.

    A RuntimeError is raised if the command fails or rejects its arguments.
    """
    done = _python("-m", "dpaudit", *map(str, words))
    if done.returncode == 2 or done.returncode >= _INTERNAL_ERROR or done.returncode < 0:
        raise RuntimeError(f"dpaudit {words[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def pytest(folder: Path, *words: str | Path) -> str:
    """Run pytest in a folder without other plugins and return its output."""
    done = _python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *map(str, words), cwd=folder)
    if done.returncode > 1:
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def _python(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    paths = [path for path in sys.path if path and Path(path).resolve() != _HERE]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "120"}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, env=environment, cwd=cwd
    )
