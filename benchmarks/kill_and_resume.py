"""Kills audits at any moment (`kill -9`): a resumed audit must end with the result of an uninterrupted one.

    python benchmarks/kill_and_resume.py [--kills 20] [--seconds 60] [--side-by-side 4] [--only WHAT ...]

WHAT is one of

    main      the main process of `dpaudit run --resume` is killed at a random moment
    worker    a worker of `--jobs 2` is killed at a random moment
    first     the main process is killed within its first two seconds, three times in a row
    flush     the main process is killed while it flushes a file to the disk (seen in /proc/PID/syscall, x86-64)
    two       two processes are started on one store; exactly one of them may use it at a time
    full      the disk becomes full, and the audit is resumed on a disk with space (needs user namespaces)

Each disturbance happens in --kills audits.  Only Linux is supported: processes are found in /proc.
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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

_MILLISECONDS = 5
_CONFIG = """
name: killed
seed: 0
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
    outputs = values["environment"]["outputs"]  # most other values depend on the time of the audit
    values["warnings"] = [one for one in values["warnings"] if "from a store" not in one["text"]]
    return {"outputs": outputs} | {
        key: value for key, value in values.items() if key not in ("elapsed_s", "environment")
    }


def workers(parent: int) -> list[int]:
    """Return the loky processes below the main process."""
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


def killed_at_random(folder: Path, output: str, seconds: float, rng: np.random.Generator, *, of_workers: bool) -> bool:
    """Kill a process at a random moment within `seconds`, and resume; return whether the audit was still running."""
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
        return False  # the killed worker was idle, and the audit did not need it
    started(folder, output, options).wait()
    return hit


def killed_at_first(folder: Path, output: str, _: float, rng: np.random.Generator) -> bool:
    """Kill the main process three times, each time within its first two seconds, and then resume."""
    for _ in range(3):
        process = started(folder, output, ["--resume"])
        time.sleep(2 * rng.random())
        process.kill()
        process.wait()
    started(folder, output, ["--resume"]).wait()
    return True


def killed_in_flush(folder: Path, output: str, seconds: float, rng: np.random.Generator) -> bool:
    """Kill the process in its n-th call of fsync or fdatasync, for a random n, and then resume."""
    process = started(folder, output, ["--resume"])
    left, hit = int(rng.integers(1, 40)), False
    ends = time.monotonic() + seconds
    while process.poll() is None and not hit and time.monotonic() < ends:
        try:
            call = Path(f"/proc/{process.pid}/syscall").read_text().split()[0]
        except (OSError, IndexError):
            continue
        if call in _FLUSHES:
            left -= 1
            hit = left <= 0
    if hit:
        process.kill()
    process.wait()
    started(folder, output, ["--resume"]).wait()
    return hit


def shared(folder: Path, output: str, _: float, rng: np.random.Generator) -> bool:
    """Start two processes on one store, and resume; return whether the second was refused."""
    first = started(folder, output, ["--resume"])
    time.sleep(float(rng.random()))
    second = started(folder, output, ["--resume"])
    codes = sorted((first.wait(), second.wait()))
    if codes not in ([0, 0], [0, 3]):
        raise SystemExit(f"two processes on one store ended with {codes}")
    started(folder, output, ["--resume"]).wait()
    return codes == [0, 3]


def filled(folder: Path, output: str, _: float, rng: np.random.Generator) -> bool:
    """Run until the disk is full, and resume on a disk with space; return whether the disk became full."""
    target, kept = folder / output, folder / f"{output}.kept"
    target.mkdir()
    kept.mkdir()
    script = """
        mount -t tmpfs -o "size=$0" tmpfs "$1"; out=$1; keep=$2; shift 2
        "$@"; code=$?; cp -a "$out/." "$keep"; exit $code
    """
    size = f"{int(rng.integers(150, 400))}k"
    mounted = ["unshare", "-rm", "sh", "-c", script, size, str(target), str(kept)]
    code = subprocess.run(
        [*mounted, *command(folder, output, "--resume")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    ).returncode
    target.rmdir()
    kept.rename(target)
    started(folder, output, ["--resume"]).wait()
    return code == 3


def started(folder: Path, output: str, options: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(folder, output, *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def victims(main: int, of_workers: bool) -> list[int]:
    return workers(main) if of_workers else [main]


_FLUSHES = {"74", "75"}  # fsync and fdatasync on x86-64
Disturbance = Callable[[Path, str, float, np.random.Generator], bool]
DISTURBANCES: dict[str, Disturbance] = {
    "main": partial(killed_at_random, of_workers=False),
    "worker": partial(killed_at_random, of_workers=True),
    "first": killed_at_first,
    "flush": killed_in_flush,
    "two": shared,
    "full": filled,
}


def compared(what: list[str], kills: int, seconds: float, seed: int, side_by_side: int) -> bool:
    """Return whether all results are the same, and print a line for each kind of disturbance."""
    same = True
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(side_by_side) as pool:
        folder = Path(name)
        (folder / "own.py").write_text(_OWN)
        (folder / "c.yaml").write_text(_CONFIG.format(trials=int(seconds * 1000 / _MILLISECONDS / 2)))
        began = time.monotonic()
        started(folder, "alone", []).wait()
        took, expected = time.monotonic() - began, found(folder, "alone")
        print(f"left alone: {expected['trials_used']} trials in {took:.0f} s", flush=True)
        for number, kind in enumerate(DISTURBANCES):
            if kind not in what:
                continue

            def one(k: int, kind: str = kind, number: int = number) -> tuple[bool, bool]:
                rng, output = np.random.default_rng([seed, number, k]), f"{kind}{k}"
                hit = DISTURBANCES[kind](folder, output, took / (1.5 if kind == "worker" else 1), rng)
                return hit, found(folder, output) == expected

            results = list(pool.map(one, range(kills)))
            hits, equal = (sum(column) for column in zip(*results, strict=True))
            print(f"{kind}: hit in {hits} of {kills} audits, {equal} of {kills} results are the same", flush=True)
            same &= equal == kills
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="that an audit takes when it is left alone")
    parser.add_argument("--side-by-side", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(DISTURBANCES), default=list(DISTURBANCES))
    options = parser.parse_args()
    raise SystemExit(
        0 if compared(options.only, options.kills, options.seconds, options.seed, options.side_by_side) else 1
    )


if __name__ == "__main__":
    main()
