"""How much power a sequential audit gains if it bets on reaching its threshold before its last trial.

    python benchmarks/deadline.py [--audits 200] [--only WORDS]

The score is the exact log-likelihood ratio, so that only the tests differ.  The columns are probabilities to refute a
false claim with n trials at 95 % confidence:

- fixed: the exact test of the best region.
- sequential: the wealth of `strategy`, examined after every trial.
- share L: a part L of the initial wealth is put on an all-or-nothing bet.  It pays 1/s* if a weighted number of right
  guesses in the region reaches c at trial n, and 0 otherwise.
- from T: after T n trials, all wealth W is put on an all-or-nothing bet on the remaining trials, with s* = W / 20.
- half from T: the same with half of the wealth.
- late bets from T: after T n trials, all wealth is put on one bet of `strategy` at a time.  At the start of each of
  `_STAGES` stages, the bet is chosen that most probably reaches the threshold by trial n, in a normal approximation
  and on average over the alternatives, weighted by their wealth so far.  The past alone determines the choice, so each
  factor is an e-value.

**Theorem.**  Let s*(c) be the largest probability, over all predictable choices of a pair of laws that satisfy the
claim in each trial, that the weighted number of right guesses in R trials reaches c.  Then the all-or-nothing bet is an
e-value, also with scores that are refitted in between.

*Proof.*  By backward induction, s*(c) is the value of the sup at each trial given the past (dynamic programming), so
the value function is a nonnegative supermartingale under the claim, divided by s*(c) it starts at 1, and its last value
is the payoff.

The sup over pairs of laws is taken on a grid of the claim's curve, which suffices for measurements.
"""

from __future__ import annotations

import argparse
import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, softmax

from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.inference.fixed.exact_binomial import p_value
from dpaudit.inference.fixed.regions import deviations
from dpaudit.inference.power import growths
from dpaudit.inference.sequential.alternatives import alternatives, pair_laws
from dpaudit.inference.sequential.strategy import Strategy, log_threshold, strategy
from dpaudit.numerics.arrays import Array

CASES = [
    ("gaussian(mu=0.5)", "gaussian(mu=1)", 110),
    ("gaussian(mu=0.8)", "gaussian(mu=1)", 700),
    ("gaussian(mu=1)", "gaussian(mu=1.2)", 760),
    ("gaussian(mu=1)", "gaussian(mu=1.4)", 210),
    ("pure(epsilon=1)", "laplace(epsilon=1.2)", 1250),
    ("pure(epsilon=1)", "pure(epsilon=1.2)", 620),
]
_CONFIDENCE = 0.95
_SHARES, _STARTS = (0.3, 0.5, 0.9), (0.0, 0.25, 0.5, 0.75)
_LATE, _STAGES = (0.25, 0.5, 0.75), 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """Right guesses about one region, with a weight for outputs of d0 outside and a weight for outputs of d1 inside."""

    claim: TradeoffFunction
    threshold: int  # the region is {bin > threshold}
    weight0: int
    weight1: int

    @classmethod
    def of(cls, claim: TradeoffFunction, p: Array, q: Array, n: int) -> Guesses:
        """Choose the region with the most evidence under a truth, and weights in the ratio e^slope of the claim."""
        threshold = int(np.argmax(deviations(claim, n * p, n, n * q, n)))
        alpha = float(p[threshold + 1 :].sum())
        slopes = np.linspace(-3, 3, 601)
        slope = float(slopes[np.argmin(np.exp(slopes) * alpha + claim.delta(slopes))])
        scale = 1 if abs(slope) < 0.1 else 2
        return cls(claim=claim, threshold=threshold, weight0=round(scale * math.exp(slope)), weight1=scale)

    def tails(self, trials: int) -> list[Array]:
        """Return for R = 0 ... trials the largest probability, by d, that R trials gain at least d."""
        alphas = np.unique(np.concatenate([np.linspace(0, 1, 21), np.linspace(0.05, 0.5, 40)]))
        powers = 1 - self.claim.beta(alphas)
        a, b = (1 - alphas)[:, None], powers[:, None]
        kept = self._vertices(a, b)
        a, b = a[kept], b[kept]
        w0, w1 = self.weight0, self.weight1
        size, pad = trials * (w0 + w1) + 1, w0 + w1
        mean = float(np.max(w0 * a + w1 * b))
        half = int(8 * (w0 + w1) * math.sqrt(trials) / 2) + pad
        now = np.zeros(size)
        now[0] = 1.0
        found = [now]
        for r in range(1, trials + 1):
            low, high = max(1, int(r * mean) - half), min(size, int(r * mean) + half)
            padded = np.concatenate([np.ones(pad), now])
            at = slice(low + pad, high + pad)
            none = padded[at]
            only0, only1 = padded[at.start - w0 : at.stop - w0], padded[at.start - w1 : at.stop - w1]
            both = padded[at.start - pad : at.stop - pad]
            value = (1 - a) * (1 - b) * none + a * (1 - b) * only0 + (1 - a) * b * only1 + a * b * both
            now = np.zeros(size)
            now[:low] = 1.0
            now[low:high] = value.max(axis=0)
            found.append(now)
        return found

    def _vertices(self, a: Array, b: Array) -> list[int]:
        """Return the indices of points at which the mean gain is not far below its maximum, and of some others."""
        gain = (self.weight0 * a + self.weight1 * b)[:, 0]
        near = np.argsort(-gain)[:12]
        return sorted({*near.tolist(), *range(0, len(gain), 10)})


