"""Audits released generators of synthetic tables, which configs/synthetic names, with several seeds.

    python benchmarks/synthetic_libraries.py [--seeds 5] [--first 0] [--only WORDS] [--store FILE]
    python benchmarks/synthetic_libraries.py certified [--models 800] [--only WORDS]

The first command prints the table of docs/synthetic-data.md.  A fit is one model; an audit fits each table of a pair.
Each audit has its own confidence, which its config states.  Seconds are those of an audit, with the fits, on one core.
The exit code is 1 if an audit does not end as its config expects.

`certified` measures epsilon of PATE-GAN with a fixed number of models at 90 % confidence and delta = 1e-5, as Ganev,
Annamalai & De Cristofaro 2024 (arXiv:2406.13985) did with 2,000 models.

Missing environments are built first.  The result of each audit is saved in the store, so that an interrupted command
can be resumed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from audit_store import Row, Store

from dpaudit import audit
from dpaudit.config import PlannedAudit, read_configs

CONFIGS = Path(__file__).resolve().parent.parent / "configs" / "synthetic"
PATEGAN = "synthcity-0.2.12-pategan"
"""The audit that `certified` measures without --only."""

PUBLISHED = {"datasynthesizer": 10_000, "dpart": 10_000, "pategan": 2_000}
"""Models of one published audit: N_REPS of Annamalai et al. (arXiv:2405.10994) and n_pgs of Ganev et al."""

HEAD = "| audit | expected | refuted | fits until refuted | seconds of an audit | published fits |"
RULE = "|---|---|---|---|---|---|"


def chosen(words: str) -> Iterator[PlannedAudit]:
    """Return the audits of libraries whose names contain any of these words; all of them without words."""
    for planned in read_configs([CONFIGS]):
        known = planned.config.mechanism
        if known.requires and (not words or any(word in planned.config.name for word in words.split())):
            yield planned


def one(planned: PlannedAudit, seed: int) -> Row:
    """Return the verdict, the fits and the seconds of an audit."""
    mechanism, claim = planned.load()
    began = time.monotonic()
    result = audit(mechanism, claim, planned.pairs, **replace(planned.settings, seed=seed).keywords)
    seconds = time.monotonic() - began
    return {"refuted": float(result.violated), "fits": 2.0 * result.trials_used, "seconds": seconds}


def line(planned: PlannedAudit, rows: list[Row]) -> str:
    """Return the line of an audit in the table."""
    name, expected = planned.config.name, str(planned.config.expect)
    fits = [row["fits"] for row in rows if row["refuted"]]
    span = f"median {np.median(fits):,.0f}, {min(fits):,.0f} to {max(fits):,.0f}" if fits else "none"
    if not fits:
        span += f" in {rows[0]['fits']:,.0f}"
    seconds = float(np.median([row["seconds"] for row in rows]))
    found = [models for words, models in PUBLISHED.items() if words in name and expected == "violation"]
    published = f"{found[0]:,}" if found else "–"
    return f"| {name} | {expected} | {len(fits)} of {len(rows)} | {span} | {seconds:,.0f} | {published} |"


def libraries(seeds: range, only: str, store: Store) -> bool:
    """Print the table.  Return whether all audits ended as expected."""
    print(f"{HEAD}\n{RULE}")
    passed = True
    for planned in chosen(only):
        rows = [store.row(f"{planned.config.name} {seed}", partial(one, planned, seed)) for seed in seeds]
        expected = str(planned.config.expect) == "violation"
        passed &= all(bool(row["refuted"]) == expected for row in rows)
        print(line(planned, rows), flush=True)
    return passed


def certified(only: str, models: int, seed: int) -> None:
    """Print the bound on epsilon of PATE-GAN that a fixed number of models certifies."""
    planned = next(chosen(only or PATEGAN))
    mechanism, claim = planned.load()
    began = time.monotonic()
    pairs = planned.pairs
    result = audit(mechanism, claim, pairs, method="fixed", trials=models // 2, confidence=0.9, seed=seed)
    bound, seconds = result.epsilon_lower(1e-5), time.monotonic() - began
    print(f"{planned.config.name}: epsilon >= {bound:.2f} at delta = 1e-5 from {models:,} models in {seconds:,.0f} s")


def main() -> None:
    """Print the table, or the certified bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="libraries", choices=["libraries", "certified"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="words, one of which the name of an audit must contain")
    parser.add_argument("--models", type=int, default=800, help="number of models of `certified`")
    parser.add_argument("--store", type=Path, help="a file of finished audits, to go on with")
    options = parser.parse_args()
    if options.part == "certified":
        certified(options.only, options.models, options.first)
        sys.exit(0)
    seeds = range(options.first, options.first + options.seeds)
    sys.exit(0 if libraries(seeds, options.only, Store(options.store)) else 1)


if __name__ == "__main__":
    main()
