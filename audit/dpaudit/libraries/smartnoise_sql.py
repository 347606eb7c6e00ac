"""Reads subjects from queries of smartnoise-sql.

The claim is the privacy cost that the library computes for the query.  The pairs are tables that differ in one user,
who may have many rows, or in one row if the table has row privacy.  They keep what the metadata promises and the
library does not enforce: public groups, rows of a user, bounds and sensitivities.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dpaudit.claims import TradeoffFunction
from dpaudit.libraries import neighbours
from dpaudit.libraries.cells import Cells
from dpaudit.libraries.inside import smartnoise_sql as inside
from dpaudit.libraries.subject import LibraryObject, Subject, UnknownSubject, stated_claim
from dpaudit.pairs.pair import Pair
from dpaudit.values import Dataset, JsonObject

_CROWD = 24  # rows of a group near the library's threshold, for epsilon 1, delta 1e-5 and two rows per user
_ROWS = 10  # number of rows of the additional user if the library samples the rows of a user


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
        name=name or f"smartnoise-sql {query}"[:200],
        source=f"smartnoise-sql {found['version']}, get_privacy_cost: {query}",
    )


class Queried(LibraryObject, inside=inside):
    """A query as a mechanism on tables of plain values."""


def claim_of(facts: JsonObject) -> TradeoffFunction:
    """Return (epsilon, delta)-DP with the privacy cost of the query."""
    return stated_claim(facts["query"], *facts["d_out"])


def pairs_of(facts: JsonObject) -> list[Pair]:
    columns = {name: _cells(name, described, facts["clamped"]) for name, described in facts["columns"].items()}
    public = [] if facts["censored"] else _grouping(facts["query"], list(columns), facts["user"])
    found = neighbours.tables(
        columns,
        facts["user"],
        keys_are_public=bool(public),
        thresholds=[_CROWD] if facts["censored"] else [],
        most_rows=_ROWS if facts["sampled"] else min(facts["max_ids"], 100),
    )

    def groups(table: Dataset) -> set[tuple[object, ...]]:
        return set(zip(*(table[name] for name in public), strict=True))

    allowed = (pair for pair in found if groups(pair[0]) == groups(pair[1]))
    pairs = neighbours.first_pairs(allowed, "unspecified", most=6)
    if not pairs:
        raise UnknownSubject(
            "censor_dims: False states that groups are public, but no generated pair has the same groups in both "
            "tables; pass the pairs: subject(query, metadata, pairs=[Pair(d0, d1)])"
        )
    return pairs


def _grouping(query: str, columns: Sequence[str], user: str | None) -> list[str]:
    """Return the columns that may decide which groups a result has: those after FROM, or all with an alias."""
    select, _, rest = re.sub(r"\s+", " ", query.lower()).partition(" from ")
    if "group by " not in rest:
        return []
    tokens = set(re.findall(r"\w+", rest))
    named = [name for name in columns if name.lower() in tokens]
    aliases = set(re.findall(r"\bas \W?(\w+)", select))
    if named and not tokens & aliases and not re.search(r"group by .*\b\d", rest):
        return named
    return [name for name in columns if name != user or re.search(rf"\b{re.escape(name.lower())}\b", select + rest)]


def _cells(name: str, described: JsonObject, clamped: bool) -> Cells:
    """Return values of a column: its bounds or sensitivity, one beyond if clamped, a new category, and a null."""
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
