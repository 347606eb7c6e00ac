"""The next steps after each verdict."""

from __future__ import annotations

import math
import shlex

from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.text.reasons import About, is_about, nothing_holds
from dpaudit_reports.blocks import Block, Code, Heading, Items, Text
from dpaudit_reports.confirmed import fresh
from dpaudit_reports.reasons import why_inconclusive
from dpaudit_reports.repeat import config_of, replay_command, saved_file

_DOCS = "https://github.com/dpaudit/dpaudit/blob/main/docs"
_KEEP = ("Keep the finding as a regression test: ", Code(f"{_DOCS}/after-a-violation.md"), ".")


def next_step(result: AuditResult) -> tuple[Block, ...]:
    """Return the steps, the most urgent first."""
    if result.measurement:
        steps: tuple[Text, ...] = (("State the claim to be tested as ", Code("claim:"), " in the config."),)
    elif result.verdict is Verdict.VIOLATION:
        steps = _after_violation(result)
    elif result.verdict is Verdict.NO_VIOLATION:
        steps = _after_nothing(result)
    else:
        steps = (_after_doubt(result),)
    return Heading("What to do now"), Items(steps, numbered=len(steps) > 1)


def _after_violation(result: AuditResult) -> tuple[Text, ...]:
    words = "Do not rely on the claim until the cause is found."
    check = "Check the set-up: the claim is the documented one, and the datasets are neighbours under its definition."
    if result.confirmation is not None and result.confirmation.outcome == "confirmed":
        return words, check, *_for_maintainers(result), *_to_measure(result)
    if command := replay_command(result):
        confirm: Text = ("Confirm it on fresh runs before you report it: ", Code(command), ".")
    elif result.evidence.once:
        confirm = "Confirm the violation with a new run and new canaries before you report it."
    else:
        confirm = "Confirm the violation with fresh runs before you report it."
    if not result.evidence.of_pairs or result.witness is None:
        return words, confirm
    return words, check, confirm, *_for_maintainers(result), *_to_measure(result)


def _to_measure(result: AuditResult) -> tuple[Text, ...]:
    """Return how to measure the loss if the audit has not measured it."""
    needed = result.runs_for_size
    if needed is not None and math.isfinite(needed):
        key, value = "confirm", str(int(needed))
    elif fresh(result) is None and result.evidence.anytime and result.stopped_by == "evidence":
        key, value = "measure", "true"
    else:
        return ()
    in_config = "add ", Code(f"{key}: {value}"), " to the config"
    where = in_config if result.provenance.audit else ("call ", Code(f"dpaudit.audit(..., {key}={value.title()})"))
    return (("To measure how large the loss is, ", *where, ", and audit again."),)


def _for_maintainers(result: AuditResult) -> tuple[Text, ...]:
    """Return the commands that show the violation without dpaudit, and that find the release that introduced it."""
    if result.provenance.audit is None or not result.name:
        return ("Then find out why the datasets differ in how often outputs fall into the witness's region.",)
    script = f"dpaudit reproduce {saved_file(result)} -o script.py"
    first: Text = (
        "Write a script that shows it without dpaudit, for the maintainers: ",
        Code(script),
        ".",
    )
    name = next(iter(result.provenance.mechanism_packages or {}), "")
    if "==" not in result.provenance.audit or not name:
        return first, _KEEP
    found = f"dpaudit bisect {config_of(result)} {shlex.quote(name)}"
    return first, ("Find the release that introduced the fault: ", Code(found), "."), _KEEP


def _after_nothing(result: AuditResult) -> tuple[Text, ...]:
    advice = result.evidence.words.more
    if advice:
        more: Text = f"To detect smaller violations, {advice}."
    else:
        more = (
            "Try other pairs of neighbouring datasets: ",
            Code("search:"),
            " in the config finds pairs. To detect smaller violations, raise ",
            Code("trials:"),
            " in the config, and use another seed, or the store of this audit.",
        )
    return more, "Do not report this result as a proof of the claim. Report which violation would have been found."


def _after_doubt(result: AuditResult) -> Text:
    why = why_inconclusive(result)
    if any(map(nothing_holds, why)):
        return (
            "Give every run independent randomness, and keep no state between runs. Then audit again: the present "
            "counts are no evidence for or against the claim."
        )
    if result.stopped_by == "failure":
        return "Correct the failure that the verdict names, and audit again."
    if result.stopped_by == "interruption":
        return "Run the audit again, without interruption."
    if any(is_about(warning, About.TOO_FEW) for warning in why):
        if advice := result.evidence.words.more:
            return f"{advice[:1].upper()}{advice[1:]}."
        return (
            "Raise ",
            Code("trials:"),
            " in the config, and audit again with another seed, or with the store of this audit.",
            *_estimate(result),
        )
    return "Remove the cause that the verdict names, and audit again."


def _estimate(result: AuditResult) -> tuple[str, ...]:
    known = any("would do" in warning for warning in result.warnings)
    return () if known else (" The command dpaudit plan estimates how many runs are needed.",)
