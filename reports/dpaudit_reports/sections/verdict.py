"""The verdict in words, with the counts that show a violation or the reason why the audit is inconclusive."""

from __future__ import annotations

from dpaudit.result.evidence import given_scores, spent
from dpaudit.result.model import AuditResult, p_value_words
from dpaudit.result.values import OUTCOME, Verdict
from dpaudit.text.rounding import at_most, percent_at_least
from dpaudit_reports.blocks import Block, Callout, Heading, Items, Span, Strong, Text, flat, spans_of
from dpaudit_reports.claimed import claim_of, headline, least_found_in_words
from dpaudit_reports.numbers import first
from dpaudit_reports.rates import frequencies, in_words
from dpaudit_reports.verdicts import MARKS, assumption, confirmation, reason, shows_size, why_inconclusive


def warnings(result: AuditResult) -> tuple[Block, ...]:
    """Return the warnings that the verdict does not already state; nothing if no such warnings exist."""
    reported = why_inconclusive(result)
    rest = tuple(warning for warning in result.warnings if warning not in reported)
    shown, left_out = first(rest, "warnings")
    return (Heading("Warnings"), Items(tuple(shown)), *left_out) if rest else ()


def verdict(result: AuditResult) -> tuple[Block, ...]:
    """Return the verdict.  The verdict follows the title without a heading."""
    mark = MARKS[result.verdict]
    word = "Measurement" if result.measurement else mark.word
    word = f"{word}: {_size(result)}" if result.violated else word
    words = result.evidence.words.assumption
    assumed = f" Assumed, not tested: {words}." if words else ""
    return (Callout(mark.sign, word, (*spans_of(_sentence(result)), *([assumed] if assumed else [])), mark.tone),)


def _size(result: AuditResult) -> str:
    bound = headline(result)
    if bound is None or not shows_size(result):
        return "the claim is refuted"
    return f"{flat(bound.shown(bound.certified_text()))}, claimed at most {bound.claimed_text()}"


def _sentence(result: AuditResult) -> Text:
    claim, confidence, words = claim_of(result), percent_at_least(result.confidence), result.evidence.words
    each = f" {words.claimed}" if words.claimed else ""
    if result.measurement:
        valid = "hold." if result.bounds_valid else f"do not hold. {reason(result)}"
        return f"No claim was given, so none was tested. The bounds below {valid}".rstrip()
    match result.verdict:
        case Verdict.VIOLATION:
            fresh = confirmation(result)
            confirmed = f" {fresh[:1].upper()}{fresh[1:]}." if fresh else ""
            return (
                f"{words.violates} ",
                *claim,
                ".",
                *_shown(result),
                f" Refuted at {confidence} confidence after {_spent(result)} "
                f"(p\u00a0{p_value_words(result, at_most)}).{confirmed}",
            )
        case Verdict.NO_VIOLATION:
            return (
                "No violation of the claim ",
                *claim,
                f"{each} was found in {_spent(result)}. This does not prove the claim. ",
                *_visible(result),
            )
        case Verdict.INCONCLUSIVE:
            return (
                "This audit cannot decide whether the claim ",
                *claim,
                f" holds. {reason(result) or 'Its result does not record the reason.'}",
            )


def _spent(result: AuditResult) -> str:
    pairs = f" in total, over {len(result.pairs)} pairs" if len(result.pairs) > 1 else ""
    return f"{spent(result.evidence, result.trials_used)}{pairs}"


def _shown(result: AuditResult) -> tuple[Span, ...]:
    guessed = given_scores(result.evidence)
    if guessed is not None:
        return " ", Strong(f"{guessed.outcome[:1].upper()}{guessed.outcome[1:]}.")
    if not result.bounds_valid or (found := frequencies(result)) is None:
        return ()
    counts, meaning = in_words(result, found)
    query = result.witness.query if result.witness is not None else ""
    if query:  # the query of released tables that tells the datasets apart best
        about = " Outcome of the runs: " if query.startswith(OUTCOME) else " In the released tables: "
        return about, Strong(f"{query.removeprefix(OUTCOME)}."), f" {counts} {meaning}"
    return " ", Strong(counts), f" {meaning}"


def _visible(result: AuditResult) -> tuple[Span, ...]:
    if not result.detectable.claim:
        return ("No violation, however large, would have been found with 90\u00a0% probability.",)
    best = " in the best case" if assumption(result) else ""
    return (
        "A violation as large as ",
        *least_found_in_words(result),
        f" would have been found with 90\u00a0% probability{best}.",
    )
