"""`dpaudit report` combines results in one document, and `dpaudit site` writes static pages for them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.ending import refuse
from dpaudit.cli.options import check_writable, choice_option, option
from dpaudit.cli.read_results import read_results
from dpaudit.cli.terminal import say, waiting
from dpaudit.text import PAPERS

_ADDRESS = re.compile(r"https?://[A-Za-z0-9\[][^\x00-\x20\"'<>\\?#\x7f-\U0010ffff]*")

_Files = Annotated[
    list[Path],
    typer.Argument(metavar="RESULT.json", help="Results written by `dpaudit run`, or folders that hold them."),
]


def report(
    files: _Files,
    output: Annotated[
        Path | None,
        option("Document to write: .pdf, .html or .md.  Default: print.", "-o", "--output", metavar="FILE"),
    ] = None,
    full: Annotated[bool, option("Give each of several audits all sections, on two pages each.", "--full")] = False,
    paper: Annotated[
        str,
        choice_option("Size of the pages of a PDF.", PAPERS),
    ] = PAPERS[0],
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
        Path,
        option("Folder of the site, which is created if it does not exist.", "-o", "--output", metavar="DIR"),
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

    The index sorts and filters in the browser, without a server.  The address of an audit's page is derived from its
    result, and does not change when results are added.

    Pages of results that are no longer given are removed.  All other files in DIR are kept: if DIR holds another file
    with the name of a new page, nothing is written.
    """
    if url is not None and not _ADDRESS.fullmatch(url):
        refuse(f"--url must be an address such as https://example.org/audits, got {url!r}")
    if any(os.path.isdir(one) and os.path.realpath(one) == os.path.realpath(output) for one in files):
        refuse(f"--output {output}: holds the results; name another folder, such as {output / 'site'}")
    with waiting("loading", shown=True):
        from dpaudit_reports.site import TITLE, write
        from dpaudit_reports.site.folder import digest_of_file

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
