"""Run the scripts of `dpaudit reproduce` for violations of the gallery, without dpaudit.

    python benchmarks/reproductions.py [--only TEXT] [--seed 0]

Each claim of an affected release is audited until it is refuted, and the script of this result runs in an environment
with the packages of the config and scipy.  The control is the same event on the same datasets, with the mechanism and
the packages of the gallery's control.  A case passes if the script refutes the claim for the affected release, does not
refute it for the control, and needs less than a minute of processor time for each.  Missing environments are built one
after another.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dpaudit import AuditResult, audit
from dpaudit.config import PlannedAudit, read_configs
from dpaudit.reproduce.literals import Unwritable
from dpaudit.reproduce.script import script_of
from dpaudit.running import MechanismError
from dpaudit.running.environments import environment

GALLERY = Path(__file__).resolve().parent.parent / "configs" / "gallery"
MOST_SECONDS = 60.0

CASES = {
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
"""Audits of affected releases, and their controls."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A script that has run."""

    refuted: bool
    words: str
    seconds: float
    """Processor seconds."""

    def __str__(self) -> str:
        found = re.search(r"p <= (\S+)", self.words)
        return f"{'refuted' if self.refuted else 'kept'}, p <= {found[1] if found else '?'}, {self.seconds:.0f} s"


def processor_seconds() -> float:
    """Return the processor time of all children of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def violation(planned: PlannedAudit, seed: int) -> AuditResult:
    """Audit until the claim is refuted."""
    mechanism, claim = planned.load()
    result = audit(mechanism, claim, planned.pairs, **replace(planned.settings, seed=seed).keywords)
    return replace(result, provenance=replace(result.provenance, audit=planned.text))


def ran(result: AuditResult, planned: PlannedAudit) -> Ran:
    """Run the script of a result with the mechanism and the packages of a config."""
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
        began = processor_seconds()
        done = subprocess.run(
            [found.python, "reproduce.py"],
            cwd=folder,
            env=without_dpaudit(),
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = processor_seconds() - began
    if done.returncode:
        raise Unwritable(f"the script ended with {done.returncode}: {done.stderr[-300:]}")
    return Ran("These runs refute the claim." in done.stdout, done.stdout, seconds)


def without_dpaudit() -> Mapping[str, str]:
    """Return the variables of this process, without those that make its packages importable."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def passed(affected: PlannedAudit, control: PlannedAudit, seed: int) -> bool:
    """Print a row of the table, and return whether the script separates the two mechanisms within a minute each."""
    name = affected.config.name
    try:
        result = violation(affected, seed)
        bad, good = ran(result, affected), ran(result, control)
    except (Unwritable, MechanismError) as error:
        print(f"| {name} | {error} | | no |", flush=True)
        return False
    right = bad.refuted and not good.refuted and max(bad.seconds, good.seconds) < MOST_SECONDS
    print(f"| {name} | {bad} | {good} | {'yes' if right else 'no'} |", flush=True)
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="text in the names of the affected audits")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    known = {planned.config.name: planned for planned in read_configs([GALLERY])}
    wanted = {name: control for name, control in CASES.items() if given.only in name}
    print("| violation | affected release | control | separated |\n|---|---|---|---|")
    right = sum(passed(known[name], known[control], given.seed) for name, control in wanted.items())
    print(
        f"{right} of {len(wanted)} scripts separate the affected release from the control, each in less than a minute "
        "of processor time"
    )
    sys.exit(right < len(wanted))


if __name__ == "__main__":
    main()
