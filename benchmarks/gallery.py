"""Repeat the audits of configs/gallery, bisect releases around faults, and run the scripts of `dpaudit reproduce`.

    python benchmarks/gallery.py [--seeds 10] [--only TEXT ...]
    python benchmarks/gallery.py --only bisections
    python benchmarks/gallery.py --only reproductions

audits: each has its own confidence of 99.9 %.  An affected release passes if at least 9 of 10 audits refute its claim
within five times the runs that `SEEN` states.  A control passes if no audit refutes its claim; 26 controls and 10 seeds
give a false alarm with probability 0.23 at most.

bisections: a fault is searched by `dpaudit bisect` between two releases.  It passes if the command names exactly the
release of the gallery's control as the first good one.

reproductions: a claim of an affected release is audited until it is refuted, and the script of this result runs,
without dpaudit, in an environment with the packages of the config and scipy.  The control is the same event on the same
datasets, with the mechanism and the packages of the gallery's control.  A case passes if the script refutes the claim
for the affected release, does not refute it for the control, and needs less than a minute of processor time for each.

Missing environments are built first.  The libraries that use the operating system's randomness are not repeatable, even
with the same seed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from dpaudit import AuditResult, audit
from dpaudit.config.files import read_configs
from dpaudit.config.planned import PlannedAudit
from dpaudit.reproduce.literals import Unwritable
from dpaudit.reproduce.script import script_of
from dpaudit.running.environments import environment
from measure import ROOT, SECONDS, Expected, Outcome, Outcomes, Table, all_have, count, mean, run, texts

GALLERY = ROOT / "configs" / "gallery"
CONFIDENCE = 0.999
FACTOR = 5  # an affected release may need this many times the runs that were seen
SHARE = 0.9  # least share of the seeds that must refute the claim of an affected release within these runs
REPRODUCED_SECONDS = 60.0

SEEN = {  # largest number of runs on each dataset until a claim was refuted, in the audits of docs/gallery.md
    "datasynthesizer-0.1.6-conditional-distributions": 43,
    "diffprivlib-0.4.1-laplace": 57,
    "diffprivlib-0.4.1-wishart": 65,
    "diffprivlib-0.6.6-gaussian-analytic": 547,
    "diffprivlib-0.6.6-laplace": 383,
    "diffprivlib-0.6.6-regression": 61,
    "nvflare-2.0.16-sparse-vector": 148,
    "opacus-1.5.2-ghost-clipping-norm": 32,
    "opacus-1.5.3-ghost-clipping-bias": 32,
    "opacus-1.6.0-expected-batch-size": 19,
    "opacus-1.6.0-gdp-accountant": 81_725,
    "opendp-0.4.0-geometric-time": 225,
    "opendp-0.4.0-randomised-response": 121,
    "opendp-0.14.1-discrete-laplace-scale-3": 10_118,
    "opendp-0.14.1-discrete-laplace-scale-10": 52_831,
    "opendp-0.14.2-randomised-response-bits": 73,
    "opendp-0.16.0-count-after-cast": 36,
    "opendp-0.16.0-filled-with-nan": 29,
    "opendp-0.16.0-physical-codes": 30,
    "opendp-0.16.0-randomised-response-lengths": 51,
    "opendp-0.16.0-redefined-column": 21,
    "opendp-smartnoise-0.1.1-unbounded-sum": 27,
    "pure-ldp-1.1.2-unary-encoding": 150,
    "smartnoise-sql-1.0.1-approximate-bounds": 27,
}
SEARCHES = {  # the config, the package, the oldest and newest release, and the release of the control
    "opendp-0.14.2-randomised-response-bits": "opendp_randomised_response_bits opendp 0.14.0 0.16.0 0.15.0",
    "opendp-0.4.0-randomised-response": "opendp_randomised_response opendp 0.4.0 0.6.2 0.5.0",
    "opacus-1.5.3-ghost-clipping-bias": "opacus_ghost_clipping opacus 1.5.2 1.5.4 1.5.4",
    "opacus-1.5.2-ghost-clipping-norm": "opacus_ghost_clipping opacus 1.5.2 1.5.4 1.5.3",
    "pure-ldp-1.1.2-unary-encoding": "pure_ldp_unary_encoding pure-ldp 1.1.0 1.2.0 1.2.0",
    "datasynthesizer-0.1.6-conditional-distributions": "datasynthesizer DataSynthesizer 0.1.5 0.1.9 0.1.7",
    "smartnoise-sql-1.0.1-approximate-bounds": "smartnoise_bounds smartnoise-sql 1.0.0 1.0.4 1.0.2",
}
CONTROLS = {  # audits of affected releases whose scripts run, and their controls
    "opendp-0.16.0-redefined-column": "opendp-0.16.0-unchanged-column",
    "opendp-0.16.0-physical-codes": "opendp-0.16.0-comparison-codes",
    "opendp-0.16.0-filled-with-nan": "opendp-0.16.0-filled-with-zero",
    "opendp-0.16.0-count-after-cast": "opendp-0.16.0-count-after-filling",
    "pure-ldp-1.1.2-unary-encoding": "pure-ldp-1.2.0-unary-encoding",
    "datasynthesizer-0.1.6-conditional-distributions": "datasynthesizer-0.1.7-conditional-distributions",
    "diffprivlib-0.6.6-regression": "diffprivlib-0.6.6-regression-symmetric",
    "opendp-0.14.2-randomised-response-bits": "opendp-0.15.0-randomised-response-bits",
    "opendp-0.4.0-randomised-response": "opendp-0.5.0-randomised-response",
    "opacus-1.5.3-ghost-clipping-bias": "opacus-1.5.4-ghost-clipping-bias",
    "opacus-1.5.2-ghost-clipping-norm": "opacus-1.5.3-ghost-clipping-norm",
    "opacus-1.6.0-expected-batch-size": "opacus-1.6.0-normaliser-pinned",
}


@cache
def _planned() -> dict[str, PlannedAudit]:
    return {planned.config.name: planned for planned in read_configs([GALLERY])}


@cache
def _loaded(name: str) -> tuple[Any, Any]:
    """Return the mechanism, which is started once in each process, and the claim."""
    return _planned()[name].load()


def audited(name: str, seed: int) -> Outcome:
    planned, (mechanism, claim) = _planned()[name], _loaded(name)
    settings = replace(planned.settings, confidence=CONFIDENCE, seed=seed)
    result = audit(mechanism, claim, planned.pairs, **settings.keywords)
    return {"refuted": result.violated, "runs": result.trials_used}


def as_expected(name: str, outcomes: Outcomes) -> bool:
    runs = [outcome["runs"] for outcome in outcomes if outcome["refuted"]]
    if str(_planned()[name].config.expect) != "violation":
        return not runs
    return bool(sum(each <= FACTOR * SEEN[name] for each in runs) >= SHARE * len(outcomes))


def _span(_: object, outcomes: Outcomes) -> str:
    runs = [outcome["runs"] for outcome in outcomes if outcome["refuted"]]
    return f"{min(runs):,} to {max(runs):,}" if runs else "none"


def bisected(name: str, seed: int) -> Outcome:
    """Run `dpaudit bisect`; return the audited releases, and those that are named as the first good ones."""
    config, package, oldest, newest, _ = SEARCHES[name].split()
    command = [sys.executable, "-m", "dpaudit", "bisect", str(GALLERY / f"{config}.yaml"), package, "--only", name]
    command += ["--from", oldest, "--to", newest, "--seed", str(seed), "--no-pdf", "-q"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, "-o", folder], capture_output=True, text=True, check=False)
        file = Path(folder) / "bisection.json"
        if not file.is_file():
            return {"states": f"no outcome: {done.stderr[-500:]}", "named": ""}
        values = json.loads(file.read_text(encoding="utf-8"))
    audited = [f"{one['version']} {one['state']}" for one in values["releases"] if one["state"] != "not audited"]
    good = [change for change in values["changes"] if change["to"] == "good"]
    named = [" or ".join([*change["undecided_between"], change["first_after"]]) for change in good]
    return {"states": ", ".join(audited), "named": ", ".join(named) or "none"}


def reproduced(name: str, control: str, seed: int) -> Outcome:
    """Run the script of a refutation for the affected release and for the control."""
    affected, (mechanism, claim) = _planned()[name], _loaded(name)
    result = audit(mechanism, claim, affected.pairs, **replace(affected.settings, seed=seed).keywords)
    (bad, bad_seconds), (good, good_seconds) = (
        script_refutes(result, planned) for planned in (affected, _planned()[control])
    )
    seconds = max(bad_seconds, good_seconds)
    return {"affected": bad, "control": good, "right": bad and not good and seconds < REPRODUCED_SECONDS}


def script_refutes(result: AuditResult, planned: PlannedAudit) -> tuple[bool, float]:
    """Run the script of a result with the mechanism and the packages of a config; return also processor seconds."""
    script = script_of(replace(result, provenance=replace(result.provenance, audit=planned.text)))
    if script.missing:
        raise Unwritable(f"the script is not complete: {'; '.join(script.missing)}")
    asked = planned.config.mechanism
    found = environment(asked.requires or (), asked.python_version)
    if "scipy" not in found.packages:  # the audited library does not need it, but the script does
        found = environment([*(asked.requires or ()), "scipy"], asked.python_version)
    with tempfile.TemporaryDirectory() as folder:
        for file in GALLERY.glob("*.py"):
            shutil.copy(file, folder)
        (Path(folder) / "reproduce.py").write_text(script.text, encoding="utf-8")
        began = sum(os.times()[2:4])
        command, variables = [str(found.python), "reproduce.py"], _without_dpaudit()
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
        seconds = sum(os.times()[2:4]) - began
    if done.returncode:
        raise Unwritable(f"the script ended with {done.returncode}: {done.stderr[-300:]}")
    return "These runs refute the claim." in done.stdout, seconds


def _without_dpaudit() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def tables(options: argparse.Namespace) -> list[Table]:
    return [
        Table(
            name="audits",
            headings=("case", "expected", "at most"),
            columns={"refuted": count("refuted"), "runs": _span, "s": mean(SECONDS)},
            cases=[
                Expected(
                    cells=(name, str(planned.config.expect), f"{FACTOR * SEEN[name]:,}" if name in SEEN else "none"),
                    measure=partial(audited, name),
                    seeds=10,
                    right=partial(as_expected, name),
                )
                for name, planned in _planned().items()
            ],
        ),
        Table(
            name="bisections",
            asked=True,
            headings=("fault", "release of the control"),
            columns={"audited releases": texts("states"), "first good release": texts("named"), "s": mean(SECONDS)},
            cases=[
                Expected(
                    cells=(name, search.split()[-1]),
                    measure=partial(bisected, name),
                    right=partial(all_have, "named", search.split()[-1]),
                )
                for name, search in SEARCHES.items()
            ],
        ),
        Table(
            name="reproductions",
            asked=True,
            headings=("violation", "control"),
            columns={name: count(name) for name in ("affected", "control", "right")},
            cases=[
                Expected(
                    cells=(name, control),
                    measure=partial(reproduced, name, control),
                    right=partial(all_have, "right", True),
                )
                for name, control in CONTROLS.items()
            ],
        ),
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables))
