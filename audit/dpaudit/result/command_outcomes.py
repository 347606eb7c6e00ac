"""The outcomes of commands that audit much: `dpaudit bisect`, the releases of a package, and `dpaudit sweep`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from fractions import Fraction
from itertools import groupby, pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import Version

from dpaudit.result.model import AuditResult
from dpaudit.text import read_foreign, shortened
from dpaudit.values import JsonObject

BISECTION_FORMAT = "dpaudit-bisection/1"


class State(Enum):
    """What the audits of a release have shown."""

    BAD = "bad"  # at least one audit refuted its claim
    GOOD = "good"  # no audit found a violation, and none was inconclusive; this does not show that claims are true
    OPEN = "inconclusive"  # no audit refuted its claim, and at least one audit was inconclusive or has no result
    SKIPPED = "skipped"  # the release could not be installed or loaded, so no audit was made


class Change(NamedTuple):
    """Two decided releases with different states, without a decided release between them."""

    before: int
    after: int


class Stretch(NamedTuple):
    """Consecutive decided releases with the same state."""

    state: State
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release in the range of a bisection."""

    version: str
    state: State | None = None  # None if the release was not tried
    reason: str = ""  # why the release was skipped, or why it is inconclusive
    results: Mapping[str, AuditResult] = field(default_factory=dict)  # by the name of the audit without a version
    missing: Mapping[str, str] = field(default_factory=dict)  # why audits of the release have no result, by that name

    def to_dict(self) -> JsonObject:
        """Return the release as plain JSON values, without the evidence of its audits."""
        return {
            "version": self.version,
            "state": "not audited" if self.state is None else self.state.value,
            "reason": self.reason,
            "audits": {
                title: {
                    "result": f"{result.name}.json",
                    "verdict": result.verdict.value,
                    "p_value": result.p_value,
                    "runs_per_dataset": result.trials_used,
                    "confidence": result.confidence,
                    "detectable_claim": result.detectable.claim if result.bounds_valid else "",
                }
                for title, result in self.results.items()
            },
            "without_result": dict(self.missing),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """The outcome of `dpaudit bisect`.

    If all claims of the audits of a release are true, the command calls this release bad with a small probability: at
    most `false_alarm` for all releases together.
    """

    package: str
    releases: tuple[Release, ...]  # all releases in the range, from old to new
    left_out: Mapping[str, str]  # why listed releases in the range were not considered, such as "yanked"
    most: int  # maximum number of releases that the command audits
    audits: int  # number of audits of each release
    false_alarm: Fraction  # maximum probability that the command refutes any true claim
    shared: bool = True  # False if each audit uses its requested confidence
    interrupted: bool = False
    offline: bool = False  # whether the search ended because the network failed several times in a row
    unread: tuple[str, ...] = ()  # a message for each package index that could not be read

    @property
    def states(self) -> list[State | None]:
        """The state of each release."""
        return [release.state for release in self.releases]

    @property
    def monotone(self) -> bool | None:
        """Whether the decided releases change their state at most once; None if no release is decided."""
        return len(changes(self.states)) <= 1 if decided(self.states) else None

    def between(self, change: Change) -> tuple[Release, ...]:
        """Return the releases inside a change, which were not tried or not decided."""
        return self.releases[change.before + 1 : change.after]

    def left_out_inside(self, change: Change) -> dict[str, str]:
        """Return the releases inside a change that were not considered, with the reasons, from old to new."""
        before, after = (Version(self.releases[end].version) for end in change)
        inside = [name for name in self.left_out if before < Version(name) < after]
        return {name: self.left_out[name] for name in sorted(inside, key=Version)}

    def other_packages(self, change: Change) -> list[tuple[str, str | None, str | None]]:
        """Return the other packages whose versions differ between the environments of the two ends of a change."""
        before, after = (self.releases[end].results for end in change)
        found, own = set(), canonicalize_name(self.package)
        for title in before.keys() & after.keys():
            old, new = (
                {canonicalize_name(name): version for name, version in (packages or {}).items()}
                for packages in (side[title].provenance.mechanism_packages for side in (before, after))
            )
            if old and new:
                found |= {(str(name), old.get(name), new.get(name)) for name in (old.keys() | new.keys()) - {own}}
        return sorted((package for package in found if package[1] != package[2]), key=str)

    def to_dict(self) -> JsonObject:
        """Return the outcome as plain JSON values, without the evidence of the audits."""
        versions, states = [release.version for release in self.releases], self.states
        return {
            "format": BISECTION_FORMAT,
            "package": self.package,
            "from": versions[0],
            "to": versions[-1],
            "monotone": self.monotone,
            "stretches": [
                {"state": one.state.value, "first": versions[one.first], "last": versions[one.last]}
                for one in stretches_of(states)
            ],
            "changes": [
                {
                    "to": stretch.state.value,
                    "last_before": versions[change.before],
                    "first_after": versions[change.after],
                    "undecided_between": [release.version for release in self.between(change)],
                    "left_out_between": self.left_out_inside(change),
                    "other_packages": [
                        {"name": name, "before": old, "after": new} for name, old, new in self.other_packages(change)
                    ],
                }
                for change, stretch in zip(changes(states), stretches_of(states)[1:], strict=True)
            ],
            "releases": [release.to_dict() for release in self.releases],
            "left_out": dict(self.left_out),
            "unread": list(self.unread),
            "maximum_audited_releases": self.most,
            "audits_per_release": self.audits,
            "false_alarm_at_most": float(self.false_alarm),
            "interrupted": self.interrupted,
            "ended_by_network": self.offline,
        }


def decided(states: Sequence[State | None]) -> list[int]:
    """Return the indices of the releases that are bad or good."""
    return [n for n, state in enumerate(states) if state in (State.BAD, State.GOOD)]


def changes(states: Sequence[State | None]) -> list[Change]:
    """Return all changes, from old to new."""
    known = decided(states)
    return [Change(a, b) for a, b in pairwise(known) if states[a] is not states[b]]


def stretches_of(states: Sequence[State | None]) -> list[Stretch]:
    """Return the longest stretches of decided releases with the same state, from old to new."""
    groups = groupby(decided(states), key=lambda n: states[n])
    return [Stretch(state, (places := list(group))[0], places[-1]) for state, group in groups if state is not None]


SWEEP_FORMAT = "dpaudit-sweep/1"

_STRICT = {"extra": "forbid", "strict": True}  # settings of pydantic, which checks the types of a file


class CellState(Enum):
    """What the audit of a cell has shown."""

    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"
    NO_VIOLATION = "no violation found"  # this does not show that the claim is true
    NOT_AUDITED = "not audited"  # there is no result; `reason` says why


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptCell:
    """One audit of a sweep."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = _STRICT

    name: str
    title: str
    constructor: str
    values: dict[str, str]
    version: str
    state: CellState
    reason: str = ""
    closed: bool = False
    trials: int = 0
    rounds: int = 0
    seconds: float = 0.0
    last_seconds: float = 0.0
    p_value: float | None = None
    claim: str = ""
    certified: str = ""
    ratio: float | None = None
    detectable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The outcome of `dpaudit sweep`.

    If all claims are true, the command reports a violation with probability at most `false_alarm`; see
    `engine.schedule`.
    """

    __pydantic_config__: ClassVar[Mapping[str, object]] = _STRICT

    library: str
    package: str
    catalogue: str
    versions: tuple[str, ...]
    confidence: float
    false_alarm: float
    shared: bool
    number: str
    seconds: float
    spent: float
    answer_seconds: float
    interrupted: bool
    cells: tuple[SweptCell, ...]

    def of(self, *states: CellState) -> list[SweptCell]:
        """Return the cells in one of the states."""
        return [cell for cell in self.cells if cell.state in states]

    def to_dict(self) -> JsonObject:
        """Return the outcome as plain JSON values, without the evidence of the audits."""
        values = asdict(self)
        for cell in values["cells"]:
            cell["state"] = cell["state"].value
        return {"format": SWEEP_FORMAT, **values}

    @classmethod
    def from_json(cls, file: Path) -> Sweep:
        """Read a file that holds `to_dict`."""
        from pydantic import TypeAdapter, ValidationError

        try:
            values = json.loads(read_foreign(file))
            stated = values.pop("format", None) if isinstance(values, dict) else None
            if stated != SWEEP_FORMAT:
                raise ValueError(f"its format is {stated!r:.60}, and this version of dpaudit reads {SWEEP_FORMAT}")
            sweep: Sweep = TypeAdapter(cls).validate_json(json.dumps(values))
        except ValidationError as error:
            first = error.errors()[0]
            words = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise ValueError(f"{file} is not the outcome of a sweep: {shortened(words)}") from None
        except ValueError as error:
            raise ValueError(f"{file} is not the outcome of a sweep: {shortened(str(error))}") from None
        return sweep
