"""Page 1: the verdict in a sentence, its numbers, one picture, what it means, what to do, and four facts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from dpaudit.result.evidence import given_scores, spent
from dpaudit.result.model import AuditResult
from dpaudit.result.summary import allowed_rate, beyond_reports, p_value_words, weakness
from dpaudit.result.values import Verdict, Witness
from dpaudit.result.words import words_of
from dpaudit.rounding import at_most, count, percent_at_least, percent_at_most, percent_beyond
from dpaudit.text import WarningCode, has_code, shortened
from dpaudit_reports import blocks
from dpaudit_reports.blocks import (
    Block,
    Code,
    Figure,
    Items,
    Number,
    Numbers,
    Panel,
    Span,
    Strong,
    Text,
    flat,
)
from dpaudit_reports.claimed import Bound, claim_words, found_from, headline, least_found, least_found_in_words
from dpaudit_reports.figures.bars import Line, Rate, line_svg, rates_svg
from dpaudit_reports.rates import Frequencies, RegionStatus, counted, frequencies, intervals, region_status, subject
from dpaudit_reports.verdicts import MARKS, assumption, confirmation, fresh, reason, shows_size, why_inconclusive

_SIGNS = {"epsilon": "ε\u00a0≥\u00a0", "mu": "μ\u00a0≥\u00a0"}  # in print
_LONG_CLAIM = 32  # characters; a longer claim is not part of a title
_WARNINGS, _WARNING = 3, 160  # number of warnings, and characters of each; page 2 has the rest


def verdict(result: AuditResult) -> tuple[Block, ...]:
    """Return the verdict as a sentence, with the counts or the reason behind it."""
    mark = MARKS[result.verdict]
    return (blocks.Verdict(mark.sign, title(result), tuple(_lede(result)), mark.tone),)


def title(result: AuditResult) -> Text:
    """Return the verdict as a sentence."""
    if result.measurement:
        bound = headline(result) if result.bounds_valid else None
        if bound is None or not bound.certified > 0:
            return "Nothing is proven."
        return (*bound.shown(bound.certified_text()), " is proven.")
    match result.verdict:
        case Verdict.VIOLATION:
            words = words_of(result.evidence)
            false = "is false, under an untested assumption." if words.assumption else "is false."
            return ("The claim ", *_short(result), f"{words.claimed} {false}".lstrip())
        case Verdict.NO_VIOLATION:
            return (
                "No violation found, but this audit could not see much." if weakness(result) else "No violation found."
            )
        case Verdict.INCONCLUSIVE:
            return "This audit decides nothing."


def _short(result: AuditResult) -> tuple[Span, ...]:
    """Return the parameters of the claim, or its text if it is short, with a space behind it; nothing otherwise."""
    words = claim_words(result)
    if isinstance(words[0], Code):
        return (words[0], " ") if len(words[0].text) <= _LONG_CLAIM else ()
    if words[0] == "the privacy of Laplace noise with ":
        return "of Laplace noise, ", words[-1], ", "
    return words[-1], " "


def _lede(result: AuditResult) -> Iterator[Span]:
    words = words_of(result.evidence)
    if result.measurement:
        guessed = given_scores(result.evidence)
        yield f"{capital(guessed.outcome)}. " if guessed is not None else ""
        yield "No claim was given, so none was tested."
        yield "" if result.bounds_valid else f" The bounds do not hold. {reason(result)}"
    elif result.verdict is Verdict.VIOLATION:
        yield from _counts(result)
    elif result.verdict is Verdict.INCONCLUSIVE:
        claim = claim_words(result)
        yield "It cannot tell whether the claim "
        yield from (*(() if isinstance(claim[0], Code) else ("of ",)), *claim, " holds. ")
        yield reason(result) or "The result does not record the reason."
    else:
        yield f"{capital(spent_words(result))} did not refute "
        yield from (*claim_words(result), f"{after(words.claimed)}. ")
        if why := weakness(result):
            why = re.sub("(epsilon|mu) >= ", lambda sign: _SIGNS[sign[1]], why)
            yield f"{capital(why)}. "
        elif result.detectable.claim:
            yield "An audit of this length finds a violation as large as "
            yield from least_found_in_words(result)
            yield f" with 90\u00a0% probability{', in the best case' if assumption(result) else ''}. "
        yield f"This is no proof of the claim, and says nothing about {words.others}."
    if words.assumption:
        yield f" Assumed, not tested: {words.assumption}."
    if result.scope:
        yield f" The claim was tested{result.scope}."


def _counts(result: AuditResult) -> Iterator[Span]:
    """Yield what was observed in natural frequencies, and what the claim allows if this can be compared."""
    guessed, counts = given_scores(result.evidence), frequencies(result)
    if guessed is not None:
        yield Strong(f"{capital(guessed.outcome)}.")
    elif counts is None:
        yield f"The evidence of all {spent_words(result)} refutes it."
    else:
        told = result.witness
        if told is not None and told.query:  # the query of released tables that tells the datasets apart best
            yield "Outcome of the runs: " if told.outcomes else "In the released tables: "
            yield from (Strong(told.query), ". ")
        yield Strong(f"{counted(result, counts)}.".replace("..", "."))
        if not result.bounded:
            yield f" A session {counts.sides.name0} survives with probability exp(-ε), where ε is what it reports. "
            yield "If the reports were right, no more would survive."
        elif counts.most is not None:
            yield f" The claim allows {count(counts.most)}."
        elif counts.moving or counts.later:
            yield f" These counts illustrate the proof, which rests on all {spent_words(result)}."


def spent_words(result: AuditResult) -> str:
    """Return the number of runs in words."""
    pairs = f" in total, over {len(result.pairs)} pairs" if len(result.pairs) > 1 else ""
    return f"{spent(result.evidence, result.trials_used)}{pairs}"


def capital(words: str) -> str:
    """Return words with a capital letter."""
    return f"{words[:1].upper()}{words[1:]}"


def after(words: str) -> str:
    """Return words after a space, unless there are none."""
    return f" {words}" if words else ""


def warnings(result: AuditResult) -> tuple[Block, ...]:
    """Return the warnings that the verdict does not already state, shortened; all are in the result file."""
    told = why_inconclusive(result)
    rest = [one for one in result.warnings if one not in told and not has_code(one, WarningCode.HARMLESS)]
    shown = tuple(f"Warning: {shortened(warning, _WARNING)}" for warning in rest[:_WARNINGS])
    more = (f"{count(len(rest) - _WARNINGS)} more warnings are in the result file.",) if len(rest) > _WARNINGS else ()
    return (Items((*shown, *more), quiet=True),) if rest else ()


# --- three numbers and a picture


def numbers(result: AuditResult) -> tuple[Block, ...]:
    """Return the size of a violation, the odds of a false accusation, and what fresh runs say."""
    if not result.violated:
        return ()
    significance, new = 1 - result.confidence, result.confirmation
    odds = percent_beyond(result.confidence)
    if 0 < significance < 0.2:  # in the form "1 in 100", rounded conservatively
        odds = f"1 in {count(math.floor(1 / significance + 1e-6))}"
    if new is None and given_scores(result.evidence) is not None:
        said = Number(f"p\u00a0{p_value_words(result, at_most)}", "for the claim; not confirmed by a new run")
    elif new is None:
        said = Number("Not confirmed", f"by fresh runs; the p-value of the claim is {p_value_words(result, at_most)}")
    elif new.outcome == "confirmed" and new.counts is not None:
        said = Number("Confirmed", f"by {count(new.counts.n0)} fresh runs, p\u00a0{at_most(new.p_value)}")
    else:
        said = Number(capital(new.outcome), confirmation(result).removeprefix(new.outcome).lstrip(": "))
    odds_of = Number(odds, "largest chance to accuse a correct mechanism")
    return (Numbers((_size(result), odds_of, said)),)


def _size(result: AuditResult) -> Number:
    bound = headline(result)
    if not result.bounded:
        return Number("More", "is lost than what sessions report; how much more is not measured", "bad")
    if bound is None:
        return Number("the curve", "is refuted, although no single ε or μ exceeds what is claimed", "bad")
    claimed = ("claimed: ", *bound.claimed_shown())
    value, new = bound.shown_alone(), fresh(result)
    stopped = result.evidence.kind.anytime and result.stopped_by == "evidence"
    if result.runs_for_size is not None:
        words = "proven; how much more is not known"
    elif shows_size(result) and new is not None and new.counts is not None:
        words = "proven by fresh runs"
    else:
        words = f"proven{after(words_of(result.evidence).somewhere)}"
        if stopped:
            words += "; the audit stopped at once, and the loss may be much larger"
        elif result.refuted_at is not None:
            words += f"; {words_of(result.evidence).went_on}"
    return Number(value, (f"{words} (", *claimed, ")"), "bad")


def picture(result: AuditResult) -> tuple[Block, ...]:
    """Return the picture of page 1; nothing if there is nothing to draw."""
    drawn = panel(result)
    return () if drawn is None else (Figure((drawn[0],), drawn[1], columns=1),)


def panel(result: AuditResult) -> tuple[Panel, Text] | None:
    """Return rates beside the claim's limit, or else the number line of the claim's parameter, with a caption."""
    counts = frequencies(result) if region_status(result) is RegionStatus.WITNESS else None
    if counts is not None and result.witness is not None and (both := intervals(result.witness)) is not None:
        return _rates(result, result.witness, counts, both)
    bound = headline(result)
    if bound is None or not (result.measurement or 0 < bound.claimed < math.inf) or math.isinf(bound.certified):
        return None
    if not (result.bounds_valid and bound.certified > 0):
        bound = replace(bound, certified=0.0)
    least = least_found(result) if result.bounds_valid and not (result.violated or weakness(result)) else None
    claimed = None if result.measurement else (bound.claimed, bound.claimed_text())
    proven = bound.certified if not bound.exceeds else max(bound.certified, bound.claimed)
    words = bound.certified_text().lstrip("≥> \u00a0")
    words = (
        f"proven: at least {words}" if proven else f"nothing is proven by {spent(result.evidence, result.trials_used)}"
    )
    line = Line((proven, words), claimed, None if least is None else least.certified, result.violated)
    name = flat(bound.name())
    drawn = partial(line_svg, line, name)
    alt = f"Number line of {name}. {flat(caption := _line_in_words(result, bound, least))}"
    heading = "How large the privacy loss is"
    return Panel(partial(drawn, wide=False), alt, heading, wide=partial(drawn, wide=True)), caption


def _rates(
    result: AuditResult, witness: Witness, counts: Frequencies, both: tuple[tuple[float, float], tuple[float, float]]
) -> tuple[Panel, Text]:
    (low0, high0), (low1, high1) = both
    sizes, names, most = (counts.n0, counts.n1), (counts.sides.name0, counts.sides.name1), counts.most
    if result.bounded:
        about = subject(witness)
        about = f"{about[:1].lower()}{about[1:]}" if len(about) <= 60 else "the output is in the region"
        about = "this was true" if about.startswith("“") else about
        hits, ends = (counts.hits0, counts.hits1), (both[0], (1 - high1, 1 - low1))
    else:
        about, most = "sessions show more than they report and survive", None
        hits, ends = beyond_reports(witness), ((1 - high0, 1 - low0), both[1])
    rates = tuple(Rate(name, k / n, *end) for name, k, n, end in zip(names, hits, sizes, ends, strict=True))
    limit = None if most is None else allowed_rate(result)
    caption = "Whiskers: 95\u00a0% intervals."
    if counts.later:
        caption += " They hold whenever the audit stops."
    if limit is not None:
        caption += f" Limit: the claim at {percent_at_most(witness.alpha_upper)} {counts.sides.name0}."
    caption += "" if result.bounded else " If the reports were right, the first bar would be no longer."
    alt = "; ".join(f"{rate.label}: {100 * rate.rate:.3g} %" for rate in rates)
    alt += "." if most is None else f"; the claim allows {count(most)} of {count(counts.n1)}."
    drawn = partial(rates_svg, rates, limit)
    return Panel(partial(drawn, wide=False), alt, f"How often {about}", wide=partial(drawn, wide=True)), caption


def _line_in_words(result: AuditResult, bound: Bound, least: Bound | None) -> Text:
    if result.violated or result.measurement:
        return ""
    sure = f"Proven with {percent_at_least(result.confidence)} confidence: "
    spans: list[Span] = [sure, *bound.shown(bound.certified_text()), "."] if bound.certified > 0 else []
    if least is not None:
        assumed = f", {words}" if (words := assumption(result)) else ""
        spans.append(f" Between the claim and {found_from(least)}, a violation may have been missed; from there, ")
        spans.append(f"it would have been found with 90\u00a0% probability{assumed}.")
    if bound.exceeds:
        spans.append(" The bound above the claim comes from a separate test; that of the verdict did not refute it.")
    return tuple(spans)


def verdict_text(result: AuditResult) -> str:
    """Return title and lede as plain text."""
    return f"{flat(title(result))} {flat(tuple(_lede(result)))}"
