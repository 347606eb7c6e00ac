"""Evidence from scores of another program: counts of right guesses about runs, or about the canaries of one run.

The classes differ in their assumptions about the scores, and use different theorems: `inference.scores.runs`,
`inference.scores.confident` and `inference.scores.tight`.  Other modules cover a fixed number of included canaries,
canaries of several runs, and several numbers of guesses.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

from dpaudit.claims import TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.inference.scores import both_sides, confident, runs, tight
from dpaudit.inference.scores.dependence import coins_p_value, number_factor
from dpaudit.result.base_evidence import ScoresGuesses
from dpaudit.result.words import OF_ANY_CANARIES, OF_CANARIES, OF_CANARIES_IN_RUNS, OF_RUNS, Words
from dpaudit.text.rounding import lower

HALF_ADVICE = (
    "this is valid for coins and for a uniformly random half, but not if pairs or groups of canaries were each split "
    'in half; if the number was fixed, say included_at_random="fixed_number"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScoresEvidence(ScoresGuesses):
    """Scores of independent runs, with the number of runs on d1 among the highest scores; see `scores.runs`."""

    method: ClassVar[str] = "scores_of_runs"
    words: ClassVar[Words] = OF_RUNS
    theory: ClassVar[ModuleType] = runs
    attained_if: ClassVar[str] = "scores are likelihood ratios"
    n0: int  # number of runs on d0
    n1: int  # number of runs on d1

    @property
    def canaries(self) -> int:
        return self.n0 + self.n1

    @property
    def cuts(self) -> tuple[int, ...]:
        return (self.canaries - self.guesses,)

    @property
    def tries(self) -> int:
        return min(self.n0, self.n1)

    @property
    def by_chance(self) -> float:
        return self.guesses * self.n1 / max(1, self.canaries)

    @property
    def trials(self) -> int:
        return max(self.n0, self.n1)

    def chance(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return runs.p_value(claim, self.n0, self.n1, self.guesses, right)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        return self.n0, self.n1, self.guesses, self.right

    def attained(self, truth: TradeoffFunction, right: int) -> float:
        return runs.attained(truth, self.n0, self.n1, self.guesses, right)

    @property
    def about(self) -> str:
        return f"{self.n0:,} runs on d0, {self.n1:,} on d1"

    @property
    def outcome(self) -> str:
        return f"{self.right:,} of the {self.guesses:,} highest scores are of d1"

    @property
    def _most(self) -> int:
        return min(self.guesses, self.n1)

    @property
    def _least(self) -> int:
        return max(0, self.guesses - self.n0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryGuesses(ScoresGuesses):
    """Guesses about the canaries of one run, where an independent fair coin decided each inclusion."""

    once: ClassVar[bool] = True
    m: int  # number of canaries
    included: int  # number of included canaries
    # 1 if half of all canaries (rounded), including those only used to train attacks, were included; otherwise 0.  If
    # 1, the number of included canaries may have been fixed beforehand.
    half: int

    @property
    def canaries(self) -> int:
        return self.m

    @property
    def all_numbers(self) -> tuple[int, ...]:
        """The numbers of guesses to which right guesses are counted, repeated as often as they count."""
        return (self.guesses,)

    @property
    def cuts(self) -> tuple[int, ...]:
        return tuple(cut for r in self.all_numbers for cut in both_sides.cuts(self.m, r))

    @property
    def by_chance(self) -> float:
        return self.guesses / 2

    def coins_p_value(self, sizes: tuple[int, int]) -> float:
        return coins_p_value(*sizes)

    def chance(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        factor = self.p_value_factor
        return min(1.0, factor * self.under_coins(claim, right, enough=enough / factor))

    @abstractmethod
    def under_coins(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        """Return the value of `chance` for independent fair coins that decided which canaries were included."""

    @property
    def p_value_factor(self) -> float:
        return number_factor(self.m, self.included) if self.half else 1.0

    @property
    def number_note(self) -> str:
        if not self.half:
            return ""
        return (
            "half of the canaries were included (rounded if their number is odd); this number may have been fixed "
            "beforehand, so the p-value is divided by the probability with which fair coins include this number, "
            f"{lower(1 / self.p_value_factor, 3)}; " + HALF_ADVICE
        )

    @property
    def counts(self) -> tuple[Any, ...]:
        return self.m, self.guesses, self.right

    def attained(self, truth: TradeoffFunction, right: int) -> float:
        included = self.included if self.half else None  # None: coins decided
        return both_sides.attained(truth, self.m, self.all_numbers, right, included=included)

    @property
    def about(self) -> str:
        return f"each of {self.m:,} canaries in or out"


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryScoresEvidence(CanaryGuesses):
    """Scores of the canaries of one run, assumed to be independent given the coins; see `scores.confident`."""

    method: ClassVar[str] = "scores_of_canaries"
    words: ClassVar[Words] = OF_CANARIES
    theory: ClassVar[ModuleType] = confident

    @property
    def tries(self) -> int:
        return min(self.included, self.m - self.included)

    def under_coins(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return confident.p_value(claim, self.m, self.guesses, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRunScoresEvidence(CanaryGuesses):
    """Scores of the canaries of one run, with arbitrary dependence; see `scores.tight`."""

    method: ClassVar[str] = "scores_of_one_run"
    words: ClassVar[Words] = OF_ANY_CANARIES
    theory: ClassVar[ModuleType] = tight

    def under_coins(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return tight.p_value(claim, self.m, self.guesses, right, enough=enough)

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        """Return the bound of the module `one_run`, which is the largest valid bound for (epsilon, delta)-DP claims."""
        return one_run.epsilon_lower_exact(*self.counts, delta=delta, significance=self.level(confidence))


@dataclass(frozen=True, slots=True, kw_only=True)
class CanariesInRunsEvidence(CanaryScoresEvidence):
    """Scores of the canaries of several runs, all assumed to be independent given the coins; see `scores.confident`."""

    method: ClassVar[str] = "scores_of_canaries_in_runs"
    words: ClassVar[Words] = OF_CANARIES_IN_RUNS
    once: ClassVar[bool] = False
    runs: int  # number of runs

    @property
    def trials(self) -> int:
        return self.runs

    @property
    def about(self) -> str:
        return f"each of {self.m:,} canaries of {self.runs:,} runs in or out"
