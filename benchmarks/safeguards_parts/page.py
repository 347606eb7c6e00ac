"""The table of `benchmarks/safeguards.py`, and its place in benchmarks/calibration.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from safeguards_parts.cases import HONEST, KEPT, ROUTES, Case

Found = Mapping[str, Any]
BEGIN, END = "<!-- safeguards: begin -->", "<!-- safeguards: end -->"


def accused(one: Found) -> bool:
    return bool(one["verdict"] != "NO_VIOLATION")


def missed(one: Found) -> bool:
    return bool(one["verdict"] != "VIOLATION")


def _share(flags: Sequence[bool], *, good: bool) -> str:
    words = f"{sum(flags)} of {len(flags)}"
    return words if all(flag is good for flag in flags) else f"**{words}**"


def _beyond(found: Sequence[Found]) -> float:
    return max(float(one["beyond"]) for one in found)


def honest_row(case: Case, route: str, right: Sequence[Found], broken: Sequence[Found]) -> str:
    cells = [
        case.what,
        ROUTES[route],
        _share([accused(one) for one in right], good=False),
        _share([not missed(one) for one in broken], good=True),
        _share([one["outcome"] == "confirmed" for one in broken], good=True),
        f"{_beyond(right):.1f}",
        f"{_beyond(broken):.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def kept_row(case: Case, route: str, found: Sequence[Found]) -> str:
    verdicts = ", ".join(sorted({one["verdict"] for one in found}))
    if any(one["verdict"] not in case.allowed for one in found):
        verdicts = f"**{verdicts}**"
    outcomes = ", ".join(sorted({one["outcome"] or "none" for one in found}))
    return f"| {case.what} | {ROUTES[route]} | {verdicts} | {outcomes} | {_beyond(found):.1f} |"


def table(found: Mapping[tuple[str, str, str], Sequence[Found]]) -> Iterator[str]:
    """Yield the lines of both tables.

    Args:
        found: The audits of each mechanism, route and version.
    """
    honest = [(case, r) for case in HONEST for r in case.routes if (case.what, r, "right") in found]
    if honest:
        yield from summary(found)
        heads = ("mechanism", "route", "right: accused", "broken: refuted", "confirmed")
        yield f"\n| {' | '.join(heads)} | s, right | s, broken |\n|{'---|' * 7}"
        for case, r in honest:
            yield honest_row(case, r, found[case.what, r, "right"], found[case.what, r, "broken"])
    kept = [(case, r) for case in KEPT for r in case.routes if (case.what, r, "keeps") in found]
    if kept:
        yield f"\n| mechanism that keeps noise | route | verdict | fresh runs | s |\n|{'---|' * 5}"
        for case, r in kept:
            yield kept_row(case, r, found[case.what, r, "keeps"])


def summary(found: Mapping[tuple[str, str, str], Sequence[Found]]) -> Iterator[str]:
    """Yield the sums of the table of mechanisms that keep no noise."""
    right, broken = ([o for key, audits in found.items() if key[2] == v for o in audits] for v in ("right", "broken"))
    mechanisms = len({key[0] for key in found if key[2] == "right"})
    inconclusive = sum(one["verdict"] == "INCONCLUSIVE" for one in broken)
    routes = sum(key[2] == "right" for key in found)
    yield f"- {mechanisms} mechanisms; {routes} pairs of a mechanism and a route."
    yield f"- Right: {sum(map(accused, right))} of {len(right)} audits accuse the mechanism."
    yield (
        f"- Broken: {sum(not missed(one) for one in broken)} of {len(broken)} audits refute the claim, "
        f"{sum(one['outcome'] == 'confirmed' for one in broken)} are confirmed, {inconclusive} are inconclusive."
    )
    yield f"- At most {_beyond(right):.1f} s beyond the runs if right, and {_beyond(broken):.1f} s if broken."


def page_with(lines: Sequence[str], page: str) -> str:
    """Return the page with these lines between its marks.

    Raises:
        ValueError: If the page lacks a mark.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page must contain {BEGIN!r} and {END!r} once each")
    before, _, rest = page.partition(BEGIN)
    body = "\n".join(lines)
    return f"{before}{BEGIN}\n\n{body}\n\n{END}{rest.partition(END)[2]}"
