"""Static pages for a set of audits: an index, one page and one badge for each audit, and a feed.

`rows` and `index` make the files, and `folder` names them by the content of the results and writes them.  Result files
come from strangers, so all their text is escaped, and names of files hold only small letters, digits and hyphens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dpaudit.result.model import AuditResult
from dpaudit_reports.document import document
from dpaudit_reports.html import page
from dpaudit_reports.sections import SECTIONS
from dpaudit_reports.site.folder import SiteFolder, addresses
from dpaudit_reports.site.index import Entry, badge, feed, index, worst_first

TITLE = "Privacy audits"  # unless the user gives a title


def write(
    results: Sequence[AuditResult], digests: Sequence[str], folder: Path, *, title: str = TITLE, url: str = ""
) -> list[str]:
    """Write the site of results.  Results with equal digests are one audit."""
    if not results:
        raise ValueError("a site needs at least one result, got none")
    site = SiteFolder.opened(folder)
    chosen = dict(zip(digests, results, strict=True))
    named = addresses({digest: result.name for digest, result in chosen.items()}, site.addresses)
    entries = worst_first([Entry(result, digest, named[digest]) for digest, result in chosen.items()])
    names = [name for entry in entries for name in (entry.page, entry.badge)]
    return site.replace(
        [*names, "feed.json", "index.html"], _files(entries, title, url), {one.address: one.digest for one in entries}
    )


def _files(entries: Sequence[Entry], title: str, url: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each file.  The index comes last, because its links lead to the others."""
    for entry in entries:
        links = (("All audits", "index.html"), ("Badge", entry.badge))
        yield entry.page, page(document([entry.result], SECTIONS), links)
        yield entry.badge, badge(entry.result)
    yield "feed.json", feed(entries, title, url)
    yield "index.html", index(entries, title)
