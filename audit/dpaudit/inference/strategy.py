"""The anytime-valid test of a claim: a wealth divided among bets, and the evidence that it grows from.

**The wealth.**  Bets j are designed from the claim alone, one for each alternative (`betting.best_bet`).  Trials come
in generations, each of one pair of datasets and one score.  With e_jt the e-value of bet j in trial t,

    E = (1 - h) sum_j w_j prod_t e_jt  +  h prod_generations g ( sum_j s_gj prod_{t in g} e_jt ).

The first term leaves the shares w alone; the second divides the wealth anew at each generation, in
shares s_g that are the posterior probabilities of the alternatives, given the earlier generations of the pair.

**Theorem.**  If the claim is true, P[E >= 1/significance at any time] <= significance.

*Proof.*  Given the past, E e_jt <= 1 for each bet (`betting`), and the score of trial t and the shares are fixed by the
past.  So each product, each sum over j with weights that sum to one, each product of such sums over generations (a
trial belongs to one of them, also where generations of several pairs are open at once), and the mean of the two terms
is a nonnegative supermartingale that starts at 1.  Ville 1939.

**One process against all claims.**  Neither the bets nor the shares depend on the claim under test; only the budgets
do, and they fall as f rises.  So E(f) <= E(T) for every f <= T = T(P, Q): with probability 1 - significance NO true
claim is ever refuted, whichever family is searched.  `mu_lower` and `epsilon_lower` at every delta, and the verdict, hold
together and cost no multiplicity; E is monotone along every nested family, so that they are found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtri

from dpaudit.claims import Array, GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference.alternatives import Alternative, alternatives, gaussian_noise, laplace_noise
from dpaudit.inference.betting import Bet, best_bet
from dpaudit.inference.grid import BINS

Counts = npt.NDArray[np.int64]

_ROUNDING = 1e-12  # relative; more than the error of one term of the budget, so that e errs downwards
_MOVING = 0.8  # h, the part of the wealth that follows the posterior; the rest costs it at most log 5 if that misleads
_TRUST = 0.7  # power of the likelihood in the posterior: the scores that it rests on are only estimates
_LADDER_SHARE = 0.06  # of the initial wealth; costs the verdict one trial in fifty
_LADDER_STEP = 1.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strategy:
    """Bets, side by side, each with its alternative and its share of the initial wealth."""

    log_weights: Array  # (m,), weights sum to one
    log_payoffs0: Array  # (m, BINS), log A
    log_payoffs1: Array  # (m, BINS), log B
    log_likelihoods: Array  # (m, 2, BINS), of a bin under d0 and under d1, if the alternative is true
    fixed_costs: Array  # (m,), the part of the budget that no claim changes
    slopes: Array  # (m, k), padded with stakes of 0
    stakes: Array  # (m, k), >= 0

    @classmethod
    def of(cls, bets: Sequence[Bet], candidates: Sequence[Alternative], weights: Array) -> Strategy:
        """Divide the initial wealth among bets in proportion to `weights`, (m,), > 0."""
        if not np.all(weights > 0):
            raise AssertionError("a bet cannot be given a negative share of the wealth")
        payoffs = [bet.log_payoffs() for bet in bets]
        widest = max(len(bet.stakes) for bet in bets)
        laws = np.array([(candidate.p, candidate.q) for candidate in candidates])
        return cls(
            log_weights=np.log(weights / weights.sum()),
            log_payoffs0=np.array([a for a, _ in payoffs]),
            log_payoffs1=np.array([b for _, b in payoffs]),
            log_likelihoods=np.log(laws + 1e-4 / BINS),  # an estimated ratio may fall where none was expected
            fixed_costs=np.array([bet.safe0 + bet.safe1 + float(bet.stakes @ np.exp(bet.slopes)) for bet in bets]),
            slopes=np.array([np.pad(bet.slopes, (0, widest - len(bet.slopes))) for bet in bets]),
            stakes=np.array([np.pad(bet.stakes, (0, widest - len(bet.stakes))) for bet in bets]),
        )

    def log_prices(self, claim: TradeoffFunction) -> Array:
        """What each bet costs a trial under a claim, (m,): twice the log of half its budget, rounded up."""
        budgets = self.fixed_costs + (self.stakes * claim.delta(self.slopes)).sum(axis=1)
        prices: Array = 2 * np.log(budgets * (1 + _ROUNDING) / 2)
        return prices

    def log_gains(self, counts: Counts) -> Array:
        """Log of what each bet has paid, (m,), on outputs with these bin counts, (2, BINS)."""
        gains: Array = self.log_payoffs0 @ counts[0] + self.log_payoffs1 @ counts[1]
        return gains

    def log_shares(self, counts: Counts) -> Array:
        """Shares of the moving wealth, (m,), after earlier outputs with these bin counts, (2, BINS)."""
        posterior = self.log_weights + _TRUST * (self.log_likelihoods * counts).sum(axis=(1, 2))
        shares: Array = posterior - logsumexp(posterior)
        return shares


@dataclass
class Ledger:
    """The evidence of an audit: for each generation its pair and the bin counts of fresh outputs.

    It alone decides the wealth against any claim.
    """

    strategy: Strategy
    pairs: list[int] = field(default_factory=list)  # of each generation
    counts: list[Counts] = field(default_factory=list)  # (2, BINS) of each generation: outputs of d0, of d1
    _gains: list[Array] = field(default_factory=list)
    _shares: list[Array] = field(default_factory=list)

    @classmethod
    def of(cls, strategy: Strategy, pairs: Sequence[int], counts: Sequence[Counts]) -> Ledger:
        """The ledger with these generations, in this order."""
        ledger = cls(strategy)
        for pair, block in zip(pairs, counts, strict=True):
            ledger.open(pair)
            ledger.add(pair, block)
        return ledger

    def open(self, pair: int) -> None:
        """Begin a generation of a pair: its score has been learned anew."""
        self._shares.append(self.strategy.log_shares(self.of_pair(pair)))
        self.pairs.append(pair)
        self.counts.append(np.zeros((2, BINS), dtype=np.int64))
        self._gains.append(np.zeros(len(self.strategy.log_weights)))

    def add(self, pair: int, counts: Counts) -> None:
        """Fresh outputs of the latest generation of a pair, equally many of both datasets; ValueError otherwise."""
        if counts[0].sum() != counts[1].sum():
            raise ValueError(f"a trial is one output of each dataset, got {counts[0].sum()} and {counts[1].sum()}")
        latest = len(self.pairs) - 1 - self.pairs[::-1].index(pair)
        self.counts[latest] += counts
        self._gains[latest] = self._gains[latest] + self.strategy.log_gains(counts)

    def of_pair(self, pair: int) -> Counts:
        """Counts of one pair over all generations, (2, BINS)."""
        return sum((c for p, c in zip(self.pairs, self.counts, strict=True) if p == pair), _nothing())

    def total(self) -> Counts:
        """Counts over all pairs and generations, (2, BINS)."""
        return sum(self.counts, _nothing())

    def log_e(self, claim: TradeoffFunction) -> float:
        """Logarithm of the wealth against a claim; see the module's theorem."""
        return self.log_wealth(self.strategy.log_prices(claim))

    def log_wealth(self, log_prices: Array) -> float:
        """`log_e` for a claim whose `Strategy.log_prices` are known."""
        if not self.pairs:
            return 0.0
        trials = np.array([counts[0].sum() for counts in self.counts])
        earned = np.array(self._gains) - trials[:, None] * log_prices  # (generations, m)
        resting = logsumexp(self.strategy.log_weights + earned.sum(axis=0))
        moving = logsumexp(np.array(self._shares) + earned, axis=1).sum()
        return float(np.logaddexp(np.log1p(-_MOVING) + resting, np.log(_MOVING) + moving))


