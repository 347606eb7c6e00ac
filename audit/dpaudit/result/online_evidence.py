"""Evidence of a stream: one output of each step, of the dataset that a coin chose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics.arrays import Array
from dpaudit.result.sequential_evidence import SequentialEvidence
from dpaudit.result.words import DONG, OF_PAIRS, Words

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
    **OF_PAIRS,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineEvidence(SequentialEvidence):
    """Counts of the estimated log-likelihood ratio, of steps that came after what it was learned from.

    The bets and bounds are those of `SequentialEvidence` with one output for each trial.  The stream may go on after
    the claim has been refuted, so that its wealth need not end where it was largest.
    """

    method: ClassVar[str] = "online"
    words: ClassVar[Words] = _WORDS
    coin_selected: bool = True

    def ends_at_its_peak(self, path: Array) -> bool:
        return True

    @classmethod
    def from_json(cls, values: Mapping[str, Any], target: TradeoffFunction) -> Self:
        counted = SequentialEvidence.from_json({**values, "coin_selected": True}, target)
        return cls(target=target, counts=counted.counts, lost=counted.lost)
