"""Scores of outputs with few values, shrunk towards the largest privacy loss that the claim allows.

A claim such as `pure` or `approximate` allows privacy losses beyond some epsilon only with some probability delta, and
bets win only beyond it.  The excess of a slight violation is small, so its estimate may be only noise, on which bets
lose wealth.  The attacks do not know the claim, so they cannot avoid this loss.

If n1 of m1 outputs of d1 and n0 of m0 outputs of d0 have a value, the estimate y of its log-likelihood ratio and the
approximate variance v (delta method) are

    y = log((n1 + 1/2) / m1) - log((n0 + 1/2) / m0),    v = 1/(n0 + 1/2) + 1/(n1 + 1/2).

The counts of a dataset include its outputs on all pairs of the audit, since a search often keeps d0.  These scores are
used only if `plug_in_ratio` is one of the attacks, as in "auto", and not while attacks that have tested their model by
the outputs have nearly all the weight (`learner.Learner`).

The excess x = |y| - epsilon is shrunk to  x t / (t + v),  its posterior mean under the prior N(0, t), where t is the
larger of (epsilon / 2)^2 and x^2 - 16 v, which leaves a large excess nearly as it is.  An excess below one standard
error is replaced by 0, and the score is then at most 0.8 epsilon, because some bets use scores slightly below epsilon.

**Rare values, if delta > 0.**  Rare values that identify a dataset often violate such a claim.  A bet cannot wait for
many of them, so a value that only one dataset has shown gets the largest score.  A bet on frequent values with a ratio
near e^epsilon would drown what rare values win, so of the values beyond epsilon, sorted by their ratios, only the first
k count as beyond it, where k maximises the estimated growth rate (sum of q - e^epsilon p)^2 / (sum of q + e^(2 epsilon)
p) of the best bet on k of them, with the shares p = n0/m0 and q = n1/m1.

Theorem:
    These scores do not affect the validity of the sequential test.

Proof:
    The theorem of `inference.sequential.strategy` holds for every score that is a function of one output and of the
    past.  `FewValues.score` is computed from outputs on any pairs that were sampled before, and does not change later.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.grid import BINS, bin_of
from dpaudit.learning.attack import Attack
from dpaudit.learning.blocks import Block
from dpaudit.learning.foreign import is_foreign
from dpaudit.learning.weights import BinCounts
from dpaudit.numerics import Array
from dpaudit.outputs import Outputs

MAX_VALUES = 32  # with more values, attacks that see similarities between values learn faster
# With fewer values or trials, the attacks learn the ratios as fast, and shrinking delays the evidence.
MIN_VALUES, MIN_TRIALS = 4, 1_000
# The same if delta > 0.  Attacks do not learn the ratios of rare values, but learn those of more values faster.
MIN_VALUES_RARE, MAX_VALUES_RARE, MIN_TRIALS_RARE = 2, 8, 100
# If there are so few values, and only one dataset has shown one of them, this value is worth an early bet.
MAX_VALUES_EARLY, MIN_TRIALS_EARLY = 4, 20
_FREQUENCIES = "plug_in_ratio"
_SCALE = 0.5  # standard deviation of the prior of the excess, in units of epsilon
_CLEAR = 16.0  # square of the number of standard errors beyond which an excess is no longer shrunk by this prior
_UNCLEAR = 0.8  # largest score without a clear excess, in units of epsilon
_IDENTIFIES = 60.0  # score of a value that one dataset alone has shown, in nats; the bins end here
_FAR = 700.0  # privacy loss in nats at which the profile of a claim is the probability of all larger losses
_DIGITS = 9  # number of decimals of a score, as in `score`

Tally = npt.NDArray[np.int64]  # the number of outputs of one dataset with each of k values; shape (k,)


def shrunken_excess(counts0: Tally, counts1: Tally, totals: tuple[int, int], epsilon: float) -> Array:
    """Estimate the log-likelihood ratio of each value, and shrink its excess over epsilon as the module describes."""
    ratio = np.log((counts1 + 0.5) / totals[1]) - np.log((counts0 + 0.5) / totals[0])
    variance = 1 / (counts0 + 0.5) + 1 / (counts1 + 0.5)
    excess = np.abs(ratio) - epsilon
    prior = np.maximum((_SCALE * epsilon) ** 2, excess**2 - _CLEAR * variance)
    shrunk = epsilon + excess * prior / (prior + variance)
    size = np.where(excess > np.sqrt(variance), shrunk, np.minimum(np.abs(ratio), _UNCLEAR * epsilon))
    return np.asarray(np.round(np.sign(ratio) * size, _DIGITS))


def beyond(ratios: Array, shares0: Array, shares1: Array, epsilon: float) -> Array:
    """Let the scores of rare values stand out, as the module describes for delta > 0."""
    found = ratios.copy()
    for sign, few, many in ((1, shares0, shares1), (-1, shares1, shares0)):
        one_sided = few == 0
        candidates = np.flatnonzero((many > 0) & (one_sided | (sign * ratios > epsilon)))
        order = candidates[np.lexsort((-many[candidates], few[candidates] / many[candidates]))]
        excess = np.cumsum(many[order] - math.exp(epsilon) * few[order])
        growth = np.maximum(excess, 0.0) ** 2 / np.cumsum(many[order] + math.exp(2 * epsilon) * few[order])
        kept = order[: int(np.argmax(growth)) + 1] if len(order) else order
        found[order] = sign * np.minimum(np.abs(ratios[order]), _UNCLEAR * epsilon)
        found[kept] = np.where(one_sided[kept], sign * _IDENTIFIES, ratios[kept])
    return found


def scores_frequencies(attacks: Sequence[Attack]) -> bool:
    """Return whether one of the attacks is `plug_in_ratio`, whose scores are those of frequencies, too."""
    return any(attack.name == _FREQUENCIES and not is_foreign(attack) for attack in attacks)


@dataclass(frozen=True, slots=True, eq=False)
class ValueScores:
    """A frozen function that replaces the scores of known values."""

    ratios: Mapping[Hashable, float]  # key of each value -> its score

    def __call__(self, outputs: Outputs, scores: Array) -> Array:
        """Return the scores of n outputs, where outputs of known values have their own score; both arrays are (n,)."""
        distinct = outputs.distinct()
        found = np.array([self.ratios.get(key, np.nan) for key in distinct.value_keys()])[distinct.places]
        return np.where(np.isnan(found), scores, found)


@dataclass(eq=False)
class FewValues:
    """The frequencies of the values on one pair, until there are too many values."""

    claim: InitVar[TradeoffFunction]  # symmetrized
    _epsilon: float = field(init=False)  # privacy loss that the claim allows with a larger probability than `_delta`
    _delta: float = field(init=False)
    _most: int = field(init=False)  # largest number of values
    trials: int = field(default=0, init=False)  # number of counted trials of the pair
    _shared: tuple[list[tuple[FewValues, int]], ...] = field(init=False)  # for d0 and d1: (pair with it, its side)
    _counts: tuple[Counter[Hashable], Counter[Hashable]] = field(init=False)  # outputs of d0 and of d1 with each value
    _useless: bool = field(init=False)  # whether there are too many values
    _used: bool = field(default=False, init=False)  # whether there ever was a score
    _score: ValueScores | None = field(default=None, init=False)  # a cache

    def __post_init__(self, claim: TradeoffFunction) -> None:
        self._shared = ([(self, 0)], [(self, 1)])
        self._counts = Counter(), Counter()
        self._delta = float(claim.delta(np.array([_FAR]))[0])
        self._epsilon = float(claim.epsilon(self._delta)) if self._delta < 1 else math.inf
        self._most = MAX_VALUES_RARE if self._delta else MAX_VALUES
        self._useless = not self._epsilon < _FAR / 2

    @classmethod
    def of_pairs(cls, datasets: Sequence[tuple[Hashable, Hashable]], claim: TradeoffFunction) -> list[FewValues]:
        """Return an object for each pair of keys of datasets; those with an equal key learn together from it."""
        found = [cls(claim) for _ in datasets]
        places: dict[Hashable, list[tuple[FewValues, int]]] = {}
        for one, keys in zip(found, datasets, strict=True):
            for side, dataset in enumerate(keys):
                places.setdefault(dataset, []).append((one, side))
        for one, keys in zip(found, datasets, strict=True):
            one._shared = places[keys[0]], places[keys[1]]
        return found

    def count(self, block: Block) -> None:
        """Count the values of a block of outputs, after bets were placed on their scores."""
        if self._useless:
            for side in block if self._used else ():
                side.value_keys()  # frozen scores need them after the raw outputs are forgotten
            return
        self._score = None
        self.trials += len(block[0])
        for counts, side in zip(self._counts, block, strict=True):
            distinct = side.distinct()
            if few := len(distinct.index) <= self._most:
                counts.update(dict(zip(distinct.value_keys(), np.bincount(distinct.places).tolist(), strict=True)))
            if not few or len(self._counts[0].keys() | self._counts[1].keys()) > self._most:
                self._useless, self._counts = True, (Counter(), Counter())
                return

    def score(self) -> ValueScores | None:
        """Return the scores of the values, learned from past outputs only; None if the attacks score the outputs."""
        if self._score is not None or self._useless:
            return self._score
        values = list(self._counts[0] | self._counts[1])
        trials, fewest = (MIN_TRIALS_RARE, MIN_VALUES_RARE) if self._delta else (MIN_TRIALS, MIN_VALUES)
        if self._delta and len(values) <= MAX_VALUES_EARLY and self._counts[0].keys() != self._counts[1].keys():
            trials = MIN_TRIALS_EARLY
        if self.trials < trials or len(values) < fewest:
            return None
        sides = [[other._counts[side] for other, side in shared] for shared in self._shared]
        counts = [np.array([sum(one[key] for one in side) for key in values]) for side in sides]
        total0, total1 = (sum(one.total() for one in side) for side in sides)
        ratios = shrunken_excess(counts[0], counts[1], (total0, total1), self._epsilon)
        if self._delta:
            ratios = beyond(ratios, counts[0] / total0, counts[1] / total1, self._epsilon)
        self._used = True
        self._score = ValueScores(dict(zip(values, ratios.tolist(), strict=True)))
        return self._score

    def in_hindsight(self) -> BinCounts | None:
        """Return how often the present score would have had each bin on all past outputs; None if there is no score."""
        score = self.score()
        if score is None:
            return None
        bins = bin_of(np.array(list(score.ratios.values())))
        times = [[counts[key] for key in score.ratios] for counts in self._counts]
        return np.array([np.bincount(bins, side, minlength=BINS) for side in times]).astype(np.int64)
