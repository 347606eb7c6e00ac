"""Measures the cost of a separate process for a vectorised mechanism, compared with a call in dpaudit's process.

    python benchmarks/own_process.py [--outputs 10000000] [--repeats 3] [--trials 1000000]

The table has the processor time of both processes together for `--outputs` outputs, and the elapsed time.  Rows are
Gaussian and Laplace noise, in calls of 16,384 runs (as the engine makes them) and of 1,000,000.  The last rows are
whole audits of `--trials` trials with one attack.  Each figure is the median over the repeats, which alternate between
the two kinds of process.

Two cores shared with other programs, Python 3.11, numpy of constraints.txt, 2026-11-23, all defaults:

    processor time                   here      apart    more
    gaussian, calls of 16,384        0.15 s    0.97 s   +570 %
    gaussian, calls of 1,000,000     0.16 s    0.65 s   +308 %
    gaussian, audit of 1,000,000     1.15 s    1.81 s    +58 %
    laplace, calls of 16,384         0.26 s    1.07 s   +314 %
    laplace, calls of 1,000,000      0.20 s    0.82 s   +304 %
    laplace, audit of 1,000,000      1.17 s    1.91 s    +63 %

The time apart includes starting the worker, and sending outputs costs more than drawing them.  So mechanisms of configs
run in dpaudit's process unless they ask for another one.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from dpaudit import Pair, audit
from dpaudit.running import IsolatedMechanism
from dpaudit.running.environments import Environment
from dpaudit.running.mechanisms import PythonMechanism

CODE = """
def gaussian(dataset, n, rng):
    return dataset[0] + rng.normal(size=n)

def laplace(dataset, n, rng):
    return dataset[0] + rng.laplace(size=n)
"""
_CLAIMS = {"gaussian": "gaussian(mu=1)", "laplace": "pure(epsilon=1)"}


class Worker(IsolatedMechanism):
    """A mechanism in a worker process with this Python and its packages, so that nothing is installed."""

    @property
    def _environment(self) -> Environment:
        return Environment(Path(sys.executable), {})


def _seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Return processor time of this process and of its ended children, and elapsed time."""

    def used() -> float:
        kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(each.ru_utime + each.ru_stime for each in map(resource.getrusage, kinds))

    before, began = used(), time.perf_counter()
    run()
    return used() - before, time.perf_counter() - began


def _compare(what: str, repeats: int, here: Callable[[], object], there: Callable[[], object]) -> None:
    taken = [(_seconds(here), _seconds(there)) for _ in range(repeats)]
    processor, elapsed = ([median(each[way][kind] for each in taken) for way in (0, 1)] for kind in (0, 1))
    print(
        f"{what:<36s} processor {processor[0]:6.2f} s here, {processor[1]:6.2f} s apart"
        f" ({100 * (processor[1] / processor[0] - 1):+.0f} %);"
        f"  elapsed {elapsed[0]:6.2f} s, {elapsed[1]:6.2f} s ({100 * (elapsed[1] / elapsed[0] - 1):+.0f} %)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--trials", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "own.py").write_text(CODE)
        for law, claim in _CLAIMS.items():
            here = PythonMechanism(f"own.py:{law}", None, True, folder)
            there = Worker(address=f"own.py:{law}", batched=True, folder=folder)

            def sampled(mechanism: PythonMechanism | Worker, call: int) -> None:
                rng = np.random.default_rng(0)
                draw = mechanism.sample if isinstance(mechanism, Worker) else mechanism.loaded
                for _ in range(-(-options.outputs // call)):
                    draw([0], call, rng)
                if isinstance(mechanism, Worker):
                    mechanism.close()  # its processor time is known when it has ended

            def audited(mechanism: PythonMechanism | Worker, claim: str = claim) -> None:
                audit(mechanism, claim, Pair([0], [1]), trials=options.trials, attacks="logistic", seed=0)
                if isinstance(mechanism, Worker):
                    mechanism.close()

            for call in (16_384, 1_000_000):
                what = f"{law}, {options.outputs:,}, by {call:,}"
                _compare(what, options.repeats, lambda: sampled(here, call), lambda: sampled(there, call))  # noqa: B023
            what = f"{law}, audit of {options.trials:,}"
            _compare(what, options.repeats, lambda: audited(here), lambda: audited(there))  # noqa: B023


if __name__ == "__main__":
    main()
