"""Explains how to count the region on fresh outputs, and how to repeat the audit."""

from __future__ import annotations

import re
import shlex

from dpaudit.result import RESULTS
from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Code, Span
from dpaudit_reports.rates import RegionStatus, region_status

_QUIET = ("-q", "--quiet")
_OUTPUT = ("-o", "--output")  # options for the folder of results


def how_to_repeat(result: AuditResult) -> tuple[Span, ...]:
    """Return the commands that count the region on fresh runs and that repeat the whole audit."""
    return (*_replay(result), *_whole(result))


def _whole(result: AuditResult) -> tuple[Span, ...]:
    """Return the command that repeats the whole audit; a command of another program is only quoted."""
    command = result.provenance.command
    if not command:
        return ()
    words = _own_command(command)
    if words is None:
        return (" The file states a command that is not one of dpaudit: “", Code(command), "”.")
    return " The whole audit: ", Code(_repeated(words, result)), "."


def _own_command(command: str) -> list[str] | None:
    """Return the words of a command that starts dpaudit or pytest; None if it may do anything else."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    module = words[1:2] == ["-m"] and re.fullmatch(r"python[\d.]*", words[0])
    program = words[2:3] if module else words[:1]
    return words if command.isprintable() and program in (["dpaudit"], ["pytest"]) else None


def _repeated(words: list[str], result: AuditResult) -> str:
    """Return the command for this audit alone, without the author's folder of results and without `--quiet`."""
    kept: list[str] = []
    for i, word in enumerate(words):
        folder = word in _OUTPUT or (i > 0 and words[i - 1] in _OUTPUT) or word.startswith(f"{_OUTPUT[-1]}=")
        if folder or word in _QUIET:
            continue
        kept.append(word)
    several = (result.provenance.command_audits or 0) > 1
    if several and result.name and kept[1:2] == ["run"] and "--only" not in kept:
        kept += ["--only", result.name]
    return shlex.join(kept)


def config_of(result: AuditResult) -> str:
    """Return the config in the command that made the result, for other commands; "CONFIG" if there is not one."""
    try:
        words = shlex.split(result.provenance.command or "")
    except ValueError:  # anybody may have written the result file
        words = []
    configs = [word for word in words if word.endswith((".yaml", ".yml"))]
    return shlex.quote(configs[0]) if len(configs) == 1 else "CONFIG"


def saved_file(result: AuditResult) -> str:
    """Return the result file of `dpaudit run` for a command in the config's folder, with quotation marks if needed."""
    return shlex.quote(f"{RESULTS}/{result.name}.json")


def replay_command(result: AuditResult) -> str:
    """Return the command that counts the region on fresh runs; "" if the result has no region worth counting."""
    useless = region_status(result) in (RegionStatus.NONE, RegionStatus.VOID, RegionStatus.FAR)
    if result.evidence.words.again or useless:
        return ""
    if result.provenance.audit is not None:
        return f"dpaudit replay {saved_file(result)}"
    return "dpaudit replay FILE.json" if result.provenance.test is not None else ""


def _replay(result: AuditResult) -> tuple[Span, ...]:
    if why_not := result.evidence.words.again:
        return (why_not,)
    match region_status(result):
        case RegionStatus.NONE:
            return ("The result has no rejection region to count on fresh outputs.",)
        case RegionStatus.VOID:
            return ("Nothing is certified, so counting a region on fresh outputs is not useful.",)
        case RegionStatus.FAR:
            return ("No counted region came near a violation, so no region is worth counting on fresh outputs.",)
    region = "the witness's region" if result.violated else "the counted region"
    counts = f" counts fresh outputs in {region} and tests these counts alone"
    if command := replay_command(result):
        if result.provenance.audit is not None:
            return Code(command), f"{counts}. Run it in the config's folder; the file was saved beside this report."
        return Code(
            command
        ), f"{counts}. FILE.json is the result that the test saved, in .dpaudit by default; its message names it."
    return (
        Code("dpaudit.replay(result, mechanism, pairs)"),
        f"{counts}. The result does not name a config, so the command ",
        Code("dpaudit replay"),
        " does not know the mechanism.",
    )
