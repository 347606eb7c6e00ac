"""Kills audits at any moment (`kill -9`): a resumed audit must end with the result of an uninterrupted one.

    python benchmarks/kill_and_resume.py [--seeds 20] [--seconds 60] [--jobs 4] [--only WHAT ...]

WHAT is one of

    main      the main process of `dpaudit run --resume` is killed at a random moment
    worker    a worker of `--jobs 2` is killed at a random moment
    first     the main process is killed within its first two seconds, three times in a row
    flush     the main process is killed while it flushes a file to the disk (seen in /proc/PID/syscall, x86-64)
    two       two processes are started on one store; exactly one of them may use it at a time
    full      the disk becomes full, and the audit is resumed on a disk with space (needs user namespaces)

Each disturbance happens in --seeds audits.  Only Linux is supported: processes are found in /proc.
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from measure import Expected, Outcome, Table, all_have, count, run

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


@dataclass(frozen=True)
class Alone:
    """An audit that was left alone, in the folder of all audits."""

    folder: Path
    seconds: float
    result: dict[str, Any]


def command(folder: Path, output: str, *options: str) -> list[str]:
    program = [sys.executable, "-m", "dpaudit", "run", str(folder / "c.yaml")]
    return [*program, "-q", "--no-pdf", "-o", str(folder / output), *options]


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
    while process.poll() is None and (
        time.monotonic() < ends or not (targets := (workers(process.pid) if of_workers else [process.pid]))
    ):
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


def disturbed(kind: str, alone: Alone, seed: int) -> Outcome:
    """Disturb an audit, resume it, and compare its result with that of the audit that was left alone."""
    rng, output = np.random.default_rng([seed, list(DISTURBANCES).index(kind)]), f"{kind}{seed}"
    seconds = alone.seconds / (1.5 if kind == "worker" else 1)
    hit = DISTURBANCES[kind](alone.folder, output, seconds, rng)
    return {"hit": hit, "same": found(alone.folder, output) == alone.result}


def left_alone(folder: Path, seconds: float) -> Alone:
    (folder / "own.py").write_text(_OWN)
    (folder / "c.yaml").write_text(_CONFIG.format(trials=int(seconds * 1000 / _MILLISECONDS / 2)))
    began = time.monotonic()
    started(folder, "alone", ["--resume"]).wait()  # without a store, the bets may differ
    return Alone(folder, time.monotonic() - began, found(folder, "alone"))


def tables(folder: Path, options: argparse.Namespace) -> list[Table]:
    alone = Alone(folder, 0.0, {}) if options.list else left_alone(folder, options.seconds)
    cases = [
        Expected(
            cells=(kind,), measure=partial(disturbed, kind, alone), seeds=20, right=partial(all_have, "same", True)
        )
        for kind in DISTURBANCES
    ]
    columns = {"hit": count("hit"), "same result": count("same")}
    return [Table(headings=("disturbance",), columns=columns, cases=cases, threads=True)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        code = run(__doc__, partial(tables, Path(name)), seconds=60.0)
    sys.exit(code)
