"""Evidence of a stream: one output of each step, of the dataset that a coin chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.sequential.strategy import strategy
from dpaudit.numerics.arrays import Array
from dpaudit.result.histograms import Counts, dense, sha256, sparse
from dpaudit.result.sequential_evidence import SequentialEvidence
from dpaudit.result.words import DONG, OF_PAIRS, Words
from dpaudit.values import Json, JsonObject

_WORDS = Words(
    principle=(
        "A claim is a trade-off function $f$: no attack with type I error $α$ has a type II error below $f(α)$ (Dong, "
        "Roth & Su 2022). Before each step a fair coin chose the dataset, and the mechanism ran once, on that dataset. "
        "A score, learned from earlier steps only, estimates how much likelier the output is under d1 than under d0; "
        "bets on its thresholds are priced by the claim's privacy profile, so that under a true claim no step is "
        "expected to win. The wealth $E$ is then a nonnegative supermartingale, and it ever reaches $1/s$ with "
        "probability at most $s$ (Ville 1939). The claim is about each step given the past: the mechanism may keep a "
        "state, drift, and adapt to all that came before. Nothing else is assumed but that it learns no coin except by "
        "the dataset it is run on."
    ),
    references=(
        DONG,
        "Ville, J. (1939). Étude critique de la notion de collectif. Gauthier-Villars, Paris.",
        "Grünwald, P., de Heide, R. & Koolen, W. (2024). Safe testing. J. R. Stat. Soc. B 86(5), 1091–1128.",
    ),
    proof="the wealth of the bets",
    went_on="the bounds are those of the look with the most evidence",
    again="A stream has no region that could be counted again. To repeat it, make a new stream with new coins.",
    violates="Some step of the stream, given all that came before it, does not keep the claim",
    claimed="for each step",
    somewhere="for some step",
    spent="{steps} steps",
    data="Each step ran on d0 or on d1, as a fair coin chose",
    **OF_PAIRS
    | {
        "untried": "Other datasets and other attacks: only the two datasets and the attacks of this stream were tried.",
        "others": "other datasets or attacks",
        "more": "make more steps, or score them by what differs more between the two datasets",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineEvidence(SequentialEvidence):
    """Counts of the estimated log-likelihood ratio, of steps that came after what it was learned from.

    The bets and bounds are those of `SequentialEvidence` with one output for each trial.  The stream may go on after
    the claim has been refuted, and lose the wealth again.  So the counts are kept of two looks: the last one, and the
    one at which the wealth against the claim was largest.  A claim is refuted if either look refutes it.  Verdict and
    all bounds still hold together, because Ville's inequality holds for all looks at once.
    """

    method: ClassVar[str] = "online"
    words: ClassVar[Words] = _WORDS
    coin_selected: bool = True
    peak: Counts | None = None  # counts (1, 2, BINS) of the look with the largest wealth; None: not recorded

    def _wealth(self) -> Callable[[TradeoffFunction], float]:
        """Return the larger log-wealth of the bets at the two looks, as a function of the claim."""
        end = SequentialEvidence._wealth(self)
        if self.peak is None:
            return end
        at_peak = strategy(self.target).wealth_on(self.peak, coin_selected=True)
        return lambda claim: max(end(claim), at_peak(claim))

    def p_value(self, claim: TradeoffFunction, path: Array | None = None) -> float:
        """Return 1 / maximum wealth; the counts of the peak replace the path, which nothing else confirms."""
        return SequentialEvidence.p_value(self, claim, path if self.peak is None else None)

    def ends_at_its_peak(self, path: Array) -> bool:
        return True

    def fingerprint(self) -> str:
        return sha256(self.counts if self.peak is None else np.concatenate([self.counts, self.peak]))

    def to_json(self) -> JsonObject:
        peak = {} if self.peak is None else {"peak": sparse(self.peak[0])}
        return {**SequentialEvidence.to_json(self), **peak}

    @classmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> OnlineEvidence:
        counted = SequentialEvidence.from_json({**values, "coin_selected": True}, target)
        peak = None if values.get("peak") is None else peak_of(values["peak"], counted.counts)
        return cls(target=target, counts=counted.counts, lost=counted.lost, peak=peak)


def peak_of(sides: Json, counts: Counts) -> Counts:
    """Read the counts of the look with the largest wealth.

    Args:
        sides: What `sparse` made of them.
        counts: The counts of the last look, (1, 2, BINS).

    Raises:
        ValueError: If they are not counts, or not part of `counts`.
    """
    peak = dense(sides)[None]
    if peak.shape != counts.shape or np.any(peak > counts):
        raise ValueError("evidence must have no more counts at its peak than at its end")
    return peak
