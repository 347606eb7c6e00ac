"""The commands that read results: `dpaudit report`, `dpaudit site` and `dpaudit reproduce`.

A result whose verdict its counts do not give is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.options import check_writable, choice_option, file_meant, option
from dpaudit.cli.terminal import refuse, say, show, waiting
from dpaudit.text import PAPERS

if TYPE_CHECKING:
    from dpaudit.result.model import AuditResult


_ADDRESS = re.compile(r"https?://[A-Za-z0-9\[][^\x00-\x20\"'<>\\?#\x7f-\U0010ffff]*")

_Files = Annotated[
    list[Path],
    typer.Argument(metavar="RESULT.json", help="Results written by `dpaudit run`, or folders that hold them."),
]


def report(
    files: _Files,
    output: Annotated[
        Path | None, option("Document to write: .pdf, .html or .md.  Default: print.", "-o", "--output", metavar="FILE")
    ] = None,
    full: Annotated[bool, option("Give each of several audits all sections, on two pages each.", "--full")] = False,
    paper: Annotated[str, choice_option("Size of the pages of a PDF.", PAPERS)] = PAPERS[0],
) -> None:
    """Combine one or more results in one document, or print them.

    All numbers are computed from the counts of a result.  A result whose verdict its counts do not give is refused.
    """
    if output is not None:
        check_writable("--output", output)
    with waiting("loading", shown=True):
        from dpaudit_reports import print_report, write_report

    results = [result for _, result in read_results(files)]
    try:
        if output is None:
            print_report(results, full=full)
        else:
            write_report(results, output, full=full, paper=paper)
    except (ValueError, OSError, ImportError) as error:
        refuse(str(error))


def site(
    files: _Files,
    output: Annotated[
        Path, option("Folder of the site, which is created if it does not exist.", "-o", "--output", metavar="DIR")
    ],
    title: Annotated[
        str | None, option("Title of the index.  Default: Privacy audits.", "--title", metavar="TEXT")
    ] = None,
    url: Annotated[
        str | None,
        option("Address at which the folder will be published, for links in the feed.", "--url", metavar="URL"),
    ] = None,
) -> None:
    """Write static pages: an index of the results, one page and one badge for each audit, and a JSON feed.

    The index sorts and filters in the browser, without a server.  The address of a page does not change when results
    are added.

    Pages of results that are no longer given are removed.  All other files in DIR are kept; if one has the name of a
    new page, nothing is written.
    """
    if url is not None and not _ADDRESS.fullmatch(url):
        refuse(f"--url must be an address such as https://example.org/audits, got {url!r}")
    if any(os.path.isdir(one) and os.path.realpath(one) == os.path.realpath(output) for one in files):
        refuse(f"--output {output}: holds the results; name another folder, such as {output / 'site'}")
    with waiting("loading", shown=True):
        from dpaudit_reports.site import TITLE, digest_of_file, write

    found = read_results(files)
    try:
        digests = [digest_of_file(file) for file, _ in found]
        for i, (file, _) in enumerate(found):
            if (first := digests.index(digests[i])) < i:
                say(f"warning: {file} is a copy of {found[first][0]}, so both have one page")
        with waiting(f"writing {len(set(digests))} pages", shown=True):
            notes = write(
                [one for _, one in found], digests, output, title=TITLE if title is None else title, url=url or ""
            )
    except (ValueError, OSError, ImportError) as error:
        reason = getattr(error, "strerror", None)
        refuse(f"--output {output}: {reason}" if reason else f"--output: {error}")
    for note in notes:
        say(note)
    say(f"the index is {output / 'index.html'}")


BISECTION = "bisection.json"  # the file of `dpaudit bisect` in the folder of the results; it is no result

SWEEP = "sweep.json"
SWEEP_PDF = "sweep.pdf"  # the file of `dpaudit sweep` in the folder of the results; it is no result


def read_results(given: Sequence[Path]) -> list[tuple[Path, AuditResult]]:
    """Return the results in files and folders, or end the command if a file is not a sound result."""
    from dpaudit.result.model import AuditResult

    files: list[Path] = []
    for path in given:
        try:
            inside = sorted(path.glob("*.json")) if path.is_dir() else [path]
            for name, form in ((BISECTION, b'"dpaudit-bisection/'), (SWEEP, b'"dpaudit-sweep/')):
                if path.is_dir() and (other := path / name).is_file() and form in other.read_bytes():
                    inside.remove(other)  # otherwise an audit has this name
        except OSError as error:  # for example, the name is too long
            refuse(unreadable(path, error))
        if not inside:
            refuse(f"{path}: no result (NAME.json) in this folder; `dpaudit run` writes results")
        files += inside
    results = []
    for file in files:
        try:
            results.append((file, AuditResult.from_json(file)))
        except (ValueError, OSError, ImportError, OverflowError, RecursionError, MemoryError) as error:
            refuse(unreadable(file, error))
    return results


def unreadable(file: Path, error: BaseException) -> str:
    """Explain why a file cannot be read as a result, and what to do."""
    if file.suffix in (".yaml", ".yml"):
        return f"{file} is a config, not a result; run it first: dpaudit run {file}"
    if os.path.isdir(file):
        results = sorted(file.glob("*.json"))
        return f"{file} is a folder; name a result" + (f", such as {results[0]}" if results else "")
    if isinstance(error, RecursionError | MemoryError):
        return f"{file} is nested too deeply or is too large to read"
    text = str(getattr(error, "strerror", None) or error)
    meant = file_meant(file, (".json",))
    return f"{text if str(file) in text else f'{file}: {text}'}{meant}"


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
    prints an exact p-value.  It has at most 40 lines, and needs numpy and scipy.  This command runs none of the code
    that the result names, but the script does: read it first.

    A region that cannot be written in plain Python is refused.  If the result does not hold the call or a dataset, the
    script has a place to fill in.
    """
    if output is not None:
        wanted = ".md" if markdown else ".py"
        if output.suffix != wanted:
            kind = "text for an issue tracker (--markdown)" if markdown else "a Python script"
            refuse(f"--output {output}: the file is {kind}, so its name must end in {wanted}")
        check_writable("--output", output)
        if os.path.isdir(output):
            refuse(f"--output {output}: this is a folder; name a file in it")
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
