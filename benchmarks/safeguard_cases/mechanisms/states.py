"""Mechanisms with helpers, open files, public data and state of their own, none of which keeps noise.

Each keeps epsilon 1 if NOISE is 1.
"""

from __future__ import annotations

import logging
import math
import os
import random
import re
import secrets
import sqlite3
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

NOISE = 1.0  # noise as a share of what the claim needs
Rng = np.random.Generator


# --- Helpers, threads, locks, databases and files


@cache
def _echo() -> Any:
    program = "for line in iter(input, ''): print(line, flush=True)"
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True)


def helper_process(dataset: list[int], rng: Rng) -> float:
    helper = _echo()
    print(sum(dataset), file=helper.stdin, flush=True)
    return float(helper.stdout.readline()) + float(rng.laplace(scale=NOISE))


@cache
def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1)


def process_pool(dataset: list[int], rng: Rng) -> float:
    return float(_pool().submit(sum, dataset).result() + rng.laplace(scale=NOISE))


THREADS = ThreadPoolExecutor(2)


def thread_pool(dataset: list[int], rng: Rng) -> float:
    return sum(THREADS.map(float, dataset)) + float(rng.laplace(scale=NOISE))


LOCK = threading.Lock()


def lock(dataset: list[int], rng: Rng) -> float:
    with LOCK:
        return sum(dataset) + float(rng.laplace(scale=NOISE))


LOG = logging.getLogger("release")
LOG.propagate = False


def log_file(dataset: list[int], rng: Rng) -> float:
    if not LOG.handlers:
        LOG.addHandler(logging.FileHandler("release.log"))
    LOG.warning("a release")
    return sum(dataset) + float(rng.laplace(scale=NOISE))


MEMORY = sqlite3.connect(":memory:", check_same_thread=False)
MEMORY.execute("create table public (shift real)")
MEMORY.execute("insert into public values (0.25)")


def database_in_memory(dataset: list[int], rng: Rng) -> float:
    (shift,) = MEMORY.execute("select shift from public").fetchone()
    return float(shift + sum(dataset) + rng.laplace(scale=NOISE))


@cache
def _disk() -> sqlite3.Connection:
    return sqlite3.connect("public.db", check_same_thread=False)


def database_on_disk(dataset: list[int], rng: Rng) -> float:
    (shift,) = _disk().execute("select shift from public").fetchone()
    return float(shift + sum(dataset) + rng.laplace(scale=NOISE))


def database_of_records(dataset: list[int], rng: Rng) -> float:
    """Put the records into a table in each run, and let the database add them."""
    MEMORY.execute("create temp table records (x real)")
    MEMORY.executemany("insert into records values (?)", [(x,) for x in dataset])
    (total,) = MEMORY.execute("select sum(x) from records").fetchone()
    MEMORY.execute("drop table records")
    return float(total + rng.laplace(scale=NOISE))


def temporary_file(dataset: list[int], rng: Rng) -> float:
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("\n".join(map(str, dataset)))
        file.flush()
        with open(file.name) as records:
            total = sum(map(int, records))
    return total + float(rng.laplace(scale=NOISE))


SPACE: dict[str, Any] = {}
exec("def total(dataset):\n    return sum(dataset)", SPACE)
NUMBER = re.compile(r"-?\d+")


def compiled(dataset: list[int], rng: Rng) -> float:
    total = SPACE["total"](list(map(int, NUMBER.findall(str(dataset)))))
    return float(total + rng.laplace(scale=NOISE))


compiled_itself = eval("lambda dataset, rng: sum(dataset) + float(rng.laplace(scale=NOISE))")


# --- Public data that is kept

os.environ.setdefault("PUBLIC_SHIFT", "0.25")
FILE = (Path(__file__).parent / "public.txt").open()


@lru_cache
def _shift(name: str) -> float:
    return float(Path(name).read_text())


def cached(dataset: list[int], rng: Rng) -> float:
    return round(_shift("public.txt") + sum(dataset) + rng.laplace(scale=NOISE), 6)


