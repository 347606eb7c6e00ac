"""Measure sweeps: false alarms, faults that are found without being told where, and a release.

    python benchmarks/sweeps.py [--seeds 40] [--time 180] [--cells 60]
    python benchmarks/sweeps.py --only bugs [--time 1800] --jobs 1
    python benchmarks/sweeps.py --only "at once" [--time 60] --jobs 1

promise: a simulated library of 60 correct mechanisms is swept at confidence 0.95, and sweeps that report a violation
are counted.  The guarantee allows 5 % of them.  The part needs python-dp, whose module it replaces.

bugs: the releases of the gallery's violations are swept.  A fault is found if the sweep refutes an entry that runs the
constructor with the fault.  Environments are built, and what was refuted is printed.  A finding that is not public must
be reported to the authors of the library first (see CONTRIBUTING.md).

at once: the same sweep is made with one cell and with two cells at once.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import numpy as np

from dpaudit.cli.options import RunOptions
from dpaudit.cli.prepare_run import prepare_folder
from dpaudit.cli.sweep_cells import Sweeping
from dpaudit.config.sweeps import planned_sweep
from dpaudit.result.command_outcomes import CellState, Sweep
from dpaudit_reports import sweep_report
from dpaudit_reports.command_outcomes import refuted_words
from dpaudit_reports.formats import Screen
from dpaudit_reports.terminal import document_text
from measure import BENCHMARKS, Case, Expected, Outcome, Table, all_have, median, rate, run, texts

CATALOGUE = BENCHMARKS / "sweeps.yaml"
CHAINS = ("count", "distinct count", "clamped sum", "statistic of 5 numbers", "histogram by categories")
"""Entries of OpenDP's catalogue that chain transformations and make_laplace."""

BUGS = {
    "opendp-0.14.1-discrete-laplace-scale-3": ("opendp==0.14.1", "make_laplace", "make_laplace of vectors", *CHAINS),
    "opendp-0.14.2-randomised-response-bits": ("opendp==0.14.2", "make_randomized_response_bitvec"),
    "opendp-0.4.0-randomised-response": ("opendp==0.4.0", "make_randomized_response_bool"),
    "opendp-0.16.0-randomised-response-lengths": ("opendp==0.16.0", "make_randomized_response_bitvec"),
    "diffprivlib-0.6.6-laplace": ("diffprivlib==0.6.6", "Laplace"),
    "diffprivlib-0.6.6-gaussian-analytic": ("diffprivlib==0.6.6", "GaussianAnalytic"),
    "diffprivlib-0.6.6-regression": ("diffprivlib==0.6.6", "LinearRegression"),
    "diffprivlib-0.4.1-laplace": ("diffprivlib==0.4.1", "Laplace"),
    "diffprivlib-0.4.1-wishart": ("diffprivlib==0.4.1", "Wishart"),
}
"""Violations of the gallery: the release to sweep, and the entries that run the constructor with the fault."""


# --- A simulated library with the interface of PyDP, whose privacy loss equals the stated epsilon


class GeometricCount:
    """The number of records with two-sided geometric noise: exactly epsilon-DP."""

    delta = 0.0

    def __init__(self, epsilon: float, dtype: str = "int") -> None:
        self.epsilon = epsilon
        self._rng = np.random.default_rng()

    def quick_result(self, data: list[float]) -> float:
        p = 1 - math.exp(-self.epsilon)
        return len(data) + float(self._rng.geometric(p) - self._rng.geometric(p))


class LaplaceCount(GeometricCount):
    """The number of records with Laplace noise, rounded to 2^-20 so that outputs lie on one grid."""

    def quick_result(self, data: list[float]) -> float:
        return round((len(data) + self._rng.laplace(0.0, 1 / self.epsilon)) * 2**20) / 2**20


class RandomisedParity(GeometricCount):
    """The parity of the number of records, by randomised response: exactly epsilon-DP."""

    def quick_result(self, data: list[float]) -> float:
        truth = self._rng.random() < 1 / (1 + math.exp(-self.epsilon))
        return float((len(data) + (not truth)) % 2)


