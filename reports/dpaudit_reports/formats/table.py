"""The lines for a terminal: each audit on at most two lines, its verdict, its name, and what is proven."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from dpaudit.result.summary import weakness
from dpaudit.result.values import Verdict
from dpaudit.text import encodable, one_line
from dpaudit_reports.blocks import flat
from dpaudit_reports.claimed import claim_in_words, detectable_claim, enlarged, found_from, headline, least_found
from dpaudit_reports.formats.facts import Audited, Run, Screen, why
from dpaudit_reports.verdicts import outcome, shows_size

_GAP = "  "
_INDENT = "    "
_SHORT = {Verdict.NO_VIOLATION.value: "no violation"}
_ROOM = 44  # characters for what is proven, if names leave them on a line


def wrapped(text: str, width: int | None) -> list[str]:
    """Break text into lines of a maximum width, after spaces, or else anywhere."""
    if width is None or cell_len(text) <= width:
        return [text]
    return [line.plain.rstrip(" ") for line in Text(text).wrap(Console(), width)]


def table_text(run: Run, screen: Screen) -> str:
    """Return the lines of all audits, and the sentence about all of them together; terminals also get colours."""
    reported = [audited for audited in run.audits if audited.result is not None or audited.failed]
    if not reported:
        return ""
    signs = max(cell_len(_sign(audited, screen)) for audited in reported)
    names = max(cell_len(_name(audited, screen)) for audited in reported)
    lines = [Text()] if screen.terminal else []
    for audited in reported:
        lines += _audit(audited, signs, names, screen)
    missing = [one_line(audited.name) for audited in run.audits if audited not in reported]
    notes = [f"Not run: {', '.join(missing)}."] if missing else []
    notes += [one_line(run.together)] if run.together else []
    return drawn([*lines, *(Text(encodable(f"\n{note}", screen.encoding)) for note in notes)], screen)


def _sign(audited: Audited, screen: Screen) -> str:
    sign = audited.sign
    return encodable(f"{sign.sign} {_SHORT.get(sign.word, sign.word)}", screen.encoding)


def _name(audited: Audited, screen: Screen) -> str:
    return encodable(one_line(audited.name), screen.encoding)


def _audit(audited: Audited, signs: int, names: int, screen: Screen) -> list[Text]:
    """Return the lines of an audit: on a screen at most two, in a file one."""
    sign, name = _sign(audited, screen), _name(audited, screen)
    words = encodable(brief(audited), screen.encoding)
    unexpected = "  NOT AS EXPECTED" if audited.as_expected is False else ""
    beside = screen.width is None or signs + names + 2 * len(_GAP) + _ROOM <= screen.width
    name += " " * (names - cell_len(name)) if beside else ""
    line = Text.assemble((sign + " " * (signs - cell_len(sign)), audited.sign.style), _GAP, name)
    first = None if screen.width is None else screen.width - line.cell_len - len(_GAP)
    if beside and (first is None or cell_len(words + unexpected) <= first):
        return [Text.assemble(line, _GAP, words, (unexpected, "bold red"))]
    assert screen.width is not None
    room = max(screen.width - len(_INDENT) - len(unexpected), 1)
    if audited.result is None:  # no file has the reason
        return [line, *(Text(_INDENT + part) for part in wrapped(words, room))]
    if cell_len(words) > room:
        words = wrapped(words, max(room - 1, 1))[0] + encodable("…", screen.encoding)
    line.rstrip()
    return [line, Text.assemble(_INDENT, words, (unexpected, "bold red"))]


def brief(audited: Audited) -> str:
    """Return what is proven and what would have been found, or why nothing is known, on one printable line."""
    result = audited.result
    if result is None or (result.verdict is Verdict.INCONCLUSIVE and not result.measurement):
        return why(audited) or "the result does not record the reason"
    if not result.bounds_valid:
        return f"nothing is proven: {why(audited)}"
    bound = headline(result)
    if bound is None:
        return f"the curve is refuted, but no single parameter{outcome(result)}"
    named = bound.shown_alone() if bound.delta == 0 else bound.shown(bound.certified_text())
    proven = f"{flat(named)} proven"
    if result.measurement:
        return f"{proven}, no claim"
    claimed = f"{proven}, claimed {bound.claimed_text()}"
    if result.violated:
        size = "" if shows_size(result) or not bound.refuted or bound.certified > bound.claimed else "; size not known"
        return f"{claimed}{size}{outcome(result)}"
    if why_weak := weakness(result):
        return one_line(f"{claimed}; could not see much: {why_weak}")
    least = least_found(result)
    if least is not None:
        return f"{claimed}; would have seen {found_from(least)}"
    seen = detectable_claim(result)
    words = flat(claim_in_words(seen)[-1:]) if seen is not None else enlarged(result.detectable.claim)
    return one_line(f"{claimed}; would have seen {words or 'no violation of any size'}")


def drawn(items: Iterable[RenderableType], screen: Screen) -> str:
    """Return objects of rich as text for a screen, with colours as escape codes."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=screen.terminal,
        color_system="auto" if screen.terminal else None,
        width=screen.width or 1_000_000,
        markup=False,
        highlight=False,
        emoji=False,
    )
    for item in items:
        console.print(item)
    return encodable(re.sub(" +\n", "\n", stream.getvalue()), screen.encoding)
