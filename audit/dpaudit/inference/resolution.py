"""What a number of runs can show at all: the rarest event that occurs, and the largest epsilon that can be refuted."""

from __future__ import annotations

import math

import numpy as np


def rule_of_three_rate(trials: float) -> float:
    """Return the probability of an event that occurs in none of `trials` runs with probability 5 %.

    By the rule of three, the result is approximately 3/trials.
    """
    return float(-np.expm1(math.log(0.05) / trials)) if trials else 1.0


def largest_epsilon(trials: float, *, significance: float) -> float:
    """Return the epsilon above which no valid test can refute epsilon-DP with certainty.

    Theorem:
        Let a test of the claim "the mechanism is epsilon-DP" use n runs on d0 and n runs on d1, summed over all pairs
        of datasets.  If the claim is true, let the test refute it with probability at most s.  Then the test refutes
        the claim with probability at most s (1 + e^-epsilon)^(2n) under every mechanism.  Now suppose that the test, if
        it refutes the claim on any outcome, also refutes it on the outcome with the strongest evidence.  Then the test
        never refutes an epsilon for which s (1 + e^-epsilon)^(2n) < 1.

    Proof:
        Let P and Q be the laws of an output of the mechanism on d0 and on d1.  Then P' = (e^epsilon
        P + Q)/(1 + e^epsilon) and Q' = (P + e^epsilon Q)/(1 + e^epsilon) satisfy the claim.  P' and Q' are mixtures, so
        all 2n samples from (P', Q') come from the components (P, Q) with probability (1 + e^-epsilon)^(-2n).  So s is
        at least (1 + e^-epsilon)^(-2n) times the probability of a refutation under (P, Q).  To prove the second
        statement, let P and Q each put all mass on the output that is the strongest evidence.  Then the test refutes
        with probability 1 or 0.  The wealth of `strategy` and the evidence of `exact_binomial` are monotone in every
        output, so the second statement applies to both tests.  Hence `epsilon_lower(0)` never exceeds this value.

        Other tests may refute a larger epsilon, but only with probability at most s (1 + e^-epsilon)^(2n).

    Args:
        trials: Number n of runs on each dataset, summed over all pairs.  May be a half-integer if the total number of
            outputs is odd.
        significance: Significance s of the test, in (0, 1).

    Returns:
        The epsilon in nats.  It is 0 if there are no trials.
    """
    if trials <= 0:
        return 0.0
    return max(0.0, -math.log(math.expm1(-math.log(significance) / (2 * trials))))
