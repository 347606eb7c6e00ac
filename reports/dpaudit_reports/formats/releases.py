"""The outcome of `dpaudit bisect` in a terminal: a table of the audits, and where the verdict changes."""

from __future__ import annotations

from collections.abc import Iterator

from rich.padding import Padding
from rich.text import Text

from dpaudit.result.releases import Bisection, Change, Release, State, changes, decided, stretches_of
from dpaudit.rounding import percent_at_most
from dpaudit.text import SIGNS, encodable, one_line, shortened
from dpaudit_reports.blocks import some_of
from dpaudit_reports.formats.facts import Audited, Run, Screen
from dpaudit_reports.formats.table import drawn, table_text

_SIGNS = {State.BAD: SIGNS["violation"], State.GOOD: SIGNS["no violation found"]}
_MEANING = (
    "A release is bad if an audit refuted its claim.  A release is good only in the sense that no audit found a "
    "violation.  An audit misses a violation of the detectable size with probability 10 % under an optimal attack, and "
    "more often otherwise.  The probability that a true claim is refuted is bounded.  The probability that a named "
    "first release is wrong is not bounded."
)


def text(found: Bisection, screen: Screen) -> str:
    """Return the table of all audits, and sentences on the history."""
    run = Run(audits=[audited for release in found.releases for audited in _rows(found.package, release)])
    lines: list[Text | Padding] = [Text()]
    for words, state in _history(found):
        line = Text(encodable(one_line(words), screen.encoding), style="" if state is None else _SIGNS[state].style)
        lines.append(line if state is None else Padding(line, (0, 0, 0, 4), expand=False))
    for words in (_MEANING, promise(found)):
        lines += [Text(), Text(words)]
    return table_text(run, screen) + drawn(lines, screen)


def promise(found: Bisection) -> str:
    """State the joint guarantee of the command."""
    each = "an audit" if found.audits == 1 else f"{found.audits} audits"
    own = "" if found.shared else "  Each audit has its own confidence (--each)."
    return (
        f"The command makes {each} of each of at most {found.most} releases.  Whichever releases it audits, it refutes "
        f"a true claim of any release with probability at most {percent_at_most(float(found.false_alarm))}.{own}"
    )


def short_reason(reason: str) -> str:
    """Shorten why a release was skipped: the first line, and what an installer printed last."""
    first, *others = [line.strip() for line in reason.splitlines() if line.strip()] or [""]
    return shortened(one_line(f"{first} {others[-1]}" if others and first.endswith(":") else first))


def _rows(package: str, release: Release) -> Iterator[Audited]:
    if release.state is State.SKIPPED:
        reason = f"skipped: {short_reason(release.reason)}"
        yield Audited(name=f"{package} {release.version}", reason=reason, failed=True)
    for result in release.results.values():
        yield Audited(name=result.name, result=result)
    for name, reason in release.missing.items():
        yield Audited(name=f"{name} ({release.version})", reason=short_reason(reason), failed=True)


def _history(found: Bisection) -> Iterator[tuple[str, State | None]]:
    releases, states = found.releases, found.states
    known = decided(states)
    span = f"{found.package} {releases[0].version} to {releases[-1].version}"
    yield f"{span}: {len(known)} of {_counted(len(releases), 'release')} audited with a verdict.", None
    for one in stretches_of(states):
        inside = sum(state is one.state for state in states[one.first : one.last + 1])
        span = " to ".join(dict.fromkeys(releases[n].version for n in (one.first, one.last)))
        words = f"{_SIGNS[one.state].sign} {one.state.value:<5} {span}"
        yield f"{words} ({inside} of {one.last - one.first + 1} audited)", one.state
    for change in changes(states):
        yield _change(found, change), None
        if others := found.other_packages(change):
            both = f"{releases[change.before].version} and {releases[change.after].version}"
            names = [f"{name} ({old or 'none'}, then {new or 'none'})" for name, old, new in others]
            yield f"Other packages also differ between the environments of {both}: {some_of(names)}.", None
    yield from ((words, None) for words in _gaps(found))
    if not known:
        yield "No release was found good or bad.", None
        return
    oldest = releases[known[0]].version
    if known[0] > 0:
        yield f"Without a verdict: {_counted(known[0], 'release')} before {oldest}.", None
    if after := len(releases) - 1 - known[-1]:
        yield f"Without a verdict: {_counted(after, 'release')} after {releases[known[-1]].version}.", None
    if len({states[n] for n in known}) == 1:
        word = "bad" if states[known[0]] is State.BAD else "good"
        both = f"All {len(known)} audited releases are" if len(known) > 1 else "The only audited release is"
        by = " by at least one audit" if word == "bad" and found.audits > 1 else ""
        yield f"{both} {word}{by}: no change was found.", None
    elif states[known[0]] is State.BAD:
        yield f"The oldest audited release, {oldest}, is bad.", None
    if found.audits > 1 and State.BAD in states:
        yield from ((words, None) for words in _refuted(found))
    if not found.monotone:
        yield f"The history is not monotone: the verdict changes {len(changes(states))} times.", None
    elif changes(states):
        yield "The audited releases agree with a history in which the verdict changes once.", None
    if passed := [n for one in stretches_of(states) for n in range(one.first, one.last) if n not in known]:
        has = "these stretches have" if len(passed) > 1 else "a stretch has"
        advice = "  --most NUMBER audits more of them." if any(states[n] is None for n in passed) else ""
        words = f"{_counted(len(passed), 'release')} inside {has} no verdict, and may differ from the audited ones."
        yield words + advice, None


def _gaps(found: Bisection) -> Iterator[str]:
    if found.interrupted:
        yield "The command was interrupted, so changes may be missing."
    if found.offline:
        yield "The network failed during several installations in a row, which ended the search."
    for message in found.unread:
        yield f"A package index could not be read, so releases may be missing: {message}."


def _refuted(found: Bisection) -> Iterator[str]:
    """Yield which releases each audit refuted, because a release is bad if a single audit refutes it."""
    for title in sorted({title for release in found.releases for title in release.results}):
        names = [one.version for one in found.releases if title in one.results and one.results[title].violated]
        yield f"Audit {title} refuted {', '.join(names) or 'no release'}."
    yield (
        "The search looks for changes of all audits together.  With --only NAME, it looks for those of a single audit."
    )


def _change(found: Bisection, change: Change) -> str:
    before, after = found.releases[change.before], found.releases[change.after]
    assert after.state is not None
    assert before.state is not None
    words = f"First {after.state.value} release: {after.version}"
    others = [f"{version} ({why})" for version, why in found.left_out_inside(change).items()]
    left_out = f"  Not considered between the two: {some_of(others)}." if others else ""
    between = found.between(change)
    if not between:
        return f"{words}.  The listed release before it, {before.version}, is {before.state.value}.{left_out}"
    shown = some_of([release.version for release in between])
    untried = any(release.state is None for release in between)
    why = "not audited; use --most NUMBER to audit more releases" if untried else "without a verdict"
    or_ = f"{words}, or a release between it and {before.version}, which is {before.state.value}: {shown} ({why})."
    return or_ + left_out


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
