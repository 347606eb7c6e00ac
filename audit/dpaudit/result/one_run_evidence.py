"""The evidence of an audit of a single run, used to read result files of version 0.1.0.

New audits of a single run use `scores_evidence.OneRunScoresEvidence`, whose lower bounds are larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import bdtrc

from dpaudit.claims import TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.inference.scores import both_sides
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.bisect import bisect
from dpaudit.result.guessed_evidence import GuessedEvidence
from dpaudit.result.histograms import sha256
from dpaudit.result.words import Words
from dpaudit.values import Json

_WORDS = Words(
    principle=(
        "Independent fair coins decided which canaries were included in the data. An attack guessed from the single "
        "output whether some canaries were included. The number of guesses was fixed beforehand. The p-value bounds "
        "the probability of at least this number of right guesses under the claim (Steinke, Nasr & Jagielski 2023; "
        "Mahloujifar, Melis & Chaudhuri 2024)."
    ),
    references=(
        "Steinke, T., Nasr, M. & Jagielski, M. (2023). Privacy auditing with one (1) training run. NeurIPS 36.",
        "Mahloujifar, S., Melis, L. & Chaudhuri, K. (2024). Auditing f-differential privacy in one run. "
        "arXiv:2410.22235.",
    ),
    errors=(
        "An attack that decides by its score whether a canary was included makes two kinds of errors. $α$ is the share "
        "of the excluded canaries that it reports as included, and $β$ the share of the included canaries that it "
        "reports as excluded."
    ),
    no_band=(
        "Blue: the errors observed over all canaries. One run certifies no bound on the curve, so chance can carry the "
        "observed errors into the grey area."
    ),
    proof="the number of right guesses",
    untried="Other canaries and other scores: only the given canaries and scores were tried.",
    others="other canaries or scores",
    again="To repeat it, make a new run with new coins, and audit it.",
)


class Guesses(Protocol):
    """A number of guesses about which canaries were included in the data, and the number of right guesses."""

    @property
    def canaries(self) -> int:
        """Number of canaries, each of which was included with probability 1/2, independently."""
        ...

    @property
    def guesses(self) -> int:
        """Number of guesses, fixed before the run."""
        ...

    @property
    def right(self) -> int:
        """Number of right guesses about canaries."""
        ...

    @property
    def by_chance(self) -> float:
        """Expected number of right guesses if the scores contained no information about the inclusions."""
        ...

    def least_right(self, claim: TradeoffFunction, *, confidence: float) -> int | None:
        """Return the least number of right guesses that refutes a claim; None if no number refutes the claim."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRunEvidence(GuessedEvidence):
    """The number of guesses about the canaries of one run, and the number of right guesses.

    Only older result files contain evidence of this kind.
    """

    method: ClassVar[str] = "one_run"
    once: ClassVar[bool] = True
    words: ClassVar[Words] = _WORDS
    canaries: int

    @property
    def trials(self) -> int:
        return 1

    @property
    def tries(self) -> int:
        return self.canaries

    @property
    def by_chance(self) -> float:
        return self.guesses / 2

    def chance(self, claim: TradeoffFunction, right: int, *, enough: float = 0.0) -> float:
        return one_run.p_value(claim, self.canaries, self.guesses, right)

    def attained(self, truth: TradeoffFunction, right: int) -> float:
        """Return the larger of two estimates: with the most confident guesses, and with all guesses equally right."""
        error = bisect(lambda alpha: float(truth.beta(alpha)) <= alpha, inside=0.5, outside=0.0).inside
        alike = float(bdtrc(right - 1, self.guesses, 1 - error))
        return max(alike, both_sides.attained(truth, self.canaries, (self.guesses,), right))

    def tested(self, claim: TradeoffFunction) -> TradeoffFunction:
        """Return the claim unchanged, because `inference.one_run` tests claims in this form."""
        return claim

    def p_value(self, claim: TradeoffFunction, path: Array | None = None) -> float:
        """Return an upper bound on the probability of at least `right` right guesses under a claim."""
        return one_run.p_value(claim, self.canaries, self.guesses, self.right)

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        return one_run.refutes(claim, self.canaries, self.guesses, self.right, significance=1 - confidence)

    def least_right(self, claim: TradeoffFunction, *, confidence: float) -> int | None:
        """Return the least number of right guesses that refutes a claim; None if no number refutes the claim."""
        fewest = one_run.fewest_right(claim, self.canaries, self.guesses, significance=1 - confidence)
        return fewest if fewest <= self.guesses else None

    def mu_lower(self, *, confidence: float) -> float:
        return _mu_lower(self.canaries, self.guesses, self.right, significance=1 - confidence)

    def epsilon_lower(self, delta: float, *, confidence: float) -> float:
        return one_run.epsilon_lower_exact(
            self.canaries, self.guesses, self.right, delta=delta, significance=1 - confidence
        )

    def fingerprint(self) -> str:
        return sha256(np.array([self.canaries, self.guesses, self.right]))

    @classmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> OneRunEvidence:
        counts = {name: int(values[name]) for name in ("canaries", "guesses", "right")}
        if not 0 <= counts["right"] <= counts["guesses"] <= counts["canaries"]:
            raise ValueError(f"evidence must have right <= guesses <= canaries, got {counts}")
        return cls(**counts)


@lru_cache(maxsize=256)  # the audit and the later check of its result file compute the same bound
def _mu_lower(canaries: int, guesses: int, right: int, *, significance: float) -> float:
    return one_run.mu_lower_one_run(canaries, guesses, right, significance=significance)
