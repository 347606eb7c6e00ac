"""Defines the options that several commands share, with their help."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from dpaudit.cli.commands import RESUME_ANYWAY
from dpaudit.cli.values import completing, number_option, whole_option
from dpaudit.result import RESULTS
from dpaudit.settings.audit import BACKENDS
from dpaudit.settings.limits import MIN_TRIALS
from dpaudit.text.signs import PAPERS

Configs = Annotated[list[Path], typer.Argument(metavar="CONFIG", help="Config files, or folders that hold them.")]

RUNS, PLACES, SHOWN = "What is run", "Machines and files", "What is shown"
"""Titles of groups of options in the help."""

Jobs = Annotated[
    int | None,
    whole_option(
        panel=PLACES,
        help="Number of worker processes; -1 uses all cores.  Default: 1, but -1 with dask or ray.",
    ),
]

Quiet = Annotated[
    bool,
    typer.Option(
        "-q",
        "--quiet",
        rich_help_panel=SHOWN,
        help="Hide progress and notices.  Show results, and all warnings that concern a verdict.",
    ),
]

NoCode = Annotated[
    bool, typer.Option("--no-code", rich_help_panel=RUNS, help="Refuse to run any code outside dpaudit.")
]

Paper = Annotated[
    str,
    typer.Option(
        metavar="|".join(PAPERS),
        autocompletion=completing(PAPERS),
        rich_help_panel=PLACES,
        help="Size of the pages of PDF files.",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", rich_help_panel=SHOWN, help="Show the Python traceback of an error.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options that `dpaudit run` and `dpaudit compare` share."""

    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", rich_help_panel=PLACES, help="Folder for the results.")
    ] = Path(RESULTS)
    trials: Annotated[
        int | None,
        whole_option(
            least=MIN_TRIALS,
            panel=RUNS,
            help="Maximum number of runs per dataset; overrides the configs.",
        ),
    ] = None
    confidence: Annotated[
        float | None,
        number_option(
            panel=RUNS,
            help="Confidence between 0 and 1, such as 0.99; overrides the configs.",
        ),
    ] = None
    confirm: Annotated[
        str | None,
        typer.Option(
            "--confirm",
            metavar="N|never",
            rich_help_panel=RUNS,
            help="Fresh runs per dataset after a claim is refuted; overrides the configs.",
        ),
    ] = None
    seed: Annotated[
        int | None,
        whole_option(panel=RUNS, help="Random seed; overrides the configs."),
    ] = None
    jobs: Jobs = None
    backend: Annotated[
        str,
        typer.Option(
            metavar="|".join(BACKENDS),
            autocompletion=completing(BACKENDS),
            rich_help_panel=PLACES,
            help="Where mechanisms run: loky (this machine), dask or ray.",
        ),
    ] = BACKENDS[0]
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDR",
            rich_help_panel=PLACES,
            help="Address of the dask scheduler or ray cluster, such as tcp://127.0.0.1:8786.",
        ),
    ] = None
    each: Annotated[
        bool,
        typer.Option(
            "--each",
            rich_help_panel=RUNS,
            help="Run each audit at its own confidence, without a guarantee for all together.",
        ),
    ] = False
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            rich_help_panel=PLACES,
            help="Save outputs to DIR/NAME.trials, and resume from this file if it exists.  --resume=anyway also "
            "resumes from the outputs of a different audit, and reports the differences.",
        ),
    ] = False
    resume_anyway: Annotated[bool, typer.Option(RESUME_ANYWAY, hidden=True)] = False  # `resume_option` sets it
    log_json: Annotated[
        Path | None,
        typer.Option(
            "--log-json",
            metavar="FILE",
            rich_help_panel=PLACES,
            help="Append progress events to FILE, one JSON object per line.",
        ),
    ] = None
    no_pdf: Annotated[bool, typer.Option("--no-pdf", rich_help_panel=PLACES, help="Write no PDF files.")] = False
    paper: Paper = PAPERS[0]
    quiet: Quiet = False
    verbose: Annotated[
        bool,
        typer.Option(
            "-v",
            "--verbose",
            rich_help_panel=SHOWN,
            help="Also show the evidence and the bounds of each audit on stderr.",
        ),
    ] = False
    debug: Debug = False
    shown: str = field(default="", init=False)  # the output folder as the user wrote it

    def __post_init__(self) -> None:
        """Resolve the paths now, because a mechanism may change the current folder or links when it is loaded."""
        object.__setattr__(self, "shown", str(self.output))
        object.__setattr__(self, "output", Path(os.path.realpath(absolute(self.output))))
        if self.log_json is not None:
            object.__setattr__(self, "log_json", absolute(self.log_json))


def with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `options: RunOptions` one parameter for each field, as typer expects.

    A parameter of the command replaces the shared option with this name, which then has its default in `options`.
    """

    own = inspect.signature(command).parameters
    shared = [option for option in fields(RunOptions) if option.init and option.name not in own]

    @functools.wraps(command)
    def called(**values: Any) -> None:
        options = RunOptions(**{option.name: values.pop(option.name) for option in shared})
        command(options=options, **values)

    kind = inspect.Parameter.KEYWORD_ONLY
    types = get_type_hints(RunOptions, include_extras=True)
    parameters = [
        *(
            parameter.replace(kind=kind)
            for name, parameter in inspect.signature(command, eval_str=True).parameters.items()
            if name != "options"
        ),
        *(
            inspect.Parameter(option.name, kind, default=option.default, annotation=types[option.name])
            for option in shared
        ),
    ]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


def absolute(path: Path) -> Path:
    """Resolve a path against the current folder."""
    try:
        return Path(os.path.abspath(path))
    except OSError:  # the current folder has been deleted
        return path
