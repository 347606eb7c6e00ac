"""Measures an audit by boosted trees beside busy cores, with and without the limit of native libraries to one thread.

    python benchmarks/busy_core.py [--trials 2000] [--repeats 3]

scikit-learn's trees use one OpenMP thread for each core, and these threads wait for each other in busy loops.  dpaudit
limits them to one thread (`dpaudit.learning.foreign`).  This command audits ten numbers with Gaussian noise with
the attack `trees` alone, in four settings: with and without the limit, and with and without one further process on each
core that computes all the time.  Each audit runs in a fresh process, whose imports are not counted.  The settings take
turns.  The table shows the median of all repeats.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np

from dpaudit import Pair, audit, batched
from dpaudit.numerics import Array

_ONE_AUDIT = "one-audit"  # argument of the processes that this command starts
_SPIN = "while True: pass"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # these would limit the threads as well
# the context managers that limit native libraries to one thread, as modules and names
LIMITS = (
    ("dpaudit.learning.fitting", "one_thread"),
    ("dpaudit.learning.foreign", "one_thread"),
    ("dpaudit_attacks.trees", "_one_thread"),
)
_MAX_SECONDS = 1_800  # without the limit, an audit beside busy cores may take minutes


@batched
def ten_numbers(dataset: list[int], n: int, rng: np.random.Generator) -> Array:
    outputs = rng.standard_normal((n, 10))
    outputs[:, 3] += dataset[0]
    return outputs


def switch_off_the_limit() -> None:
    """Let native libraries use all their threads in this process."""
    for module, name in LIMITS:
        setattr(importlib.import_module(module), name, nullcontext)


def one_audit(trials: int, *, limit: bool) -> dict[str, float | str]:
    """Run an audit in this process; return its wall clock and processor seconds."""
    import sklearn.ensemble  # noqa: F401  (not counted)

    if not limit:
        switch_off_the_limit()
    wall, processor = time.perf_counter(), time.process_time()
    result = audit(ten_numbers, "gaussian(mu=1)", Pair([0], [1]), attacks=["trees"], trials=trials, seed=1)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return {"wall": wall, "processor": processor, "e_value": repr(result.e_value)}


@contextmanager
def busy_cores(number: int) -> Iterator[None]:
    """Keep cores busy in the `with` block, by one process for each core."""
    spinning = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(number)]
    try:
        for core, process in zip(sorted(os.sched_getaffinity(0)), spinning, strict=False):
            os.sched_setaffinity(process.pid, {core})
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def in_a_fresh_process(trials: int, *, limit: bool) -> dict[str, float]:
    environment = {name: value for name, value in os.environ.items() if name not in _THREADS}
    command = [sys.executable, __file__, _ONE_AUDIT, "--trials", str(trials), *([] if limit else ["--no-limit"])]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=_MAX_SECONDS, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _words(busy: bool, limit: bool) -> str:
    return f"{'busy' if busy else 'free'} cores, {'one thread' if limit else 'no limit':10}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=[_ONE_AUDIT], help=argparse.SUPPRESS)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-limit", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.what == _ONE_AUDIT:
        print(json.dumps(one_audit(options.trials, limit=not options.no_limit)))
        return
    cores = len(os.sched_getaffinity(0))
    settings = [(busy, limit) for busy in (False, True) for limit in (True, False)]
    found: dict[tuple[bool, bool], list[dict[str, float]]] = {setting: [] for setting in settings}
    for _ in range(options.repeats):
        for busy, limit in settings:
            with busy_cores(cores if busy else 0):
                row = in_a_fresh_process(options.trials, limit=limit)
            found[busy, limit].append(row)
            print(f"{_words(busy, limit)}  {row['wall']:.1f} s", file=sys.stderr, flush=True)
    print(f"{cores} cores, {options.trials} trials, load at the end {os.getloadavg()[0]:.1f}")
    for (busy, limit), rows in found.items():
        wall, processor = (statistics.median(row[name] for row in rows) for name in ("wall", "processor"))
        walls = ", ".join(f"{row['wall']:.1f}" for row in rows)
        print(f"{_words(busy, limit)}  wall {wall:6.1f} s ({walls})  processor {processor:6.1f} s")


if __name__ == "__main__":
    main()
