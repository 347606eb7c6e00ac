"""Evidence from canaries of several runs that are all assumed to be independent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpaudit.claims import TradeoffFunction
from dpaudit.result.scores_evidence import CanaryScoresEvidence
from dpaudit.result.scores_words import OF_CANARIES_IN_RUNS
from dpaudit.result.words import Words


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

    @classmethod
    def from_json(cls, values: Mapping[str, Any], target: TradeoffFunction) -> Self:
        found = super(CanariesInRunsEvidence, cls).from_json(values, target)
        if not 2 <= found.runs <= found.m:
            raise ValueError(f"evidence must have 2 runs or more, and a canary in each, got {found.runs} of {found.m}")
        return found
