"""Do the safeguards of an audit accuse honest mechanisms, or hide violations?

    python benchmarks/safeguards.py [--seeds 1] [--only TEXT ...] [--all-routes] [--trials 2000] [--write]

Each mechanism of `safeguard_cases.mechanisms` is audited in two versions, whose modules differ in one number: the
claim of the "right" version is true, and the "broken" version has too little noise.  An audit accuses a right mechanism
if its verdict is VIOLATION or INCONCLUSIVE.  Other mechanisms keep noise from run to run, and an audit should not
report a violation that rests on this.  Each audit runs in a new process and in a new folder.  Each mechanism has one
route, in turn, without --all-routes.

The columns "s" state the seconds of the slowest audit without those of its runs, which are estimated from 40 runs.
`--write` writes the tables into benchmarks/calibration.md.
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
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from measure import BENCHMARKS, Case, Expected, Outcome, Outcomes, Repetitions, Table, between, markdown, run
from safeguard_cases.cases import HONEST, KEPT, ROUTES, Mechanism

PAGE = BENCHMARKS / "calibration.md"
_MAX_SECONDS = 1_200  # for one audit beside busy cores
_RUN = "import sys; from safeguard_cases.one_audit import main; main(*sys.argv[1:])"
_FAILED = {"verdict": "FAILED", "outcome": "", "beyond": 0.0}


def prepare(folder: Path, mechanism: Mechanism, noise: float) -> None:
    """Fill the working folder of an audit."""
    shutil.copytree(BENCHMARKS / "safeguard_cases" / "mechanisms", folder, dirs_exist_ok=True)
    module = folder / f"{mechanism.address.split(':')[0]}.py"
    text, replaced = re.subn(r"(?m)^NOISE = 1.0", f"NOISE = {noise}", module.read_text(encoding="utf-8"))
    assert replaced == 1, module
    module.write_text(f"{text}\n\n{mechanism.ending}", encoding="utf-8")
    (folder / "public.txt").write_text("0.25", encoding="utf-8")
    with sqlite3.connect(folder / "public.db") as public:
        public.execute("create table public (shift real)")
        public.execute("insert into public values (0.25)")
    public.close()


def audited(mechanism: Mechanism, route: str, noise: float, trials: int, seed: int) -> Outcome:
    """Make one audit in a new process, and return what it wrote."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        prepare(folder, mechanism, noise)
        path = os.pathsep.join([str(folder), str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])])
        with (folder / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", _RUN, ROUTES[route], mechanism.what, str(trials), str(seed)],
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
            print(f"{mechanism.what}, {ROUTES[route]}: exit code {code}: {last}", file=sys.stderr)
            return _FAILED
        outcome: Outcome = json.loads((folder / "found.json").read_text(encoding="utf-8"))
        return outcome


def both_versions(mechanism: Mechanism, route: str, trials: int, seed: int) -> Outcome:
    versions = {"right": 1.0, "broken": mechanism.broken}
    return {version: audited(mechanism, route, noise, trials, seed) for version, noise in versions.items()}


def keeps(mechanism: Mechanism, route: str, trials: int, seed: int) -> Outcome:
    return {"keeps": audited(mechanism, route, 1.0, trials, seed)}


def _accused(outcomes: Outcomes) -> list[bool]:
    return [outcome["right"]["verdict"] != "NO_VIOLATION" for outcome in outcomes]


def _refuted(outcomes: Outcomes) -> list[bool]:
    return [outcome["broken"]["verdict"] == "VIOLATION" for outcome in outcomes]


def _confirmed(outcomes: Outcomes) -> list[bool]:
    return [outcome["broken"]["outcome"] == "confirmed" for outcome in outcomes]


def _share(flags: Sequence[bool], good: bool) -> str:
    words = f"{sum(flags)} of {len(flags)}"
    return words if all(flag is good for flag in flags) else f"**{words}**"


def _beyond(version: str, outcomes: Outcomes) -> float:
    return max(float(outcome[version]["beyond"]) for outcome in outcomes)


def _allowed(mechanism: Mechanism, outcomes: Outcomes) -> bool:
    return all(outcome["keeps"]["verdict"] in mechanism.allowed for outcome in outcomes)


def _verdicts(case: Case, outcomes: Outcomes) -> str:
    verdicts = ", ".join(sorted({outcome["keeps"]["verdict"] for outcome in outcomes}))
    return verdicts if case.passed(outcomes) else f"**{verdicts}**"


def tables(options: argparse.Namespace) -> list[Table]:
    def cases(mechanisms: Sequence[Mechanism], first: int, measure: Any) -> Iterator[tuple[Mechanism, dict[str, Any]]]:
        for i, mechanism in enumerate(mechanisms, first):
            for route in mechanism.routes if options.all_routes else mechanism.routes[i % len(mechanism.routes)]:
                cells = (mechanism.what, ROUTES[route])
                yield mechanism, {"cells": cells, "measure": partial(measure, mechanism, route, options.trials)}

    return [
        Table(
            name="honest",
            headings=("mechanism", "route"),
            columns={
                "right: accused": lambda _, outcomes: _share(_accused(outcomes), False),
                "broken: refuted": lambda _, outcomes: _share(_refuted(outcomes), True),
                "confirmed": lambda _, outcomes: _share(_confirmed(outcomes), True),
                "s, right": lambda _, outcomes: f"{_beyond('right', outcomes):.1f}",
                "s, broken": lambda _, outcomes: f"{_beyond('broken', outcomes):.1f}",
            },
            cases=[
                Expected(**terms, right=lambda outcomes: not any(_accused(outcomes)) and all(_refuted(outcomes)))
                for _, terms in cases(HONEST, 0, both_versions)
            ],
            threads=True,
        ),
        Table(
            name="keeps noise",
            headings=("mechanism that keeps noise", "route"),
            columns={
                "verdict": _verdicts,
                "fresh runs": lambda _, all: ", ".join(sorted({one["keeps"]["outcome"] or "none" for one in all})),
                "s": lambda _, outcomes: f"{_beyond('keeps', outcomes):.1f}",
            },
            cases=[
                Expected(**terms, right=partial(_allowed, mechanism))
                for mechanism, terms in cases(KEPT, len(HONEST), keeps)
            ],
            threads=True,
        ),
    ]


def summary(honest: Sequence[tuple[Case, Outcomes]]) -> str:
    every = [outcome for _, outcomes in honest for outcome in outcomes]
    inconclusive = sum(outcome["broken"]["verdict"] == "INCONCLUSIVE" for outcome in every)
    return (
        f"- {len({case.cells[0] for case, _ in honest})} mechanisms; {len(honest)} pairs of a mechanism and a route.\n"
        f"- Right: {sum(_accused(every))} of {len(every)} audits accuse the mechanism.\n"
        f"- Broken: {sum(_refuted(every))} of {len(every)} audits refute the claim, {sum(_confirmed(every))} are "
        f"confirmed, {inconclusive} are inconclusive.\n"
        f"- At most {_beyond('right', every):.1f} s beyond the runs if right, and {_beyond('broken', every):.1f} s if "
        "broken."
    )


def write(all_tables: Sequence[Table], repetitions: Repetitions) -> None:
    texts = [summary([(case, repetitions.of(case)) for case in all_tables[0].cases])]
    for table in all_tables:
        rows = [table.row(case, repetitions.of(case)) for case in table.cases]
        texts.append(markdown((*table.headings, *table.columns), rows))
    begin, end = "<!-- safeguards: begin -->", "<!-- safeguards: end -->"
    page = between(begin, end, "\n\n".join(texts), PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, write=write, trials=2000, all_routes=False))
