"""Defines the options that several commands share, and reads and checks values of options."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from dpaudit.cli.terminal import refuse
from dpaudit.rounding import comma_meant, read_number
from dpaudit.settings import (
    BACKENDS,
    DEFAULTS,
    MIN_TRIALS,
    AuditSettings,
    check_confidence,
    check_confirm,
    check_jobs,
    default_jobs,
    percent_meant,
)
from dpaudit.text import PAPERS, hint, nearest

_RESULTS = Path("dpaudit-results")

RESUME_ANYWAY = "--resume-anyway"
"""The hidden option that `--resume=anyway` is rewritten to: in typer an option always has a value or never has one."""


def whole_option(help: str, *, least: int | None = None, panel: str | None = None) -> Any:
    """Return an option whose value is a whole number such as 1000, 1e5 and 10**4."""

    def parse(given: str | int) -> int:
        value = read_number(given) if isinstance(given, str) else float(given)
        if value is None or not value.is_integer():
            meant = comma_meant(given, "")
            raise typer.BadParameter(f"must be a whole number such as 1000 or 1e5, got {given!r}{meant}")
        if least is not None and value < least:
            raise typer.BadParameter(f"must be at least {least}, got {given}")
        return int(given) if str(given).removeprefix("-").isdecimal() else int(value)  # a float has 53 bits

    return typer.Option(parser=parse, metavar="NUMBER", rich_help_panel=panel, help=help)


def number_option(help: str, *, panel: str | None = None) -> Any:
    """Return an option whose value is a number such as 0.5, 1e-5, 1/3 or log(3)."""

    def parse(given: str | float) -> float:
        value = read_number(given) if isinstance(given, str) else given
        if value is None:
            percent = re.fullmatch(r"\s*([0-9]{1,2}(?:\.[0-9]{1,9})?)\s*%\s*", str(given))
            meant = percent_meant(percent[1]) if percent else comma_meant(given, ".")
            raise typer.BadParameter(f"must be a number such as 0.5, 1e-5 or 1/3, got {given!r}{meant}")
        return value

    return typer.Option(parser=parse, metavar="NUMBER", rich_help_panel=panel, help=help)


def option(help: str, *names: str, metavar: str | None = None, panel: str | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, rich_help_panel=panel, help=help)


def choice_option(help: str, words: Collection[str], *names: str, panel: str | None = None) -> Any:
    """Return an option that must have one of several words as its value."""

    def checked(parameter: typer.CallbackParam, given: str) -> str:
        check_choice(parameter.opts[-1], given, words)
        return given

    return typer.Option(
        *names,
        metavar="|".join(words),
        autocompletion=completing(words),
        callback=checked,
        rich_help_panel=panel,
        help=help,
    )


def check_choice(name: str, given: str, allowed: Collection[str], otherwise: str = "see --help") -> None:
    """Refuse a value that is not one of the allowed words."""
    if given not in allowed:
        refuse(f"{name} must be one of {', '.join(allowed)}; got {given!r}; {hint(given, allowed, otherwise)}")


def completing(words: Collection[str]) -> Callable[[str], list[str]]:
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def check_writable(option: str, file: Path) -> None:
    """Refuse a file to write whose folder does not exist."""
    if not os.path.isdir(file.parent):  # unlike Path.is_dir, this call accepts a name that is too long
        refuse(f"{option} {file}: the folder {file.parent} does not exist; create it first".lstrip())


def file_meant(file: Path, endings: Sequence[str]) -> str:
    """Return a question after "; " if the folder of a missing file holds a file with a similar name; otherwise ""."""
    try:
        if file.exists():
            return ""
        if (saved := _RESULTS / file).is_file():
            return f"; did you mean {saved}?"
        meant = nearest(file.name, sorted(one.name for one in file.parent.iterdir() if one.suffix in endings), 0.75)
    except OSError:
        return ""
    return f"; did you mean {file.with_name(meant)}?" if meant else ""


Configs = Annotated[list[Path], typer.Argument(metavar="CONFIG", help="Config files, or folders that hold them.")]

RUNS, PLACES, SHOWN = "What is run", "Machines and files", "What is shown"  # titles of groups of options in the help

Jobs = Annotated[
    int | None,
    whole_option(
        panel=PLACES, help="Number of worker processes; -1 uses all cores.  Default: 1, but -1 with dask or ray."
    ),
]

Only = Annotated[
    list[str] | None,
    option("Run only audits with this name or pattern, such as 'sum-*'; repeatable.", metavar="NAME", panel=RUNS),
]

Quiet = Annotated[
    bool,
    option(
        "Hide progress and notices.  Show results, and all warnings that concern a verdict.",
        "-q",
        "--quiet",
        panel=SHOWN,
    ),
]

NoCode = Annotated[bool, option("Refuse to run any code outside dpaudit.", "--no-code", panel=RUNS)]

Paper = Annotated[str, choice_option("Size of the pages of PDF files.", PAPERS, panel=PLACES)]
Debug = Annotated[bool, option("Show the Python traceback of an error.", "--debug", panel=SHOWN)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options that `dpaudit run` and `dpaudit compare` share."""

    output: Annotated[Path, option("Folder for the results.", "-o", "--output", metavar="DIR", panel=PLACES)] = _RESULTS
    trials: Annotated[
        int | None,
        whole_option(least=MIN_TRIALS, panel=RUNS, help="Maximum number of runs per dataset; overrides the configs."),
    ] = None
    confidence: Annotated[
        float | None, number_option(panel=RUNS, help="Confidence between 0 and 1, such as 0.99; overrides the configs.")
    ] = None
    confirm: Annotated[
        str | None,
        option(
            "Fresh runs per dataset after a claim is refuted; overrides the configs.",
            "--confirm",
            metavar="N|never",
            panel=RUNS,
        ),
    ] = None
    seed: Annotated[int | None, whole_option(panel=RUNS, help="Random seed; overrides the configs.")] = None
    jobs: Jobs = None
    backend: Annotated[
        str, choice_option("Where mechanisms run: loky (this machine), dask or ray.", BACKENDS, panel=PLACES)
    ] = BACKENDS[0]
    scheduler: Annotated[
        str | None,
        option(
            "Address of the dask scheduler or ray cluster, such as tcp://127.0.0.1:8786.", metavar="ADDR", panel=PLACES
        ),
    ] = None
    each: Annotated[
        bool,
        option("Run each audit at its own confidence, without a guarantee for all together.", "--each", panel=RUNS),
    ] = False
    resume: Annotated[
        bool,
        option(
            "Save outputs to DIR/NAME.trials, and resume from this file if it exists.  --resume=anyway also "
            "resumes from the outputs of a different audit, and reports the differences.",
            "--resume",
            panel=PLACES,
        ),
    ] = False
    resume_anyway: Annotated[bool, typer.Option(RESUME_ANYWAY, hidden=True)] = False  # `resume_option` sets it
    log_json: Annotated[
        Path | None,
        option("Append progress events to FILE, one JSON object per line.", "--log-json", metavar="FILE", panel=PLACES),
    ] = None
    no_pdf: Annotated[bool, option("Write no PDF files.", "--no-pdf", panel=PLACES)] = False
    paper: Paper = PAPERS[0]
    quiet: Quiet = False
    verbose: Annotated[
        bool, option("Also show the evidence and the bounds of each audit on stderr.", "-v", "--verbose", panel=SHOWN)
    ] = False
    debug: Debug = False
    shown: str = ""  # the output folder as the user wrote it; no option

    def __post_init__(self) -> None:
        """Check the values, and resolve the paths, because a mechanism may change the current folder or links."""
        if self.confidence is not None:
            check_confidence(self.confidence, "--confidence", written=f"{self.confidence}".removesuffix(".0"))
        if self.jobs is not None:
            check_jobs(self.jobs, "--jobs")
        if self.confirm is not None:
            check_confirm(self.confirm, "--confirm")
        object.__setattr__(self, "shown", self.shown or str(self.output))
        object.__setattr__(self, "output", Path(os.path.realpath(self.output)))
        if self.log_json is not None:
            object.__setattr__(self, "log_json", self.log_json.absolute())

    @property
    def keep_outputs(self) -> bool:
        """Whether outputs are saved to DIR/NAME.trials."""
        return self.resume or self.resume_anyway

    def over(self, settings: AuditSettings) -> AuditSettings:
        """Return the settings of a config with the overrides of the command line."""
        given = {name: getattr(self, name) for name in ("trials", "confidence", "confirm", "seed")}
        return replace(
            settings,
            **{name: value for name, value in given.items() if value is not None},
            jobs=default_jobs(self.backend) if self.jobs is None else self.jobs,
            store=self.output / f"{settings.name}.trials" if self.keep_outputs else None,
            resume="anyway" if self.resume_anyway else DEFAULTS.resume,
        )


def with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `options: RunOptions` a parameter for each option that it does not define itself."""

    own = inspect.signature(command, eval_str=True).parameters
    types = get_type_hints(RunOptions, include_extras=True)
    shared = [option for option in fields(RunOptions) if hasattr(types[option.name], "__metadata__")]

    @functools.wraps(command)
    def called(**values: Any) -> None:
        given = {option.name: values[option.name] for option in shared}
        try:
            options = RunOptions(**given)
        except ValueError as error:
            refuse(str(error))
        command(options=options, **{name: values[name] for name in own if name != "options"})

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        *(parameter.replace(kind=kind) for name, parameter in own.items() if name != "options"),
        *(
            inspect.Parameter(option.name, kind, default=option.default, annotation=types[option.name])
            for option in shared
            if option.name not in own
        ),
    ]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called
