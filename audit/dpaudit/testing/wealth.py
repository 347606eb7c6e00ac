"""Evidence about one claim that accumulates from run to run.

**Hypothesis.**  The claim is true for every version of the mechanism that has been audited so far.

**The wealth.**  Run i yields E_i, the wealth of its audit when it stopped.  The randomness of each run is fresh, so
E[E_i] <= 1 given all earlier runs if the claim is true.  A mechanism that keeps its claim by a margin loses wealth in
every run.  The product of all E_i would then be close to zero when a later version breaks the claim.  So each run adds
a new bet:

    M_n = sum_{k<=n} w_k E_k E_{k+1} ... E_n  +  sum_{k>n} w_k,      w_k = 1 / (k (k + 1)),   sum_k w_k = 1.

The first sum is the invested wealth, S_n = (S_{n-1} + w_n) E_n.  The second sum is the cash, R_n = 1 / (n + 1).

**Theorem.**  If the claim is true for all versions, P[M_n >= 1/significance for some n] <= significance.

*Proof.*  The k-th product, E_k ... E_n, is 1 before run k and a nonnegative supermartingale from then on.  M_n is the
mean of all products with weights w_k, so it is a nonnegative supermartingale with M_0 = 1.  Now apply Ville 1939.  The
theorem also holds within a run, with the audit's current wealth in place of E_n.  So the audit of run n may stop, and
refute, as soon as its wealth reaches (1/significance - R_n) / (S_{n-1} + w_n).

A violation that first appears in run n needs at most about log(n (n + 1) / 2) nats more evidence than a violation in
run 1.

**Runs that may repeat an earlier run.**  If a run has, or may have, the randomness of an earlier run, E[E_n] <= 1 may
fail.  Such a run counts as E'_n = min(E_n, 1), and it cannot refute the claim.

**Theorem.**  The guarantee still holds if E'_n replaces E_n in some runs, even if outputs determine which runs.

*Proof.*  E'_n <= E_n, so E[E'_n] <= 1 if the randomness was fresh; and E'_n <= 1 in any case.  Then M_n <= M_{n-1}, so
such a run cannot be the first with M_n >= 1/significance.  (It would be wrong to skip the run by
E'_n = 1.  If outputs determine which runs are skipped, losses of bets on fresh runs could be skipped, too.)

**Runs that never ended.**  An audit whose bets gain nothing takes long and may be killed for this reason.  If killed
audits were ignored, losses would be missing.  So a killed audit counts as E'_n = 0, which is at most E_n for any
outcome E_n.  The invested wealth is lost; the cash remains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The runs of one audit, and their accumulated evidence."""

    call: int  # number of the assertion within its test, from 1
    number: int  # number of the chain within its test, from 1; determines its share of the budget
    claim: str
    runs: int = 0
    log_invested: float = -math.inf  # log of the invested wealth S; see the docstring of this module
    refuted: str = ""  # date of the refutation; "" if not refuted
    mu_lower: float = 0.0  # largest bound certified by any run
    trials: int = 0  # runs per dataset, summed over all runs of the suite

    def significance(self, total: float) -> float:
        """Return the significance, in (0, 1), for the next audit, so that the chain as a whole has `total`."""
        run = self.runs + 1
        return math.exp(self._stake()) / (1 / total - 1 / (run + 1))

    def after(self, *, log_e: float, refuted: str, mu_lower: float, trials: int) -> Chain:
        """Return the chain with one more run."""
        return replace(
            self,
            runs=self.runs + 1,
            log_invested=self._stake() + log_e,
            refuted=refuted,
            mu_lower=max(self.mu_lower, mu_lower),
            trials=self.trials + trials,
        )

    def _stake(self) -> float:
        """Return log(S_{n-1} + w_n), the log of the wealth that is invested in the next run n."""
        run = self.runs + 1
        return _log_add(self.log_invested, -math.log(run * (run + 1)))


def _log_add(a: float, b: float) -> float:
    most, least = max(a, b), min(a, b)
    return most if least == -math.inf else most + math.log1p(math.exp(least - most))
