"""kill -9 at a random moment: the audit that is resumed ends with the result of the one that was left alone.

    python benchmarks/kill_and_resume.py [--kills 20] [--seconds 60] [--side-by-side 4]

The main process of `dpaudit run --resume` is killed in --kills audits, a worker of `--jobs 2` in as many others.  Linux
only: children are found in /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

_MILLISECONDS = 5
_CONFIG = """
name: killed
claim: gaussian(mu=1)
mechanism: {{python: "own.py:unhurried"}}
pairs: [{{d0: [0], d1: [1]}}]
trials: {trials}
"""
_OWN = f"""
import time
def unhurried(dataset, rng):
    time.sleep({_MILLISECONDS / 1000})
    return dataset[0] + rng.normal()
"""


def command(folder: Path, output: str, *options: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "dpaudit",
        "run",
        str(folder / "c.yaml"),
        "-q",
        "--no-pdf",
        "-o",
        str(folder / output),
        *options,
    ]


def found(folder: Path, output: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / output / "killed.json").read_text())
    outputs = values["environment"]["outputs"]  # of the rest, most depends on the moment
    values["warnings"] = [words for words in values["warnings"] if "from a store" not in words]
    return {"outputs": outputs} | {
        key: value for key, value in values.items() if key not in ("elapsed_s", "environment")
    }


def workers(parent: int) -> list[int]:
    """Processes of loky below the main process."""
    children = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                above = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                line = (entry / "cmdline").read_bytes()
            except (OSError, ValueError, IndexError):
                continue
            if above == parent and b"loky" in line and b"resource_tracker" not in line:
                children.append(int(entry.name))
    return children


def disturbed(folder: Path, output: str, seconds: float, *, of_workers: bool, rng: np.random.Generator) -> bool:
    """Kill once at a moment within `seconds`, resume; whether the kill hit a running audit."""
    options = ["--resume", *(["--jobs", "2"] if of_workers else [])]
    process = started(folder, output, options)
    ends = time.monotonic() + seconds * rng.random()
    while process.poll() is None and (time.monotonic() < ends or not (targets := victims(process.pid, of_workers))):
        time.sleep(0.01)
    hit = process.poll() is None
    if hit:
        os.kill(int(rng.choice(targets)), signal.SIGKILL)
    process.wait()
    if of_workers and hit and found(folder, output)["stopped_by"] == "trials":
        return False  # it was idle, and not missed any more
    started(folder, output, options).wait()
    return hit


def started(folder: Path, output: str, options: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(folder, output, *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def victims(main: int, of_workers: bool) -> list[int]:
    return workers(main) if of_workers else [main]


def compared(kills: int, seconds: float, seed: int, side_by_side: int) -> bool:
    """Whether all results are the same, with a line for the kills of main processes and of workers."""
    same = True
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(side_by_side) as pool:
        folder = Path(name)
        (folder / "own.py").write_text(_OWN)
        (folder / "c.yaml").write_text(_CONFIG.format(trials=int(seconds * 1000 / _MILLISECONDS / 2)))
        began = time.monotonic()
        started(folder, "alone", []).wait()
        took, expected = time.monotonic() - began, found(folder, "alone")
        print(f"left alone: {expected['trials_used']} trials in {took:.0f} s", flush=True)
        for what, of_workers in (("main process", False), ("worker", True)):

            def one(k: int, of_workers: bool = of_workers) -> tuple[bool, bool]:
                rng, output = np.random.default_rng([seed, of_workers, k]), f"{of_workers}{k}"
                hit = disturbed(folder, output, took / (1.5 if of_workers else 1), of_workers=of_workers, rng=rng)
                return hit, found(folder, output) == expected

            results = list(pool.map(one, range(kills)))
            hits, equal = (sum(column) for column in zip(*results, strict=True))
            print(f"{what} killed in {hits} of {kills} audits: {equal} of {kills} results are the same", flush=True)
            same &= equal == kills
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="that an audit takes when it is left alone")
    parser.add_argument("--side-by-side", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    raise SystemExit(0 if compared(options.kills, options.seconds, options.seed, options.side_by_side) else 1)


if __name__ == "__main__":
    main()
