"""Writes the files of a site into a folder, and touches no other file of this folder.

A manifest lists the files that this module wrote, with their hashes.  A file is replaced or removed only if it is in
the manifest, still has its hash, and contains the mark of a file of a site.  The mark is needed because a stranger may
have written the manifest, and may know the hash of a file that the user published.  While a call writes, the manifest
holds the old and the new hash of each file, so an interrupted call can be repeated.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpaudit.result.atomic_write import link_in, refuse_link, remove_placed, write_placed
from dpaudit.text.foreign_files import read_foreign
from dpaudit_reports.site.addresses import ADDRESS

MANIFEST = "dpaudit-site.json"
_FORMAT = "dpaudit-site/1"
_MAX_BYTES = 2**26  # of the manifest, and of a page that is compared with it; a page has some 200 kB
_OWN = re.compile(rf"index\.html|feed\.json|{ADDRESS}\.(?:html|svg)")  # names that the manifest may list
_MARKS = {  # text that every file of a site contains, by the ending of its name
    ".html": '<meta name="generator" content="dpaudit">',
    ".svg": 'aria-label="privacy audit of ',
    ".json": '"_dpaudit": {',
}
_HASH = re.compile("[0-9a-f]{64}")
_MAX_NAMED = 5  # files that a message names


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The files of a site."""

    files: Mapping[str, Sequence[str]]  # SHA-256 of the contents that each file may have: two while it is being written
    addresses: Mapping[str, str]  # digest of the result by address

    @classmethod
    def read(cls, file: Path) -> Manifest:
        """Read the manifest of a folder; without a manifest, the folder has no files of a site."""
        if not os.path.lexists(file):
            return cls(files={}, addresses={})
        wrong = ValueError(f"{file} is not a manifest of dpaudit; move it away, or name another folder")
        if file.is_symlink():
            raise wrong
        try:
            values = json.loads(read_foreign(file, _MAX_BYTES))
            if values["format"] != _FORMAT:
                raise wrong
            files = {name: _hashes(value) for name, value in dict(values["files"]).items()}
            addresses = dict(values["addresses"])
            hashes = [*(digest for some in files.values() for digest in some), *addresses.values()]
            fits = [_OWN.fullmatch(name) for name in files] + [re.fullmatch(ADDRESS, name) for name in addresses]
            if not all([*fits, *(_HASH.fullmatch(digest) for digest in hashes)]):
                raise wrong
        except (ValueError, KeyError, TypeError, RecursionError):
            raise wrong from None
        return cls(files=files, addresses=addresses)

    def text(self) -> str:
        """Return the content of the file."""
        files = {name: hashes[0] if len(hashes) == 1 else list(hashes) for name, hashes in self.files.items()}
        values = {"format": _FORMAT, "files": files, "addresses": dict(self.addresses)}
        return json.dumps(values, indent=1, sort_keys=True) + "\n"


@dataclass(frozen=True, slots=True)
class SiteFolder:
    """The folder of a site, and what earlier calls wrote there."""

    folder: Path
    manifest: Manifest

    @classmethod
    def opened(cls, folder: Path) -> SiteFolder:
        """Read the manifest of a folder, which need not exist."""
        if (link := link_in(folder)) is not None:
            words = "is" if link == folder else f"leads through {link}, which is"
            raise ValueError(f"{folder} {words} a symbolic link to {os.readlink(link)}; name the real folder")
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise ValueError(f"{folder} is a file; name a folder, which will be created")
        return cls(folder, Manifest.read(folder / MANIFEST))

    def replace(
        self, names: Sequence[str], contents: Iterable[tuple[str, str]], addresses: Mapping[str, str]
    ) -> list[str]:
        """Write new files, and remove the files of earlier calls that are not among them.

        Returns:
            Sentences about files of earlier calls that were removed or kept.
        """
        self._refuse_other_files(names)
        made = list(contents)
        self.folder.mkdir(parents=True, exist_ok=True)
        refuse_link(self.folder)
        known = {**self.manifest.addresses, **addresses}
        new = {name: (_hash(content),) for name, content in made}
        both = {name: (*hashes, *self._current(name)) for name, hashes in new.items()}
        write_placed(self.folder / MANIFEST, Manifest(files={**self.manifest.files, **both}, addresses=known).text())
        for name, content in made:
            write_placed(self.folder / name, content)
        notes = self._removed(sorted(self.manifest.files.keys() - new.keys()))
        write_placed(self.folder / MANIFEST, Manifest(files=new, addresses=known).text())
        return notes

    def _refuse_other_files(self, names: Sequence[str]) -> None:
        other = [name for name in names if os.path.lexists(self.folder / name) and not self._is_own(name)]
        if other:
            more = f" and {len(other) - _MAX_NAMED} more" if len(other) > _MAX_NAMED else ""
            raise ValueError(
                f"{self.folder} holds files that dpaudit did not write, or that were changed since: "
                f"{', '.join(other[:_MAX_NAMED])}{more}; move them away, or name another folder"
            )

    def _is_own(self, name: str) -> bool:
        """Whether a file is in the manifest and has a content that an earlier call wrote."""
        content = self._content(name)
        if content is None or _MARKS[Path(name).suffix] not in content:
            return False
        return _hash(content) in self.manifest.files.get(name, ())

    def _current(self, name: str) -> tuple[str, ...]:
        """Return the hash of the content of a file; () if it is no readable file."""
        content = self._content(name)
        return () if content is None else (_hash(content),)

    def _content(self, name: str) -> str | None:
        """Return the content of a file; None if it is no readable file."""
        file = self.folder / name
        if file.is_symlink() or not file.is_file():
            return None
        try:
            return read_foreign(file, _MAX_BYTES)
        except (OSError, ValueError):
            return None

    def _removed(self, names: Sequence[str]) -> list[str]:
        """Remove files of earlier calls.  Return sentences."""
        there = [name for name in names if os.path.lexists(self.folder / name)]
        own = [name for name in there if self._is_own(name)]
        for name in own:
            remove_placed(self.folder / name)
        pages = sum(name.endswith(".html") for name in own)
        notes = [f"removed {pages} page{'s' * (pages != 1)} of audits that are not among the results"] if pages else []
        notes += [
            f"{self.folder / name} was changed since dpaudit wrote it, so it was kept"
            for name in there
            if name not in own
        ]
        return notes


def _hashes(value: object) -> list[str]:
    """Return the hashes of a file in a manifest.  Earlier versions wrote null for a file that they did not complete."""
    return [] if value is None else [value] if isinstance(value, str) else [*value]  # type: ignore[misc]


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()
