"""Bisect the releases around faults of the gallery, and compare the first good release with that of the gallery.

    python benchmarks/bisections.py [--only TEXT] [--seed 0]

Each fault is searched by `dpaudit bisect` between two releases.  The fault counts as found if the command names exactly
the release of the gallery's control as the first good one.  Missing environments are built one after another.  The exit
code is 1 if a release differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GALLERY = Path(__file__).resolve().parent.parent / "configs" / "gallery"


@dataclass(frozen=True, slots=True)
class Search:
    """The search for one fault.

    Args:
        config: The file in configs/gallery.
        package: The package.
        oldest: The oldest release of the search.
        newest: The newest release of the search.
        control: The release of the gallery's control, which should be the first good one.
    """

    config: str
    package: str
    oldest: str
    newest: str
    control: str


SEARCHES = {
    "opendp-0.14.2-randomised-response-bits": Search(
        "opendp_randomised_response_bits", "opendp", "0.14.0", "0.16.0", "0.15.0"
    ),
    "opendp-0.4.0-randomised-response": Search("opendp_randomised_response", "opendp", "0.4.0", "0.6.2", "0.5.0"),
    "opacus-1.5.3-ghost-clipping-bias": Search("opacus_ghost_clipping", "opacus", "1.5.2", "1.5.4", "1.5.4"),
    "opacus-1.5.2-ghost-clipping-norm": Search("opacus_ghost_clipping", "opacus", "1.5.2", "1.5.4", "1.5.3"),
    "pure-ldp-1.1.2-unary-encoding": Search("pure_ldp_unary_encoding", "pure-ldp", "1.1.0", "1.2.0", "1.2.0"),
    "datasynthesizer-0.1.6-conditional-distributions": Search(
        "datasynthesizer", "DataSynthesizer", "0.1.5", "0.1.9", "0.1.7"
    ),
    "smartnoise-sql-1.0.1-approximate-bounds": Search("smartnoise_bounds", "smartnoise-sql", "1.0.0", "1.0.4", "1.0.2"),
}


def bisected(name: str, search: Search, seed: int, folder: str) -> dict[str, Any] | str:
    """Run the command; return the content of bisection.json, or the end of stderr."""
    command = [sys.executable, "-m", "dpaudit", "bisect", str(GALLERY / f"{search.config}.yaml"), search.package]
    options = ["--only", name, "--from", search.oldest, "--to", search.newest, "--seed", str(seed), "--no-pdf", "-q"]
    done = subprocess.run([*command, *options, "-o", folder], capture_output=True, text=True, check=False)
    file = Path(folder) / "bisection.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else done.stderr[-500:]


def row(name: str, search: Search, seed: int) -> tuple[bool, str]:
    """Search for one fault; return whether the right release was named, and a row of a table."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = bisected(name, search, seed, folder)
    seconds = time.perf_counter() - began
    if isinstance(found, str):
        return False, f"| {name} | {search.oldest} to {search.newest} | no outcome: {found} | {search.control} | |"
    audited = {one["version"]: one["state"] for one in found["releases"] if one["state"] != "not audited"}
    ends = [one for one in found["changes"] if one["to"] == "good"]
    named = ", ".join(" or ".join([*one["undecided_between"], one["first_after"]]) for one in ends) or "none"
    states = ", ".join(f"{version} {state}" for version, state in audited.items())
    right = named == search.control
    return right, f"| {name} | {states} | {named} | {search.control} | {seconds:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="text in the names of the faults")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wanted = {name: search for name, search in SEARCHES.items() if given.only in name}
    columns = "fault | audited releases | first good release (fault mended) | release of the control | seconds"
    print(f"| {columns} |\n|---|---|---|---|---|")
    right = 0
    for name, search in wanted.items():
        found, text = row(name, search, given.seed)
        right += found
        print(text, flush=True)
    print(f"{right} of {len(wanted)} searches named the release of the control")
    sys.exit(right < len(wanted))


if __name__ == "__main__":
    main()