@dataclass(frozen=True, slots=True, kw_only=True)
class LateBets:
    """Bets that are chosen to reach the threshold before the last trial."""

    bets: Strategy
    claim: TradeoffFunction
    means: Array  # mean change in log-wealth of each bet under each alternative, (bets, alternatives)
    variances: Array  # variance of this change, (bets, alternatives)

    @classmethod
    def of(cls, bets: Strategy, claim: TradeoffFunction) -> LateBets:
        found = [growths(bets, claim, (one.p, one.q)) for one in alternatives(claim)]
        means, variances = (np.array(column).T for column in zip(*found, strict=True))
        return cls(bets=bets, claim=claim, means=means, variances=np.maximum(variances, 1e-12))

    def refutes(self, gains: Array, start: int, enough: float) -> bool:
        """Return whether the wealth reaches the threshold after trial `start`.

        Args:
            gains: Changes in log-wealth of each bet, summed up to each trial, (n, bets).
            start: Number of trials before all wealth is moved.
            enough: Log-wealth of the threshold.
        """
        n, own = len(gains), self.means.shape[1]  # the first bets of the strategy are those of the alternatives
        ends = np.unique(np.linspace(start, n, _STAGES + 1).astype(int))
        reached = np.logaddexp.reduce(self.bets.log_weights + (gains[start - 1] if start else 0.0))
        for at, end in itertools.pairwise(ends.tolist()):
            before = gains[at - 1] if at else np.zeros(gains.shape[1])
            posterior = softmax((self.bets.log_weights + before)[:own])
            left = n - at
            chance = ndtr((left * self.means - (enough - reached)) / np.sqrt(left * self.variances)) @ posterior
            path = reached + gains[at:end, best := int(np.argmax(chance))] - before[best]
            if path.max() >= enough:
                return True
            reached = path[-1]
        return False


def measure(claim: TradeoffFunction, truth: TradeoffFunction, n: int, audits: int) -> dict[str, float]:
    """Return the probability of a refutation for each test."""
    p, q = pair_laws(truth)[0]
    bets, guesses, rng = strategy(claim), Guesses.of(claim, p, q, n), np.random.default_rng(1)
    tails, prices, enough = guesses.tails(n), bets.log_prices(claim), log_threshold(_CONFIDENCE)
    late_bets = LateBets.of(bets, claim)
    wins: dict[str, int] = {}

    def needed(remaining: int, level: float) -> int:
        return int(np.argmax(tails[remaining] <= level)) if tails[remaining][-1] <= level else len(tails[remaining])

    for _ in range(audits):
        x, y = rng.choice(len(p), n, p=p / p.sum()), rng.choice(len(q), n, p=q / q.sum())
        gains = np.cumsum(bets.log_payoffs0[:, x].T + bets.log_payoffs1[:, y].T - prices, axis=0)
        wealth = np.logaddexp.reduce(bets.log_weights + gains, axis=1)
        right = guesses.weight0 * (x <= guesses.threshold) + guesses.weight1 * (y > guesses.threshold)
        inside = int((x > guesses.threshold).sum()), int((y > guesses.threshold).sum())
        refuted = {
            "fixed": p_value(claim, inside[0], n, inside[1], n) <= 1 - _CONFIDENCE,
            "sequential": bool(wealth.max() >= enough),
        }
        for share in _SHARES:
            early = wealth.max() + math.log1p(-share) >= enough
            refuted[f"share {share}"] = bool(early or right.sum() >= needed(n, share * (1 - _CONFIDENCE)))
        for start in _STARTS:
            at = int(start * n)
            before, now = (wealth[:at].max(), wealth[at - 1]) if at else (0.0, 0.0)
            for part, name in ((1.0, "from"), (0.5, "half from")):
                level = part * math.exp(min(now - enough, 0.0))
                late = right[at:].sum() >= needed(n - at, level) or (
                    part < 1 and wealth[at:].max(initial=-math.inf) + math.log1p(-part) >= enough
                )
                refuted[f"{name} {start}"] = bool(before >= enough or late)
        for start in _LATE:
            at = int(start * n)
            refuted[f"late bets from {start}"] = bool(
                wealth[:at].max(initial=-math.inf) >= enough or late_bets.refutes(gains, at, enough)
            )
        for name, one in refuted.items():
            wins[name] = wins.get(name, 0) + one
    return {name: count / audits for name, count in wins.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=200)
    parser.add_argument("--only", default="", help="cases whose claim or truth holds these words")
    options = parser.parse_args()
    for claim, truth, n in CASES:
        if options.only not in f"{claim}, {truth}":
            continue
        found = measure(parse_claim(claim).symmetrized(), parse_claim(truth), n, options.audits)
        print(f"{claim}, {truth}, {n} trials:", *(f"{k} {v:.3f}" for k, v in found.items()), sep="  ", flush=True)


if __name__ == "__main__":
    main()
