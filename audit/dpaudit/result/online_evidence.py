"""Evidence from a stream with one output for each step, where a fair coin selects the dataset of each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.sequential.bands import Band, uncertified_band
from dpaudit.inference.sequential.strategy import Strategy
from dpaudit.inference.sequential.stream_strategy import stream_strategy
from dpaudit.result.histograms import check_bins, pair_counts_of, peak_of, sha256, sparse
from dpaudit.result.sequential_evidence import SequentialEvidence
from dpaudit.result.words import DONG, OF_PAIRS, Words
from dpaudit.values import Json, JsonObject

_WORDS = Words(
    principle=(
        "A claim is a trade-off function $f$: no attack with type I error $α$ has a type II error below $f(α)$ (Dong, "
        "Roth & Su 2022). Before each step a fair coin chose the dataset, and the mechanism ran once, on that dataset. "
        "A score, learned from earlier steps only, estimates how much likelier the output is under d1 than under d0. "
        "Bets on thresholds of this score are priced by the claim's privacy profile, so that under a true claim no "
        "step is expected to win. The wealth $E$ is then a nonnegative supermartingale, and the probability that it "
        "ever reaches $1/s$ is at most $s$ (Ville 1939). The claim is about each step given the past: the mechanism "
        "may keep a state, drift, and adapt to all earlier steps. The only assumption is that the mechanism learns "
        "about the coins through the chosen datasets alone."
    ),
    references=(
        DONG,
        "Ville, J. (1939). Étude critique de la notion de collectif. Gauthier-Villars, Paris.",
        "Grünwald, P., de Heide, R. & Koolen, W. (2024). Safe testing. J. R. Stat. Soc. B 86(5), 1091–1128.",
    ),
    proof="the evidence of all runs",
    went_on="the bounds come from the interim analysis with the most evidence",
    again="A stream has no fixed region to count on fresh outputs. To repeat it, make a new stream with new coins.",
    violates="Some step of the stream, given all earlier steps, does not keep the claim",
    claimed="for each step",
    somewhere="for some step",
    spent="{steps} steps",
    data="Each step ran on d0 or on d1, as a fair coin chose",
    **OF_PAIRS
    | {
        "untried": "Other datasets and other attacks: only the two datasets and the attacks of this stream were tried.",
        "others": "other datasets or attacks",
        "more": "make more steps, or use a score that differs more between the two datasets",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineEvidence(SequentialEvidence):
    """Counts of estimated log-likelihood ratios on the steps after those on which the estimate was trained.

    The bets are those of `stream_strategy`.  The bounds are those of `SequentialEvidence`, where each trial is one
    output.  The stream may continue after the claim has been refuted, and the wealth may then decrease.  So the
    evidence stores the counts of two interim analyses: the last one, and the one with the largest wealth against the
    claim.  A claim is refuted if the counts of at least one of these two analyses refute it.  The verdict and all
    bounds still hold jointly, because Ville's inequality holds for all interim analyses jointly.
    """

    method: ClassVar[str] = "online"
    words: ClassVar[Words] = _WORDS
    coin_selected: bool = True
    steps: int  # number of steps, also those before the first score

    def _wealth(self) -> Callable[[TradeoffFunction], float]:
        """Return a function from a claim to the larger log-wealth of the bets at the two stored interim analyses."""
        end = SequentialEvidence._wealth(self)
        if self.peak is None:
            return end
        at_peak = self._bets().wealth_on(self.peak, coin_selected=True)
        return lambda claim: max(end(claim), at_peak(claim))

    def _bets(self) -> Strategy:
        return stream_strategy(self.target)

    def band(self, *, confidence: float, bounds_valid: bool) -> Band:
        return uncertified_band(*self.counts[0])  # the law may change, so no single curve exists

    def fingerprint(self) -> str:
        return sha256(self.counts if self.peak is None else np.concatenate([self.counts, self.peak]))

    def to_json(self) -> JsonObject:
        peak = {} if self.peak is None else {"peak": sparse(self.peak[0])}
        return {**SequentialEvidence.to_json(self), **peak, "steps": self.steps}

    @classmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> OnlineEvidence:
        check_bins(values)
        counts = pair_counts_of(values["counts"], coin_selected=True)
        peak = None if values.get("peak") is None else peak_of([values["peak"]], counts, coin_selected=True)
        return cls(target=target, counts=counts, peak=peak, steps=int(values["steps"]))
