"""Do the safeguards of an audit accuse honest mechanisms, or hide violations?

    python benchmarks/safeguards.py [--audits 1] [--only WORDS] [--all-routes] [--jobs 2] [--trials 2000]
        [--start 3] [--file audits.jsonl] [--busy audits.jsonl] [--write]

Each mechanism of `safeguards_parts.mechanisms` is audited in two versions, whose modules differ in one number: the
claim of the "right" version is true, and the "broken" version has too little noise.  An audit accuses a right mechanism
if its verdict is VIOLATION or INCONCLUSIVE.  Other mechanisms keep noise from run to run, and an audit should not
report a violation that rests on this.  Each audit runs in a new process and in a new folder.

The columns "s" state the seconds of the slowest audit without those of its runs, which are estimated from 40 runs.
With `--file`, finished audits are stored, so that an interrupted command can be resumed.  `--busy` takes such a file of
an earlier command.  Then four processes compute all the time, and the exit code is 1 if any verdict differs from that
in the file.  `--write` writes the tables into benchmarks/calibration.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit_store import Store
from busy_core import busy_cores
from safeguards_parts.cases import CASES, ROUTES, Case
from safeguards_parts.page import page_with, table

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER / "calibration.md"
_MAX_SECONDS = 1_200  # for one audit beside busy cores
_BUSY = 4
_RUN = "import sys; from safeguards_parts.one_audit import main; main(*sys.argv[1:])"
_NO_TIME = {"seconds": 0.0, "beyond": 0.0}
Found = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One audit."""

    case: Case
    route: str  # a letter of ROUTES
    version: str  # "right", "broken" or "keeps"
    seed: int

    @property
    def noise(self) -> float:
        return self.case.broken if self.version == "broken" else 1.0


def tasks(only: str, audits: int, *, all_routes: bool) -> Iterator[Task]:
    for i, case in enumerate(CASES):
        for route in case.routes if all_routes else case.routes[i % len(case.routes)]:
            if only in f"{case.what}, {ROUTES[route]}":
                for version in ("keeps",) if case.allowed else ("right", "broken"):
                    yield from (Task(case, route, version, seed) for seed in range(audits))


def prepare(folder: Path, task: Task, start: float) -> None:
    """Fill the working folder of an audit."""
    shutil.copytree(FOLDER / "safeguards_parts" / "mechanisms", folder, dirs_exist_ok=True)
    module = folder / f"{task.case.address.split(':')[0]}.py"
    text, found = re.subn(r"(?m)^NOISE = 1.0", f"NOISE = {task.noise}", module.read_text(encoding="utf-8"))
    assert found == 1, module
    module.write_text(re.sub(r"(?m)^START = 3.0", f"START = {start}", text), encoding="utf-8")
    with sqlite3.connect(folder / "public.db") as public:
        public.execute("create table public (shift real)")
        public.execute("insert into public values (0.25)")
    public.close()


def audited(task: Task, trials: int, start: float) -> Found:
    """Make one audit in a new process, and return what it wrote."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        prepare(folder, task, start)
        path = os.pathsep.join([str(folder), str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
        words = [ROUTES[task.route], task.case.what, str(trials), str(task.seed)]
        with (folder / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", _RUN, *words],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                code = process.wait(_MAX_SECONDS)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # with the helpers that the mechanism left
        if code or not (folder / "found.json").exists():
            last = (folder / "output.txt").read_text(errors="replace").strip()[-500:]
            return {"verdict": "FAILED", "outcome": "", "reason": f"exit code {code}: {last}", "runs": 0, **_NO_TIME}
        found: Found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
        return found


def differences(found: dict[str, Found], earlier: dict[str, Any]) -> list[str]:
    """Return the audits whose verdicts differ from earlier ones."""
    return [
        f"{key}: {one['verdict']}, and {earlier[key]['verdict']} before"
        for key, one in found.items()
        if key in earlier and one["verdict"] != earlier[key]["verdict"]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=1, help="audits of each version by each route")
    parser.add_argument("--only", default="", help="words of a mechanism and its route, e.g. 'a lock, function'")
    parser.add_argument(
        "--all-routes", action="store_true", help="without this or --only, each mechanism has one route, in turn"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--start", type=float, default=3.0, help="seconds that the slow module takes to start")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--busy", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    store, found = Store(options.file), dict[str, Found]()

    def made(task: Task) -> tuple[str, Task, Found]:
        key = f"{task.case.what}, {ROUTES[task.route]}, {task.version}, {options.trials} trials, seed {task.seed}"
        return key, task, store.row(key, lambda: audited(task, options.trials, options.start))

    grouped: dict[tuple[str, str, str], list[Found]] = {}
    with busy_cores(_BUSY) if options.busy else nullcontext(), ThreadPoolExecutor(options.jobs) as threads:
        for key, task, one in threads.map(
            made, tasks(options.only, options.audits, all_routes=options.all_routes or bool(options.only))
        ):
            found[key] = one
            grouped.setdefault((task.case.what, task.route, task.version), []).append(one)
            words = f"{key}: {one['verdict']} {one['outcome']}, {one['seconds']:.1f} s, {one['beyond']:.1f} s beyond"
            print(words, one["reason"], file=sys.stderr, flush=True)
    lines = list(table(grouped))
    print("\n".join(lines))
    if options.write:
        PAGE.write_text(page_with(lines, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    if options.busy and (changed := differences(found, Store(options.busy).done)):
        raise SystemExit("\n".join(changed))


if __name__ == "__main__":
    main()
