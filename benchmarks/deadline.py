"""How much power a sequential audit gains if it bets on reaching its threshold before its last trial.

    python benchmarks/deadline.py [scores | audits] [--audits 200] [--only WORDS]

With `scores`, the score is the exact log-likelihood ratio, so that only the tests differ.  The columns are
probabilities to refute a false claim with n trials at 95 % confidence:

- fixed: the exact test of the best region.
- sequential: the wealth of `strategy`, examined after every trial.
- share L: a part L of the initial wealth is put on an all-or-nothing bet.  It pays 1/s* if a weighted number of right
  guesses in the region reaches c at trial n, and 0 otherwise.
- from T: after T n trials, all wealth W is put on an all-or-nothing bet on the remaining trials, with s* = W / 20.
- half from T: the same with half of the wealth.
- late bets: those of dpaudit, see `dpaudit.inference.sequential.late_bets`.

With `audits`, complete audits are made instead, in which attacks learn the scores.  The columns are the method "fixed",
the method "sequential", and the method "sequential" without late bets, each with at most n trials.

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
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sample_efficiency import Response

from dpaudit import Pair, audit
from dpaudit.catalogue import Gaussian, Laplace
from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.engine.sequential import LateBetting
from dpaudit.inference.fixed.exact_binomial import p_value
from dpaudit.inference.fixed.regions import deviations
from dpaudit.inference.grid import BINS
from dpaudit.inference.sequential.alternatives import pair_laws
from dpaudit.inference.sequential.strategy import Strategy, log_threshold, strategy
from dpaudit.numerics import Array

CASES = [
    ("gaussian(mu=0.5)", "gaussian(mu=1)", 110),
    ("gaussian(mu=0.8)", "gaussian(mu=1)", 700),
    ("gaussian(mu=1)", "gaussian(mu=1.2)", 760),
    ("gaussian(mu=1)", "gaussian(mu=1.4)", 210),
    ("pure(epsilon=1)", "laplace(epsilon=1.2)", 1250),
    ("pure(epsilon=1)", "pure(epsilon=1.2)", 620),
]
Bins = npt.NDArray[np.int64]

_CONFIDENCE = 0.95
_LEARNING = 1.25  # factor of the number of trials in complete audits, which also learn the score
_MECHANISMS: dict[str, Any] = {
    "gaussian(mu=1)": Gaussian(1.0),
    "gaussian(mu=1.2)": Gaussian(1 / 1.2),
    "gaussian(mu=1.4)": Gaussian(1 / 1.4),
    "laplace(epsilon=1.2)": Laplace(1 / 1.2),
    "pure(epsilon=1.2)": Response(1.2),
}
_SHARES, _STARTS = (0.3, 0.5, 0.9), (0.0, 0.25, 0.5, 0.75)


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


def late_bets_refute(bets: Strategy, claim: TradeoffFunction, x: Bins, y: Bins, enough: float) -> bool:
    """Return whether an audit with late bets refutes the claim, given the bins of all its outputs of d0 and d1."""
    n = len(x)
    late = LateBetting(tested=claim, planned=None, confidence=_CONFIDENCE, trials=n, coin_selected=False)
    counts, prices, log_e = np.zeros((1, 2, BINS), dtype=np.int64), bets.log_prices(claim), 0.0
    for made in range(0, n, block := max(1, n // 128)):
        late.choose(made, counts, bets.gains(prices, counts), log_e, [0], ())
        counts[0] += [np.bincount(side[made : made + block], minlength=BINS) for side in (x, y)]
        wealth = late.log_e(counts, ())
        log_e = bets.log_wealth(bets.gains(prices, counts)) if wealth is None else wealth
        if log_e >= enough:
            return True
    return False


def measure(claim: TradeoffFunction, truth: TradeoffFunction, n: int, audits: int) -> dict[str, float]:
    """Return the probability of a refutation for each test."""
    p, q = pair_laws(truth)[0]
    bets, guesses, rng = strategy(claim), Guesses.of(claim, p, q, n), np.random.default_rng(1)
    tails, prices, enough = guesses.tails(n), bets.log_prices(claim), log_threshold(_CONFIDENCE)
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
        refuted["late bets"] = late_bets_refute(bets, claim, x, y, enough)
        for name, one in refuted.items():
            wins[name] = wins.get(name, 0) + one
    return {name: count / audits for name, count in wins.items()}


def made(claim: str, truth: str, n: int, audits: int) -> dict[str, float]:
    """Return the share of complete audits that refute the claim, for each method."""
    mechanism, allowed = _MECHANISMS[truth], round(_LEARNING * n)
    kinds: dict[str, dict[str, Any]] = {"fixed": {"method": "fixed"}, "sequential": {}, "without": {"measure": True}}
    wins = dict.fromkeys(kinds, 0)
    for seed in range(audits):
        for name, more in kinds.items():
            result = audit(mechanism, claim, Pair([0], [1]), trials=allowed, seed=seed, confidence=_CONFIDENCE, **more)
            wins[name] += result.violated
    return {"trials": allowed} | {name: count / audits for name, count in wins.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["scores", "audits"], default="scores")
    parser.add_argument("--audits", type=int, default=200)
    parser.add_argument("--only", default="", help="cases whose claim or truth holds these words")
    options = parser.parse_args()
    for claim, truth, n in CASES:
        if options.only not in f"{claim}, {truth}":
            continue
        if options.what == "audits":
            found = made(claim, truth, n, options.audits)
        else:
            found = measure(parse_claim(claim).symmetrized(), parse_claim(truth), n, options.audits)
        print(f"{claim}, {truth}, {n} trials:", *(f"{k} {v:.4g}" for k, v in found.items()), sep="  ", flush=True)


if __name__ == "__main__":
    main()
