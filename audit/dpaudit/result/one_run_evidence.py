"""Evidence of an audit of a single run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.numerics.arrays import Array
from dpaudit.result.histograms import sha256
from dpaudit.result.words import Words

_WORDS = Words(
    principle=(
        "Each canary was included in the data by a fair coin of its own. From the one output it was guessed for some "
        "canaries, their number fixed beforehand, whether they were included. The p-value bounds the chance of so many "
        "right guesses under the claim (Steinke, Nasr & Jagielski 2023; Mahloujifar, Melis & Chaudhuri 2024)."
    ),
    references=(
        "Steinke, T., Nasr, M. & Jagielski, M. (2023). Privacy auditing with one (1) training run. NeurIPS 36.",
        "Mahloujifar, S., Melis, L. & Chaudhuri, K. (2024). Auditing f-differential privacy in one run. "
        "arXiv:2410.22235.",
    ),
    errors=(
        "An attack that tells by its score whether a canary was included errs in two ways: $α$ is how often it takes a "
        "canary that was left out for an included one, $β$ how often an included one for one left out."
    ),
    no_band="Blue: the errors observed over all canaries. One run bounds no curve; chance can carry it into the grey.",
    proof="the number of right guesses",
    untried="Other canaries and other scores: only those given were tried.",
    others="other canaries or scores",
    again="There was one run, with coins of its own; a new one has to be made and audited anew.",
)


class Guesses(Protocol):
    """Guesses about which canaries were in the data."""

    @property
    def canaries(self) -> int:
        """Canaries, each included by a coin of its own."""
        ...

    @property
    def guesses(self) -> int:
        """Guesses that were made, their number fixed beforehand."""
        ...

    @property
    def right(self) -> int:
        """Guesses that were right."""
        ...

    @property
    def by_chance(self) -> float:
        """How many would be right on average if the scores told nothing."""
        ...

    def least_right(self, claim: TradeoffFunction, *, confidence: float) -> int | None:
        """The fewest right guesses, of as many as were made, that refute a claim; None if no number does."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRunEvidence:
    """Right guesses about who was included, in one run; see `inference.one_run`."""

    method: ClassVar[str] = "one_run"
    anytime: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    frozen: ClassVar[bool] = False
    of_pairs: ClassVar[bool] = False
    once: ClassVar[bool] = True
    slow: ClassVar[bool] = False
    words: ClassVar[Words] = _WORDS
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
    def guessed(self) -> OneRunEvidence:
        """Itself: all of it is guesses."""
        return self

    @property
    def by_chance(self) -> float:
        return self.guesses / 2

    @property
    def histograms(self) -> tuple[()]:
        return ()

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
        fewest = one_run.fewest_right(claim, self.canaries, self.guesses, significance=1 - confidence)
        return fewest if fewest <= self.guesses else None

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
