"""Answers six questions about every audit."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpaudit.result.model import AuditResult, p_value_words
from dpaudit.result.spent import spent
from dpaudit.result.values import PairRow, Verdict
from dpaudit_reports.audited import audited
from dpaudit_reports.blocks import Answers, Block, Code, Span, Strong
from dpaudit_reports.claim_words import claim_in_words
from dpaudit_reports.claimed import ABOVE_ALONE, headline, tells
from dpaudit_reports.numbers import NOT_KNOWN, at_most, count, percent_at_least, percent_beyond
from dpaudit_reports.reasons import why_void
from dpaudit_reports.repeat import how_to_repeat
from dpaudit_reports.sides import difference, ends, row_of, sides
from dpaudit_reports.unseen import unseen


def answers(result: AuditResult) -> tuple[Block, ...]:
    """Return the questions with answers about claim, verdict, confidence, data, limits and repetition."""
    return (
        Answers(
            (
                ("What was claimed", tuple(claimed(result))),
                ("Was it kept", tuple(_kept(result))),
                ("How sure", tuple(_sure(result))),
                ("On what data", tuple(data(result))),
                ("What could not be seen", unseen(result)),
                ("How to repeat it", how_to_repeat(result)),
            )
        ),
    )


def claimed(result: AuditResult) -> Iterator[Span]:
    """Yield the claim in words, its source, and the audited code, as far as the result records them."""
    if result.measurement:
        yield "No claim was given"
    else:
        yield from claim_in_words(result.claim)
        yield _more(result.evidence.words.claimed)
        by = result.provenance.claim_stated_by
        yield f", stated by {by}" if by else "; the result does not record who states it"
    yield ". "
    yield from audited(result)


def _kept(result: AuditResult) -> Iterator[Span]:
    words = {
        Verdict.VIOLATION: "No.",
        Verdict.NO_VIOLATION: "No violation was found.",
        Verdict.INCONCLUSIVE: "Unknown.",
    }
    yield Strong("Nothing was tested." if result.measurement else words[result.verdict])
    bound = headline(result) if result.bounds_valid else None
    if not result.bounds_valid:
        yield f" Nothing is certified: {why_void(result)}."
    elif bound is None:
        yield " Certified: the claim is false as a curve, although no single parameter exceeds the claimed value."
    elif math.isnan(bound.certified):
        yield f" Certified: {NOT_KNOWN}."
    elif bound.certified == 0 and not bound.refuted:
        yield " Nothing is certified about "
        yield from bound.name()
        yield "."
    else:
        yield " Certified: "
        yield from bound.shown(bound.certified_text())
        yield _more(result.evidence.words.somewhere)
        if not result.measurement:
            yield "; claimed: "
            yield from bound.shown(f"≤\u00a0{bound.claimed_text()}")
        yield "."
        if bound.exceeds and not (result.violated or result.measurement):
            yield f" {ABOVE_ALONE}"
    if result.violated:
        yield _no_size(result)


def _more(words: str) -> str:
    return f" {words}" if words else ""


def _no_size(result: AuditResult) -> str:
    """Return a note that a bound certified at the first proof does not estimate the size of the violation."""
    if not result.evidence.anytime:
        return ""
    if result.stopped_by == "evidence":
        return " The audit stopped at the first proof; the bounds do not estimate the size of the violation."
    if result.refuted_at is None:
        return ""
    after = spent(result.evidence, result.refuted_at, result.warnings)
    return f" The claim was refuted after {after}; {result.evidence.words.went_on}."


def _sure(result: AuditResult) -> Iterator[Span]:
    if not result.bounds_valid:
        yield "No statement about the claim is proven."
        return
    yield f"{percent_at_least(result.confidence)} confidence"
    if not result.violated:
        yield " for the certified bound"
        if tells(result) and not result.measurement:
            yield f"; the p-value of the claim is {p_value_words(result, at_most)}"
        yield ". This report contains no replay."
        return
    most = f"{percent_beyond(result.confidence)}{_odds(1 - result.confidence)}"
    yield f": if the claim were true, an audit would report a violation with probability at most {most}; p-value "
    yield f"{p_value_words(result, at_most)}. "
    yield "This report contains no replay, which would need fresh runs."


def _odds(significance: float) -> str:
    """Return the significance in the form " (1 in 100)", rounded conservatively."""
    return f" (1 in {count(math.floor(1 / significance + 1e-6))})" if 0 < significance < 0.2 else ""


def data(result: AuditResult) -> Iterator[Span]:
    """Yield the witness's pair with the difference in bold, and the runs; or the canaries and the guesses."""
    evidence = result.evidence
    if evidence.guessed is not None:
        words, guessed = evidence.words, evidence.guessed
        what = f"{count(guessed.canaries)} {words.unit}"
        what = spent(evidence, result.trials_used) if "{canaries}" in words.spent else what
        yield f"{what}, {words.each}; {count(guessed.guesses)} {words.guesses}, "
        yield Strong(f"{count(guessed.right)} of {count(guessed.guesses)}")
        yield " right."
        return
    made = spent(evidence, result.trials_used, result.warnings)
    if evidence.words.data:
        yield f"{evidence.words.data}: {made}."
        return
    label = result.witness.pair if result.witness is not None else ""
    row = row_of(result, label) or (result.pairs[0] if result.pairs else None)
    if row is None:
        yield "No pair was tried."
        return
    yield from _pair(result, row)
    if len(result.pairs) > 1:
        yield f"{made} in total, over {len(result.pairs)} pairs."
    else:
        yield made
        yield f", {count(_learned(result))} of them for training the attack." if _learned(result) > 0 else "."


def _pair(result: AuditResult, row: PairRow) -> Iterator[Span]:
    """Yield the two datasets, and the difference in words if their texts do not show it."""
    relation = "" if row.relation == "unspecified" else row.relation.replace("_", " ")
    if row.difference:
        yield Code(ends(row.d0))
        yield " against the same dataset with a difference: "
        yield Strong(row.difference)
        yield f" ({relation}). " if relation else ". "
        return
    d0, d1 = difference(row.d0, row.d1)
    yield from d0
    yield " against "
    yield from d1
    change = sides(result, row.label).change or relation
    yield f": {change}. " if change else ". "


def _learned(result: AuditResult) -> int:
    """Return the runs per dataset from which attacks only learned."""
    return result.trials_used - result.evidence.trials
