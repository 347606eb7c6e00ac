"""The verdict in words, the warnings, and six answers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpaudit.result.evidence import given_scores, spent
from dpaudit.result.model import AuditResult, p_value_words
from dpaudit.result.values import PairRow, Verdict
from dpaudit.result.words import quotation, words_of
from dpaudit.rounding import NOT_KNOWN, at_most, count, percent_at_least, percent_beyond
from dpaudit.text import shortened
from dpaudit_reports.blocks import (
    Answers,
    Block,
    Callout,
    Code,
    Heading,
    Items,
    Span,
    Strong,
    Text,
    first,
    flat,
    some_of,
    spans_of,
)
from dpaudit_reports.claimed import ABOVE_ALONE, claim_of, claim_words, headline, least_found_in_words, tells
from dpaudit_reports.rates import difference, ends, frequencies, in_words, row_of, sides
from dpaudit_reports.sections.next_step import how_to_repeat
from dpaudit_reports.verdicts import (
    MARKS,
    assumption,
    confirmation,
    fresh,
    reason,
    shows_size,
    unseen,
    why_inconclusive,
    why_void,
)


def warnings(result: AuditResult) -> tuple[Block, ...]:
    """Return the warnings that the verdict does not already state; nothing if no such warnings exist."""
    reported = why_inconclusive(result)
    rest = tuple(warning for warning in result.warnings if warning not in reported)
    shown, left_out = first(rest, "warnings")
    return (Heading("Warnings"), Items(tuple(shown)), *left_out) if rest else ()


def verdict(result: AuditResult) -> tuple[Callout, ...]:
    """Return the verdict.  The verdict follows the title without a heading."""
    mark = MARKS[result.verdict]
    word = "Measurement" if result.measurement else mark.title
    word = f"{word}: {_size(result)}" if result.violated else word
    words = words_of(result.evidence).assumption
    assumed = f" Assumed, not tested: {words}." if words else ""
    return (Callout(mark.sign, word, (*spans_of(_sentence(result)), *([assumed] if assumed else [])), mark.tone),)


def _size(result: AuditResult) -> str:
    bound = headline(result)
    if bound is None or not shows_size(result):
        return "the claim is refuted"
    return f"{flat(bound.shown(bound.certified_text()))}, claimed at most {bound.claimed_text()}"


def _sentence(result: AuditResult) -> Text:
    claim, confidence, words = claim_of(result), percent_at_least(result.confidence), words_of(result.evidence)
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
    told = result.witness
    if told is not None and told.query:  # the query of released tables that tells the datasets apart best
        about = " Outcome of the runs: " if told.outcomes else " In the released tables: "
        return about, Strong(f"{told.query}."), f" {counts} {meaning}"
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


def audited(result: AuditResult) -> Iterator[Span]:
    """Yield the mechanism, the versions of its packages, its file and the source, as far as they are known."""
    about = result.provenance
    spans: list[Span] = []
    if (named := about.mechanism) and named != result.name:  # a name with spaces, such as a command line, is quoted
        spans += [", “", Code(named), "”"] if " " in named else [", ", Code(named)]
    if packages := about.mechanism_packages:
        shown = [f"{name} {version}" for name, version in packages.items()]
        spans += [", which uses " if spans else ", ", some_of(shown, 8, "more, see Provenance")]
    file = about.mechanism_file
    # A class of the user that dpaudit calls has a name with arguments, and packages do not identify its code.
    own = file is not None and " " in (named or "") and "-packages" not in file.path
    if file is not None and (own or not packages):
        spans += [", file ", Code(f"sha256:{file.sha256[:12]}…")]  # the provenance shows all digits
    if spans:
        yield from (f"Tested: {str(spans[0])[2:]}", *spans[1:], ".")
    if about.source:
        yield f" Source of the claim: {quotation(shortened(about.source).rstrip('.'))}."


# Relations between neighbouring datasets as changes, and the recorded authors of a claim.
_CHANGES = {"replace one": "one record replaced", "add remove": "one record added or removed"}
_STATED = {
    "the mechanism's own accounting": ", computed by the audited library itself",
    "the constructor of the generator": ", the epsilon (and delta) of the constructor's arguments",
    "the config": ", stated in the config of this audit",
}


def answers(result: AuditResult) -> tuple[Block, ...]:
    """Return the questions with answers about claim, verdict, confidence, data, limits and repetition."""
    rows = {
        "What was claimed": claimed(result),
        "Was it kept": _kept(result),
        "How sure": _sure(result),
        "On what data": data(result),
        "What could not be seen": unseen(result),
        "How to repeat it": how_to_repeat(result),
    }
    return (Answers(tuple((question, tuple(answer)) for question, answer in rows.items())),)


def claimed(result: AuditResult) -> Iterator[Span]:
    """Yield the claim in words, its source, and the audited code, as far as the result records them."""
    if result.measurement:
        yield "No claim was given. "
    else:
        yield from claim_words(result)
        stated = "; the result does not record who states it"
        if who := result.provenance.claim_stated_by:
            stated = _STATED.get(who, f", stated by {quotation(who)}")
        yield f"{_more(words_of(result.evidence).claimed)}{stated}. "
    yield from audited(result)


def _kept(result: AuditResult) -> Iterator[Span]:
    words = dict(zip(Verdict, ("No.", "No violation was found.", "Unknown."), strict=True))
    yield Strong("Nothing was tested." if result.measurement else words[result.verdict])
    bound = headline(result) if result.bounds_valid else None
    if not result.bounds_valid:
        yield f" Nothing is proven: {why_void(result)}."
    elif bound is None:
        yield " Proven: the claim is false as a curve, although no single parameter exceeds the claimed value."
    elif (needed := result.runs_for_size) is not None:
        enough = f" (about {count(int(needed))} fresh runs would)" if math.isfinite(needed) else ""
        yield from (" ", *bound.name(), f" is more than claimed; how much more is not measured{enough}.")
    elif math.isnan(bound.certified):
        yield f" Proven: {NOT_KNOWN}."
    elif bound.certified == 0 and not bound.refuted:
        yield from (" Nothing is proven about ", *bound.name(), ".")
    else:
        allowed = "" if result.measurement else f" (claimed: at most {bound.claimed_text()})"
        yield from (" Proven about the privacy loss: ", *bound.shown(f"{bound.certified_text()}{allowed}"))
        yield f"{_more(words_of(result.evidence).somewhere)}; no upper limit is proven."
        if bound.exceeds and not (result.violated or result.measurement):
            yield f" {ABOVE_ALONE}"
    if result.violated:
        yield _no_size(result)


def _more(words: str) -> str:
    return f" {words}" if words else ""


def _no_size(result: AuditResult) -> str:
    if not result.evidence.kind.anytime or fresh(result):
        return ""
    if result.stopped_by == "evidence":
        return " The true loss may be much larger: the audit stopped at its first proof and did not measure the size."
    if result.refuted_at is None:
        return ""
    after = spent(result.evidence, result.refuted_at)
    return f" The claim was refuted after {after}; {words_of(result.evidence).went_on}."


def _sure(result: AuditResult) -> Iterator[Span]:
    if not result.bounds_valid:
        yield "No statement about the claim is proven."
        return
    if not result.violated:
        yield f"What is proven is {percent_at_least(result.confidence)} certain. Nothing supports the claim itself."
        if tells(result) and not result.measurement:
            yield f" The p-value of the claim is {p_value_words(result, at_most)}."
        return
    yield f"At {percent_at_least(result.confidence)} confidence, at most {_odds(result.confidence)} of true claims "
    yield "raises a false alarm. Mistakes in the set-up are not covered."
    if not result.confirmation:
        yield " This report contains no confirmation on fresh runs (a replay)."


def _odds(confidence: float) -> str:
    """Return the probability of an error in the form "1 in 100 audits", rounded conservatively."""
    significance = 1 - confidence
    if 0 < significance < 0.2:
        return f"1 in {count(math.floor(1 / significance + 1e-6))} audits"
    return f"{percent_beyond(confidence)} of audits"


def data(result: AuditResult) -> Iterator[Span]:
    """Yield the witness's pair with the difference in bold, and the runs; or the canaries and the guesses."""
    evidence = result.evidence
    if (guessed := given_scores(evidence)) is not None:
        yield from (
            f"{count(guessed.scores)} {words_of(evidence).unit}, {words_of(evidence).each}; ",
            Strong(guessed.outcome),
            ".",
        )
        return
    made = spent(evidence, result.trials_used)
    if words_of(evidence).data:
        yield f"{words_of(evidence).data}: {made}."
        return
    label = result.witness.pair if result.witness is not None else ""
    row = row_of(result, label) or (result.pairs[0] if result.pairs else None)
    if row is None:
        yield "No pair was tried."
        return
    learned, phases = result.trials_used - evidence.trials, ""
    if len(result.pairs) == 1 and learned > 0:
        phases = f": {count(learned)} to train the attack, {count(evidence.trials)} as evidence"
    yield from (*_pair(result, row), f"{_spent(result)}{phases}.")


def _pair(result: AuditResult, row: PairRow) -> Iterator[Span]:
    """Yield the two datasets, and the difference in words if their texts do not show it."""
    relation = "" if row.relation == "unspecified" else row.relation.replace("_", " ")
    if row.difference:
        yield from ("d0 = ", Code(ends(row.d0)), " against d1, the same dataset with a difference: ")
        yield from (Strong(quotation(row.difference)), f" ({relation}). " if relation else ". ")
        return
    d0, d1 = difference(row.d0, row.d1)
    yield from ("d0 = ", *d0, " against d1 = ", *d1)
    change = sides(result, row.label).change or _CHANGES.get(relation, relation)
    yield f": {change}. " if change else "; the config does not state how they differ. "
