"""Measure sweeps: false alarms, faults that are found without being told where, and a release.

    python benchmarks/sweeps.py promise [--sweeps 40] [--time 180] [--cells 60]
    python benchmarks/sweeps.py bugs [--time 1800] [--only TEXT]
    python benchmarks/sweeps.py release opendp==0.16.0 [--time 1800]
    python benchmarks/sweeps.py jobs opendp [--time 60] [--only 'make_laplace*']

`promise` sweeps a simulated library of 60 correct mechanisms at confidence 0.95, and counts the sweeps that report a
violation.  The guarantee allows 5 % of them.  The part needs python-dp, whose module it replaces.

`bugs` sweeps the releases of the gallery's violations, and says for each whether the sweep refutes an entry that
runs the constructor with the fault.
`release` sweeps one release.  The last two parts build environments, and print what was refuted.  A finding that is not
public must be reported to the authors of the library first (see CONTRIBUTING.md).

`jobs` makes the same sweep with one cell and with two cells at once, and counts cells, rounds and runs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sweep_cases import correct

from dpaudit.cli.options import RunOptions
from dpaudit.cli.prepare_run import NotReady, prepare_folder
from dpaudit.cli.sweep_cells import Sweeping
from dpaudit.config import ConfigError
from dpaudit.config.sweeps import planned_sweep
from dpaudit.result.command_outcomes import CellState, Sweep
from dpaudit_reports import sweep_report
from dpaudit_reports.command_outcomes import counts, refuted_words
from dpaudit_reports.formats import Screen
from dpaudit_reports.terminal import document_text

CATALOGUE = Path(__file__).resolve().parent / "sweep_cases" / "correct.yaml"
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


def promise(sweeps: int, seconds: float, cells: int) -> int:
    """Count the sweeps of correct mechanisms that report a violation; return the exit code."""
    correct.install()
    names = [cell.title for cell in planned_sweep(str(CATALOGUE), [], [], None).cells]
    chosen = names[:: max(1, len(names) // cells)][:cells]
    false = 0
    for number in range(1, sweeps + 1):
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found = swept(str(CATALOGUE), seconds, Path(folder), confidence=0.95, only=chosen)
        bad = found.of(CellState.VIOLATION)
        false += bool(bad)
        rounds, runs = (sum(getattr(cell, what) for cell in found.cells) for what in ("rounds", "trials"))
        print(
            f"sweep {number} of {sweeps}: {len(found.cells)} cells, {len(bad)} refuted, {rounds} rounds, {runs:,} runs "
            f"per dataset, {time.perf_counter() - began:.0f} s; so far {false} sweeps with a violation",
            flush=True,
        )
        for cell in bad:
            print(f"    {refuted_words(cell)}", flush=True)
    print(f"{false} of {sweeps} sweeps of {len(chosen)} correct mechanisms reported a violation; 5 % are allowed")
    return int(false > 0.05 * sweeps)


def bugs(seconds: float, only: str) -> int:
    """Sweep the releases of the gallery's violations; return the exit code."""
    wanted = {name: place for name, place in BUGS.items() if only in name}
    found: dict[str, Sweep] = {}
    for library in dict.fromkeys(library for library, *_ in wanted.values()):
        try:
            found[library] = release(library, seconds)
        except (NotReady, ConfigError) as error:
            print(f"{library}: {error}", flush=True)
    seen = 0
    for name, (library, *entries) in wanted.items():
        cells = [cell for cell in found[library].cells if cell.constructor in entries] if library in found else []
        refuted = [cell for cell in cells if cell.state is CellState.VIOLATION]
        seen += bool(refuted)
        why = refuted_words(refuted[0]) if refuted else next((cell.reason for cell in cells if cell.reason), "")
        print(f"{name}: {'found' if refuted else 'NOT FOUND'} in {len(cells)} cells; {why[:200]}", flush=True)
    print(f"{seen} of {len(wanted)} faults were found")
    return int(seen < len(wanted))


def release(library: str, seconds: float) -> Sweep:
    """Sweep one release, and print the table."""
    folder = Path(tempfile.mkdtemp(prefix="dpaudit-sweep-"))
    found = swept(library, seconds, folder, jobs=2)
    print(f"{counts(found)}  Results: {folder}", flush=True)
    print(document_text(sweep_report(found), Screen(width=100)), flush=True)
    return found


def jobs(library: str, seconds: float, only: str) -> None:
    """Count what a sweep reaches with one cell and with two cells at once."""
    for number in (1, 2):
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found = swept(library, seconds, Path(folder), only=[only], jobs=number)
        rounds, runs = (sum(getattr(cell, what) for cell in found.cells) for what in ("rounds", "trials"))
        reached = len(found.cells) - len(found.of(CellState.NOT_AUDITED))
        print(
            f"{number} at once: {reached} of {len(found.cells)} cells, {rounds} rounds, {runs:,} runs per dataset, "
            f"{time.perf_counter() - began:.0f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("promise", "bugs", "release", "jobs"))
    parser.add_argument("library", nargs="?", default="opendp", help="for release: LIBRARY or LIBRARY==VERSION")
    parser.add_argument("--sweeps", type=int, default=40)
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--time", type=float, help="seconds of each sweep")
    parser.add_argument("--only", default="", help="for bugs: text in the names of audits; for jobs: a pattern")
    given = parser.parse_args()
    if given.part == "promise":
        sys.exit(promise(given.sweeps, given.time or 180.0, given.cells))
    if given.part == "bugs":
        sys.exit(bugs(given.time or 1800.0, given.only))
    if given.part == "jobs":
        jobs(given.library, given.time or 60.0, given.only or "make_laplace*")
        return
    release(given.library, given.time or 1800.0)


if __name__ == "__main__":
    main()
