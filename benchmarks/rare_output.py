"""A mechanism with eight usual outputs and a rare one, by every route: used by `calibration_parts.rare_outputs`.

The usual outputs are a randomised response with epsilon = 1.  The rare output is e times as likely on d1 as on d0.  So
each bet on an output is fair, and the claim of `epsilon_of` is exactly true.  This file needs only the standard
library, because private environments and programs run it:

    python benchmarks/rare_output.py KIND RATE    (answers requests as `CommandMechanism` describes)
"""

from __future__ import annotations

import copy
import json
import math
import random
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

KINDS: dict[str, tuple[Callable[[int], Any], Any]] = {  # the usual output i, and the rare output
    "int": (float, 3),
    "float": (lambda i: i, 0.5),
    "NaN": (lambda i: i, math.nan),
    "None": (lambda i: i, None),
    "bool": (lambda i: i, True),
    "text": (lambda i: i, "suppressed"),
    "bytes": (lambda i: i, b"?"),
    "Decimal": (lambda i: i, Decimal("0.5")),
    "number of numpy": (lambda i: i, "float32"),
    "longer list": (lambda i: [i, 1], [0, 1, 2]),
    "missing key": (lambda i: {"a": i, "b": 1}, {"a": 0}),
    "missing column": (lambda i: [{"a": i, "b": 1}, {"a": 0, "b": i}], [{"a": 0}, {"a": 1}]),
}
_TRUE = math.e / (1 + math.e)


def law(dataset: int, rate: float) -> list[float]:
    """Return the probabilities of the eight usual outputs and of the rare one."""
    rare = rate if dataset else rate / math.e
    usual = [_TRUE if (i >= 4) == bool(dataset) else 1 - _TRUE for i in range(8)]
    return [(1 - rare) * p / 4 for p in usual] + [rare]


def epsilon_of(rate: float) -> float:
    """Return the epsilon of the mechanism, rounded up."""
    ratios = [abs(math.log(q / p)) for p, q in zip(law(0, rate), law(1, rate), strict=True)]
    return max(ratios) * (1 + 1e-12)


def output(kind: str, place: int) -> Any:
    """Return the usual output `place`, or the rare output if `place` is 8."""
    usual, rare = KINDS[kind]
    if place == 8 and rare == "float32":
        import numpy

        return numpy.float32(0.5)
    return usual(place) if place < 8 else copy.deepcopy(rare)


class Rare:
    """The mechanism as an object that is called once for each run.

    Args:
        kind: A key of `KINDS`.
        rate: Probability of the rare output on d1.
    """

    def __init__(self, kind: str, rate: float) -> None:
        self.kind, self.rate = kind, rate

    def __call__(self, dataset: int, rng: Any) -> Any:
        uniform, place = rng.random(), 0
        for p in law(dataset, self.rate):
            if uniform < p or place == 8:
                break
            uniform, place = uniform - p, place + 1
        return output(self.kind, place)


class Together(Rare):
    """The mechanism as an object that makes many runs in one call, and returns an array, or else a list."""

    def sample(self, dataset: int, n: int, rng: Any) -> Any:
        import numpy

        found = [output(self.kind, int(i)) for i in rng.choice(9, size=n, p=law(dataset, self.rate))]
        if self.kind in ("int", "float", "NaN", "bool", "number of numpy"):
            return numpy.array(found)
        return found


class Listed(Together):
    """The same, but an array becomes a list."""

    def sample(self, dataset: int, n: int, rng: Any) -> Any:
        found = super().sample(dataset, n, rng)
        return found if isinstance(found, list) else found.tolist()


def main() -> None:
    kind, rate = sys.argv[1], float(sys.argv[2])
    for line in sys.stdin:
        request = json.loads(line)
        rng = random.Random(request["seed"])
        run = Rare(kind, rate)
        print(json.dumps({"outputs": [run(request["dataset"], rng) for _ in range(request["n"])]}), flush=True)


if __name__ == "__main__":
    main()
