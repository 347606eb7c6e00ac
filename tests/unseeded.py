"""The only module of the tests with randomness without a seed.

Some tests need a mechanism that cannot be seeded, to show that stored outputs are used, or to audit a real library.
These tests audit through this module, at such a high confidence that no test fails by chance in practice.
`test_rules.py` forbids unseeded randomness elsewhere, and `benchmarks/flaky.py` repeats the tests with the mark
`chance`.
"""

from typing import Any

import numpy as np

from dpaudit import AuditResult, audit

CONFIDENCE = 1 - 1e-7  # a true claim is refuted by chance in one run of ten million
CONFIDENCE_OPTION = ("--confidence", "0.9999999")  # the same for `dpaudit run`


def unseeded_generator() -> np.random.Generator:
    return np.random.default_rng()


def audit_unseeded(mechanism: Any, claim: Any, pairs: Any, *, seed: int = 0, **options: Any) -> AuditResult:
    """Audit a mechanism that draws unseeded randomness.  A true claim is refuted with probability at most 1e-7.

    Args:
        mechanism: As in `dpaudit.audit`.
        claim: As in `dpaudit.audit`.
        pairs: As in `dpaudit.audit`.
        seed: Seed of the audit's own randomness, so that only the mechanism's randomness differs from run to run.
        **options: Other arguments of `dpaudit.audit`, except the confidence.

    Returns:
        The audit's result.
    """
    return audit(mechanism, claim, pairs, confidence=CONFIDENCE, seed=seed, **options)
