"""Page 1: what the verdict means, what to do, how to repeat it, and four facts."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from dpaudit.result.evidence import given_scores, saw_times, spent
from dpaudit.result.model import AuditResult
from dpaudit.result.summary import weakness
from dpaudit.result.values import Verdict
from dpaudit.result.words import quotation, words_of
from dpaudit.rounding import count, seconds
from dpaudit.text import WarningCode, has_code, nothing_holds, shortened
from dpaudit_reports.blocks import (
    Block,
    Code,
    Columns,
    Facts,
    Heading,
    Items,
    Listing,
    Paragraph,
    Span,
    Strong,
    Text,
    some_of,
)
from dpaudit_reports.claimed import claim_in_words
from dpaudit_reports.rates import RegionStatus, difference, region_status, row_of, sides
from dpaudit_reports.sections.answer import after, capital, spent_words
from dpaudit_reports.verdicts import fresh, why_inconclusive, why_void


def advice(result: AuditResult) -> tuple[Block, ...]:
    """Return what the verdict means, beside the next steps, the most urgent first."""
    steps: tuple[Text, ...]
    if result.measurement:
        steps = (("To test a claim, state it, for example ", Code("--claim pure(epsilon=1)"), "."),)
    elif result.violated:
        steps = _after_violation(result)
    elif result.verdict is Verdict.INCONCLUSIVE:
        steps = (_after_doubt(result),)
    else:
        steps = _after_nothing(result)
    return (
        Columns(
            (Heading("What this means"), Paragraph(_meaning(result))),
            (Heading("What to do now"), Items(steps, numbered=len(steps) > 1)),
        ),
    )


def _meaning(result: AuditResult) -> Text:
    words = words_of(result.evidence)
    if result.measurement:
        return "The privacy loss is at least this large. How large it is at most, no audit can tell."
    match result.verdict:
        case Verdict.VIOLATION:
            witness = result.witness
            change = "" if witness is None else sides(result, witness.pair).change
            what = "whether the record was in the data" if change.endswith(("added", "removed")) else words.reveals
            return f"Someone who sees {words.sees} can tell {what} better than the claim allows."
        case Verdict.NO_VIOLATION:
            return f"No accusation is made. A smaller violation may exist, or one with {words.others}."
        case Verdict.INCONCLUSIVE:
            return "No accusation is made: the claim is neither refuted nor supported. It needs another audit."


def _after_violation(result: AuditResult) -> tuple[Text, ...]:
    new = result.confirmation
    steps: list[Text] = ["Do not rely on the claim."]
    if new is None or new.outcome != "confirmed":
        fresh_runs = "with a new run, as below" if words_of(result.evidence).again else "on fresh runs, as below"
        steps.append(f"Confirm it {fresh_runs}, before you report it.")
    neighbours = ", and that these datasets are neighbours" if result.evidence.kind.of_pairs else ""
    steps.append(f"Check what is claimed{neighbours}.")
    if result.provenance.audit is not None and result.evidence.kind.of_pairs and not words_of(result.evidence).again:
        steps.append("Send the maintainers the script below.")
    needed = result.runs_for_size
    if needed is not None and math.isfinite(needed):
        steps.append(("To measure the loss, audit with ", Code(f"confirm: {int(needed)}"), "."))
    return tuple(steps)


def _after_nothing(result: AuditResult) -> tuple[Text, ...]:
    more: Text = (
        "In the config, try other pairs (",
        Code("search:"),
        ") and more runs (",
        Code("trials:"),
        "), with another seed.",
    )
    if advised := words_of(result.evidence).more:
        more = f"To see smaller violations, {advised}."
    if weakness(result):
        return "Do not report this audit as support for the claim.", more
    return "Report which violation would have been found, not that the claim holds.", more


def _after_doubt(result: AuditResult) -> Text:
    why = why_inconclusive(result)
    if any(map(nothing_holds, why)):
        return "Give every run independent randomness, keep no state between runs, and audit again."
    if result.stopped_by == "failure":
        return "Correct the failure, and audit again."
    if result.stopped_by == "interruption":
        return "Run the audit again, without interruption."
    if any(has_code(warning, WarningCode.TOO_FEW) for warning in why):
        if advised := words_of(result.evidence).more:
            return f"{capital(advised)}."
        return (
            "Raise ",
            Code("trials:"),
            ", and audit again with another seed; ",
            Code("dpaudit plan"),
            " estimates how many.",
        )
    return "Remove the cause, and audit again."


def repeat(result: AuditResult) -> tuple[Block, ...]:
    """Return the commands that repeat the finding from the folder of this report, or how to repeat it without one."""
    if result.provenance.of_sessions:
        return Heading("Repeat it"), Paragraph("Audit again with another seed: each audit opens sessions of its own.")
    commands = commands_of(result)
    if commands:
        return Heading("Repeat it"), Listing("\n".join(commands))
    if again := words_of(result.evidence).again:
        return Heading("Repeat it"), Paragraph(again)
    return ()


def commands_of(result: AuditResult) -> list[str]:
    """Return the commands for the folder that holds the result file."""
    useless = region_status(result) in (RegionStatus.NONE, RegionStatus.VOID, RegionStatus.FAR)
    if useless or words_of(result.evidence).again or result.provenance.of_sessions:
        return []
    if result.provenance.audit is not None and result.name:
        file = shlex.quote(f"{result.name}.json")
        script = [f"dpaudit reproduce {file} -o script.py"] if result.violated else []
        return [f"dpaudit replay {file}", *script]
    if result.provenance.test is not None:
        return ["dpaudit replay FILE.json   # the file that the test's message names"]
    return ["dpaudit.replay(result, mechanism, pairs)   # in Python"]


# --- four facts

_CHANGES = {"replace one": "one record replaced", "add remove": "one record added or removed"}
_STATED = {
    "the mechanism's own accounting": ", from the library's own accounting",
    "the constructor of the generator": ", from the constructor's arguments",
    "the config": ", stated in the config",
}


def facts(result: AuditResult) -> tuple[Block, ...]:
    """Return the claim, the datasets, the runs, and what is not covered."""
    asked = result.witness.pair if result.witness else "".join(row.label for row in result.pairs[:1])
    rows = (
        ("Claim", tuple(claimed(result))),
        ("Data", tuple(data(result))),
        *((("Sessions", asked),) if result.provenance.of_sessions else ()),
        ("Runs", _runs(result)),
        ("Not covered", _not_covered(result)),
    )
    return (Facts(rows),)


def claimed(result: AuditResult) -> Iterator[Span]:
    """Yield the claim in words, and who states it."""
    if result.measurement:
        yield "none"
        return
    yield from claim_in_words(result.claim)
    yield after(words_of(result.evidence).claimed)
    who = result.provenance.claim_stated_by
    if who:
        yield _STATED.get(who, f", stated by {quotation(who)}")
    if source := result.provenance.source:
        yield f"; source: {quotation(shortened(source, 160).rstrip('.'))}"


def mechanism_named(result: AuditResult) -> str:
    """Return the mechanism by the name that its author gave it, with its packages; "" if it is not recorded."""
    about = result.provenance
    packages = [f"{name} {version}" for name, version in (about.mechanism_packages or {}).items()]
    named = about.mechanism if about.mechanism and about.mechanism != result.name else ""
    named = quotation(named) if " " in named else named  # a command line, or what a stranger's file states
    shown = some_of(packages, 2)
    return shortened(f"{named}{f' with {shown}' if shown else ''}".strip(), 160)


def data(result: AuditResult) -> Iterator[Span]:
    """Yield the pair with the difference in bold, or how the datasets or canaries were chosen."""
    words, guessed = words_of(result.evidence), given_scores(result.evidence)
    if guessed is not None:
        outcome = "" if result.violated or result.measurement else f"; {guessed.outcome}"
        yield f"{count(guessed.scores)} {words.unit}, {words.each}{outcome}"
        return
    if words.data:
        yield words.data[:1].lower() + words.data[1:]
        return
    witness = result.witness.pair if result.witness is not None else ""
    row = row_of(result, witness) or (result.pairs[0] if result.pairs else None)
    if row is None:
        yield "no pair was tried"
        return
    if row.difference:
        yield Strong(quotation(row.difference))
    else:
        d0, d1 = difference(row.d0, row.d1)
        relation = "" if row.relation == "unspecified" else row.relation.replace("_", " ")
        change = sides(result, row.label).change or _CHANGES.get(relation, relation)
        yield from (*d0, " and ", *d1, f", {change}" if change else "")
    if len(result.pairs) > 1:
        yield f"; {count(len(result.pairs) - 1)} other pairs"


def _runs(result: AuditResult) -> str:
    made = spent_words(result)
    if fresh(result) is not None:
        made = f"{spent(result.evidence, result.refuted_at or result.trials_used)} until the proof"
    elif not result.violated and result.evidence.kind.of_pairs and result.stopped_by == "trials":
        made += ", as many as allowed"
    return f"{made}; {seconds(result.elapsed_s)}"


_ON_BITS = ("float_bits", "last_bit", "reachable_floats")  # attacks that "auto" uses for external programs only


def _not_covered(result: AuditResult) -> str:
    if void := why_void(result):
        return f"everything: {void}"
    parts = [words_of(result.evidence).others]
    if result.evidence.kind.of_pairs and result.attacks:
        if not saw_times(result.evidence):
            parts.append("running time")
        if not any(row.name in _ON_BITS for row in result.attacks):
            parts.append("the last bits of floats")
    return ", ".join(parts) + "; mistakes in this set-up"
