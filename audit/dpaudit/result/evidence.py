"""All kinds of evidence.  Each kind of audit has one class; see `base_evidence.Evidence`."""

from __future__ import annotations

from collections.abc import Mapping

from dpaudit.claims import TradeoffFunction
from dpaudit.result.base_evidence import Evidence
from dpaudit.result.fixed_evidence import FixedEvidence
from dpaudit.result.histograms import Counts
from dpaudit.result.scores_evidence import ScoresEvidence
from dpaudit.result.sequential_evidence import OnlineEvidence, SequentialEvidence
from dpaudit.text.rounding import count
from dpaudit.values import Json

__all__ = [
    "KINDS",
    "Counts",
    "Evidence",
    "FixedEvidence",
    "OnlineEvidence",
    "ScoresEvidence",
    "SequentialEvidence",
    "given_scores",
    "read_back",
    "spent",
]

KINDS: tuple[type[Evidence], ...] = (SequentialEvidence, FixedEvidence, ScoresEvidence, OnlineEvidence)
"""All kinds of evidence.  Other modules ask the evidence for its properties instead of comparing methods."""


def given_scores(evidence: Evidence) -> ScoresEvidence | None:
    """Return the evidence if it is from scores of another program; None if it counts outputs."""
    return evidence if isinstance(evidence, ScoresEvidence) else None


def spent(evidence: Evidence, runs: int) -> str:
    """Describe a number of runs in the unit of the audit, such as "200 runs per dataset" or "393 steps"."""
    if evidence.once:
        return "one run"
    guessed = given_scores(evidence)
    return evidence.words.spent.format(
        runs=f"{count(runs)} run{'' if runs == 1 else 's'}",
        steps=count(min(2 * runs, getattr(evidence, "steps", 2 * runs))),
        canaries="" if guessed is None else count(guessed.scores),
    )


def read_back(values: Mapping[str, Json], target: TradeoffFunction) -> Evidence:
    """Read evidence of any kind."""
    method, kinds = values["method"], {kind.method: kind for kind in KINDS}
    if method not in kinds:
        raise ValueError(f"evidence must be of method {' or '.join(kinds)}, got {method!r}")
    return kinds[method].from_json(values, target)
