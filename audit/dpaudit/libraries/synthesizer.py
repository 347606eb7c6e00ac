"""Reads subjects from generators of synthetic tables in the fit-and-sample habit.

The claim is the epsilon and the delta of the constructor.  The pairs are tiny tables that are made from a schema.  In
each run, a new object is fitted to a table, and the output is a synthetic table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpaudit.claims import ApproxDP, PureDP, TradeoffFunction
from dpaudit.libraries.inside import synthesizer as inside
from dpaudit.libraries.subject import Subject, UnknownSubject
from dpaudit.pairs.pair import Pair
from dpaudit.pairs.records import numeric
from dpaudit.pairs.search import SearchPairs
from dpaudit.values import Dataset, Foreign, JsonObject, RawOutputs

MAX_PAIRS = 6
"""Maximum number of pairs of a subject, because all pairs of an audit share its trials, and fits are slow."""


def subject(
    make: Foreign,
    schema: Mapping[str, Sequence[Foreign]],
    *,
    fit: Foreign = "fit",
    sample: Foreign = "sample",
    rows: int = 100,
    table: str = "frame",
    fit_arguments: Mapping[str, Foreign] | None = None,
    sample_arguments: Mapping[str, Foreign] | None = None,
    claim: TradeoffFunction | None = None,
    relation: Literal["add_remove", "replace_one"] = "add_remove",
    pairs: Iterable[Pair] | None = None,
    name: str = "",
    **arguments: Foreign,
) -> Subject:
    """Read the claim of a generator, and make pairs of tiny tables.

    Args:
        make: A class, or a function that makes a new object for each run.
        schema: For each column (low, high) or a list of categories.
        fit: The name of the method that fits the object to a table, or a function (object, table).
        sample: The name of the method that takes a number of rows and returns a table, or a function (object, rows).
        rows: Number of rows of a synthetic table.
        table: The form of a table: "frame" (pandas), "rows" (list of dicts) or "columns" (dict of lists).
        fit_arguments: Further arguments of the method `fit`.
        sample_arguments: Further arguments of the method `sample`.
        claim: The claim; None reads epsilon and delta from the arguments or attributes of the object.
        relation: The neighbouring relation of the claim, which the object does not state.
        pairs: Pairs of lists of rows; None makes tiny tables from the schema.
        name: The name of the audit; by default, the name of the class.
        **arguments: The arguments of the class, such as epsilon=1.0.

    Raises:
        UnknownSubject: If the object has no epsilon, or if it cannot be fitted to any of the tables.
    """
    if not callable(make):
        raise UnknownSubject(f"subject takes a class or a function that makes an object, got {type(make).__name__}")
    if not schema:
        raise UnknownSubject("schema must map each column to (low, high) or to a list of categories")
    made = inside.Generator(
        make, dict(schema), arguments, fit, sample, rows, dict(fit_arguments or {}), dict(sample_arguments or {}), table
    )
    found = inside.facts(made)
    chosen = pairs_of({**found, "relation": relation}) if pairs is None else list(pairs)
    outputs = [made.run(dataset) for pair in chosen[:1] for dataset in (pair.d0, pair.d1)]
    if outputs and all(isinstance(output, dict) and set(output) == {"raised", "message"} for output in outputs):
        raise UnknownSubject(
            f"{made.name} raised {outputs[0]['raised']} for both tables of the pair {chosen[0]}: "
            f"{outputs[0]['message']}; check schema, fit, sample and table, or pass pairs=[Pair(d0, d1)]"
        )
    return Subject(
        mechanism=Synthesizer(made),
        claim=claim_of(found) if claim is None else claim,
        pairs=chosen,
        name=name or name_of(found),
        source=source_of(found),
    )


@dataclass(frozen=True, slots=True)
class Synthesizer:
    """A generator as a mechanism on lists of rows.

    Libraries draw from the global generators of `random`, numpy and torch, which dpaudit seeds before each run.

    Args:
        made: The generator.
    """

    made: Foreign

    @property
    def libraries(self) -> tuple[str, ...]:
        """The library that the mechanism calls."""
        return (self.made.library,)

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """Return n synthetic tables.  A table that could not be made is a dict with the exception."""
        return inside.runner(self.made)(dataset, n)


def name_of(facts: JsonObject) -> str:
    """Return the name of the class."""
    return str(facts["name"])


def source_of(facts: JsonObject) -> str:
    """Return the origin of the claim."""
    return f"{facts['version']}, {facts['name']}: epsilon and delta of the constructor"


def claim_of(facts: JsonObject) -> TradeoffFunction:
    """Return (epsilon, delta)-DP.

    Args:
        facts: The facts that `inside.synthesizer.facts` returned.

    Raises:
        UnknownSubject: If there is no finite epsilon.
    """
    epsilon, delta = facts["epsilon"], facts["delta"]
    if epsilon is None or not math.isfinite(epsilon):
        raise UnknownSubject(
            f"{facts['name']} has no finite epsilon among its arguments and attributes; pass the claim, such as "
            "claim=PureDP(1.0)"
        )
    return ApproxDP(epsilon=epsilon, delta=delta) if delta else PureDP(epsilon)


def pairs_of(facts: JsonObject) -> list[Pair]:
    """Make pairs of tiny tables from the schema.

    Args:
        facts: The facts that `inside.synthesizer.facts` returned.

    Raises:
        UnknownSubject: If the schema is not valid.
    """
    schema = {name: tuple(entries) if numeric(tuple(entries)) else entries for name, entries in facts["schema"].items()}
    try:
        relation = facts.get("relation", "add_remove")
        return list(SearchPairs(relation=relation, schema=schema, tiny=True, most=MAX_PAIRS))
    except ValueError as error:
        raise UnknownSubject(str(error)) from None
