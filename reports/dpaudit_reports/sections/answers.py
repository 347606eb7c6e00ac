"""Answers six questions about every audit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import PurePath

from dpaudit.result.evidence import given_scores, spent
from dpaudit.result.model import AuditResult, p_value_words
from dpaudit.result.values import PairRow, Verdict
from dpaudit.result.words import quotation
from dpaudit.text.printable import shortened
from dpaudit.text.rounding import NOT_KNOWN, at_most, count, percent_at_least, percent_beyond
from dpaudit_reports.blocks import Answers, Block, Code, Span, Strong
from dpaudit_reports.claimed import ABOVE_ALONE, claim_words, headline, tells
from dpaudit_reports.numbers import some_of
from dpaudit_reports.sections.next_step import how_to_repeat
from dpaudit_reports.sides import difference, ends, row_of, sides
from dpaudit_reports.verdicts import fresh, unseen, why_void

_INSTALLED = frozenset({"site-packages", "dist-packages"})  # folders of installed packages
_HASH = 12  # digits of a fingerprint that the first page shows; the provenance shows all digits


def audited(result: AuditResult) -> Iterator[Span]:
    """Yield the mechanism, the versions of its packages, its file and the source, as far as they are known."""
    about = result.provenance
    parts: list[tuple[Span, ...]] = []
    named = about.mechanism if about.mechanism != result.name else ""
    if packages := about.mechanism_packages:
        shown = [f"{name} {version}" for name, version in packages.items()]
        calls = (*_named(named), ", which uses ") if named else ()
        parts.append((*calls, some_of(shown, 8, "more, see Provenance")))
    elif named:
        parts.append(_named(named))
    file = about.mechanism_file
    # A class of the user that dpaudit calls has a name with arguments, and packages do not identify its code.
    own = file is not None and " " in (named or "") and _INSTALLED.isdisjoint(PurePath(file.path).parts)
    if file is not None and (own or not packages):
        parts.append(("file ", Code(f"sha256:{file.sha256[:_HASH]}…")))
    for i, part in enumerate(parts):
        yield ", " if i else "Tested: "
        yield from part
    if parts:
        yield "."
    if about.source:
        yield f" Source of the claim: {quotation(shortened(about.source).rstrip('.'))}."


def _named(mechanism: str) -> tuple[Span, ...]:
    """Return the name of the mechanism; a name with spaces, such as a command line, is a quotation."""
    return ("“", Code(mechanism), "”") if " " in mechanism else (Code(mechanism),)


# Relations between neighbouring datasets as changes, and the recorded authors of a claim.
_CHANGES = {"replace one": "one record replaced", "add remove": "one record added or removed"}
_STATED = {
    "the mechanism's own accounting": ", computed by the audited library itself",
    "the constructor of the generator": ", the epsilon (and delta) of the constructor's arguments",
    "the config": ", stated in the config of this audit",
}


def answers(result: AuditResult) -> tuple[Block, ...]:
    """Return the questions with answers about claim, verdict, confidence, data, limits and repetition."""
    rows = (
        ("What was claimed", tuple(claimed(result))),
        ("Was it kept", tuple(_kept(result))),
        ("How sure", tuple(_sure(result))),
        ("On what data", tuple(data(result))),
        ("What could not be seen", unseen(result)),
        ("How to repeat it", how_to_repeat(result)),
    )
    return (Answers(rows),)


def claimed(result: AuditResult) -> Iterator[Span]:
    """Yield the claim in words, its source, and the audited code, as far as the result records them."""
    if result.measurement:
        yield "No claim was given. "
    else:
        yield from claim_words(result)
        who = result.provenance.claim_stated_by
        stated = (
            _STATED.get(who, f", stated by {quotation(who)}") if who else "; the result does not record who states it"
        )
        yield f"{_more(result.evidence.words.claimed)}{stated}. "
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
        yield f" Nothing is proven: {why_void(result)}."
    elif bound is None:
        yield " Proven: the claim is false as a curve, although no single parameter exceeds the claimed value."
    elif (needed := result.runs_for_size) is not None:
        yield " "
        yield from bound.name()
        enough = f" (about {count(int(needed))} fresh runs would)" if math.isfinite(needed) else ""
        yield f" is more than claimed; how much more is not measured{enough}."
    elif math.isnan(bound.certified):
        yield f" Proven: {NOT_KNOWN}."
    elif bound.certified == 0 and not bound.refuted:
        yield " Nothing is proven about "
        yield from bound.name()
        yield "."
    else:
        yield " Proven about the privacy loss: "
        allowed = "" if result.measurement else f" (claimed: at most {bound.claimed_text()})"
        yield from bound.shown(f"{bound.certified_text()}{allowed}")
        yield f"{_more(result.evidence.words.somewhere)}; no upper limit is proven."
        if bound.exceeds and not (result.violated or result.measurement):
            yield f" {ABOVE_ALONE}"
    if result.violated:
        yield _no_size(result)


def _more(words: str) -> str:
    return f" {words}" if words else ""


def _no_size(result: AuditResult) -> str:
    if not result.evidence.anytime or fresh(result):
        return ""
    if result.stopped_by == "evidence":
        return " The true loss may be much larger: the audit stopped at its first proof and did not measure the size."
    if result.refuted_at is None:
        return ""
    after = spent(result.evidence, result.refuted_at)
    return f" The claim was refuted after {after}; {result.evidence.words.went_on}."


def _sure(result: AuditResult) -> Iterator[Span]:
    if not result.bounds_valid:
        yield "No statement about the claim is proven."
        return
    if not result.violated:
        yield f"{percent_at_least(result.confidence)} confidence in what is proven; none that the claim is true."
        if tells(result) and not result.measurement:
            yield f" The p-value of the claim is {p_value_words(result, at_most)}."
        return
    yield f"{percent_at_least(result.confidence)} confidence: a true claim would be refuted in at most "
    yield f"{_odds(result.confidence)}, a limit set beforehand. This accounts for chance, but not for mistakes in the "
    yield "set-up." if result.confirmation else "set-up. This report contains no confirmation on fresh runs (a replay)."


def _odds(confidence: float) -> str:
    """Return the probability of an error in the form "1 of 100 such audits", rounded conservatively."""
    significance = 1 - confidence
    if 0 < significance < 0.2:
        return f"1 of {count(math.floor(1 / significance + 1e-6))} such audits"
    return f"{percent_beyond(confidence)} of such audits"


def data(result: AuditResult) -> Iterator[Span]:
    """Yield the witness's pair with the difference in bold, and the runs; or the canaries and the guesses."""
    evidence = result.evidence
    if (guessed := given_scores(evidence)) is not None:
        yield f"{count(guessed.scores)} {evidence.words.unit}, {evidence.words.each}; "
        yield Strong(guessed.outcome)
        yield "."
        return
    made = spent(evidence, result.trials_used)
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
        yield f"{made}{_phases(result)}."


def _pair(result: AuditResult, row: PairRow) -> Iterator[Span]:
    """Yield the two datasets, and the difference in words if their texts do not show it."""
    relation = "" if row.relation == "unspecified" else row.relation.replace("_", " ")
    if row.difference:
        yield "d0 = "
        yield Code(ends(row.d0))
        yield " against d1, the same dataset with a difference: "
        yield Strong(quotation(row.difference))
        yield f" ({relation}). " if relation else ". "
        return
    d0, d1 = difference(row.d0, row.d1)
    yield "d0 = "
    yield from d0
    yield " against d1 = "
    yield from d1
    change = sides(result, row.label).change or _CHANGES.get(relation, relation)
    yield f": {change}. " if change else "; the config does not state how they differ. "


def _phases(result: AuditResult) -> str:
    learned = result.trials_used - result.evidence.trials
    used = f": {count(learned)} to train the attack, {count(result.evidence.trials)} as evidence"
    return used if learned > 0 else ""
