"""Evidence from guesses about canaries if a fixed number of canaries was included; see `scores.fixed_number`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.scores import both_sides, fixed_number, runs
from dpaudit.result.scores_evidence import RunScoresEvidence, ScoresGuesses
from dpaudit.result.scores_words import OF_ANY_DRAWN_CANARIES, OF_DRAWN_CANARIES
from dpaudit.result.words import Words


def attained(truth: TradeoffFunction, m: int, included: int, guesses: int, right: int) -> float:
    """Return the probability of at least `right` right guesses if scores are independent likelihood ratios.

    Exactly `included` of the `m` canaries are included, so the inclusions of different canaries are dependent.
    """
    if fixed_number.about_both_sides(m, included):
        return both_sides.attained(truth, m, (guesses,), right, included=included)
    rare = min(included, m - included)
    return runs.attained(truth, m - rare, rare, guesses, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnCanariesEvidence(RunScoresEvidence):
    """Scores of the canaries of one run, assumed to be independent given which canaries were included.

    The number n1 of included canaries, out of n0 + n1 canaries, was fixed beforehand.
    """

    method: ClassVar[str] = "scores_of_drawn_canaries"
    words: ClassVar[Words] = OF_DRAWN_CANARIES
    attained_if: ClassVar[str] = ScoresGuesses.attained_if
    once: ClassVar[bool] = True

    @property
    def trials(self) -> int:
        return 1

    @property
    def about(self) -> str:
        return f"{self.n1:,} of {self.canaries:,} canaries in"

    @property
    def outcome(self) -> str:
        return f"{self.right:,} of the {self.guesses:,} canaries with the highest scores were included"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRunEvidence(ScoresGuesses):
    """Scores of the canaries of one run, with arbitrary dependence, when a fixed number of canaries was included."""

    method: ClassVar[str] = "scores_of_drawn_run"
    words: ClassVar[Words] = OF_ANY_DRAWN_CANARIES
    once: ClassVar[bool] = True
    m: int  # number of canaries
    included: int  # number of included canaries, 0 < included < m

    @property
    def canaries(self) -> int:
        return self.m

    @property
    def cuts(self) -> tuple[int, ...]:
        if self._both:
            return both_sides.cuts(self.m, self.guesses)
        return (self.m - self.guesses if self.included == self._rare else self.guesses,)

    @property
    def by_chance(self) -> float:
        return self.guesses * self._rare / max(1, self.m)

    @property
    def _rare(self) -> int:
        return min(self.included, self.m - self.included)

    @property
    def _both(self) -> bool:
        return fixed_number.about_both_sides(self.m, self.included)

    @property
    def _most(self) -> int:
        return self.guesses if self._both else min(self.guesses, self._rare)

    @property
    def about(self) -> str:
        return f"{self.included:,} of {self.m:,} canaries in"

    @property
    def _counts(self) -> tuple[int, int, int, int]:
        return self.m, self.included, self.guesses, self.right

    def chance(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return fixed_number.p_value(claim, self.m, self.included, self.guesses, right, enough=enough)

    def attained(self, truth: TradeoffFunction, right: int) -> float:
        return attained(truth, self.m, self.included, self.guesses, right)

    def mu_lower(self, *, confidence: float) -> float:
        return fixed_number.mu_lower(*self._counts, significance=1 - confidence)

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        return fixed_number.epsilon_lower(*self._counts, delta=delta, significance=1 - confidence)
