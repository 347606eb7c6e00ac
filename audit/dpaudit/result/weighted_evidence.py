"""Evidence from guesses about the canaries of one run that count several times, in several numbers of guesses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np

from dpaudit.claims import GaussianDP, TradeoffFunction
from dpaudit.inference.scores import confident, levels, weighted
from dpaudit.inference.scores.families import Family
from dpaudit.result.base_evidence import MAX_SCORES
from dpaudit.result.histograms import sha256
from dpaudit.result.scores_evidence import CanaryGuesses
from dpaudit.result.words import OF_CANARY_LEVELS, OF_WEIGHTED_CANARIES, Words
from dpaudit.text.rounding import count
from dpaudit.values import JsonObject

Rights = tuple[int, int, int]
MAX_GUESSES = 5_000
"""Maximum sum of the numbers of guesses.  For more guesses, computing bounds would take minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedGuessesEvidence(CanaryGuesses):
    """Right guesses of one run, summed over several numbers of guesses; canaries may depend on each other in any way.

    The attributes `guesses` and `right` are sums over all numbers, so a guess may count several times.
    """

    method: ClassVar[str] = "weighted_scores_of_one_run"
    words: ClassVar[Words] = OF_WEIGHTED_CANARIES
    theory: ClassVar[ModuleType] = weighted
    numbers: tuple[int, ...]  # numbers of guesses in ascending order

    @property
    def all_numbers(self) -> tuple[int, ...]:
        return self.numbers

    @property
    def counts(self) -> tuple[Any, ...]:
        return self.m, self.numbers, self.right

    @property
    def outcome(self) -> str:
        *others, last = (count(r) for r in self.numbers)
        listed = f"{', '.join(others)} and {last}" if others else last
        return f"{self.right:,} of {self.guesses:,} guesses right, summed over {listed} guesses"

    def under_coins(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return weighted.p_value(claim, self.m, self.numbers, right)

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
    """Raise ValueError if computing bounds would take minutes."""
    if sum(numbers) > MAX_GUESSES:
        raise ValueError(
            f"the numbers of guesses have the sum {sum(numbers):,}, but at most {MAX_GUESSES:,} is allowed, because "
            "computing bounds would take minutes"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryLevelsEvidence(CanaryGuesses):
    """Guesses about all canaries of one run, assumed to be independent given the coins, in three levels.

    The attributes `guesses` and `right` are total weights: a guess counts as often as the weight of its level.
    """

    method: ClassVar[str] = "levels_of_canaries"
    words: ClassVar[Words] = OF_CANARY_LEVELS
    theory: ClassVar[ModuleType] = levels
    numbers: tuple[int, int]  # number of guesses in the first level, and in the first two levels
    rights: Rights  # right guesses in the first level, in the first two levels, and in all levels

    @classmethod
    def of(cls, m: int, included: int, rights: Rights, *, half: bool) -> Self:
        """Return evidence with the default levels."""
        numbers = levels.default_numbers(m)
        return cls(
            m=m,
            included=included,
            half=int(half),
            guesses=levels.most_points(m, numbers),
            right=levels.points(rights),
            numbers=numbers,
            rights=rights,
        )

    @property
    def tries(self) -> int:
        return min(self.included, self.m - self.included)

    @property
    def outcome(self) -> str:
        (first, second), (one, two, three) = self.numbers, self.rights
        return (
            f"{self.right:,} of {self.guesses:,} weighted guesses right: {one:,} of the {first:,} most confident, "
            f"{two:,} of {second:,}, {three:,} of {self.m:,}"
        )

    def largest_epsilon(self, *, confidence: float) -> float:
        certain = dataclasses.replace(self, right=self.guesses, rights=(*self.numbers, self.m))
        return certain.epsilon_lower(0.0, confidence=confidence)

    def under_coins(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return levels.p_value(claim, self.m, self.numbers, right, enough=enough)

    @property
    def counts(self) -> tuple[Any, ...]:
        return self.m, self.numbers, self.right

    @property
    def all_numbers(self) -> tuple[int, ...]:
        first, second, third = levels.WEIGHTS
        return (*[self.numbers[0]] * (first - second), *[self.numbers[1]] * (second - third), *[self.m] * third)

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        """Return the bound from the right guesses of the first two levels, which is larger than that of all levels."""
        if delta >= 1:
            return 0.0
        return confident.epsilon_lower(*self._confident, delta=delta, significance=self.level(confidence))

    @property
    def _confident(self) -> tuple[int, int, int]:
        return self.m, self.numbers[1], self.rights[1]

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return the largest refuted parameter.

        The family determines the test, by its member at 1, so the corollary of `levels` or of `confident` applies.
        """
        once = family if family is GaussianDP else lru_cache(maxsize=64)(family)  # a member may take a second
        level = significance / self.p_value_factor
        if not levels.suits(once(1.0)):
            return confident.parameter_lower(once, *self._confident, significance=level, precision=precision)
        return levels.parameter_lower(once, *self.counts, significance=level, precision=precision)

    def to_json(self) -> JsonObject:
        plain = {"numbers": list(self.numbers), "weights": list(levels.WEIGHTS), "rights": list(self.rights)}
        return {"method": self.method, **dataclasses.asdict(self), **plain}

    def fingerprint(self) -> str:
        return sha256(np.array([self.m, self.included, self.half, self.right, *self.numbers, *self.rights]))

    @classmethod
    def from_json(cls, values: Mapping[str, Any], target: TradeoffFunction) -> Self:
        counts = {name: int(values[name]) for name in ("m", "included", "half", "guesses", "right")}
        if len(values["numbers"]) != 2 or len(values["rights"]) != 3:
            raise ValueError("evidence must have two numbers of guesses in levels, and three numbers of right guesses")
        first, second = (int(r) for r in values["numbers"])
        one, two, three = (int(v) for v in values["rights"])
        found = cls(**counts, numbers=(first, second), rights=(one, two, three))
        if not 0 <= found.included <= found.m <= MAX_SCORES or found.half not in (0, 1):
            raise ValueError(f"evidence must have included canaries of at most {MAX_SCORES:,}, got {counts}")
        if tuple(values["weights"]) != levels.WEIGHTS:
            raise ValueError(f"evidence must have the weights {levels.WEIGHTS}, got {values['weights']}")
        sizes = np.diff([0, first, second, found.m])
        gained = np.diff([0, one, two, three])
        if np.any(gained < 0) or np.any(gained > sizes):
            raise ValueError(f"evidence must have right <= guesses in each level, got {gained} of {sizes}")
        if (found.guesses, found.right) != (levels.most_points(found.m, found.numbers), levels.points(found.rights)):
            raise ValueError(f"evidence must have the total weights of its levels, got {counts}")
        return found
