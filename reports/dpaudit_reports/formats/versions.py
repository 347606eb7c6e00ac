"""The verdicts of `dpaudit compare` in a terminal: audits are rows, versions are columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rich.cells import cell_len
from rich.text import Text

from dpaudit.result.model import AuditResult
from dpaudit.text.printable import encodable, one_line
from dpaudit.text.signs import NO_RESULT, SIGNS, Sign
from dpaudit_reports.formats.run import Screen
from dpaudit_reports.formats.table import drawn
from dpaudit_reports.formats.wrapping import wrapped

_GAP = "  "


def text(
    audits: Mapping[str, Mapping[str, AuditResult]], screen: Screen, missing: Collection[tuple[str, str]] = ()
) -> str:
    """Return the verdicts."""
    with_result = (version for results in audits.values() for version in results)
    versions = tuple(dict.fromkeys([*with_result, *(version for _, version in missing)]))
    names = {name: encodable(one_line(name), screen.encoding) for name in audits}
    titles = {version: encodable(one_line(version), screen.encoding) for version in versions}
    signs = {(name, version): _sign(audits[name].get(version)) for name in audits for version in versions}
    widths = [
        max(cell_len(titles[version]), *(cell_len(signs[name, version].shown()) for name in audits))
        for version in versions
    ]
    first = max(map(cell_len, ("audit", *names.values())))
    if screen.width is None or first + sum(width + len(_GAP) for width in widths) <= screen.width:
        cells = (titles[version].ljust(width) for version, width in zip(versions, widths, strict=True))
        lines = [Text(_GAP.join(["audit".ljust(first), *cells]).rstrip(), style="bold")]
        for name in audits:
            line = Text(names[name] + " " * (first - cell_len(names[name])))
            for version, width in zip(versions, widths, strict=True):
                line.append(_GAP)
                line.append(_padded(signs[name, version], width, screen.encoding), signs[name, version].style)
            line.rstrip()
            lines.append(line)
        return drawn([Text(), *lines], screen)
    lines = [Text()]
    for name in audits:
        lines += map(Text, wrapped(names[name], screen.width))
        for version in versions:
            sign = signs[name, version]
            words = f"{sign.shown(screen.encoding)}  {titles[version]}"
            lines += [Text(f"    {part}", style=sign.style) for part in wrapped(words, max(screen.width - 4, 1))]
    return drawn(lines, screen)


def _sign(result: AuditResult | None) -> Sign:
    return NO_RESULT if result is None else SIGNS[result.verdict.value]


def _padded(sign: Sign, width: int, encoding: str) -> str:
    words = sign.shown(encoding)
    return words + " " * (width - cell_len(words))
