"""Writes the audits as a JSON feed.  Format: https://www.jsonfeed.org/version/1.1/."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dpaudit.text.printable import one_line
from dpaudit_reports.formats.facts import Fact, facts, sentence
from dpaudit_reports.formats.run import Audited
from dpaudit_reports.site.rows import Entry


def feed(entries: Sequence[Entry], title: str, url: str) -> str:
    """Return the feed, with the newest audit first, in ASCII."""
    place = f"{url.rstrip('/')}/" if url else ""
    newest = sorted(entries, key=lambda one: -one.date.timestamp() if one.date else float("inf"))
    values = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": title,
        **({"home_page_url": f"{place}index.html", "feed_url": f"{place}feed.json"} if place else {}),
        "language": "en",
        "items": [_item(entry, place) for entry in newest],
    }
    return json.dumps(values, ensure_ascii=True, allow_nan=False, indent=1) + "\n"


def _item(entry: Entry, place: str) -> dict[str, Fact | dict[str, Fact]]:
    audited = Audited(name=entry.title, result=entry.result)
    date = {} if entry.date is None else {"date_published": entry.date.isoformat(timespec="seconds")}
    return {
        "id": f"sha256:{entry.digest}",
        "url": f"{place}{entry.page}",
        "title": f"{audited.sign.shown()}{entry.note}: {entry.title}",
        "content_text": one_line(sentence(audited) + (f"; not checked: {entry.unchecked}" if entry.unchecked else "")),
        **date,
        "tags": [
            audited.sign.word,
            *(["not checked"] if entry.unchecked else []),
            *([entry.library] if entry.library else []),
        ],
        "_dpaudit": {**facts(audited), "badge": f"{place}{entry.badge}"},
    }
