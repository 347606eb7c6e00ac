"""Recomputes the numbers of a result from its counts, and says which of the stated numbers differ.

A result has no signature, and anybody may invent counts.  Only `dpaudit replay` confirms a result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.result.confirmation import fresh_p_value
from dpaudit.result.evidence import given_scores
from dpaudit.result.histograms import Counts as Histogram
from dpaudit.result.histograms import dense
from dpaudit.result.values import Verdict, Witness, beyond
from dpaudit.text.version import __version__

if TYPE_CHECKING:
    from dpaudit.result.model import AuditResult

_NEARLY = 1e-6  # relative difference of numbers and absolute difference of logarithms that may be rounding errors
_LARGEST = 1e300  # larger e-values may be written as inf


def contradictions(result: AuditResult) -> list[str]:
    """Describe the statements of a result that contradict each other or its counts; see also `unchecked`."""
    found = list(_of_verdict(result))
    return [*found, *_differences(result)] if _version(result) == __version__ else found


def unchecked(result: AuditResult) -> str:
    """Say that another version of dpaudit wrote numbers that this version does not confirm; "" if there are none."""
    version = _version(result)
    if version == __version__ or next(_differences(result), None) is None:
        return ""
    made_by = f"made by version {version[:40]} of dpaudit" if version else "the result names no version of dpaudit"
    return f"{made_by}: this version computes other numbers from its counts, so the stated values are not confirmed"


def _version(result: AuditResult) -> str:
    return (result.provenance.packages or {}).get("dpaudit", "")


def _of_verdict(result: AuditResult) -> Iterator[str]:
    """Compare the verdict with the stated p-value and with `bounds_valid`; see the table of `engine.verdict.ruling`."""
    significance, p_value = 1 - result.confidence, result.p_value
    at = f"at a p-value of {p_value} and confidence {result.confidence}"
    if result.violated and p_value > significance * (1 + _NEARLY):
        yield f"a violation is reported {at}"
    if result.bounds_valid and not result.violated and p_value <= significance * (1 - _NEARLY):
        yield f"no violation is reported {at}"
    if not result.bounds_valid and (result.verdict is not Verdict.INCONCLUSIVE or result.mu_lower > 0):
        yield "its bounds are not valid, yet it reports a bound or a verdict other than inconclusive"


def _differences(result: AuditResult) -> Iterator[str]:
    for what, stated, counted in _numbers(result):
        if not math.isclose(stated, counted, rel_tol=_NEARLY, abs_tol=1e-300 if "p-value" in what else _NEARLY):
            yield f"the {what} is {stated:.6g}, but its counts give {counted:.6g}"
    band = result.evidence.band(confidence=result.confidence, bounds_valid=result.bounds_valid)
    drawn = (result.curve.alpha, result.curve.beta, result.curve.beta_upper)[: 3 if result.bounds_valid else 2]
    if band is not None and not all(
        stated.shape == counted.shape and np.allclose(stated, counted, rtol=_NEARLY, atol=_NEARLY)
        for stated, counted in zip(drawn, band, strict=False)
    ):
        yield "its curve is not the curve of its counts"


def _numbers(result: AuditResult) -> Iterator[tuple[str, float, float]]:
    """Yield the name of each number, as it is stated and as the counts give it."""
    evidence, valid = result.evidence, result.bounds_valid
    tested = evidence.tested(result.claim)
    p_value = evidence.stated_p_value(tested) if valid else 1.0
    yield "p-value", result.p_value, p_value
    largest = 1.0
    if valid:
        largest = _LARGEST if p_value == 0 else 1 / p_value if evidence.anytime else 0.5 / math.sqrt(p_value)
    # the wealth at the end may be smaller than the largest wealth
    yield "e-value", min(max(result.e_value, largest), _LARGEST), min(largest, _LARGEST)
    yield "bound on mu", result.mu_lower, evidence.mu_lower(confidence=result.confidence) if valid else 0.0
    made = sum(pair.trials for pair in result.pairs) if result.pairs else evidence.trials
    yield "number of runs per dataset", result.trials_used, made
    for i, (pair, log_e) in enumerate(zip(result.pairs, evidence.pair_log_e(tested) or (), strict=False)):
        yield f"log-wealth on pairs[{i}]", pair.log_e, log_e
    fresh = result.confirmation
    if fresh is not None and fresh.counts is not None:
        yield "p-value of the fresh runs", fresh.p_value, fresh_p_value(fresh.counts, tested)
    if result.witness is not None:
        yield from _of_witness(result, result.witness)


def _of_witness(result: AuditResult, witness: Witness) -> Iterator[tuple[str, float, float]]:
    if (guessed := given_scores(result.evidence)) is not None:
        yield "number of guesses", witness.guesses, guessed.n1
        yield "number of right guesses", witness.right, guessed.right
        return
    counts = dense(witness.scores) if witness.scores else pair_counts(result)
    own, stated = result.confirmation and result.confirmation.counts, witness.counts
    if own is None and counts is not None:
        own = beyond(counts, witness.last_bin)
    if own is None:
        return
    for name in ("false_positives", "n0", "false_negatives", "n1"):
        yield f"witness's {name}", getattr(stated, name), getattr(own, name)
    yield "witness's alpha", witness.alpha, stated.false_positives / max(1, stated.n0)
    yield "witness's beta", witness.beta, stated.false_negatives / max(1, stated.n1)


def pair_counts(result: AuditResult) -> Histogram | None:
    """Return the counts of scores on the pair of the witness; None if the pair has no counts.  Shape (2, BINS)."""
    label = result.witness.pair if result.witness is not None else None
    at = [i for i, pair in enumerate(result.pairs) if pair.label == label]
    return result.evidence.of_pair(at[0] if at else None)
