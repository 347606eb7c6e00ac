"""Fuzz all inputs of dpaudit: every mutated input must be read or rejected with a documented error.

    python benchmarks/fuzz.py [--mutations 200000] [--seed 0] [--minutes MINUTES] [--only NAME ...]

The inputs are configs, results, stores, saved states of online audits, catalogues of sweeps, score
files, command lines, and text that a terminal shows.  Score files have the formats CSV, JSON lines and
NPZ, because pyarrow ends the process for some damaged Parquet files.  Each module in `fuzzing/` defines some kinds of
input.

An undocumented exception, an undocumented exit code or a traceback is a failure.  A raw control character or a forged
line on the terminal is a failure.  A store that returns outputs that were never written to it is a failure.  Too much
processor time, or more memory than --gigabytes, is a failure.  Execution of code from an input is a failure.  Code that
mutations insert would create a file whose name begins with RAN.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType

import numpy as np

from fuzzing.commands import CommandLine, Terminal
from fuzzing.files import CatalogueFile, Config, Csv, JsonLines, Npz, Result, Stream
from fuzzing.mutations import Target
from fuzzing.stores import StoreFile

_KINDS: list[type[Target]] = [
    Config, Result, Stream, StoreFile, CatalogueFile, Csv, JsonLines, Npz, CommandLine, Terminal,
]  # fmt: skip
_WAIT = 120.0  # seconds without use of the processor after which an input counts as a hang
_SHOWN = 20  # maximum number of failures that are printed


class _TooSlow(BaseException):
    pass


def too_slow(_: int, __: FrameType | None) -> None:
    raise _TooSlow


def targets(folder: Path, only: list[str]) -> list[Target]:
    """Create the valid files of each kind of input in a separate folder."""
    found = []
    for kind in _KINDS:
        if only and kind.name not in only:
            continue
        place = folder / kind.name.replace(" ", "-")
        place.mkdir()
        os.chdir(place)
        try:
            found.append(kind(place))
        except ImportError as error:
            print(f"{kind.name}: left out, {error}", file=sys.stderr)
    return found


def attempt(target: Target, rng: np.random.Generator) -> tuple[str, BaseException | None]:
    """Try one mutation; return the outcome, and the exception if the outcome is a failure."""
    os.chdir(target.folder)
    signal.setitimer(signal.ITIMER_PROF, target.seconds)
    signal.setitimer(signal.ITIMER_REAL, _WAIT)
    try:
        return target.attempt(rng), None
    except (Exception, _TooSlow) as error:
        return "FAILED", error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def report(target: Target, number: int, error: BaseException) -> None:
    print(f"--- mutation {number}, {target.name}: {type(error).__name__}: {str(error)[:1000]}", file=sys.stderr)
    print(f"    {repr(target.tried)[:300]}", file=sys.stderr)
    print("".join(traceback.format_tb(error.__traceback__, limit=-4)), file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after this time")
    parser.add_argument("--gigabytes", type=int, default=6, help="of address space")
    parser.add_argument("--only", nargs="+", choices=[kind.name for kind in _KINDS], default=[])
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (options.gigabytes * 2**30,) * 2)
    signal.signal(signal.SIGALRM, too_slow)
    signal.signal(signal.SIGPROF, too_slow)
    warnings.simplefilter("ignore")
    os.environ["COLUMNS"] = "20000"  # avoids wrapped paragraphs, in which text from a file might begin a line
    outcomes: dict[str, Counter[str]] = {}
    slowest: defaultdict[str, float] = defaultdict(float)
    failures, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        made = targets(Path(name), options.only)
        shares = np.array([target.share for target in made]) / sum(target.share for target in made)
        for number in range(options.mutations):
            rng = np.random.default_rng([options.seed, number])
            target = made[rng.choice(len(made), p=shares)]
            used = time.process_time()
            outcome, error = attempt(target, rng)
            slowest[target.name] = max(slowest[target.name], time.process_time() - used)
            outcomes.setdefault(target.name, Counter())[outcome] += 1
            if error is not None:
                failures += 1
                if failures <= _SHOWN:
                    report(target, number, error)
            if time.monotonic() - began > 60 * options.minutes:
                break
        os.chdir(name)
        ran = [file.name for file in Path(name).rglob("RAN*")]
    for kind, counts in outcomes.items():
        words = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items()))
        print(f"{kind}: {counts.total():,} mutations ({words}); slowest {slowest[kind]:.2f} s")
    tried = sum(counts.total() for counts in outcomes.values())
    print(f"{tried:,} mutations in {time.monotonic() - began:.0f} s; failures: {failures}; code that ran: {len(ran)}")
    raise SystemExit(1 if failures or ran else 0)


if __name__ == "__main__":
    main()
