"""`dpaudit scores`: audits a file of scores that another program computed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.options import check_writable, completing, file_meant, number_option, option, whole_option
from dpaudit.cli.terminal import code_of, leave, refuse, show, waiting
from dpaudit.settings import DEFAULTS, check_confidence
from dpaudit.text import nearest

_SCORES = (".csv", ".npz", ".parquet", ".jsonl", ".ndjson")
_ENDINGS = (".json", ".pdf", ".html", ".htm", ".md")


_File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="CSV, Parquet, JSON lines or NPZ with columns 'score' and 'included'; for several runs also 'run'.",
    ),
]
_Independence = Annotated[
    str | None,
    typer.Option(
        metavar="runs|canaries|none",
        autocompletion=completing(("runs", "canaries", "none")),
        help="What the verdict assumes.  none: only that canaries were included at random.  canaries: also that "
        "they do not influence each other's scores.  runs: each score comes from its own run.  Choose before you "
        "see the scores.  Default: none.",
    ),
]
_IncludedAtRandom = Annotated[
    str,
    typer.Option(
        metavar="coins|fixed_number",
        autocompletion=completing(("coins", "fixed_number")),
        help="coins: a fair coin decided on each canary.  fixed_number: a fixed number of canaries was sampled.",
    ),
]
_Claim = Annotated[
    str | None, option('The claim, such as "epsilon=2, delta=1e-5".  Default: no claim.', metavar="CLAIM")
]
_Delta = Annotated[float | None, number_option("Delta of the bounds.  Default: that of the claim, or 1e-5.")]
_Assuming = Annotated[
    str | None,
    option('Also bound epsilon within a family: gaussian, or a claim such as "laplace(epsilon=?)".', metavar="FAMILY"),
]
_Output = Annotated[
    Path | None, option("Write the result: .json, .pdf, .html or .md.", "-o", "--output", metavar="FILE")
]


def scores(
    file: _File,
    independence: _Independence = None,
    included_at_random: _IncludedAtRandom = "coins",
    claim: _Claim = None,
    confidence: Annotated[float, number_option("Confidence of the audit, between 0 and 1.")] = DEFAULTS.confidence,
    delta: _Delta = None,
    assuming: _Assuming = None,
    seed: Annotated[int | None, whole_option("Random seed for the order of equal scores.")] = None,
    output: _Output = None,
) -> None:
    """Audit a claim, or only measure the privacy loss, with a file of scores of runs or canaries.

    A higher score must be stronger evidence that the run used d1, or that the canary was included.  The column
    `included` is 1 for these, and `run` names the run of each canary.  Instead, an NPZ file may hold scores0 (runs on
    d0, excluded canaries) and scores1.  Without a claim, only the bounds are printed.

    The table shows what is proven under each assumption, and the verdict rests on the one of --independence.  Members
    and non-members from different sources prove nothing: canaries must have been included at random.

    The confidence holds for a single audit of a complete file.  Repeated audits of a growing file refute a true claim
    more often.  For results that arrive one by one, use OnlineAudit (docs/scores.md).

    Exit codes: 0 no violation found, or valid bounds without a claim; 1 violation; 2 wrong usage or file; 3
    inconclusive, or the scores are not valid evidence; 4 internal error.
    """
    with waiting("loading", shown=True):
        from dpaudit.cli.score_files import BadScores, read_scores_file
        from dpaudit.engine.scores import audit_scores
        from dpaudit.result.values import Verdict
        from dpaudit.rounding import lower

    _check_design(independence, included_at_random)
    _check_values(claim, confidence, delta, assuming, output)
    try:
        with waiting("reading", shown=True):
            read = read_scores_file(file)
        if read.run is not None and independence == "runs":
            refuse(
                f"{file} has a column run, which is allowed only for canaries; got --independence runs.  Choose "
                "canaries or none, or remove the column run"
            )
        with waiting("testing", shown=True):
            result = audit_scores(
                read.scores0,
                read.scores1,
                claim,
                independence=None if independence == "none" else independence,  # type: ignore[arg-type]
                included_at_random=included_at_random,  # type: ignore[arg-type]
                run=read.run,
                confidence=confidence,
                seed=seed,
                name=file.stem,
            )
            lines = [result.summary(delta)]
            if assuming is not None:
                at = result.bounds[0].delta if delta is None and result.bounds else delta or 0.0
                bound = result.assumed_bound(at, assuming)
                lines.append(f"  epsilon >= {lower(bound)} at delta = {at:g}, assuming that {bound.assumption}")
        if output is not None and output.suffix == ".json":
            result.to_json(output)
        elif output is not None:
            from dpaudit_reports import write_report

            write_report([result], output)
    except BadScores as error:
        refuse(f"{error}{file_meant(file, _SCORES)}")
    except (ValueError, TypeError, ImportError, OSError) as error:
        refuse(_with_options(str(error)))
    for line in lines:
        show(_with_options(line))
    # a measurement is complete if its bounds are valid
    complete = result.bounds_valid if result.measurement else result.verdict is not Verdict.INCONCLUSIVE
    leave(code_of(violated=result.violated, broken=False, incomplete=not complete))


def _check_values(
    claim: str | None, confidence: float, delta: float | None, assuming: str | None, output: Path | None
) -> None:
    """Refuse wrong values of options before the file is read."""
    from dpaudit.claims import parse_claim
    from dpaudit.inference.scores.families import family_of

    try:
        check_confidence(confidence, "--confidence", written=str(confidence).removesuffix(".0"))
        if claim is not None:
            parse_claim(claim)
    except ValueError as error:
        refuse(str(error))
    if assuming is not None and "?" not in assuming and assuming.strip() != "gaussian":
        refuse(
            '--assuming must be gaussian or a claim with one ? for its parameter, such as "laplace(epsilon=?)"; '
            f"got {assuming!r}{_meant(assuming, ['gaussian'])}"
        )
    if assuming is not None:
        try:
            family_of(assuming)(1.0)
        except ValueError as error:
            refuse(f"--assuming: {error}")
    if delta is not None and not 0 <= delta <= 1:
        refuse(f"--delta must lie in [0, 1], got {delta:g}")
    if output is not None:
        check_writable("--output", output)
        if output.suffix.lower() not in _ENDINGS:
            refuse(f"--output {output}: the name must end in one of {', '.join(_ENDINGS)}")


def _check_design(independence: str | None, inclusion: str) -> None:
    """Refuse an invalid design, and explain the valid ones."""
    from dpaudit.engine.score_design import CHOICES, DESIGNS

    choices = {choice or "none": words for choice, words in CHOICES.items()}
    for option_, given, known in (
        ("--independence", independence or "none", choices),
        ("--included-at-random", inclusion, DESIGNS),
    ):
        if given not in known:
            *others, last = known
            lines = [f"  {choice}: {words}" for choice, words in known.items()]
            message = f"{option_} must be {', '.join(others)} or {last}; got {given!r}{_meant(given, known)}"
            refuse("\n".join([message, *lines]))
    if independence == "runs" and inclusion != "coins":
        refuse(
            "--included-at-random is allowed only for canaries; remove this option, or choose another --independence"
        )


def _meant(given: str, known: Iterable[str]) -> str:
    meant = nearest(given, list(known))
    return f"; did you mean {meant}?" if meant else ""


def _with_options(line: str) -> str:
    """Replace arguments of Python in a message by options."""
    line = line.replace('included_at_random="fixed_number"', "--included-at-random fixed_number")
    return line.replace("independence=None", "--independence none")
