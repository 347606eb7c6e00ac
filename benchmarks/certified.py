"""Compares the largest epsilon that dpaudit and other tools certify from similar numbers of outputs.

    python benchmarks/certified.py [--method fixed] [--seeds 5] [--only NAME...] [--markdown]

All tools get the pair and a total number of outputs of both datasets.  The confidence of dpaudit is 95 %, that of the
others 90 %.  "To beat" is the largest epsilon that DP-Sniper, StatDP or Delta-Siege certify from this number of
outputs; docs/catalogue.md lists the figures of each tool.  The claims are true, so every audit makes all its trials;
the bound from a fixed audit hardly depends on the claim.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import Pair, audit
from dpaudit.catalogue import BUILTIN
from dpaudit.rounding import lower_as

_ANSWERS, _HALF = [1.0] * 10, [2.0] * 5 + [0.0] * 5
_ONES_AND_TWOS = Pair([1.0] * 5, [2.0] * 5)


@dataclass(frozen=True, slots=True)
class Case:
    mechanism: Any
    claim: str
    pair: Pair
    epsilon: str  # true epsilon of the mechanism on this pair
    outputs: int  # number of outputs of both datasets together
    to_beat: float


CASES = {
    "laplace": Case(BUILTIN["laplace"](10.0), "pure(epsilon=0.1)", Pair([0.0], [1.0]), "0.1", 4_000_000, 0.098),
    "noisy_max_3": Case(
        BUILTIN["noisy_max_3"](), "pure(epsilon=0.25)", Pair([1.0] * 5, [2.0] * 5), "0.25", 20_000_000, 0.234
    ),
    "svt_1": Case(BUILTIN["svt_1"](), "pure(epsilon=0.1)", Pair(_ANSWERS, _HALF), "0.0885", 10_000_000, 0.075),
    "svt_3": Case(BUILTIN["svt_3"](), "pure(epsilon=0.5)", Pair(_ANSWERS, _HALF), "at most 0.5", 20_000_000, 0.167),
    "rappor": Case(BUILTIN["rappor"](), "pure(epsilon=0.4)", Pair(0, 1), "0.3", 10_000_000, 0.28),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=["fixed", "sequential"], default="fixed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES), metavar="NAME")
    parser.add_argument("--markdown", action="store_true", help="print a table for the docs")
    options = parser.parse_args()
    head = ("mechanism", "true epsilon", "outputs", "to beat", "median", "least", "largest", "seconds")
    if options.markdown:
        print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for name in options.only:
        case = CASES[name]
        found, seconds = [], []
        for seed in range(options.seeds):
            began = time.perf_counter()
            result = audit(
                case.mechanism,
                case.claim,
                case.pair,
                trials=case.outputs // 2,
                method=options.method,
                seed=seed,
                confidence=0.95,
            )
            found.append(result.epsilon_lower(0.0))
            seconds.append(time.perf_counter() - began)
        cells = (
            name,
            case.epsilon,
            f"{case.outputs:,}",
            f"{case.to_beat:.3f}",
            *(lower_as(float(x), ".4f") for x in (np.median(found), min(found), max(found))),
            f"{np.median(seconds):.1f}",
        )
        print(f"| {' | '.join(cells)} |" if options.markdown else "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
