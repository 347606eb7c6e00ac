"""`dpaudit site`: writes static pages for a set of results."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from dpaudit.cli.ending import refuse
from dpaudit.cli.read_results import read_results
from dpaudit.cli.terminal import say, waiting


def site(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="RESULT.json", help="Results written by `dpaudit run`, or folders that hold them."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="DIR", help="Folder of the site, which is created if it does not exist."
        ),
    ],
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title of the index.  Default: Privacy audits.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            "--url", metavar="URL", help="Address at which the folder will be published, for links in the feed."
        ),
    ] = None,
) -> None:
    """Write static pages: an index of the results, one page and one badge for each audit, and a JSON feed.

    The index sorts and filters in the browser, without a server.  The address of an audit's page is derived from its
    result, and does not change when results are added.

    Pages of results that are no longer given are removed.  All other files in DIR are kept: if DIR holds another file
    with the name of a new page, nothing is written.
    """
    if url is not None and not _is_address(url):
        refuse(f"--url must be an address such as https://example.org/audits, got {url!r}")
    holding = next(
        (one for one in files if os.path.isdir(one) and os.path.realpath(one) == os.path.realpath(output)), None
    )
    if holding is not None:
        refuse(f"--output {output}: holds the results; name another folder, such as {output / 'site'}")
    with waiting("loading", shown=True):
        from dpaudit_reports.site import TITLE, write
        from dpaudit_reports.site.addresses import digest_of_file

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


def _is_address(url: str) -> bool:
    """Whether a text is an address of a folder on a server."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    plain = url.isascii() and url.isprintable() and not set(url) & set(" \"'<>\\")
    return plain and parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
