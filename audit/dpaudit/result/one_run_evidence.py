"""Evidence of an audit of a single run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.numerics.arrays import Array
from dpaudit.result.histograms import sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRunEvidence:
    """Right guesses about who was included, in one run; see `inference.one_run`."""

    method: ClassVar[str] = "one_run"
    anytime: ClassVar[bool] = False
    slow: ClassVar[bool] = False
    canaries: int
    guesses: int  # fixed beforehand
    right: int

    @property
    def trials(self) -> int:
        return 1

    @property
    def edges(self) -> Array:
        """None: guesses are counted, no scores."""
        return np.zeros(0)

    @property
    def guessed(self) -> tuple[int, int]:
        return self.right, self.guesses

    def of_pair(self, pair: int | None) -> None:
        return None

    def tested(self, claim: TradeoffFunction) -> TradeoffFunction:
        """The claim itself, as `inference.one_run` takes it."""
        return claim

    def p_value(self, claim: TradeoffFunction, path: Array | None = None) -> float:
        """A bound on the chance of so many right guesses under a claim."""
        return one_run.p_value(claim, self.canaries, self.guesses, self.right)

    def ends_at_its_peak(self, path: Array) -> bool:
        return True

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        return one_run.refutes(claim, self.canaries, self.guesses, self.right, significance=1 - confidence)

    def least_right(self, claim: TradeoffFunction, *, confidence: float) -> int | None:
        """The fewest right guesses, of as many as were made, that refute a claim; None if no number does."""

        def enough(right: int) -> bool:
            return one_run.refutes(claim, self.canaries, self.guesses, right, significance=1 - confidence)

        if not enough(self.guesses):
            return None
        few, many = 0, self.guesses  # `many` refute the claim, `few` do not
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (few, middle) if enough(middle) else (middle, many)
        return many

    def mu_lower(self, *, confidence: float) -> float:
        return one_run.mu_lower_one_run(self.canaries, self.guesses, self.right, significance=1 - confidence)

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        return one_run.epsilon_lower_exact(
            self.canaries, self.guesses, self.right, delta=delta, significance=1 - confidence
        )

    def fingerprint(self) -> str:
        return sha256(np.array([self.canaries, self.guesses, self.right]))

    def to_json(self) -> dict[str, Any]:
        return {"method": self.method, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], target: TradeoffFunction) -> OneRunEvidence:
        counts = {name: int(values[name]) for name in ("canaries", "guesses", "right")}
        if not 0 <= counts["right"] <= counts["guesses"] <= counts["canaries"]:
            raise ValueError(f"evidence must have right <= guesses <= canaries, got {counts}")
        return cls(**counts)
