"""`dpaudit scores`: audit a file of scores that somebody else has made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpaudit.cli.ending import INCONCLUSIVE, NO_VIOLATION, VIOLATION, leave, refuse
from dpaudit.cli.terminal import show, waiting
from dpaudit.settings.audit import DEFAULTS

if TYPE_CHECKING:
    from dpaudit.result.model import AuditResult

_CHOICES = {"runs": "runs", "canaries": "canaries", "none": None}


def scores(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet or JSON lines with the columns score and included, or NPZ with these or with scores0 "
            "and scores1.",
        ),
    ],
    independence: Annotated[
        str | None,
        typer.Option(
            metavar="runs|canaries|none",
            help="runs: every score has a run of its own.  canaries: one run, scores assumed independent given the "
            "coins.  none: one run, nothing assumed.",
        ),
    ] = None,
    claim: Annotated[
        str | None, typer.Option(metavar="CLAIM", help='The claim, such as "gaussian(mu=1)".  Default: only measure.')
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the audit, between 0 and 1.")] = DEFAULTS.confidence,
    delta: Annotated[float, typer.Option(help="Also print the bound on epsilon at this delta.")] = 1e-5,
    assuming: Annotated[
        str | None,
        typer.Option(
            metavar="FAMILY",
            help='Also bound epsilon inside a family: gaussian, or a claim such as "laplace(epsilon=?)".',
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed, of the order of equal scores.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the result: .json, .pdf, .html or .md."),
    ] = None,
) -> None:
    """Audit a file of scores of runs or of canaries, or measure by it.

    A score is higher the more it looks like d1, or like an included canary; included is 1 for runs on d1 and canaries
    put in.  Without a claim nothing can be refuted: the bounds are printed, and the exit code is 0.
    """
    with waiting("loading", shown=True):
        from dpaudit.cli.score_files import BadScores, read_scores_file
        from dpaudit.engine.scores import CHOICES, audit_scores
        from dpaudit.text.rounding import lower

    if independence not in _CHOICES:
        choices = "\n".join(f"  {'none' if choice is None else choice}: {words}" for choice, words in CHOICES.items())
        given = "it was left out" if independence is None else f"got {independence!r}"
        refuse(f"--independence must be runs, canaries or none; {given}\n{choices}")
    chosen: Any = _CHOICES[independence]
    try:
        with waiting("reading", shown=True):
            scores0, scores1 = read_scores_file(file)
        with waiting("testing", shown=True):
            result = audit_scores(
                scores0, scores1, claim, independence=chosen, confidence=confidence, seed=seed, name=file.stem
            )
            bounds = [f"  epsilon >= {lower(result.epsilon_lower(delta))} at delta = {delta:g}"]
            if assuming is not None:
                bound = result.assumed_bound(delta, assuming)
                bounds.append(f"  epsilon >= {lower(bound)} at delta = {delta:g}, assuming that {bound.assumption}")
        if output is not None:
            _write(result, output)
    except (BadScores, ValueError, TypeError, ImportError, OSError) as error:
        refuse(str(error))
    for line in (str(result), *bounds):
        show(line)
    if result.measurement and result.bounds_valid:
        leave(NO_VIOLATION)
    answered = NO_VIOLATION if result.bounds_valid and not _open(result) else INCONCLUSIVE
    leave(VIOLATION if result.violated else answered)


def _open(result: AuditResult) -> bool:
    from dpaudit.result.values import Verdict

    return result.verdict is Verdict.INCONCLUSIVE


def _write(result: AuditResult, output: Path) -> None:
    if output.suffix == ".json":
        result.to_json(output)
        return
    from dpaudit_reports import write_report

    write_report([result], output)
