"""Checks that the verdict and the bounds in a result file hold at the confidence that the file states."""

from __future__ import annotations

from dpaudit.claims import GaussianDP
from dpaudit.inference.resolution import largest_epsilon
from dpaudit.result.confirmation import fresh_runs
from dpaudit.result.sequential_evidence import NEARLY
from dpaudit.result.stated import Stated
from dpaudit.result.values import Verdict
from dpaudit.text.rounding import lower, upper
from dpaudit.text.version import __version__

_SHARES = (1.0, 1 - NEARLY, 0.999, 0.9, 0.5)
"""Shares of a stated bound on mu that are tested, the largest first.

The stated bound may be larger than the bound of this version, because of rounding or because another version wrote it.
"""


def bound_at_its_confidence(result: Stated) -> float:
    """Check the verdict and the bounds of a result from a file at its stated confidence, and return the bound on mu.

    Different versions of dpaudit may compute different bounds from the same counts.  If another version wrote the
    result, the smaller of the stated bound and the bound of this version is returned.  If the bound takes long to
    compute, a few tests check the stated bound instead.

    Returns:
        The lower bound on mu.
    """
    found = of_p_value(result)
    if result.bounds_valid and not found and result.evidence.inverted:
        mu = _refuted(result)
        if mu >= result.mu_lower * (1 - NEARLY):
            return result.mu_lower
        if version_of(result) != __version__:
            return mu
        found = [f"mu >= {lower(result.mu_lower, 6)} is certified, but its counts do not refute this mu"]
    elif result.bounds_valid and not found:
        mu = result.evidence.mu_lower(confidence=result.confidence)
        own, stated = version_of(result) == __version__, result.mu_lower
        if stated > mu * (1 + NEARLY) + NEARLY:
            if not own:
                return mu
            found = [f"mu >= {lower(stated, 6)} is certified, but its counts give {lower(mu, 6)}"]
        elif own and result.evidence.of_pairs and (most := result.detectable.largest_epsilon) > _most(result):
            found = [
                f"it states that epsilon <= {upper(most, 6)} can be certified; its counts allow at most "
                f"{upper(_most(result), 6)}"
            ]
    if found:
        raise ValueError(f"it contradicts itself at confidence {result.confidence!r}: {found[0]}")
    return result.mu_lower


def _refuted(result: Stated) -> float:
    """Return the stated bound on mu if one test refutes it, else the largest tested share of the bound that is refuted.

    **Theorem.**  If the p-value does not fall as mu grows, and the bound of the evidence is the largest mu that the
    evidence refutes, the bound is at least each mu that is refuted.
    """
    for share in _SHARES:
        mu = share * result.mu_lower
        if mu == 0 or result.evidence.refutes(GaussianDP(mu), confidence=result.confidence):
            return mu
    return 0.0


def _most(result: Stated) -> float:
    """Return an upper bound on the epsilon that any audit with as many counts certifies, with a rounding tolerance."""
    counted = sum(counts.sum() for counts in result.evidence.histograms) / 2
    return largest_epsilon(max(counted, fresh_runs(result.evidence)), significance=1 - result.confidence) * (1 + NEARLY)


def version_of(result: Stated) -> str:
    """Return the version of dpaudit that wrote a result; "" if the result does not state a version."""
    return (result.provenance.packages or {}).get("dpaudit", "")


def of_p_value(result: Stated) -> list[str]:
    """Describe contradictions between the verdict and the stated p-value."""
    found = []
    significance = 1 - result.confidence
    if result.violated and result.p_value > significance * (1 + NEARLY):
        found.append(
            f"a violation is reported at a p-value of {upper(result.p_value, 6)} and confidence {result.confidence}"
        )
    if result.verdict is Verdict.NO_VIOLATION and refutes(result, result.p_value):
        found.append(
            f"no violation is reported at a p-value of {upper(result.p_value, 6)} and confidence {result.confidence}"
        )
    return found


def refutes(result: Stated, p_value: float) -> bool:
    """Whether a p-value refutes the claim at the confidence of a result, beyond a rounding error."""
    return p_value <= (1 - result.confidence) * (1 - NEARLY)
