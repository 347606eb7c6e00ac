"""Run the test suite with other random streams, to find tests that pass only with the seeds in their code.

    python benchmarks/other_streams.py [--salts 1 2 3] [--workers 2] [PATH ...]

A seeded test always fails or never fails while the order of random draws is unchanged.  A new version of numpy or a
change in dpaudit may give every seed a different random stream.  Then a test fails with the probability that its
comment states.  For each salt, this command changes all addresses of `dpaudit.running.streams` and lists the tests
that fail.  Tests that draw from their own generators keep their random streams, and so do tests in other processes.
The exit code is 1 if a test failed, and 0 otherwise.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SALT = "DPAUDIT_TEST_SALT"


def pytest_configure(config: pytest.Config) -> None:
    """Change the random streams in the processes of pytest, which load this file as a plugin."""
    if SALT not in os.environ:
        return
    from dpaudit.running import streams

    key: Any = streams._Key
    initialise = key.__init__
    key.__init__ = lambda self, seed, path: initialise(self, seed, ("salt", os.environ[SALT], *path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=["tests"], help="tests to run (%(default)s)")
    parser.add_argument("--salts", nargs="+", default=["1"], help="one run of the tests for each (%(default)s)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes that test (%(default)s)")
    arguments = parser.parse_args()
    failed = 0
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    for salt in arguments.salts:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "other_streams", "-p", "no:cacheprovider", "--tb=line"]
        command += ["-n", str(arguments.workers), "--dist", "worksteal", *arguments.paths]
        environment = {**os.environ, SALT: salt, "PYTHONPATH": paths}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        lines = done.stdout.strip().splitlines() or [done.stderr]
        print(f"salt {salt}: {lines[-1]}", flush=True)
        print("\n".join(line for line in lines if line.startswith(("FAILED", "ERROR"))), flush=True)
        failed += done.returncode != 0
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