def _nothing() -> Counts:
    return np.zeros((2, BINS), dtype=np.int64)


@lru_cache(maxsize=64)
def strategy(claim: TradeoffFunction) -> Strategy:
    """The bets placed when `claim` is audited, designed from the claim alone.

    Most of the wealth is bet against the claim.  The rest is bet against a ladder of stronger promises, so that
    the certified bounds are near the truth also where the claim promises far less than the mechanism keeps.
    """
    against = [(alternative, claim, (1 - _LADDER_SHARE) * alternative.weight) for alternative in alternatives(claim)]
    rungs = list(_ladder(claim))
    against += [(alternative, rung, _LADDER_SHARE / len(rungs)) for alternative, rung in rungs]
    bets = [best_bet(alternative, target) for alternative, target, _ in against]
    return Strategy.of(bets, [alternative for alternative, _, _ in against], np.array([w for _, _, w in against]))


def _ladder(claim: TradeoffFunction) -> Iterator[tuple[Alternative, TradeoffFunction]]:
    """Gaussian and pure promises up to the claim's distance, each with noise that is slightly less private."""
    mu = -2 * float(ndtri((1 - float(claim.delta(0.0))) / 2))  # of the Gaussian pair as far apart in total variation
    rung = min(max(mu, 0.1), 8.0)
    for _ in range(8):
        yield gaussian_noise(1.1 * rung), GaussianDP(rung)
        yield laplace_noise(1.15 * rung), PureDP(rung)
        rung /= _LADDER_STEP


def lower_bound(refuted: Callable[[float], bool], *, precision: float = 1e-4, most: float = 64.0) -> float:
    """Largest x, to `precision` and rounded down, such that the member x of a nested family is refuted; 0 if none.

    `refuted` must be monotone (true, then false), as E is along nested claims.
    """
    if not refuted(precision):
        return 0.0
    low, high = precision, 2 * precision
    while refuted(high):
        low, high = high, 2 * high
        if low >= most:
            return most
    while high - low > precision * max(1.0, low):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
