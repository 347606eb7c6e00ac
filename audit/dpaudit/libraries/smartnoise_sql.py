"""Reads subjects from queries of smartnoise-sql.

The claim is the privacy cost that the library computes for the query.  The pairs are tables of the metadata's columns
that differ in one user, who may have many rows, or in one row if the table has row privacy.  They keep the
promises of the metadata that the library does not enforce: public groups, rows of a user, bounds and sensitivities.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.claims import ApproxDP, PureDP, TradeoffFunction
from dpaudit.libraries import neighbours
from dpaudit.libraries.cells import Cells
from dpaudit.libraries.inside import smartnoise_sql as inside
from dpaudit.libraries.subject import Subject, UnknownSubject
from dpaudit.pairs.pair import Pair
from dpaudit.values import Dataset, Foreign, JsonObject, RawOutputs
from dpaudit.values.content import key

MAX_PAIRS = 6
"""Maximum number of pairs of a subject, because all pairs of an audit share its trials, and queries are slow."""

_CROWD = 24  # rows of a group near the library's threshold, for epsilon 1, delta 1e-5 and two rows per user
_ROWS = 10  # number of rows of the additional user if the library samples the rows of a user
_MAX_ROWS = 100  # maximum number of rows of the additional user if the library does not sample


def subject(
    query: str,
    metadata: JsonObject,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    pairs: Iterable[Pair] | None = None,
    name: str = "",
) -> Subject:
    """Read the claim and the pairs of a query."""
    made = inside.Query(query, metadata, epsilon, delta)
    found = inside.facts(made)
    return Subject(
        mechanism=Queried(made),
        claim=claim_of(found),
        pairs=pairs_of(found) if pairs is None else list(pairs),
        name=name or name_of(found),
        source=source_of(found),
    )


@dataclass(frozen=True, slots=True)
class Queried:
    """A query as a mechanism on tables of plain values.

    smartnoise-sql uses the operating system's randomness, so the argument `rng` of `sample` is not used.
    """

    made: Foreign

    @property
    def libraries(self) -> tuple[str, ...]:
        """The library that the mechanism calls."""
        return (inside.MODULE,)

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """Return n results, each as a list of rows."""
        return inside.runner(self.made)(dataset, n)


def name_of(facts: JsonObject) -> str:
    """Return the text of the query."""
    return f"smartnoise-sql {facts['query']}"[:200]


def source_of(facts: JsonObject) -> str:
    """Return the origin of the claim."""
    return f"smartnoise-sql {facts['version']}, get_privacy_cost: {facts['query']}"


def claim_of(facts: JsonObject) -> TradeoffFunction:
    """Return (epsilon, delta)-DP with the privacy cost of the query."""
    epsilon, delta = facts["d_out"]
    return ApproxDP(epsilon=epsilon, delta=delta) if delta else PureDP(epsilon)


def pairs_of(facts: JsonObject) -> list[Pair]:
    """Generate pairs of tables."""
    columns = {name: _cells(name, described, facts["clamped"]) for name, described in facts["columns"].items()}
    public = [] if facts["censored"] else _grouping(facts["query"], list(columns), facts["user"])
    found = neighbours.tables(
        columns,
        facts["user"],
        keys_are_public=bool(public),
        thresholds=[_CROWD] if facts["censored"] else [],
        most_rows=_ROWS if facts["sampled"] else min(facts["max_ids"], _MAX_ROWS),
    )
    pairs = {
        (key(d0), key(d1)): Pair(d0, d1, "unspecified", label)
        for d0, d1, label in found
        if _groups(d0, public) == _groups(d1, public)
    }
    if not pairs:
        raise UnknownSubject(
            "censor_dims: False states that groups are public, but no generated pair has the same groups in both "
            "tables; pass the pairs: subject(query, metadata, pairs=[Pair(d0, d1)])"
        )
    return list(pairs.values())[:MAX_PAIRS]


def _grouping(query: str, columns: Sequence[str], user: str | None) -> list[str]:
    """Return the columns that may decide which groups a result has; none if the query has no groups.

    These are the columns that the query names after the first FROM, which may filter or group rows.  If GROUP BY uses
    an alias or the number of a column, every column may decide, except for a user column that the query does not name.
    """
    select, _, rest = re.sub(r"\s+", " ", query.lower()).partition(" from ")
    if "group by " not in rest:
        return []
    words = set(re.findall(r"\w+", rest))
    named = [name for name in columns if name.lower() in words]
    aliases = set(re.findall(r"\bas \W?(\w+)", select))
    if named and not words & aliases and not re.search(r"group by .*\b\d", rest):
        return named
    return [name for name in columns if name != user or re.search(rf"\b{re.escape(name.lower())}\b", select + rest)]


def _groups(table: Dataset, names: Sequence[str]) -> set[tuple[object, ...]]:
    return set(zip(*(table[name] for name in names), strict=True))


def _cells(name: str, described: JsonObject, clamped: bool) -> Cells:
    """Return values of a column: its bounds, a value beyond the bounds, a new category, and a null if nulls occur.

    A stated sensitivity is the largest absolute value, and the library does not enforce it.  No value lies beyond the
    bounds if the library does not clamp, or if the sensitivity changes the bounds.
    """
    kind = described["type"]
    nulls = [("a null", None)] if described.get("nullable", True) and kind != "int" else []
    if kind in ("int", "float"):
        low, high = described.get("lower"), described.get("upper")
        bounds = low, high = (0 if low is None else low), (10 if high is None else high)
        stated = described.get("sensitivity")
        if stated is not None:
            low, high = max(low, -stated), min(high, stated)
            clamped = clamped and (low, high) == bounds == (described.get("lower"), described.get("upper"))
        if low > high:
            raise UnknownSubject(f"column {name} has no value within its bounds and its sensitivity; pass the pairs")
        cast = int if kind == "int" else float
        beyond = [("a value above the bounds", cast(high + 1000 * (high - low)))] if clamped else []
        usual = sorted({cast(low), cast((low + high) / 2), cast(high)})
        return Cells(usual=usual, unusual=[*beyond, *nulls], kind=kind, limits=(low, high))
    if kind == "boolean":
        return Cells(usual=[False, True], unusual=nulls, kind=kind)
    if kind == "string":
        return Cells(usual=["a", "b"], unusual=[("a new category", "zz"), *nulls], kind="String")
    raise UnknownSubject(
        f"column {name} has the type {kind!r}; known are int, float, boolean and string; pass the pairs"
    )