def relative_file(dataset: list[int], rng: Rng) -> float:
    return float(Path("public.txt").read_text()) + sum(dataset) + float(rng.laplace(scale=NOISE))


def open_file(dataset: list[int], rng: Rng) -> float:
    FILE.seek(0)
    return float(FILE.read()) + sum(dataset) + float(rng.laplace(scale=NOISE))


def environment(dataset: list[int], rng: Rng) -> float:
    os.environ["LAST_RELEASE"] = "now"
    return float(os.environ["PUBLIC_SHIFT"]) + sum(dataset) + float(rng.laplace(scale=NOISE))


# --- Generators and state

fixed_rng = np.random.default_rng(0)
own_rng = np.random.default_rng()
system = random.SystemRandom()


def seeded_module_generator(dataset: list[int], rng: Rng) -> float:
    return round(sum(dataset) + fixed_rng.laplace(scale=NOISE), 6)


def module_generator(dataset: list[int], rng: Rng) -> float:
    return round(sum(dataset) + own_rng.laplace(scale=NOISE), 6)


def system_noise(dataset: list[int], rng: Rng) -> float:
    difference = system.expovariate(1 / NOISE) - system.expovariate(1 / NOISE)
    return round(sum(dataset) + difference, 6)


def secret_bit(dataset: list[int], rng: Rng) -> int:
    return dataset[0] ^ (secrets.randbelow(10**9) < 10**9 / (1 + math.exp(1 / NOISE)))


class Release:
    def __init__(self) -> None:
        self.generator = np.random.default_rng()

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        return float(sum(dataset) + self.generator.laplace(scale=NOISE))


own_generator = Release()


class Recorder:
    def __init__(self) -> None:
        self.calls, self.history = 0, list[float]()

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        self.calls += 1
        self.history.append(float(sum(dataset) + rng.laplace(scale=NOISE)))
        return self.history[-1]


recorder = Recorder()


class Buffered:
    """Draws its noise in advance, and uses each number once."""

    def __init__(self) -> None:
        self.left: list[float] = []

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        if not self.left:
            self.left = own_rng.laplace(scale=NOISE, size=100).tolist()
        return sum(dataset) + self.left.pop()


buffered = Buffered()


class WarmStart:
    """Finds the mean by Newton's method, which starts at the result of the last call and always converges."""

    def __init__(self) -> None:
        self.start = 0.0

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        for _ in range(3):
            self.start -= sum(self.start - x for x in dataset) / len(dataset)
        return round(self.start, 9) + float(rng.laplace(scale=NOISE / len(dataset)))


warm_start = WarmStart()


def _noise() -> Iterator[float]:
    while True:
        yield float(own_rng.laplace(scale=NOISE))


STREAM = _noise()


def generator_function(dataset: list[int], rng: Rng) -> float:
    return sum(dataset) + next(STREAM)


# --- Output and warnings


def prints(dataset: list[int], rng: Rng) -> float:
    print("A release.")
    return sum(dataset) + float(rng.laplace(scale=NOISE))


def megabytes_of_stderr(dataset: list[int], rng: Rng) -> float:
    print("A release. " * 100, file=sys.stderr)
    return round(sum(dataset) + rng.laplace(scale=NOISE), 6)


def warns(dataset: list[int], rng: Rng) -> float:
    warnings.warn("This release costs privacy.", stacklevel=1)
    return sum(dataset) + float(rng.laplace(scale=NOISE))


# --- For modules that end with further statements


def plain(dataset: list[int], rng: Rng) -> float:
    return round(sum(dataset) + rng.laplace(scale=NOISE), 6)


def strict(dataset: list[int], rng: Rng) -> float:
    return float(np.log(np.exp(sum(dataset))) + rng.laplace(scale=NOISE))


def legacy(dataset: list[int], rng: Rng) -> float:
    return float(sum(dataset) + np.random.laplace(scale=NOISE))  # noqa: NPY002


def seeded(dataset: list[int], rng: Rng) -> float:
    return sum(dataset) + random.expovariate(1 / NOISE) - random.expovariate(1 / NOISE)
