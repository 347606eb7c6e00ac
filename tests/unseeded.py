"""The one door to randomness without a seed.

Some tests need a mechanism that nobody can seed: only then does it show that stored outputs are used, or that a real
library is audited as it is.  They audit through this module, at a confidence that no run of the suite will miss by
chance.  `test_chance.py` forbids unseeded randomness elsewhere, and `benchmarks/flaky.py` repeats the tests with the
mark `chance`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit import AuditResult, audit

CONFIDENCE = 1 - 1e-7  # a true claim is refuted by chance in one run of ten million
CONFIDENCE_OPTION = ("--confidence", "0.9999999")  # the same for `dpaudit run`


def unseeded_generator() -> np.random.Generator:
    """A generator whose numbers differ from run to run."""
    return np.random.default_rng()


def audit_unseeded(mechanism: Any, claim: Any, pairs: Any, *, seed: int = 0, **options: Any) -> AuditResult:
    """Audit a mechanism that draws unseeded randomness.  A true claim is refuted with probability at most 1e-7.

    Args:
        mechanism: As in `dpaudit.audit`, as are claim, pairs and the options.
        claim: What is audited.
        pairs: Neighbouring datasets.
        seed: Of the audit's own randomness, so that only the mechanism's differs from run to run.
        **options: All but the confidence.

    Returns:
        The audit's result.
    """
    return audit(mechanism, claim, pairs, confidence=CONFIDENCE, seed=seed, **options)
