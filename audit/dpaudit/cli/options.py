"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

Configs = Annotated[list[Path], typer.Argument(metavar="CONFIG...", help="Config files, or folders of them.")]

Output = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where results go.")]

Trials = Annotated[int | None, typer.Option(min=1, help="Most runs on each dataset, instead of the configs'.")]

Confidence = Annotated[float | None, typer.Option(help="Between 0 and 1, instead of the configs'.")]

Seed = Annotated[int | None, typer.Option(help="Instead of the configs'.")]

Jobs = Annotated[
    int | None, typer.Option(help="Processes the mechanisms run in; -1 for all.  1 unless given; -1 with dask and ray.")
]

Backend = Annotated[
    str, typer.Option(metavar="loky|dask|ray", help="Whose processes they are: this machine's or a cluster's.")
]

Scheduler = Annotated[str | None, typer.Option(metavar="ADDR", help="Of dask, e.g. tcp://127.0.0.1:8786, or of ray.")]

NoPdf = Annotated[bool, typer.Option("--no-pdf", help="Write no PDF documents.")]

Quiet = Annotated[
    bool,
    typer.Option(
        "-q", "--quiet", help="No progress: only results, and the warnings of a violation or an inconclusive audit."
    ),
]

Resume = Annotated[
    bool, typer.Option("--resume", help="Keep all outputs in DIR/NAME.trials, and go on from those that are there.")
]

LogJson = Annotated[
    Path | None, typer.Option("--log-json", metavar="FILE", help="Add events to FILE, one JSON object a line.")
]

Each = Annotated[
    bool, typer.Option("--each", help="Keep each audit's own confidence, instead of one promise for all of them.")
]

NoCode = Annotated[bool, typer.Option("--no-code", help="Refuse whatever runs code that is not dpaudit's own.")]

Debug = Annotated[bool, typer.Option("--debug", help="Show Python tracebacks of errors.")]

RESULTS = Path("dpaudit-results")


def absolute(path: Path) -> Path:
    """The path from the current folder as it is now: a mechanism may change the folder when it is loaded."""
    try:
        return Path(os.path.abspath(path))
    except OSError:  # the current folder has been deleted
        return path
