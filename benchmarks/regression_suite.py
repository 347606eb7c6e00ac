"""Measure false alarms, misses and running time of a test suite for 30 mechanisms whose claims are exactly true.

    python benchmarks/regression_suite.py [--seeds N] [--only true | broken | time] [--false-alarm 0.05]

"true" counts the sessions in which any test fails.  The expected share of such sessions is at most --false-alarm.
"broken" makes the noise scale of one mechanism 20 % too small, and counts the sessions in which the test of this
mechanism fails.  Each session breaks a different mechanism, and does not run the other 29 tests, since "true" covers
them.  Both call the function that the plugin's fixture calls, with the error budget of a session of 30 tests.  "time"
measures the running time of the suite under pytest with pytest-xdist and empty caches.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import SECONDS, Case, Expected, Limit, Outcome, Table, count, mean, rate, run, spread, texts

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


def noisy_mean(mu: float, factor: float) -> Mechanism:
    """Return a mechanism that releases the noisy mean of a public number of values in [0, 1]."""
    return lambda dataset, rng: float(np.mean(dataset)) + rng.normal(0, factor / (mu * len(dataset)))


def rounded(mu: float, factor: float) -> Mechanism:
    """Return a mechanism that rounds noisy values to many digits, so that its privacy loss hardly changes."""
    return lambda dataset, rng: round(sum(dataset) + rng.normal(0, factor / mu), 3)


DELTA = 0.01
BIT, TEN = Pair([0], [1], "replace_one"), Pair([1.0] * 10, [1.0] * 9 + [0.0], "replace_one")

SUITE: list[tuple[str, Make, float, Callable[[float], TradeoffFunction], Pair]] = [
    *(("gaussian", gaussian, mu, GaussianDP, BIT) for mu in (0.5, 0.7, 1.0, 1.5, 2.0, 3.0)),
    *(("mean", noisy_mean, mu, GaussianDP, TEN) for mu in (0.5, 0.7, 1.0, 1.5)),
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


def failures(false_alarm: float, session: int) -> Outcome:
    """Return the failing tests of a session of true claims."""
    failed = [i for i in range(len(SUITE)) if fails(i, session=session, false_alarm=false_alarm)]
    return {"failed": bool(failed), "tests": [f"{SUITE[i][0]} {SUITE[i][2]}" for i in failed]}


def broken(false_alarm: float, session: int) -> Outcome:
    """Return whether the test of one mechanism fails, whose noise is 20 % too small."""
    index = session % len(SUITE)
    caught = fails(index, session=session, false_alarm=false_alarm, factor=0.8)
    return {"caught": caught, "missed": "" if caught else f"{SUITE[index][0]} {SUITE[index][2]}"}


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


def timed(workers: int, seed: int) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_suite.py").write_text(EXAMPLE)
        began = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "test_suite.py"]
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        return {"wall": time.perf_counter() - began}


def tables(options: argparse.Namespace) -> list[Table]:
    budget = Limit(rate=options.false_alarm)
    return [
        Table(
            name="true",
            headings=("budget",),
            columns={
                "sessions with a failure": rate("failed"),
                "allowed": lambda _, outcomes: budget.words(len(outcomes)),
                "failed tests": lambda _, outcomes: ", ".join(name for one in outcomes for name in one["tests"]),
            },
            cases=[
                Expected(
                    cells=(f"{options.false_alarm:g}",),
                    measure=partial(failures, options.false_alarm),
                    seeds=200,
                    right=lambda all: not budget.broken(len(all), sum(one["failed"] for one in all)),
                )
            ],
        ),
        Table(
            name="broken",
            headings=("budget",),
            columns={"sessions that find the mechanism": count("caught"), "missed": texts("missed")},
            cases=[Case(cells=("0.001",), measure=partial(broken, 1e-3), seeds=50)],
        ),
        Table(
            name="time",
            headings=("workers",),
            columns={"wall seconds": spread("wall", ".1f"), "processor seconds": mean(SECONDS)},
            cases=[Case(cells=("2",), measure=partial(timed, 2))],
        ),
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, false_alarm=0.05))
