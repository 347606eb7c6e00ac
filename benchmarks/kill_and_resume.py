"""kill -9, again and again: the audit that is resumed ends with the result of the one that was left alone.

    python benchmarks/kill_and_resume.py [--kills 20] [--seconds 60]

First the main process of `dpaudit run --resume` is killed at random moments, then, in another audit, a worker of
`--jobs 2`.  Linux only: children are found in /proc.
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


def disturbed(
    folder: Path, output: str, kills: int, seconds: float, *, of_workers: bool, rng: np.random.Generator
) -> int:
    """Kill and resume until the audit ends by itself; how many kills hit a running audit."""
    options = ["--resume", *(["--jobs", "2"] if of_workers else [])]
    hit = 0
    while True:
        process = subprocess.Popen(
            command(folder, output, *options),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if hit < kills:
            while of_workers and process.poll() is None and not workers(process.pid):
                time.sleep(0.05)
            time.sleep((0.0 if of_workers else 2.0) + rng.random() * seconds / kills)
            targets = workers(process.pid) if of_workers else [process.pid]
            if process.poll() is None and targets:
                os.kill(int(rng.choice(targets)), signal.SIGKILL)
                hit += 1
            if not of_workers:
                process.wait()
                continue
        process.wait()
        if (folder / output / "killed.json").exists() and found(folder, output)["stopped_by"] == "trials":
            return hit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="that the audit takes when it is left alone")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "own.py").write_text(_OWN)
        (folder / "c.yaml").write_text(_CONFIG.format(trials=int(options.seconds * 1000 / _MILLISECONDS / 2)))
        subprocess.run(command(folder, "alone"), check=False, stdout=subprocess.DEVNULL)
        expected = found(folder, "alone")
        same = True
        for output, of_workers in (("main", False), ("workers", True)):
            hit = disturbed(folder, output, options.kills, options.seconds, of_workers=of_workers, rng=rng)
            equal = found(folder, output) == expected
            same &= equal
            print(f"{output}: {hit} kills; the result is {'the same' if equal else 'ANOTHER ONE'}", flush=True)
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
