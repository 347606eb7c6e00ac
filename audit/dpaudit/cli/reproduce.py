"""`dpaudit reproduce`: writes a standalone script that reproduces a violation without dpaudit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.ending import refuse
from dpaudit.cli.options import check_writable, option
from dpaudit.cli.read_results import unreadable
from dpaudit.cli.terminal import say, show, waiting


def reproduce(
    file: Annotated[
        Path, typer.Argument(metavar="RESULT.json", help="A result with a violation, written by `dpaudit run`.")
    ],
    output: Annotated[
        Path | None,
        option("File to write: .py, or .md with --markdown.  Default: print.", "-o", "--output", metavar="FILE"),
    ] = None,
    markdown: Annotated[
        bool, option("Write text for an issue tracker, which contains the script.", "--markdown")
    ] = False,
) -> None:
    """Write a standalone Python script that reproduces a violation without dpaudit.

    The script calls the mechanism on the two datasets of the witness, counts the runs in the witness's region, and
    prints an exact p-value.  It has at most 40 lines, and needs numpy and scipy.  The command runs no code that the
    result names.  Read the script before you run it, because it calls the mechanism that the result names.

    A region that cannot be written in plain Python is refused.  If the result does not hold the call or a dataset, the
    script has a place to fill in.
    """
    _check(output, markdown=markdown)
    with waiting("loading", shown=output is not None):
        from dpaudit.reproduce.literals import Unwritable
        from dpaudit.reproduce.script import as_markdown, script_of
        from dpaudit.result.atomic_write import write_placed
        from dpaudit.result.model import AuditResult

    try:
        result = AuditResult.from_json(file)
        script = script_of(result)
    except Unwritable as error:
        refuse(f"{file}: {error}")
    except (ValueError, OSError, ImportError, OverflowError, RecursionError, MemoryError) as error:
        refuse(unreadable(file, error))
    text = as_markdown(result, script) if markdown else script.text
    if output is None:
        show(text.rstrip("\n"))
    else:
        if not markdown and output.stem == script.module:
            refuse(f"--output {output}: the script imports {script.module}.py, so it needs another name")
        try:
            write_placed(output, text)
        except OSError as error:
            refuse(f"--output {output}: {error.strerror or error}")
    for task in script.missing:
        say(f"the script is not complete: {task} where it says FILL IN")
    if script.few:
        say(script.few)
    if script.seconds > 60:
        say(
            f"the script makes {2 * script.runs:,} runs, and the audit needed up to {script.seconds / 60:,.0f} "
            "minutes for as many; you may change RUNS, but only before the first run"
        )


def _check(output: Path | None, *, markdown: bool) -> None:
    if output is None:
        return
    wanted = ".md" if markdown else ".py"
    if output.suffix != wanted:
        kind = "text for an issue tracker (--markdown)" if markdown else "a Python script"
        refuse(f"--output {output}: the file is {kind}, so its name must end in {wanted}")
    check_writable("--output", output)
    if os.path.isdir(output):
        refuse(f"--output {output}: this is a folder; name a file in it")
