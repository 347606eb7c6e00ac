"""The message of a failing test, the files that a failing test writes, and the summary of a session."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dpaudit.claims import TradeoffFunction
from dpaudit.result.atomic_write import write_whole
from dpaudit.result.evidence import spent
from dpaudit.result.files import as_text
from dpaudit.result.model import AuditResult
from dpaudit.result.summary import certified_words, size_words, witness_words
from dpaudit.rounding import lower, percent_at_least, upper
from dpaudit.testing.session import Allowance, Chain, Record
from dpaudit.text import SIGNS, WarningCode, has_code, one_line

SLOW = 1.0  # seconds; the summary lists audits that take longer, with the cost of other values of `detect`


def violation(result: AuditResult, chain: Chain | None, significance: float, allowance: Allowance) -> str:
    """Describe a violation in four lines, and write its files.  Without a baseline, `chain` is None."""
    proven = "; ".join([certified_words(result), *size_words(result)])
    evidence = f"p <= {upper(result.p_value, under=significance)}, this audit refutes at p <= {lower(significance, 2)}"
    runs = spent(result.evidence, result.trials_used)
    if chain is not None and chain.runs > 1:
        runs += (
            f", together with {chain.runs - 1} earlier runs of the suite, under one budget; this session alone "
            f"certifies its bounds at {percent_at_least(result.confidence)} confidence"
        )
    warned = "".join(f"; warning: {warning}" for warning in result.warnings)
    lines = [f"VIOLATION of {result.claim.label}: {proven}", f"  {evidence}; {runs}{warned}"]
    if (witness := result.witness) is not None:
        facts = [witness_words(result, witness)]
        rows = [row for row in result.pairs if row.label == witness.pair]
        if len(rows) == 1 and not (rows[0].d0 in witness.pair and rows[0].d1 in witness.pair):
            facts += [f"d0 {rows[0].d0}", f"d1 {rows[0].d1}", *filter(None, [rows[0].difference])]
        lines.append("  " + "; ".join(facts))
    return _message([*lines, *_where(result, allowance)])


def known_violation(claim: TradeoffFunction, chain: Chain) -> str:
    return _message(
        [
            f"VIOLATION of {claim.label}, found on {chain.refuted} and recorded in the baseline",
            f"  {chain.runs} runs of the suite, {chain.trials:,} per dataset; mu >= {lower(chain.mu_lower)}",
            "  After correcting the mechanism, run this test once with --dpaudit-restart to reset its evidence.",
        ]
    )


def inconclusive(result: AuditResult, allowance: Allowance) -> str:
    """Describe an audit without a verdict, and write its files.  Signs of dependent runs come first, with advice."""
    signs = [warning for warning in result.warnings if has_code(warning, WarningCode.DEPENDENT)]
    advice = (
        "what to do: independent runs appear dependent only once in 10^9 audits, so look for state that one run passes "
        "to the next (a cache, a generator that is reset, or a counter), or try another --dpaudit-seed"
    )
    others = [warning for warning in result.warnings if warning not in signs]
    return no_answer(result.claim, [*signs, *([advice] if signs else []), *others], _where(result, allowance))


def no_answer(claim: TradeoffFunction, reasons: Sequence[str], where: Sequence[str]) -> str:
    because = f"  because {'; '.join(reasons)}" if reasons else "  no reason was recorded"
    return _message([f"INCONCLUSIVE about {claim.label}: the audit ended without a verdict", because, *where])


def _message(lines: Sequence[str]) -> str:
    """Join lines.  Text of a mechanism, such as its exception, may have several lines."""
    return "\n".join(map(one_line, lines))


def _where(result: AuditResult, allowance: Allowance) -> list[str]:
    """Write the files of a failure; return a line that names them, with the commands that repeat it."""
    about, settings = result.provenance, allowance.settings
    parts, kept, folder = [f"seed {about.seed}"], "", settings.report
    if folder is not None:
        address = f"{about.test or result.name}:{about.call or 1}"  # different addresses get different names
        readable = re.sub(r"[^A-Za-z0-9_.]+", "-", address)[-60:].strip("-.")
        stem = Path(folder, f"{readable}-{hashlib.sha256(address.encode()).hexdigest()[:8]}")
        try:
            stem.parent.mkdir(parents=True, exist_ok=True)
            write_whole(f"{stem}.json", as_text(result.to_dict()))
            kept = f"{stem}.json"
            parts.append(f"result {kept}")
            write_whole(f"{stem}.pdf", result.as_pdf())
            parts.append(f"report {stem}.pdf")
        except Exception as error:  # an error while writing must not hide the verdict
            parts.append(f"not kept: {type(error).__name__}: {error}")
    if settings.layout is not None and allowance.file is not None and result.violated:
        parts += settings.layout.commands(allowance.node, allowance.file, settings.seed, kept)
    return [f"  {'; '.join(parts)}"]


def summary(
    records: Sequence[Record], *, tests: int, false_alarm: float, runs: int, verbose: bool = False
) -> list[str]:
    """Return the lines for the terminal at the end of a session, which is number `runs` of its baseline.

    With `verbose`, also what each audit without a violation has proven, and what was claimed.
    """
    counts = Counter(record["verdict"] for record in records)
    verdicts = [
        f"{SIGNS[word].sign} {number} {word}{'s' * (word == 'violation' and number > 1)}"
        for word in SIGNS
        if (number := counts[word])
    ]
    often = f"{math.floor(1 / false_alarm * (1 + 1e-9)):,}"
    means = f"a true claim fails this suite in at most one session of {often}"
    if runs:
        means = f"a true claim fails any session up to this one, number {runs}, with probability at most 1 in {often}"
    lines = [
        f"{len(records)} audit{'s' * (len(records) != 1)}: {', '.join(verdicts)}",
        f"false-alarm budget {false_alarm:g}, split over {tests} test{'s' * (tests != 1)}: {means}",
    ]
    for record in records:
        name, verdict = record["name"], record["verdict"]
        now, before = float(record["mu_lower"]), float(record["mu_lower_before"])
        # a bound is a tenth, and two to three standard deviations of a difference, above all earlier bounds
        rises = before > 0 and now > max(1.1 * before, before + 5 / math.sqrt(max(record["trials"], 1)))
        if rises and verdict != "violation":
            lines.append(
                f"drift: {name}: certified mu >= {lower(now, 3)}, but in earlier runs at most {upper(before, 3)} (no "
                f"violation of {record['claim']} yet)"
            )
        if verdict == "no violation found" and verbose:
            proven, sign = record["certified"] or "nothing", SIGNS[verdict].sign
            lines.append(
                f"{sign} {name}: {proven} proven, {record['claim']} claimed; {record['trials']:,} runs per dataset"
            )
        if verdict == "no violation found":
            lines += [f"warning: {name}: {words}" for words in record["warnings"]]
        if runs and record["repeats"]:
            lines.append(
                f"no new evidence: {name} repeats runs of an earlier session; the baseline counts losses of such "
                "audits, but no gains; let the mechanism draw fresh randomness in each session"
            )
    slow = sorted((r for r in records if r["elapsed_s"] > SLOW), key=lambda r: -float(r["elapsed_s"]))[:3]
    return lines + ["slowest audits (runs per dataset):"] * bool(slow) + [f"  {_cost(record)}" for record in slow]


def _cost(record: Record) -> str:
    runs, seconds = record["trials"], record["elapsed_s"]
    cost = f"{seconds:5.1f} s  {record['name']}: {runs:,} runs, target: a mechanism that is {record['detect']}"
    if runs < record["planned"] and record["verdict"] != "violation":
        cost += f", which needs {record['planned']:,}"
    for factor, needed in record["other"].items():
        time = seconds * needed / max(runs, 1)
        about = f"{time:.1f} s" if time < 100 else f"{time / 60:.0f} min"
        cost += f"; detect={factor} "
        cost += "cannot be detected" if needed >= 10**9 else f"needs {needed:,} (about {about})"
    return cost
