"""Static pages for a set of audits: an index, one page and one badge for each audit, and a feed.

A page has the name of its audit and a hash of its result, so that its name stays when audits are added.  A file is
replaced or removed only if a manifest lists it with its present hash.  While a call writes, the manifest holds old and
new hashes, so an interrupted call can be repeated.  Result files come from strangers, so all their text is escaped.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpaudit.result.atomic_write import link_in, refuse_link, remove_placed, write_placed
from dpaudit.result.model import AuditResult
from dpaudit.text import read_foreign
from dpaudit_reports.blocks import some_of
from dpaudit_reports.document import document
from dpaudit_reports.html import page, slug_of
from dpaudit_reports.sections import SECTIONS
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
    contents = {}
    for entry in entries:
        links = (("All audits", "index.html"), ("Badge", entry.badge))
        contents[entry.page] = page(document([entry.result], SECTIONS), links)
        contents[entry.badge] = badge(entry.result)
    contents["feed.json"] = feed(entries, title, url)
    contents["index.html"] = index(entries, title)  # the last, because its links lead to the others
    return site.replace(contents, {one.address: one.digest for one in entries})


ADDRESS = r"[a-z0-9]+(?:-[a-z0-9]+)*-[0-9a-f]{16,64}"  # pattern of the addresses that `addresses` returns


def digest_of(result: AuditResult) -> str:
    """Return the SHA-256 hash of the result as `to_json` writes it, in hexadecimal."""
    return _digest(result.to_dict())


def digest_of_file(file: Path) -> str:
    """Return the SHA-256 hash of the content of a result file, in hexadecimal."""
    return _digest(json.loads(read_foreign(file)))


def _digest(values: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def addresses(names: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """Return the address of each audit: its name, and the first digits of its digest."""
    taken = dict(kept)
    found: dict[str, str] = {}
    for digest in sorted(names):
        slug = slug_of(names[digest], 48) or "audit"
        for digits in range(16, len(digest) + 1, 8):  # 64 bits, and more only if somebody makes two results collide
            address = f"{slug}-{digest[:digits]}"
            if taken.get(address, digest) == digest:
                break
        taken[address], found[digest] = digest, address
    return found


MANIFEST = "dpaudit-site.json"
_OWN = re.compile(rf"index\.html|feed\.json|{ADDRESS}\.(?:html|svg)")  # names that the manifest may list


@dataclass(frozen=True, slots=True)
class SiteFolder:
    """The folder of a site, and what earlier calls wrote there."""

    folder: Path
    files: Mapping[str, Sequence[str]]  # SHA-256 of the contents that each file may have: two while it is being written
    addresses: Mapping[str, str]  # digest of the result by address

    @classmethod
    def opened(cls, folder: Path) -> SiteFolder:
        """Read the manifest of a folder, which need not exist."""
        if (link := link_in(folder)) is not None:
            words = "is" if link == folder else f"leads through {link}, which is"
            raise ValueError(f"{folder} {words} a symbolic link to {os.readlink(link)}; name the real folder")
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise ValueError(f"{folder} is a file; name a folder, which will be created")
        file = folder / MANIFEST
        if not os.path.lexists(file):
            return cls(folder, {}, {})
        try:
            values = {} if file.is_symlink() else json.loads(read_foreign(file))
            files, addresses = dict(values["files"]), dict(values["addresses"])
            own = all(map(_OWN.fullmatch, [*files, *(f"{address}.html" for address in addresses)]))
        except (ValueError, KeyError, TypeError, RecursionError):
            own = False
        if not own:
            raise ValueError(f"{file} is not a manifest of dpaudit; move it away, or name another folder")
        return cls(folder, files, addresses)

    def _note(self, files: Mapping[str, Sequence[str]], addresses: Mapping[str, str]) -> None:
        values = {"files": files, "addresses": addresses}
        write_placed(self.folder / MANIFEST, json.dumps(values, indent=1, sort_keys=True) + "\n")

    def replace(self, contents: Mapping[str, str], addresses: Mapping[str, str]) -> list[str]:
        """Write new files, and remove the files of earlier calls that are not among them."""
        if other := [name for name in contents if os.path.lexists(self.folder / name) and not self._is_own(name)]:
            raise ValueError(
                f"{self.folder} holds files that dpaudit did not write, or that were changed since: "
                f"{some_of(other)}; move them away, or name another folder"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        refuse_link(self.folder)
        known = {**self.addresses, **addresses}
        new = {name: (_hash(content),) for name, content in contents.items()}
        both = {name: (*hashes, *self._current(name)) for name, hashes in new.items()}
        self._note({**self.files, **both}, known)
        for name, content in contents.items():
            write_placed(self.folder / name, content)
        there = [name for name in sorted(self.files.keys() - new.keys()) if os.path.lexists(self.folder / name)]
        own = [name for name in there if self._is_own(name)]
        for name in own:
            remove_placed(self.folder / name)
        self._note(new, known)
        pages = sum(name.endswith(".html") for name in own)
        notes = [f"removed {pages} page{'s' * (pages != 1)} of audits that are not among the results"] if pages else []
        kept = (self.folder / name for name in there if name not in own)
        return notes + [f"{file} was changed since dpaudit wrote it, so it was kept" for file in kept]

    def _is_own(self, name: str) -> bool:
        return any(digest in self.files.get(name, ()) for digest in self._current(name))

    def _current(self, name: str) -> tuple[str, ...]:
        file = self.folder / name
        if file.is_symlink() or not file.is_file():
            return ()
        try:
            return (_hash(read_foreign(file)),)
        except (OSError, ValueError):
            return ()


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()
