"""Generators of synthetic tables: fits until mistakes are found, false alarms about right ones, and time of attacks.

    python benchmarks/synthetic.py [broken] [validity] [time] [--seeds 10] [--first 0] [--store FILE] [--only NAME]

- broken: runs per dataset until an audit of tiny tables, which are made from the schema alone, refutes each wrong
  builtin generator, at 95 %, with at most 300.  All pairs share these runs.
- validity: the share of audits that refute the claim of each right builtin generator, at 95 %, with --trials runs per
  dataset; use --seeds 200.  Each generator has exactly the privacy of its claim, or less than that only by
  post-processing, so each is audited twice: its tables, and its noisy counts (`white_box`).  The result of each audit
  is saved in the store, so that an interrupted command can be resumed.
- time: processor time of the attacks for tables of 1,000 rows and 30 columns, as a share of a mechanism of 100 ms.
"""

from __future__ import annotations

import argparse
import math
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from audit_store import Row, Store

from dpaudit import Pair, audit
from dpaudit.catalogue import BUILTIN
from dpaudit.pairs.search import SearchPairs

CONFIDENCE = 0.95
FITS = 300  # a run on either dataset is one fit; audits that need more fits are counted
_MECHANISM_SECONDS = 0.1  # time of a mechanism to which the time of the attacks is compared
_ROWS, _COLUMNS = 1_000, 30


def generators(private: bool, only: str) -> list[str]:
    names = [name for name in BUILTIN if name.startswith("synthetic_") and only in name]
    return [name for name in names if BUILTIN[name]().private == private]


def broken(seeds: range, only: str) -> None:
    for name in generators(False, only):
        mechanism, used, missed, began = BUILTIN[name](), [], 0, time.process_time()
        for seed in seeds:
            pairs = list(SearchPairs(**mechanism.inputs))
            result = audit(mechanism, mechanism.claim, pairs, trials=300, confidence=CONFIDENCE, seed=seed)
            used.append(result.trials_used)
            missed += not result.violated
        seconds = (time.process_time() - began) / len(seeds)
        spread = f"median {np.median(used):,.0f}, {min(used):,} to {max(used):,} runs per dataset"
        late = sum(2 * runs > FITS for runs in used)
        print(
            f"{name}: {spread}, {late} of {len(used)} above {FITS} fits, {missed} missed, {seconds:.1f} s each",
            flush=True,
        )


def right(name: str, white_box: bool, trials: int, seed: int) -> Row:
    """Audit a right generator on all tiny tables together."""
    mechanism, began = BUILTIN[name](white_box=white_box), time.process_time()
    pairs = list(SearchPairs(**mechanism.inputs))
    result = audit(mechanism, mechanism.claim, pairs, trials=trials, confidence=CONFIDENCE, seed=seed)
    return {"refuted": float(result.violated), "seconds": time.process_time() - began}


def validity(seeds: range, only: str, trials: int, store: Store) -> None:
    allowed = 0.05 + 3 * math.sqrt(0.05 * 0.95 / len(seeds))
    for name in generators(True, only):
        for white_box in (False, True):
            what = "noisy counts" if white_box else "tables"
            key = f"validity {name} {what} {trials}"
            rows = [store.row(f"{key} {seed}", partial(right, name, white_box, trials, seed)) for seed in seeds]
            refuted, seconds = (np.mean([row[column] for row in rows]) for column in ("refuted", "seconds"))
            print(
                f"{name}, {what}: refuted {refuted:.3f} of {len(rows)} audits of {trials:,} runs, allowed "
                f"{allowed:.3f}, {seconds:.1f} s each",
                flush=True,
            )


def table(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a table of 15 columns of categories and 15 columns of numbers, whose law does not depend on the data."""
    labels = {f"c{j}": rng.choice(["a", "b", "c"], rows) for j in range(_COLUMNS // 2)}
    return {**labels, **{f"n{j}": rng.normal(size=rows) for j in range(_COLUMNS - len(labels))}}


def seconds_of_attacks(trials: int) -> None:
    row = {name: column[0].item() for name, column in table(1, np.random.default_rng(0)).items()}
    pair = Pair([row] * 4, [row] * 5, "add_remove")
    began = time.process_time()
    for seed in range(20):
        table(_ROWS, np.random.default_rng(seed))
    own = (time.process_time() - began) / 20
    audit(lambda dataset, rng: table(_ROWS, rng), "pure(epsilon=1)", pair, trials=20, seed=0)  # loads all libraries
    began = time.process_time()
    result = audit(lambda dataset, rng: table(_ROWS, rng), "pure(epsilon=1)", pair, trials=trials, seed=1)
    each = (time.process_time() - began) / (2 * result.trials_used) - own
    share = each / _MECHANISM_SECONDS
    print(f"{_ROWS:,} rows, {_COLUMNS} columns: {1000 * each:.1f} ms per run, {share:.0%} of a mechanism of 100 ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["broken"], choices=["broken", "validity", "time"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--trials", type=int, default=2000, help="maximum number of runs per dataset of `validity`")
    parser.add_argument("--only", default="", help="part of the name of a generator")
    parser.add_argument("--store", type=Path, help="a file of finished audits of `validity`, to go on with")
    options: Any = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    if "broken" in options.parts:
        broken(seeds, options.only)
    if "validity" in options.parts:
        validity(seeds, options.only, options.trials, Store(options.store))
    if "time" in options.parts:
        seconds_of_attacks(200)


if __name__ == "__main__":
    main()
