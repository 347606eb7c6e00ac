"""Measure false alarms, misses and running time of a test suite for 30 mechanisms whose claims are exactly true.

    python benchmarks/regression_suite.py true   [--sessions 200] [--first 0] [--false-alarm 0.05] [--jobs 2]
    python benchmarks/regression_suite.py broken [--sessions 50] [--first 0] [--false-alarm 0.001] [--jobs 2]
    python benchmarks/regression_suite.py time   [--workers 2]

"true" counts the sessions in which any test fails.  The expected share of such sessions is at most --false-alarm.
"broken" makes the noise scale of one mechanism 20 % too small, and counts the sessions in which the test of this
mechanism fails.  Each session breaks a different mechanism.  "broken" does not run the other 29 tests, since "true"
covers them.  "true" and "broken" call the function that the plugin's fixture calls, with the error budget of a session
of 30 tests.  --first is the seed of the first session, so that a benchmark can be split into several runs.  "time"
measures the running time of the suite under pytest with pytest-xdist and empty caches.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, LaplaceDP, Pair, PureDP
from dpaudit.claims import TradeoffFunction
from dpaudit.testing import PrivacyViolation, assert_private
from dpaudit.testing import session as test_session
from dpaudit.testing.session import Allowance, Settings

Mechanism = Callable[[Any, np.random.Generator], Any]
# arguments: the claimed privacy parameter, and a factor that multiplies the noise scale
Make = Callable[[float, float], Mechanism]


def gaussian(mu: float, factor: float) -> Mechanism:
    return lambda dataset, rng: sum(dataset) + rng.normal(0, factor / mu)


def laplace(epsilon: float, factor: float) -> Mechanism:
    return lambda dataset, rng: sum(dataset) + rng.laplace(0, factor / epsilon)


def geometric(epsilon: float, factor: float) -> Mechanism:
    stop = -math.expm1(-epsilon / factor)
    return lambda dataset, rng: int(sum(dataset) + rng.geometric(stop) - rng.geometric(stop))


def response(epsilon: float, factor: float) -> Mechanism:
    """Return randomised response, which reports the true bit with odds e^epsilon if `factor` is 1."""
    keeps = 1 / (1 + math.exp(-epsilon / factor))
    return lambda dataset, rng: int(dataset[0]) if rng.random() < keeps else 1 - int(dataset[0])


def leaky_response(epsilon: float, factor: float) -> Mechanism:
    """Return the least private (epsilon, DELTA)-DP mechanism on a bit.  It reveals the bit with probability DELTA."""
    inner = response(epsilon, factor)
    return lambda dataset, rng: f"it is {dataset[0]}" if rng.random() < DELTA else str(inner(dataset, rng))


def mean(mu: float, factor: float) -> Mechanism:
    """Return a mechanism that releases the noisy mean of a public number of values in [0, 1]."""
    return lambda dataset, rng: float(np.mean(dataset)) + rng.normal(0, factor / (mu * len(dataset)))


def rounded(mu: float, factor: float) -> Mechanism:
    """Return a mechanism that rounds noisy values to many digits, so that its privacy loss hardly changes."""
    return lambda dataset, rng: round(sum(dataset) + rng.normal(0, factor / mu), 3)


DELTA = 0.01
BIT, TEN = Pair([0], [1], "replace_one"), Pair([1.0] * 10, [1.0] * 9 + [0.0], "replace_one")

SUITE: list[tuple[str, Make, float, Callable[[float], TradeoffFunction], Pair]] = [
    *(("gaussian", gaussian, mu, GaussianDP, BIT) for mu in (0.5, 0.7, 1.0, 1.5, 2.0, 3.0)),
    *(("mean", mean, mu, GaussianDP, TEN) for mu in (0.5, 0.7, 1.0, 1.5)),
    *(("rounded", rounded, mu, GaussianDP, BIT) for mu in (0.5, 1.0, 2.0)),
    *(("laplace", laplace, epsilon, LaplaceDP, BIT) for epsilon in (0.5, 1.0, 2.0)),
    *(("laplace", laplace, epsilon, PureDP, BIT) for epsilon in (0.5, 1.0, 2.0, 3.0)),
    *(("geometric", geometric, epsilon, PureDP, BIT) for epsilon in (0.5, 1.0, 2.0)),
    *(("response", response, epsilon, PureDP, BIT) for epsilon in (0.5, 1.0, 1.5, 2.0, 3.0)),
    *(
        ("leaky_response", leaky_response, epsilon, lambda epsilon: ApproxDP(epsilon=epsilon, delta=DELTA), BIT)
        for epsilon in (1.0, 2.0)
    ),
]


def fails(index: int, *, session: int, false_alarm: float, factor: float = 1.0) -> bool:
    """Return whether the test of one mechanism fails in the session with the given seed.

    The exception AuditInconclusive is not caught.
    """
    name, make, parameter, claim, pair = SUITE[index]
    settings = Settings(false_alarm=false_alarm, seed=session, report=None)
    test_session.current = Allowance(node=f"{name}[{index}]", share=false_alarm / len(SUITE), settings=settings)
    try:
        assert_private(make(parameter, factor), claim(parameter), pair)
    except PrivacyViolation:
        return True
    return False


def true_claims(seeds: range, false_alarm: float, jobs: int) -> None:
    def failures(session: int) -> list[int]:
        return [i for i in range(len(SUITE)) if fails(i, session=session, false_alarm=false_alarm)]

    found = Parallel(n_jobs=jobs)(delayed(failures)(session) for session in seeds)
    any_failure = sum(bool(failed) for failed in found)
    print(f"{len(SUITE)} true claims at their boundary, {len(seeds)} sessions, budget {false_alarm:g}:")
    print(f"  sessions with any failure   {any_failure}")
    print(f"  expected at most            {false_alarm * len(seeds):g}")
    print(f"  more than these by chance in 1 of 1,000: {binom.ppf(0.999, len(seeds), false_alarm):.0f}")
    print(f"  failures of single tests    {[(SUITE[i][0], SUITE[i][2]) for failed in found for i in failed]}")


def broken(seeds: range, false_alarm: float, jobs: int) -> None:
    found = Parallel(n_jobs=jobs)(
        delayed(fails)(session % len(SUITE), session=session, false_alarm=false_alarm, factor=0.8) for session in seeds
    )
    missed = [SUITE[session % len(SUITE)][:3:2] for session, caught in zip(seeds, found, strict=True) if not caught]
    print(f"one noise scale 20 % too small, budget {false_alarm:g} over {len(SUITE)} tests:")
    print(f"  caught   {sum(found)} of {len(seeds)} sessions{f'; missed: {missed}' if missed else ''}")


EXAMPLE = f"""\
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import pytest
from regression_suite import SUITE

@pytest.mark.parametrize("index", range(len(SUITE)))
def test_claim(dpaudit, index):
    _, make, parameter, claim, pair = SUITE[index]
    dpaudit.assert_private(make(parameter, 1.0), claim=claim(parameter), pairs=pair)
"""


def timed(workers: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_suite.py").write_text(EXAMPLE)
        began = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "test_suite.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        elapsed = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(done.stdout)
    print(f"{len(SUITE)} scalar audits in {elapsed:.1f} s with {workers} workers, processes' start included")
    print(f"the processors' time: {used.ru_utime + used.ru_stime:.1f} s, all workers together")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["true", "broken", "time"])
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--false-alarm", type=float)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    match given.what:
        case "true":
            true_claims(
                range(given.first, given.first + (given.sessions or 200)), given.false_alarm or 0.05, given.jobs
            )
        case "broken":
            broken(range(given.first, given.first + (given.sessions or 50)), given.false_alarm or 1e-3, given.jobs)
        case _:
            timed(given.workers)


if __name__ == "__main__":
    main()
