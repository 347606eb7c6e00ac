"""Mechanisms that hold helpers, threads, locks, databases and open files.  Each keeps epsilon 1 if NOISE is 1."""

from __future__ import annotations

import logging
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

NOISE = 1.0  # noise as a share of what the claim needs
Rng = np.random.Generator


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
