"""Generators of synthetic tables: fits until mistakes are found, and false alarms about right ones.

    python benchmarks/synthetic.py [--seeds N] [--only broken | validity | libraries | certified]

- broken: runs per dataset until an audit of tiny tables, which are made from the schema alone, refutes each wrong
  builtin generator, at 95 %, with at most 300.  All pairs share these runs, and a run on either dataset is one fit.
- validity: audits that refute the claim of each right builtin generator, at 95 %, with --trials runs per dataset.  Each
  generator has exactly the privacy of its claim, or less than that only by post-processing, so each is audited twice:
  its tables, and its noisy counts (`white_box`).
- libraries: the released generators that configs/synthetic names; this makes the table of docs/synthetic-data.md.  Each
  audit has its own confidence, which its config states, and must end as its config expects.  Missing environments are
  built first.
- certified: epsilon of PATE-GAN with --models models at 90 % confidence and delta = 1e-5, as Ganev, Annamalai & De
  Cristofaro 2024 (arXiv:2406.13985) did with 2,000 models.

The published fits are those of one audit: N_REPS of Annamalai et al. (arXiv:2405.10994) and n_pgs of Ganev et al.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import cache, partial

from dpaudit import audit
from dpaudit.catalogue import BUILTIN
from dpaudit.config.files import read_configs
from dpaudit.config.planned import PlannedAudit
from dpaudit.pairs.search import SearchPairs
from measure import ROOT, SECONDS, Case, Expected, Outcome, Outcomes, Table, count, mean, median, rate, run, spread

CONFIDENCE = 0.95
PATEGAN = "synthcity-0.2.12-pategan"
PUBLISHED = {"datasynthesizer": 10_000, "dpart": 10_000, "pategan": 2_000}


def generator(name: str, white_box: bool, trials: int, seed: int) -> Outcome:
    """Audit a builtin generator on all tiny tables together."""
    mechanism = BUILTIN[name](white_box=True) if white_box else BUILTIN[name]()
    pairs = list(SearchPairs(**mechanism.inputs))
    result = audit(mechanism, mechanism.claim, pairs, trials=trials, confidence=CONFIDENCE, seed=seed)
    return {"refuted": result.violated, "missed": not result.violated, "fits": 2 * result.trials_used}


@cache
def libraries() -> dict[str, PlannedAudit]:
    planned = read_configs([ROOT / "configs" / "synthetic"])
    return {one.config.name: one for one in planned if one.config.mechanism.requires}


def of_library(name: str, seed: int) -> Outcome:
    planned = libraries()[name]
    mechanism, claim = planned.load()
    result = audit(mechanism, claim, planned.pairs, **replace(planned.settings, seed=seed).keywords)
    return {"refuted": result.violated, "fits": 2 * result.trials_used}


def _fits(_: object, outcomes: Outcomes) -> str:
    refuted = [outcome for outcome in outcomes if outcome["refuted"]]
    return spread("fits")(None, refuted) if refuted else f"none in {outcomes[0]['fits']:,}"


def certified(models: int, seed: int) -> Outcome:
    """Return the bound on epsilon of PATE-GAN that a fixed number of models certifies."""
    planned = libraries()[PATEGAN]
    mechanism, claim = planned.load()
    result = audit(mechanism, claim, planned.pairs, method="fixed", trials=models // 2, confidence=0.9, seed=seed)
    return {"epsilon": result.epsilon_lower(1e-5)}


def _library(name: str, expected: str) -> Expected:
    published = [fits for words, fits in PUBLISHED.items() if words in name and expected == "violation"]
    return Expected(
        cells=(name, expected, f"{published[0]:,}" if published else "–"),
        measure=partial(of_library, name),
        seeds=5,
        right=lambda outcomes: all(one["refuted"] == (expected == "violation") for one in outcomes),
    )


def tables(options: argparse.Namespace) -> list[Table]:
    names = {name: BUILTIN[name]().private for name in BUILTIN if name.startswith("synthetic_")}
    seconds = {"s": mean(SECONDS)}
    return [
        Table(
            name="broken",
            headings=("generator",),
            columns={"fits": spread("fits"), "missed": count("missed"), **seconds},
            cases=[
                Case(cells=(name,), measure=partial(generator, name, False, 300), seeds=10)
                for name, private in names.items()
                if not private
            ],
        ),
        Table(
            name="validity",
            asked=True,
            headings=("generator", "outputs"),
            columns={"refuted": rate("refuted"), **seconds},
            cases=[
                Case(
                    cells=(name, "noisy counts" if white_box else "tables"),
                    measure=partial(generator, name, white_box, options.trials),
                    seeds=200,
                )
                for name, private in names.items()
                if private
                for white_box in (False, True)
            ],
        ),
        Table(
            name="libraries",
            asked=True,
            headings=("audit", "expected", "published fits"),
            columns={"refuted": count("refuted"), "fits until refuted": _fits, **seconds},
            cases=[_library(name, str(planned.config.expect)) for name, planned in libraries().items()],
        ),
        Table(
            name="certified",
            asked=True,
            headings=("audit", "models"),
            columns={"epsilon at least": median("epsilon", ".2f"), **seconds},
            cases=[Case(cells=(PATEGAN, f"{options.models:,}"), measure=partial(certified, options.models))],
        ),
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, trials=2000, models=800))
