"""States which code was audited, as far as the result records it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from dpaudit.result.model import AuditResult
from dpaudit.result.words import quotation
from dpaudit_reports.blocks import Code, Span

_MAX_PACKAGES = 8  # maximum number of packages on the first page; the provenance lists all packages
_MAX_SOURCE = 200  # characters of the source; the provenance shows all
_INSTALLED = frozenset({"site-packages", "dist-packages"})  # folders of installed packages
_HASH = 12  # digits of a fingerprint that the first page shows; the provenance shows all digits


def audited(result: AuditResult) -> Iterator[Span]:
    """Yield the mechanism, the versions of its packages, its file and the source, as far as they are known."""
    about = result.provenance
    parts: list[tuple[Span, ...]] = []
    named = about.mechanism if about.mechanism != result.name else ""
    if packages := about.mechanism_packages:
        shown = [f"{name} {version}" for name, version in packages.items()]
        more = f" and {len(shown) - _MAX_PACKAGES} more, see Provenance" if len(shown) > _MAX_PACKAGES else ""
        calls = (*_named(named), ", which uses ") if named else ()
        parts.append((*calls, f"{', '.join(shown[:_MAX_PACKAGES])}{more}"))
    elif named:
        parts.append(_named(named))
    file = about.mechanism_file
    # A class of the user that dpaudit calls has a name with arguments, and packages do not identify its code.
    own = file is not None and " " in named and _INSTALLED.isdisjoint(PurePath(file.path).parts)
    if file is not None and (own or not packages):
        parts.append(("file ", Code(f"sha256:{file.sha256[:_HASH]}…")))
    for i, part in enumerate(parts):
        yield ", " if i else "Tested: "
        yield from part
    if parts:
        yield "."
    if about.source:
        source = about.source if len(about.source) <= _MAX_SOURCE else f"{about.source[:_MAX_SOURCE].rstrip()}…"
        yield f" Source of the claim: {quotation(source.rstrip('.'))}."


def _named(mechanism: str) -> tuple[Span, ...]:
    """Return the name of the mechanism; a name with spaces, such as a command line, is a quotation."""
    return ("“", Code(mechanism), "”") if " " in mechanism else (Code(mechanism),)
