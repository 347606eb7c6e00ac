"""The message of a failing test, and the files that a failing test writes."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpaudit.claims import TradeoffFunction
from dpaudit.result.atomic_write import link_in, write_placed
from dpaudit.result.files import as_text
from dpaudit.result.model import AuditResult, certified_words, size_words
from dpaudit.result.witness_words import witness_words
from dpaudit.testing.wealth import Chain
from dpaudit.text.printable import one_line
from dpaudit.text.rounding import lower, percent_at_least, upper


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The files of a result."""

    json: Path
    pdf: Path
    no_json: str = ""
    no_pdf: str = ""


def keep(result: AuditResult, folder: Path) -> Kept:
    """Write a result and its report.  An error while writing does not hide the verdict.

    Symbolic links are refused, because an untrusted checkout may hold them.
    """
    about = result.provenance
    stem = folder / file_name(f"{result.name if about.test is None else about.test}:{about.call or 1}")
    json, pdf = stem.with_name(stem.name + ".json"), stem.with_name(stem.name + ".pdf")
    return Kept(
        json=json,
        pdf=pdf,
        no_json=_written(json, lambda: as_text(result.to_dict())),
        no_pdf=_written(pdf, result.as_pdf),
    )


def _written(file: Path, content: Callable[[], str | bytes]) -> str:
    """Write a file.  Return "", or the reason why the file could not be written."""
    try:
        if (link := link_in(file.parent)) is not None:
            raise OSError(
                errno.ELOOP,
                f"{link} is a symbolic link to {os.readlink(link)}; name the real folder with --dpaudit-report",
            )
        file.parent.mkdir(parents=True, exist_ok=True)
        write_placed(file, content())
    except Exception as error:
        return f"not written: {type(error).__name__}: {getattr(error, 'strerror', None) or error}"
    return ""


def file_name(address: str) -> str:
    """Return a short, readable file name; different addresses get different names."""
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", address).strip("-.")[-60:].lstrip("-.")
    return f"{readable}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


def violation(result: AuditResult, chain: Chain | None, significance: float, kept: Kept | None) -> str:
    """Describe a violation."""
    lines = [
        f"VIOLATION of {result.claim.label}",
        f"  certified  {certified_words(result).removeprefix('certified: ')}",
        *(f"             {words}" for words in size_words(result)),
        f"  evidence   p <= {upper(result.p_value, under=significance)}, this audit refutes at p <= "
        f"{lower(significance, 2)}; "
        f"{result.trials_used:,} runs per dataset",
    ]
    if chain is not None and chain.runs > 1:
        lines.append(f"             together with {chain.runs - 1} earlier runs of the suite, under one budget")
        lines.append(
            f"             this session alone certifies its bounds at {percent_at_least(result.confidence)} confidence"
        )
    if result.witness is not None:
        lines.append(f"  witness    {witness_words(result, result.witness)}")
        lines += _datasets(result, result.witness.pair)
    lines += [f"  warning    {warning}" for warning in result.warnings]
    return _message([*lines, *_where(result.provenance.seed, result, kept)])


def _datasets(result: AuditResult, label: str) -> list[str]:
    """Return lines with the datasets of a pair, unless its label shows them."""
    found = [row for row in result.pairs if row.label == label]
    if len(found) != 1 or all(text in label for text in (found[0].d0, found[0].d1)):
        return []
    (row,) = found
    lines = [f"  d0         {row.d0}", f"  d1         {row.d1}"]
    return [*lines, f"             {row.difference}"] if row.difference else lines


def known_violation(claim: TradeoffFunction, chain: Chain) -> str:
    """Describe a violation that an earlier run found."""
    return _message(
        [
            f"VIOLATION of {claim.label}, found on {chain.refuted} and recorded in the baseline",
            f"  evidence   {chain.runs} runs of the suite, {chain.trials:,} per dataset; mu >= {lower(chain.mu_lower)}",
            "  After correcting the mechanism, run this test once with --dpaudit-restart to reset its evidence.",
        ]
    )


def no_answer(claim: TradeoffFunction, reasons: Sequence[str], seed: int, kept: Kept | None = None) -> str:
    """Describe an audit that ended without a verdict."""
    lines = [f"INCONCLUSIVE about {claim.label}: the audit ended without a verdict"]
    return _message([*lines, *(f"  because    {reason}" for reason in reasons), *_where(seed, None, kept)])


def _message(lines: Sequence[str]) -> str:
    """Join lines.  Foreign text in a line, such as an exception's message, can neither add a line nor hide one."""
    return "\n".join(map(one_line, lines))


def _where(seed: object, result: AuditResult | None, kept: Kept | None) -> list[str]:
    lines = [f"  seed       {seed}"]
    if kept is not None:
        lines.append(f"  result     {kept.no_json or kept.json}")
        lines.append(f"  report     {kept.no_pdf or kept.pdf}")
    if result is not None and (test := result.provenance.test):
        suite_seed = result.provenance.suite_seed or 0
        lines.append(f"  same runs  pytest {shlex.quote(test)} --dpaudit-seed {suite_seed}")
        lines.append(f"  new runs   pytest {shlex.quote(test)} --dpaudit-seed {suite_seed + 1}")
        if kept is not None and not kept.no_json:
            lines.append(f"  replay     dpaudit replay {shlex.quote(str(kept.json))}")
    return lines
