"""The verdict in one sentence, with the claim, the confidence and the runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from dpaudit.result.model import AuditResult, p_value_words
from dpaudit.result.values import Verdict
from dpaudit_reports.blocks import Block, Callout, Code, Facts, KeyValues, Span, Text
from dpaudit_reports.claimed import enlarged, headline, label, tells
from dpaudit_reports.marks import MARKS
from dpaudit_reports.numbers import NOT_KNOWN, at_most, count, number, percent, runs
from dpaudit_reports.reasons import reason
from dpaudit_reports.sections.detection_limits import assumption

_MAX_PACKAGES = 8  # packages on the first page; the provenance lists all


def verdict(result: AuditResult) -> tuple[Block, ...]:
    """Return the verdict and its numbers.  It stands under the title, and so has no heading."""
    mark = MARKS[result.verdict]
    audited = tuple(_audited(result))
    word = "Measurement" if result.measurement else mark.word
    return (
        Callout(mark.sign, word, (*_spans(_sentence(result)), *_assumed(result)), mark.tone),
        Facts(tuple(_facts(result))),
        *((KeyValues(audited),) if audited else ()),
    )


def _facts(result: AuditResult) -> Iterator[tuple[str, Text]]:
    yield "Confidence", percent(result.confidence)
    guessed = result.evidence.guessed
    if guessed is not None:
        yield result.evidence.words.unit.capitalize(), count(guessed.canaries)
        yield "Right guesses", f"{count(guessed.right)} of {count(guessed.guesses)}"
    else:
        pairs = f" in all, {len(result.pairs)} pairs" if len(result.pairs) > 1 else ""
        yield "Runs per dataset", f"{count(result.trials_used)}{pairs}"
    if tells(result):
        yield "p-value", p_value_words(result, at_most)
        if result.evidence.anytime and result.e_value > 1:
            yield "e-value", number(result.e_value)
    bound = headline(result) if result.bounds_valid else None
    if bound is None:
        yield "Certified", "the claim is false as a curve" if result.bounds_valid else "nothing"
        return
    if math.isnan(bound.certified):
        yield "Certified", NOT_KNOWN
    elif bound.certified == 0 and not bound.refuted:
        yield "Certified", "nothing"
    else:
        yield "Certified", bound.shown(bound.certified_text())
    if not result.measurement:
        yield "Claimed", bound.shown(f"≤\u00a0{bound.claimed_text()}")


def _audited(result: AuditResult) -> Iterator[tuple[str, Text]]:
    """Yield which code was audited and who states its claim, as far as the result records it."""
    about = result.provenance
    if about.mechanism and about.mechanism != result.name:
        yield "mechanism", about.mechanism
    if packages := about.mechanism_packages:
        named = [f"{name} {version}" for name, version in packages.items()]
        more = f" and {len(named) - _MAX_PACKAGES} more, see Provenance" if len(named) > _MAX_PACKAGES else ""
        yield "its packages", ", ".join(named[:_MAX_PACKAGES]) + more
    for key, value in about.other.items():
        if _is_fingerprint(str(key), value):
            files = value.items() if isinstance(value, Mapping) else [("", value)]
            yield str(key), (Code(", ".join(f"{name} {sha256}".strip() for name, sha256 in files)),)
    if about.claim_stated_by:
        yield "claim stated by", about.claim_stated_by


def _is_fingerprint(key: str, value: object) -> bool:
    """Return whether this is the SHA-256 of the mechanism's files."""
    reported = "sha" in key.lower() or str(value).startswith("sha256")
    return bool(value) and "mechanism" in key and key != "mechanism" and reported


def _assumed(result: AuditResult) -> tuple[str, ...]:
    """Return the assumption of the verdict and the bounds that no audit can test, if there is one."""
    words = result.evidence.words.assumption
    return (f" Assumed, not tested: {words}.",) if words else ()


def _spans(text: Text) -> tuple[Span, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def _sentence(result: AuditResult) -> Text:
    claim, confidence = Code(label(result.claim)), percent(result.confidence)
    if result.measurement:
        valid = "hold" if result.bounds_valid else "do not hold"
        return f"No claim was given, so there was nothing to refute. The bounds below {valid}. {_why(result)}".rstrip()
    match result.verdict:
        case Verdict.VIOLATION:
            return (
                "The mechanism does not keep the claim ",
                claim,
                f": it is refuted at {confidence} confidence, after {_spent(result)}. If the claim were true, an audit "
                f"would end like this with probability at most {percent(1 - result.confidence)}.{_no_size(result)}",
            )
        case Verdict.NO_VIOLATION:
            return (
                "No violation of the claim ",
                claim,
                f" was found at {confidence} confidence in {_spent(result)}. ",
                *_visible(result),
                " That does not prove the claim.",
            )
        case Verdict.INCONCLUSIVE:
            return (
                "This audit cannot say whether the claim ",
                claim,
                f" holds. {reason(result) or 'Its result does not record the reason.'}",
            )


def _why(result: AuditResult) -> str:
    return "" if result.bounds_valid else reason(result)


def _spent(result: AuditResult) -> str:
    if result.evidence.once:
        return "one run"
    pairs = f" in all, over {len(result.pairs)} pairs" if len(result.pairs) > 1 else ""
    return f"{runs(result.trials_used)}{pairs}"


def _no_size(result: AuditResult) -> str:
    """Return a note that the bound of an audit that stopped at its first proof is not an estimate."""
    if not result.evidence.anytime:
        return ""
    if result.stopped_by == "evidence":
        return " The audit stopped at the first proof; this is no estimate of the size."
    if result.refuted_at is None:
        return ""
    return f" The claim was refuted after {runs(result.refuted_at)}; {result.evidence.words.went_on}."


def _visible(result: AuditResult) -> tuple[str | Code, ...]:
    if not result.detectable.claim:
        return ("No violation, however large, would have been found with 90\u00a0% probability.",)
    return (
        "One as large as ",
        Code(enlarged(result.detectable.claim)),
        f" would have been found with 90\u00a0% probability{assumption(result)}.",
    )