def install_correct_library() -> None:
    """Replace PyDP by the simulated library in this process."""
    for name in ("pydp", "pydp.algorithms", "pydp.algorithms.laplacian"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        for kind in (GeometricCount, LaplaceCount, RandomisedParity):
            setattr(module, kind.__name__, kind)
        sys.modules[name] = module


# --- Sweeps


def swept(
    library: str,
    seconds: float,
    folder: Path,
    *,
    confidence: float = 0.99,
    only: list[str] | None = None,
    jobs: int = 1,
) -> Sweep:
    """Sweep a library, and return the outcome."""
    options = RunOptions(output=folder, confidence=confidence, no_pdf=True, quiet=True, jobs=jobs)
    plan = planned_sweep(library, [], only or [], None)
    prepare_folder([cell.planned for cell in plan.cells], options)
    sweeping = Sweeping(plan, seconds, options)
    sweeping.run()
    if sweeping.runner.interrupted:
        raise KeyboardInterrupt
    return sweeping.outcome


def promise(seconds: float, cells: int, seed: int) -> Outcome:
    """Sweep correct mechanisms."""
    install_correct_library()
    names = [cell.title for cell in planned_sweep(str(CATALOGUE), [], [], None).cells]
    chosen = names[:: max(1, len(names) // cells)][:cells]
    with tempfile.TemporaryDirectory() as folder:
        sweep = swept(str(CATALOGUE), seconds, Path(folder), confidence=0.95, only=chosen)
    bad = sweep.of(CellState.VIOLATION)
    return {"false alarm": bool(bad), "refuted": "; ".join(map(refuted_words, bad)), **_work(sweep)}


def _work(sweep: Sweep) -> Outcome:
    reached = len(sweep.cells) - len(sweep.of(CellState.NOT_AUDITED))
    rounds, trials = (sum(getattr(cell, what) for cell in sweep.cells) for what in ("rounds", "trials"))
    return {"cells": f"{reached} of {len(sweep.cells)}", "rounds": rounds, "runs": trials}


def bugs(library: str, seconds: float, seed: int) -> Outcome:
    """Sweep an affected release; return the faults that it finds, and those that it misses."""
    sweep = release(library, seconds)
    outcome: dict[str, list[str]] = {"found": [], "missed": []}
    for name, (affected, *entries) in BUGS.items():
        if affected == library:
            cells = [cell for cell in sweep.cells if cell.constructor in entries]
            refuted = [refuted_words(cell) for cell in cells if cell.state is CellState.VIOLATION]
            outcome["found" if refuted else "missed"].append(f"{name} {refuted[0][:200] if refuted else ''}".strip())
    return {name: "; ".join(faults) for name, faults in outcome.items()}


def release(library: str, seconds: float) -> Sweep:
    """Sweep one release, and print the table."""
    folder = Path(tempfile.mkdtemp(prefix="dpaudit-sweep-"))
    sweep = swept(library, seconds, folder, jobs=2)
    print(f"Results: {folder}", flush=True)
    print(document_text(sweep_report(sweep), Screen(width=100)), flush=True)
    return sweep


def at_once(library: str, only: str, number: int, seconds: float, seed: int) -> Outcome:
    """Sweep with several cells at once."""
    with tempfile.TemporaryDirectory() as folder:
        return _work(swept(library, seconds, Path(folder), only=[only], jobs=number))


def tables(options: argparse.Namespace) -> list[Table]:
    work = {"cells": texts("cells"), "rounds": median("rounds"), "runs per dataset": median("runs")}
    return [
        Table(
            name="promise",
            headings=("mechanisms",),
            columns={"sweeps with a violation": rate("false alarm"), "refuted": texts("refuted"), **work},
            cases=[
                Expected(
                    cells=(f"{options.cells} correct mechanisms",),
                    measure=partial(promise, options.time or 180.0, options.cells),
                    seeds=40,
                    right=lambda outcomes: sum(one["false alarm"] for one in outcomes) <= 0.05 * len(outcomes),
                )
            ],
        ),
        Table(
            name="bugs",
            asked=True,
            headings=("release",),
            columns={"found": texts("found"), "missed": texts("missed")},
            cases=[
                Expected(
                    cells=(library,),
                    measure=partial(bugs, library, options.time or 1800.0),
                    right=partial(all_have, "missed", ""),
                )
                for library in dict.fromkeys(library for library, *_ in BUGS.values())
            ],
        ),
        Table(
            name="at once",
            asked=True,
            headings=("library", "entries", "cells at once"),
            columns=work,
            cases=[
                Case(
                    cells=("opendp", "make_laplace*", str(number)),
                    measure=partial(at_once, "opendp", "make_laplace*", number, options.time or 60.0),
                )
                for number in (1, 2)
            ],
        ),
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, time=0.0, cells=60))
