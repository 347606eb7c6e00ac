"""Evidence from several numbers of guesses about the canaries of one run; see `inference.scores.weighted`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores import both_sides, weighted
from dpaudit.result.histograms import sha256
from dpaudit.result.scores_evidence import MAX_SCORES, CanaryGuesses
from dpaudit.result.scores_words import OF_WEIGHTED_CANARIES
from dpaudit.result.words import Words
from dpaudit.text.rounding import count
from dpaudit.values import JsonObject

MAX_GUESSES = 5_000
"""Maximum sum of the numbers of guesses.  For more guesses, computing bounds would take minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedGuessesEvidence(CanaryGuesses):
    """Right guesses of one run, summed over several numbers of guesses; canaries may depend on each other in any way.

    The attributes `guesses` and `right` are sums over all numbers, so a guess may count several times.
    """

    method: ClassVar[str] = "weighted_scores_of_one_run"
    words: ClassVar[Words] = OF_WEIGHTED_CANARIES
    numbers: tuple[int, ...]  # numbers of guesses in ascending order

    @property
    def cuts(self) -> tuple[int, ...]:
        return tuple(cut for r in self.numbers for cut in both_sides.cuts(self.m, r))

    @property
    def outcome(self) -> str:
        *others, last = (count(r) for r in self.numbers)
        listed = f"{', '.join(others)} and {last}" if others else last
        return f"{self.right:,} of {self.guesses:,} guesses right, summed over {listed} guesses"

    def under_coins(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return weighted.p_value(claim, self.m, self.numbers, right)

    def attained(self, truth: TradeoffFunction, right: int) -> float:
        included = self.included if self.half else None  # None: coins decided
        return both_sides.attained(truth, self.m, self.numbers, right, included=included)

    def mu_lower(self, *, confidence: float) -> float:
        return weighted.mu_lower(self.m, self.numbers, self.right, significance=self._level(confidence))

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        level = self._level(confidence)
        return weighted.epsilon_lower(self.m, self.numbers, self.right, delta=delta, significance=level)

    def to_json(self) -> JsonObject:
        return {"method": self.method, **dataclasses.asdict(self), "numbers": list(self.numbers)}

    def fingerprint(self) -> str:
        return sha256(np.array([self.m, self.included, self.half, self.guesses, self.right, *self.numbers]))

    @classmethod
    def from_json(cls, values: Mapping[str, Any], target: TradeoffFunction) -> Self:
        counts = {name: int(values[name]) for name in ("m", "included", "half", "guesses", "right")}
        numbers = tuple(int(r) for r in values["numbers"])
        found = cls(**counts, numbers=numbers)
        if not 0 <= found.included <= found.m <= MAX_SCORES or found.half not in (0, 1):
            raise ValueError(f"evidence must have included canaries of at most {MAX_SCORES:,}, got {counts}")
        if numbers != weighted.checked_numbers(numbers, found.m) or found.guesses != sum(numbers):
            raise ValueError(f"evidence must have ascending numbers of guesses with their sum, got {counts} {numbers}")
        if not 0 <= found.right <= found.guesses:
            raise ValueError(f"evidence must have right <= guesses, got {counts}")
        check_size(numbers)
        return found


def check_size(numbers: tuple[int, ...]) -> None:
    """Raise ValueError if computing bounds would take minutes for these numbers of guesses."""
    if sum(numbers) > MAX_GUESSES:
        raise ValueError(
            f"the numbers of guesses have the sum {sum(numbers):,}, but at most {MAX_GUESSES:,} is allowed, because "
            "computing bounds would take minutes"
        )
