"""The next steps after each verdict, and how to repeat the audit."""

from __future__ import annotations

import math
import re
import shlex
from itertools import pairwise

from dpaudit.result import RESULTS
from dpaudit.result.evidence import once
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.result.words import words_of
from dpaudit.text import WarningCode, has_code, nothing_holds
from dpaudit_reports.blocks import Block, Code, Heading, Items, Span, Text
from dpaudit_reports.rates import RegionStatus, region_status
from dpaudit_reports.verdicts import fresh, why_inconclusive


def how_to_repeat(result: AuditResult) -> tuple[Span, ...]:
    """Return the commands that count the region on fresh runs and that repeat the whole audit."""
    command = result.provenance.command
    if not command:
        return _replay(result)
    if not (words := _own_command(command)):
        return (*_replay(result), " The file states a command that is not one of dpaudit: “", Code(command), "”.")
    return *_replay(result), " The whole audit: ", Code(_repeated(words, result)), "."


def _own_command(command: str) -> list[str]:
    """Return the words of a command that starts dpaudit or pytest; [] if it may do anything else."""
    try:
        words = shlex.split(command)
    except ValueError:  # anybody may have written the result file
        return []
    module = words[1:2] == ["-m"] and re.fullmatch(r"python[\d.]*", words[0])
    program = words[2:3] if module else words[:1]
    return words if command.isprintable() and program in (["dpaudit"], ["pytest"]) else []


def _repeated(words: list[str], result: AuditResult) -> str:
    """Return the command for this audit alone, without the author's folder of results and without `--quiet`."""
    output = ("-o", "--output")
    kept = [
        word
        for before, word in pairwise(["", *words])
        if not {before, word}.intersection(output)
        and not word.startswith("--output=")
        and word not in ("-q", "--quiet")
    ]
    several = (result.provenance.command_audits or 0) > 1
    if several and result.name and kept[1:2] == ["run"] and "--only" not in kept:
        kept += ["--only", result.name]
    return shlex.join(kept)


def _config(result: AuditResult) -> str:
    """Return the config in the command that made the result, for other commands; "CONFIG" if there is not one."""
    configs = [word for word in _own_command(result.provenance.command or "") if word.endswith((".yaml", ".yml"))]
    return shlex.quote(configs[0]) if len(configs) == 1 else "CONFIG"


def _saved_file(result: AuditResult) -> str:
    """Return the result file of `dpaudit run` for a command in the config's folder, with quotation marks if needed."""
    return shlex.quote(f"{RESULTS}/{result.name}.json")


_USELESS = {
    RegionStatus.NONE: "The result has no rejection region to count on fresh outputs.",
    RegionStatus.VOID: "Nothing is certified, so counting a region on fresh outputs is not useful.",
    RegionStatus.FAR: "No counted region came near a violation, so no region is worth counting on fresh outputs.",
}


def replay_command(result: AuditResult) -> str:
    """Return the command that counts the region on fresh runs; "" if the result has no region worth counting."""
    if words_of(result.evidence).again or region_status(result) in _USELESS:
        return ""
    if result.provenance.audit is not None:
        return f"dpaudit replay {_saved_file(result)}"
    return "dpaudit replay FILE.json" if result.provenance.test is not None else ""


def _replay(result: AuditResult) -> tuple[Span, ...]:
    if why_not := words_of(result.evidence).again:
        return (why_not,)
    if useless := _USELESS.get(region_status(result)):
        return (useless,)
    region = "the witness's region" if result.violated else "the counted region"
    counts = f" counts fresh outputs in {region} and tests these counts alone"
    if command := replay_command(result):
        if result.provenance.audit is not None:
            return Code(command), f"{counts}. Run it in the config's folder; the file was saved beside this report."
        where = "FILE.json is the result that the test saved, in .dpaudit by default; its message names it."
        return Code(command), f"{counts}. {where}"
    return (
        Code("dpaudit.replay(result, mechanism, pairs)"),
        f"{counts}. The result does not name a config, so the command ",
        Code("dpaudit replay"),
        " does not know the mechanism.",
    )


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
    else:
        runs = "a new run and new canaries" if once(result.evidence) else "fresh runs"
        confirm = f"Confirm the violation with {runs} before you report it."
    if not result.evidence.kind.of_pairs or result.witness is None:
        return words, confirm
    return words, check, confirm, *_for_maintainers(result), *_to_measure(result)


def _to_measure(result: AuditResult) -> tuple[Text, ...]:
    needed = result.runs_for_size
    if needed is not None and math.isfinite(needed):
        key, value = "confirm", str(int(needed))
    elif fresh(result) is None and result.evidence.kind.anytime and result.stopped_by == "evidence":
        key, value = "measure", "true"
    else:
        return ()
    in_config = "add ", Code(f"{key}: {value}"), " to the config"
    where = in_config if result.provenance.audit else ("call ", Code(f"dpaudit.audit(..., {key}={value.title()})"))
    return (("To measure how large the loss is, ", *where, ", and audit again."),)


def _for_maintainers(result: AuditResult) -> tuple[Text, ...]:
    if result.provenance.audit is None or not result.name:
        return ("Then find out why the datasets differ in how often outputs fall into the witness's region.",)
    script = f"dpaudit reproduce {_saved_file(result)} -o script.py"
    first: Text = ("Write a script that shows it without dpaudit, for the maintainers: ", Code(script), ".")
    name = next(iter(result.provenance.mechanism_packages or {}), "")
    if "==" not in result.provenance.audit or not name:
        return first, _KEEP
    found = f"dpaudit bisect {_config(result)} {shlex.quote(name)}"
    return first, ("Find the release that introduced the fault: ", Code(found), "."), _KEEP


def _after_nothing(result: AuditResult) -> tuple[Text, ...]:
    advice = words_of(result.evidence).more
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
    if any(has_code(warning, WarningCode.TOO_FEW) for warning in why):
        if advice := words_of(result.evidence).more:
            return f"{advice[:1].upper()}{advice[1:]}."
        again = " in the config, and audit again with another seed, or with the store of this audit."
        plan = " The command dpaudit plan estimates how many runs are needed."
        return "Raise ", Code("trials:"), again + plan
    return "Remove the cause that the verdict names, and audit again."
