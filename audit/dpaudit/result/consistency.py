"""Checks whether a result agrees with its own counts, because a result file may have been edited."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.inference.grid import BINS, EDGES
from dpaudit.inference.sequential.strategy import p_value_of
from dpaudit.result.confirmation import fresh_p_value
from dpaudit.result.drawn import of_drawn, of_far, of_form
from dpaudit.result.histograms import Counts as BinCounts
from dpaudit.result.kept_confidence import of_p_value, refutes, version_of
from dpaudit.result.model import AuditResult
from dpaudit.result.plausible import (
    of_assumption,
    of_detectable,
    of_e_value,
    of_planned,
    of_power,
    of_runs,
    unread_plan,
)
from dpaudit.result.sequential_evidence import NEARLY
from dpaudit.result.values import Counts, Verdict, Witness
from dpaudit.text.rounding import count, lower, percent, upper
from dpaudit.text.version import __version__

# Share of the significance.  The bets of another version may differ, but p-values of its honest results stay above.
_FAR = 1e-3
_MAX_LISTED = 3  # pairs that a message names


def contradictions(result: AuditResult) -> list[str]:
    """Return descriptions of all contradictions within a result; an empty list if there are none.

    The statements of a result are always compared with each other.  The p-value, the bounds, the curve, the evidence of
    each pair and the detectable violation are also recomputed from the counts.  Differences from the recomputed numbers
    are contradictions only if the result states this version of dpaudit; see `unchecked`.  Two differences are
    contradictions whatever version the result states: no violation is reported, but the counts give a p-value of at
    most a thousandth of the significance; or a curve or a pair's evidence is far better than the counts allow, see
    `of_far`.
    """
    own = version_of(result) == __version__
    found = [*_of_verdict(result), *of_runs(result), *of_detectable(result), *_of_witness(result), *of_form(result)]
    found += of_planned(result, complete=own)
    if own:
        return [*found, *of_assumption(result), *_differences(result)]
    return [*found, *_missed(result, min(_p_value(result), _usual_p_value(result)), _FAR), *of_far(result)]


def unchecked(result: AuditResult) -> str:
    """Describe what is not confirmed; "" if all is confirmed.

    The reason is another version of dpaudit, or a config in which the violation to detect cannot be read.
    """
    version = version_of(result)
    if version == __version__ or not _differences(result):
        return unread_plan(result)
    made_by = f"made by version {version[:40]} of dpaudit" if version else "the result names no version of dpaudit"
    computed = "a different p-value, bound, curve or detectable violation"
    return f"{made_by}: this version computes {computed} from its counts, so the stated values are not confirmed"


def _of_verdict(result: AuditResult) -> list[str]:
    """Compare the verdict with the stated p-value, with `bounds_valid` and with `stopped_by`.

    The rules are consequences of the table of `engine.verdict.ruling`.  An inconclusive result may have invalid bounds.
    """
    found = of_p_value(result)
    if not result.bounds_valid and (result.violated or result.mu_lower > 0):
        found.append("nothing is certified, yet a violation or a bound is reported")
    if not result.bounds_valid and result.verdict is Verdict.NO_VIOLATION:
        found.append('its bounds are not valid, so its verdict must be "inconclusive", not "no violation found"')
    if result.bounds_valid and result.verdict is Verdict.INCONCLUSIVE and refutes(result, result.p_value):
        found.append(
            f"its bounds are valid and its p-value is {upper(result.p_value, 6)}, so its verdict must be "
            f'"violation" at confidence {result.confidence}, not "inconclusive"'
        )
    if result.verdict is Verdict.NO_VIOLATION and result.stopped_by != "trials":
        found.append(f'no violation is reported, but the audit ended early: stopped_by is "{result.stopped_by}"')
    if result.verdict is Verdict.NO_VIOLATION and (failed := result.evidence.failed_pairs):
        listed = ", ".join(f"pairs[{i}]" for i in failed[:_MAX_LISTED])
        found.append(f"no violation is reported, but a run failed on {listed}")
    together = result.provenance.command_confidence
    if together is not None and together > result.confidence:
        found.append(
            f"its verdict holds at confidence {result.confidence!r}, but all verdicts of its command together at "
            f"{together!r}"
        )
    return found


def _differences(result: AuditResult) -> list[str]:
    """Recompute the p-value and the bounds from the counts, and describe the differences from the stated numbers."""
    found = []
    p_value = _p_value(result)
    if not math.isclose(p_value, result.p_value, rel_tol=NEARLY, abs_tol=1e-300):
        found.append(f"the p-value is {upper(result.p_value, 6)}, but its counts give {upper(p_value, 6)}")
    if result.violated and p_value > 1 - result.confidence:
        found.append(f"a violation is reported, but its counts give a p-value of {upper(p_value, 6)}")
    found += _missed(result, p_value)
    if result.bounds_valid:
        mu = result.evidence.mu_lower(confidence=result.confidence)
        if not math.isclose(mu, result.mu_lower, rel_tol=NEARLY, abs_tol=NEARLY):
            found.append(f"mu >= {lower(result.mu_lower, 6)} is certified, but its counts give {lower(mu, 6)}")
    return [
        *found,
        *of_e_value(result),
        *of_power(result),
        *_of_path(result),
        *_of_choices(result),
        *of_drawn(result),
        *_of_confirmation(result),
    ]


def _missed(result: AuditResult, p_value: float, share: float = 1.0) -> list[str]:
    """Describe a violation that is not reported, although the counts have a p-value at most `share` of the level."""
    if result.violated or not refutes(result, p_value / share):
        return []
    return [f"no violation is reported, but its counts give a p-value of {upper(p_value, 6)}"]


def _of_path(result: AuditResult) -> list[str]:
    """Check that the wealth path of a sequential audit with a violation ends at its maximum.

    The path itself cannot be recomputed from the counts.  If the audit continued after the refutation, the counts at
    the maximum must be recorded, unless the maximum is at the end.
    """
    path, went_on = result.history.log_e, result.stopped_by != "evidence"
    if not result.evidence.anytime or not result.violated or not len(path):
        return []
    if (not went_on or result.refuted_at is not None) and result.evidence.proves_peak(path, went_on=went_on):
        return []
    return ["a violation is reported, but the audit did not end where its evidence was largest"]


def _of_choices(result: AuditResult) -> list[str]:
    """Check that the earlier counts choose the rejection region of a fixed audit, and the late bets of another one."""
    if not result.bounds_valid:
        return []
    words = result.evidence.unexplained(result.claim, confidence=result.confidence, allowed=result.trials_allowed)
    return [words] if words else []


def _of_witness(result: AuditResult) -> list[str]:
    """Compare the witness with the evidence and the claim."""
    witness = result.witness
    if witness is None:
        return []
    if (counted := result.evidence.guessed) is not None:
        given, made = (witness.right, witness.guesses), (counted.right, counted.guesses)
        wrong = witness.guesses > 0 and given != made
        words = "the witness has {} of {} guesses right, but the evidence {} of {}"
        return [words.format(*given, *made)] if wrong else []
    counts = pair_counts(result)
    if counts is None:
        return []
    found = []
    stated = witness.counts
    if witness.counted in ("later", "named"):
        own, most = dense(witness), int(counts.sum(axis=1).max())
        if max(stated.n0, stated.n1) > max(most, _runs_of_pair(result, witness)):
            found.append(f"the witness counts {count(stated.n0)} outputs, but the evidence only {count(most)}")
        counts = own
    fresh = result.confirmation
    if fresh is not None and fresh.counts is not None:
        if fresh.counts != stated or beyond(dense(witness), nearest_bin(witness)) != stated:
            found.append(f"the witness counts {row(stated)}, but the confirmation {row(fresh.counts)}")
    elif not math.isnan(witness.threshold) and (given_counts := beyond(counts, nearest_bin(witness))) != stated:
        found.append(f"the witness counts {row(stated)}, but the evidence {row(given_counts)}")
    rates = (stated.false_positives / max(1, stated.n0), stated.false_negatives / max(1, stated.n1))
    for name, rate, stated_rate in zip(("alpha", "beta"), rates, (witness.alpha, witness.beta), strict=True):
        if not math.isclose(rate, stated_rate, rel_tol=NEARLY, abs_tol=1e-12):
            found.append(f"the witness's {name} is {stated_rate:.6g}, but its counts give {rate:.6g}")
    claimed = float(result.claim.symmetrized().beta(witness.alpha))
    if not math.isclose(claimed, witness.claimed_beta, rel_tol=1e-4, abs_tol=1e-9):
        found.append(
            f"at the witness's alpha, the claim allows a beta of {lower(claimed, 6)}, not "
            f"{lower(witness.claimed_beta, 6)}"
        )
    return found


def _of_confirmation(result: AuditResult) -> list[str]:
    """Recompute what the fresh runs say alone."""
    fresh = result.confirmation
    if fresh is None or fresh.counts is None:
        return []
    p_value, found = fresh_p_value(fresh.counts, result.claim.symmetrized()), []
    if not math.isclose(p_value, fresh.p_value, rel_tol=NEARLY, abs_tol=1e-300):
        words = "the p-value of the fresh runs is {}, but their counts give {}"
        found.append(words.format(upper(fresh.p_value, 6), upper(p_value, 6)))
    if fresh.outcome == "confirmed" and p_value > (1 - result.confidence) * (1 + NEARLY):
        found.append("fresh runs are said to confirm the violation, but their counts do not refute the claim")
    return found


def _runs_of_pair(result: AuditResult, witness: Witness) -> int:
    return max((pair.trials for pair in result.pairs if pair.label == witness.pair), default=0)


def dense(witness: Witness) -> BinCounts:
    """Return the counts of scores that the witness records; shape (2, BINS)."""
    counts = np.zeros((2, BINS), dtype=np.int64)
    for side, entries in zip(counts, witness.scores, strict=False):
        for place, n in entries:
            side[place] = n
    return counts


def _p_value(result: AuditResult) -> float:
    """Recompute the p-value from the counts.  For a sequential audit, the path of the wealth is used, too."""
    if not result.bounds_valid:
        return 1.0
    evidence = result.evidence
    return evidence.p_value(evidence.tested(result.claim), result.history.log_e)


def _usual_p_value(result: AuditResult) -> float:
    """Return the p-value without late bets, which another version may have chosen; 1 if there are none."""
    evidence = result.evidence
    usual = evidence.usual_log_e(evidence.tested(result.claim)) if result.bounds_valid else None
    return 1.0 if usual is None else p_value_of(usual)


def pair_counts(result: AuditResult) -> BinCounts | None:
    """Return the counts of scores on the pair of the witness; None if the pair has no counts.  Shape (2, BINS)."""
    label = result.witness.pair if result.witness is not None else None
    at = [i for i, pair in enumerate(result.pairs) if pair.label == label]
    return result.evidence.of_pair(at[0] if at else None)


def nearest_bin(witness: Witness) -> int:
    """Return the bin just below the rejection region of the witness."""
    return int(np.argmin(np.abs(EDGES - witness.threshold)))


def beyond(counts: BinCounts, threshold: int) -> Counts:
    """Return the counts of the rejection region {bin > threshold}, given the counts of all bins, shape (2, BINS)."""
    (n0, n1), (x, y) = counts.sum(axis=1), counts[:, threshold + 1 :].sum(axis=1)
    return Counts(false_positives=int(x), n0=int(n0), false_negatives=int(n1 - y), n1=int(n1))


def row(counts: Counts) -> str:
    """Write the counts of a rejection region in words."""
    x, y = counts.false_positives, counts.n1 - counts.false_negatives
    words = (
        f"d0 {x:,} of {counts.n0:,} ({percent(x / max(1, counts.n0))}), "
        f"d1 {y:,} of {counts.n1:,} ({percent(y / max(1, counts.n1))})"
    )
    return words.replace("\u00a0", " ")
