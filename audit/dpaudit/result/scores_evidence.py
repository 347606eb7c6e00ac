"""Evidence from scores of another program: right guesses about sorted scores of runs, or of canaries.

The theorems are in `inference.scores.ranks`, `rank_laws` and `rank_bounds`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Self, get_args

import numpy as np

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference.scores.families import Family
from dpaudit.inference.scores.rank_bounds import Needed, Path, RankTest, attained, needed
from dpaudit.inference.scores.rank_laws import Inclusion, Independent, Law
from dpaudit.inference.scores.ranks import Blocks
from dpaudit.result.base_evidence import Evidence, Kind
from dpaudit.rounding import lower, upper
from dpaudit.values import JsonObject

Line = Literal["runs", "canaries", "inclusion"]
"""What is assumed: independent runs; independent canaries; or the random inclusion of canaries only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresEvidence(Evidence):
    """The right guesses about sorted scores, from which every line of assumptions can be computed.

    Each line has a test of (epsilon, delta), joint for all of these, and one of other claims, joint for them and for
    mu.
    """

    line: Line  # the assumption of the verdict, which was fixed before the scores were seen
    n0: int  # number of scores of d0, or of canaries that were left out
    n1: int
    runs: int  # number of independent runs that the scores come from
    share: float  # probability of the coins of `Inclusion`
    factor: float  # factor of the p-values of `Inclusion`
    # whether each of several runs included a fixed number, so that there is no line of independent canaries
    divided: bool = False
    delta: float  # the delta whose bound of epsilon is best
    significance: float  # the significance that defines the bounds of `rank_bounds`
    ranked: tuple[int, ...]  # right guesses in each block, if the n1 highest scores are guessed to be of d1
    halved: tuple[int, ...]  # the same for the blocks of `Inclusion`

    @property
    def kind(self) -> Kind:
        return Kind(self.line)

    @property
    def trials(self) -> int:
        return max(self.n0, self.n1) if self.line == "runs" else self.runs

    @property
    def scores(self) -> int:
        return self.n0 + self.n1

    @property
    def tries(self) -> int:
        """Number of independent chances to see a rare event; all canaries of a run may share one chance."""
        return self.runs if self.line == "inclusion" else min(self.n0, self.n1)

    @property
    def law(self) -> Law:
        """The law of the verdict's line."""
        return self.law_of(self.line)

    def law_of(self, line: Line) -> Law:
        if line == "inclusion":
            return _inclusion(self.n0, self.n1, self.share, self.factor)
        return Independent(Blocks(self.n1, self.n0))

    def test(self, line: Line, claim: TradeoffFunction) -> RankTest:
        """Return the test of a line for claims like this one."""
        right = self.halved if line == "inclusion" else self.ranked
        return _test(self.law_of(line), right, self._path(claim), self.significance)

    def _path(self, claim: TradeoffFunction) -> Path:
        return Path(self.delta if isinstance(claim, PureDP | ApproxDP) else None)

    @property
    def right(self) -> int:
        """Number of scores of d1 among the n1 highest scores."""
        return sum(self.ranked[: int(Blocks(self.n1, self.n0).high.sum())])

    @property
    def outcome(self) -> str:
        what = "are of the second dataset" if self.line == "runs" else "are of included canaries"
        by_chance = self.n1 * self.n1 / max(1, self.scores)  # the mean if scores do not depend on the dataset
        return f"{self.right:,} of the {self.n1:,} highest scores {what}; by chance about {by_chance:,.0f}"

    @property
    def about(self) -> str:
        if self.line == "runs":
            return f"{self.n0:,} runs on d0, {self.n1:,} on d1"
        return f"{self.scores:,} canaries, {self.n1:,} of them included"

    def p_value(self, claim: TradeoffFunction) -> float:
        return self.test(self.line, claim).p_value(claim)

    def refutes(self, claim: TradeoffFunction, *, confidence: float) -> bool:
        significance = self.level(confidence)
        return self.test(self.line, claim).p_value(claim, enough=significance) <= significance

    def level(self, confidence: float) -> float:
        """Return 1 - confidence, or exactly the recorded significance if both differ by rounding only."""
        exact = 1 - confidence
        return self.significance if abs(exact - self.significance) < 3e-16 else exact

    def lower(self, delta: float | None, *, confidence: float) -> float:
        if delta is None:
            return self.test(self.line, GaussianDP(1.0)).mu_lower(significance=self.level(confidence))
        return self.epsilon_of(self.line, delta, confidence=confidence)

    def epsilon_of(self, line: Line, delta: float, *, confidence: float) -> float:
        """Return the bound on epsilon of any line."""
        if delta >= 1:
            return 0.0
        return self.test(line, PureDP(1.0)).epsilon_lower(delta, significance=self.level(confidence))

    def most_epsilon(self, line: Line) -> float:
        """Return the largest bound on epsilon, at the delta of the evidence, that these scores could prove."""
        law = self.law_of(line)
        return _test(law, tuple(law.blocks.sizes.tolist()), Path(self.delta), self.significance).most

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        test = self.test(self.line, family(1.0))
        return test.parameter_lower(family, significance=significance, precision=precision)

    def chance_to_refute(self, claim: TradeoffFunction, truth: TradeoffFunction) -> float:
        """Return the probability of a refutation at the recorded significance; see `rank_bounds`."""
        return attained(self.law, self._needed(claim), truth)

    def can_refute(self, claim: TradeoffFunction) -> bool:
        """Return whether the claim is refuted if all guesses are right."""
        found = self._needed(claim)
        return found.counted <= self.law.guesses or found.log_t <= found.largest

    def _needed(self, claim: TradeoffFunction) -> Needed:
        return needed(self.law, self._path(claim), self.significance, claim.symmetrized())

    def to_json(self) -> JsonObject:
        return {"method": self.kind.method, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], target: TradeoffFunction) -> Self:
        numbers = {name: int(values[name]) for name in ("n0", "n1", "runs")}
        found = cls(
            line=values["line"],
            **numbers,
            share=float(values["share"]),
            factor=float(values["factor"]),
            delta=float(values["delta"]),
            significance=float(values["significance"]),
            divided=bool(values["divided"]),
            ranked=tuple(map(int, values["ranked"])),
            halved=tuple(map(int, values["halved"])),
        )
        fits = (
            found.line in get_args(Line)
            and min(found.n0, found.n1) > 0
            and 1 <= found.runs <= found.scores
            and 0 < found.share < 1 <= found.factor
            and 0 < found.significance < 1
            and 0 <= found.delta < 1
        )
        if not fits:
            raise ValueError(f"evidence must have allowed numbers of scores, and an allowed line and share: {numbers}")
        lines: dict[str, Line] = {"ranked": "canaries", "halved": "inclusion"}
        for name, line in lines.items():
            right, sizes = np.array(getattr(found, name)), found.law_of(line).blocks.sizes
            if right.shape != sizes.shape or np.any((right < 0) | (right > sizes)):
                raise ValueError(f"evidence must have right guesses of {len(sizes)} blocks in {name!r}, got {right}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBound:
    """What scores prove under one assumption."""

    assumption: str  # in words
    delta: float  # delta of the bound
    epsilon: float  # certified lower bound on epsilon in nats
    claimed: float  # the epsilon that the claim allows at this delta; inf without a claim
    most: float  # a number that no bound from so many scores exceeds
    verdict: bool  # whether the verdict rests on this assumption


LINES: dict[Line, str] = {
    "inclusion": "if each canary was included at random",
    "canaries": "if, besides, canaries do not affect each other's scores",
    "runs": "if each score is from a training run of its own",
}
"""The assumption of each line, in words."""


@lru_cache(64)
def score_bounds(
    evidence: ScoresEvidence, claim: TradeoffFunction, delta: float | None, confidence: float
) -> tuple[ScoreBound, ...]:
    """Return what scores prove under each assumption, at a delta (by default the claim's, or 1e-5)."""
    at = evidence.delta if delta is None else delta
    lines: tuple[Line, ...] = ("inclusion", "canaries", "runs")
    if evidence.line == "runs" or evidence.divided:
        lines = (evidence.line,)
    return tuple(
        ScoreBound(
            assumption=LINES[line],
            delta=at,
            epsilon=evidence.epsilon_of(line, at, confidence=confidence),
            claimed=float(claim.epsilon(at)),
            most=evidence.most_epsilon(line),
            verdict=line == evidence.line,
        )
        for line in lines
    )


def table_words(rows: tuple[ScoreBound, ...]) -> list[str]:
    """Write what scores prove under each assumption, one line each."""
    if not rows:
        return []
    of_verdict = next(row for row in rows if row.verdict)
    claimed = f" (claimed: at most {upper(of_verdict.claimed, 4)})" if math.isfinite(of_verdict.claimed) else ""
    lines = [f"  proven: epsilon at delta = {of_verdict.delta:g} is at least{claimed}"]
    lines += [f"  {'*' if row.verdict else ' '} {lower(row.epsilon):6} {row.assumption}" for row in rows]
    if len(rows) > 1:
        lines += [
            "  * is the line to report, unless another was chosen before the scores were seen",
            "  members and non-members of different sources prove nothing",
        ]
    most = dict.fromkeys(upper(value, 2) for value in sorted(row.most for row in rows))
    each = "" if len(most) == 1 else ", by assumption"
    return [*lines, f"  the largest bound that so many scores can prove: {' and '.join(most)}{each}"]


@lru_cache(64)
def _inclusion(n0: int, n1: int, share: float, factor: float) -> Inclusion:
    top = (n0 + n1) // 2 if share == 0.5 else n1
    return Inclusion(Blocks(top, n0 + n1 - top), share, factor)


@lru_cache(64)  # the bounds, the verdict and the report need the same test
def _test(law: Law, right: tuple[int, ...], path: Path, significance: float) -> RankTest:
    return RankTest(law, right, path, significance)
