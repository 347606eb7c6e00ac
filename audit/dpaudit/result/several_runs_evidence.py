"""Evidence from guesses about canaries if a fixed number of canaries was included, or if there are several runs.

The theorems are in `inference.scores.fixed_number` and `inference.scores.several`.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import ModuleType
from typing import ClassVar, Self

import numpy as np

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.inference.scores import both_sides, fixed_number, runs, several
from dpaudit.inference.scores.dependence import coins_p_value, half_by_chance, half_included, number_factor
from dpaudit.inference.scores.families import Family, largest_refuted
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.caches import kept
from dpaudit.result.base_evidence import MAX_SCORES, ScoresGuesses
from dpaudit.result.histograms import sha256
from dpaudit.result.scores_evidence import HALF_ADVICE, RunScoresEvidence
from dpaudit.result.words import (
    OF_ANY_DRAWN_CANARIES,
    OF_DRAWN_CANARIES,
    OF_SEVERAL_DRAWN_RUNS,
    OF_SEVERAL_RUNS,
    Words,
)
from dpaudit.values import Json, JsonObject

Run = tuple[int, int, int]
"""Canaries, included canaries and guesses of one run."""

MAX_RUNS = 5_000  # maximum number of runs; for more runs, computing bounds would take minutes
# maximum total number of guesses in all runs; for more guesses, computing bounds would take minutes
MAX_GUESSES = 40_000
_SET_UP = 20  # fixed computing time for each kind of run, as the number of guesses that takes equally long
# Runs that all include half of their canaries are suspicious if fair coins do so with less than this probability.
_SUSPICIOUS = 0.05


def attained(truth: TradeoffFunction, m: int, included: int, guesses: int, right: int) -> float:
    """Return the probability of at least `right` right guesses if scores are independent likelihood ratios."""
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
    theory: ClassVar[ModuleType] = fixed_number
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
    def counts(self) -> tuple[int, int, int, int]:
        return self.m, self.included, self.guesses, self.right

    def chance(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return fixed_number.p_value(claim, self.m, self.included, self.guesses, right, enough=enough)

    def attained(self, truth: TradeoffFunction, right: int) -> float:
        return attained(truth, self.m, self.included, self.guesses, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfRuns(ScoresGuesses):
    """Guesses about the canaries of several runs, of which only the total number of right guesses is used."""

    # maximum of `work` in `check_size`, where one run of each kind counts (see `_kinds`)
    most_work: ClassVar[int]
    runs: tuple[Run, ...]

    @property
    def canaries(self) -> int:
        return sum(m for m, _, _ in self.runs)

    @property
    def counts(self) -> tuple[tuple[Run, ...], int]:
        return self.runs, self.right

    @property
    def trials(self) -> int:
        return len(self.runs)

    @property
    def cuts(self) -> None:
        return None

    @property
    def about(self) -> str:
        return f"each of {self.canaries:,} canaries of {len(self.runs):,} runs in or out"

    @abstractmethod
    def tail_chance(self, claim: TradeoffFunction, run: Run, right: int) -> float:
        """Return an upper bound on the probability of at least `right` right guesses in one run."""

    def chance(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return several.sum_p_value(_tails(dataclasses.replace(self, right=0), claim.symmetrized()), right)

    @abstractmethod
    def tail_attained(self, truth: TradeoffFunction, run: Run, right: int) -> float:
        """Return the probability of at least `right` right guesses in one run, as described in `attained`."""

    def attained(self, truth: TradeoffFunction, right: int) -> float:
        return several.sum_p_value(self.tails(self.tail_attained, truth), right)

    def tails(self, tail: Callable[[TradeoffFunction, Run, int], float], curve: TradeoffFunction) -> list[Array]:
        """Return, for each run, the tail probability `tail` of every number of right guesses; see `several.reached`."""
        kinds = self._kinds
        found = {run: several.reached(partial(tail, curve, run), run[2]) for run in set(kinds)}
        return [found[run] for run in kinds]

    @property
    def _kinds(self) -> Sequence[Run]:
        """The kind of each run; runs of equal kind have equal tail probabilities, which are computed once."""
        return self.runs

    def check_size(self) -> None:
        """Raise ValueError if computing bounds would take minutes for this number of runs and guesses."""
        runs, kinds = len(self.runs), set(self._kinds)
        work = sum(r + _SET_UP for _, _, r in kinds)
        if runs > MAX_RUNS or self.guesses > MAX_GUESSES or work > self.most_work:
            raise ValueError(
                f"{runs:,} runs of {len(kinds):,} kinds with {self.guesses:,} guesses are too many.  At most "
                f"{MAX_RUNS:,} runs and {MAX_GUESSES:,} guesses are allowed.  In addition, each kind of run costs "
                f"{_SET_UP} + the guesses of one run, and all kinds may cost {self.most_work:,} at most.  Runs of "
                "different kinds differ in their number of canaries, included canaries or guesses.  Give fewer runs, "
                "or choose fewer guesses before the scores are seen"
            )

    def mu_lower(self, *, confidence: float) -> float:
        return self._refuted(GaussianDP, confidence)

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        return self._refuted(lambda t: ApproxDP(epsilon=t, delta=delta), confidence) if delta < 1 else 0.0

    def _refuted(self, family: Family, confidence: float) -> float:
        return largest_refuted(
            family, lambda claim: self.chance(claim, self.right), significance=1 - confidence, precision=1e-3
        )

    def to_json(self) -> JsonObject:
        plain = {"runs": [list(run) for run in self.runs], "guesses": self.guesses, "right": self.right}
        return {"method": self.method, **plain}

    def fingerprint(self) -> str:
        return sha256(np.array([*np.ravel(self.runs), self.guesses, self.right]))

    @classmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> Self:
        found = cls(runs=_runs_of(values["runs"]), guesses=int(values["guesses"]), right=int(values["right"]))
        if found.guesses != sum(r for _, _, r in found.runs) or not 0 <= found.right <= found.guesses:
            raise ValueError(f"evidence must have right <= guesses of its runs, got {found.right} and {found.guesses}")
        found.check_size()
        return found


@kept(64)  # the tail probabilities are the same for all numbers of right guesses
def _tails(evidence: _OfRuns, claim: TradeoffFunction) -> list[Array]:
    """Return the tail probabilities of right guesses in each run that `chance` needs, for a symmetric claim."""
    return evidence.tails(evidence.tail_chance, claim)


def _runs_of(given: Json) -> tuple[Run, ...]:
    runs = tuple((int(m), int(included), int(r)) for m, included, r in given)
    if not runs or not all(0 <= included <= m <= MAX_SCORES and 0 <= r <= m for m, included, r in runs):
        words = f"runs must have included canaries and guesses between 0 and canaries, at most {MAX_SCORES:,}"
        raise ValueError(f"{words}, got {given!r}"[:300])
    return runs


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralRunsEvidence(_OfRuns):
    """Guesses about canaries of several runs, where an independent fair coin decided each inclusion."""

    method: ClassVar[str] = "scores_of_several_runs"
    words: ClassVar[Words] = OF_SEVERAL_RUNS
    # limit of `check_size`; for one run with 5,000 guesses, computing a bound on mu takes about a minute, and checking
    # the bound in a file about three seconds
    most_work: ClassVar[int] = 5_000

    @property
    def by_chance(self) -> float:
        return self.guesses / 2

    @property
    def _halves(self) -> bool:
        return all_halves(self.runs)

    @property
    def _kinds(self) -> Sequence[Run]:
        return self.runs if self._halves else [(m, 0, guesses) for m, _, guesses in self.runs]

    @property
    def number_note(self) -> str:
        if not self._halves:
            return ""
        return (
            "half of the canaries of every run were included (rounded if their number is odd); this number may have "
            "been fixed beforehand, so the p-value of each run is divided by the probability with which fair coins "
            "include this number; " + HALF_ADVICE
        )

    def tail_chance(self, claim: TradeoffFunction, run: Run, right: int) -> float:
        m, included, guesses = run
        factor = number_factor(m, included) if self._halves else 1.0
        return min(1.0, factor * one_run.p_value(claim, m, guesses, right))

    def tail_attained(self, truth: TradeoffFunction, run: Run, right: int) -> float:
        m, included, guesses = run
        return both_sides.attained(truth, m, (guesses,), right, included=included if self._halves else None)

    def coins_p_value(self, sizes: tuple[int, int]) -> float:
        """Combine the p-values of the total and of the least balanced run; see `ScoresGuesses.coins_p_value`."""
        least = min(coins_p_value(m - included, included) for m, included, _ in self.runs)
        return min(1.0, 2 * min(coins_p_value(*sizes), len(self.runs) * least))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralDrawnRunsEvidence(_OfRuns):
    """Guesses about canaries of several runs, where each run included a fixed number of canaries."""

    method: ClassVar[str] = "scores_of_several_drawn_runs"
    words: ClassVar[Words] = OF_SEVERAL_DRAWN_RUNS
    # limit of `check_size`; computing a bound on mu for one run with 2,500 guesses takes about 10 seconds
    most_work: ClassVar[int] = 2_500

    @property
    def by_chance(self) -> float:
        return sum(r * min(included, m - included) / m for m, included, r in self.runs)

    def tail_chance(self, claim: TradeoffFunction, run: Run, right: int) -> float:
        m, included, guesses = run
        return fixed_number.p_value(claim, m, included, guesses, right, sharp=False)

    def tail_attained(self, truth: TradeoffFunction, run: Run, right: int) -> float:
        m, included, guesses = run
        return attained(truth, m, included, guesses, right)


@lru_cache(maxsize=16)  # the answer is needed for every p-value
def all_halves(runs: tuple[Run, ...]) -> bool:
    """Return whether every run includes half of its canaries (rounded), and coins do so with probability below 5 %."""
    if not all(half_included(m - included, included) for m, included, _ in runs):
        return False
    return sum(math.log(half_by_chance(m)) for m, _, _ in runs) < math.log(_SUSPICIOUS)


def of_runs(runs: Sequence[Run], right: int, *, drawn: bool) -> SeveralRunsEvidence | SeveralDrawnRunsEvidence:
    """Create the evidence of several runs."""
    kind = SeveralDrawnRunsEvidence if drawn else SeveralRunsEvidence
    found = kind(runs=tuple(runs), guesses=sum(r for _, _, r in runs), right=right)
    found.check_size()
    return found
