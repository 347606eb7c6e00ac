"""Audits one mechanism in this process, and writes what the audit found to `found.json`.

The command line names the route, the module and object, the number of trials and the seed.  The working folder holds
the module.  The process was started with `-c`, so that `__main__` is empty, as in a notebook.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import audit
from dpaudit.running import CommandMechanism, sampler
from dpaudit.running.mechanisms import PythonMechanism
from safeguard_cases.cases import CASES

CONFIDENCE = 0.99
_TIMED = 20  # runs on each dataset that measure the time of a run


def _mechanism(route: str, module: str, name: str) -> Any:
    if route in ("address", "workers"):
        return PythonMechanism(f"{module}.py:{name}")
    if route == "command":
        return CommandMechanism([sys.executable, "serve.py", module, name])
    if route == "function":
        return getattr(import_module(module), name)
    space = vars(sys.modules["__main__"])
    space["__file__"] = str(Path(f"{module}.py").resolve())  # only for cells that read files beside the notebook
    exec(compile(Path(f"{module}.py").read_text(), "<cell>", "exec"), space)
    del space["__file__"]
    return space[name]


@contextlib.contextmanager
def _counted() -> Iterator[list[int]]:
    """Count the runs on each dataset that the audit makes without new processes."""
    found, block = [0], sampler.Sampler.block

    def counted(self: sampler.Sampler, pair: int, start: int, stop: int) -> Any:
        found[0] += stop - start
        return block(self, pair, start, stop)

    sampler.Sampler.block = counted  # type: ignore[method-assign]
    yield found


def _seconds_of_a_run(mechanism: Any, datasets: tuple[Any, Any]) -> float:
    called = mechanism.loaded if isinstance(mechanism, PythonMechanism) else mechanism
    rng = np.random.default_rng(0)

    def make(runs: int) -> None:
        for dataset in datasets:
            if hasattr(called, "sample"):
                called.sample(dataset, runs, rng)
            else:
                for _ in range(runs):
                    called(dataset, rng)

    make(1)  # a program starts in its first run
    began = time.perf_counter()
    make(_TIMED)
    return (time.perf_counter() - began) / (2 * _TIMED)


def main(route: str, what: str, trials: str, seed: str) -> None:
    (case,) = (case for case in CASES if case.what == what)
    mechanism, pair = _mechanism(route, *case.address.split(":")), case.pair()
    if route == "workers":
        sampler._WORTH_SENDING = 0.0  # so that workers make fast runs, too
    began = time.perf_counter()
    with _counted() as made:
        result = audit(
            mechanism,
            case.claim(),
            pair,
            trials=min(int(trials), case.trials or int(trials)),
            confidence=CONFIDENCE,
            seed=int(seed),
            jobs=2 if route == "workers" else 1,
        )
    seconds, fresh = time.perf_counter() - began, result.confirmation
    runs = made[0] + (fresh.runs if fresh is not None and fresh.processes else 0)
    found: dict[str, Any] = {"verdict": result.verdict.name, "outcome": "" if fresh is None else fresh.outcome}
    # The mechanism may have changed anything, so its time is measured last.
    found["beyond"] = seconds - 2 * runs * _seconds_of_a_run(mechanism, (pair.d0, pair.d1))
    Path("found.json").write_text(json.dumps(found), encoding="utf-8")
