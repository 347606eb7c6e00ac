"""Reads subjects from generators of synthetic tables in the fit-and-sample habit.

The claim is the epsilon and the delta of the constructor.  The pairs are tiny tables that are made from a schema.  In
each run, a new object is fitted to a table, and the output is a synthetic table.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dpaudit.claims import ApproxDP, PureDP, TradeoffFunction, parse_claim
from dpaudit.libraries.generator_calls import MAX_PAIRS, ROWS, call_words, pairs_from
from dpaudit.libraries.inside import synthesizer as inside
from dpaudit.libraries.subject import Subject, UnknownSubject
from dpaudit.pairs.pair import Pair
from dpaudit.pairs.records import read_schema
from dpaudit.values import Dataset, Foreign, JsonObject, RawOutputs

__all__ = ["MAX_PAIRS", "Synthesizer", "claim_of", "name_of", "pairs_of", "refuse_failures", "source_of", "subject"]


_PASS_CLAIM = 'pass the claim, such as claim="pure(epsilon=1)" or claim="approximate(epsilon=1, delta=1e-5)"'


def subject(
    make: Foreign,
    schema: Mapping[str, Sequence[Foreign]],
    *,
    fit: Foreign = "fit",
    sample: Foreign = "sample",
    rows: int = ROWS,
    table: str = "frame",
    fit_arguments: Mapping[str, Foreign] | None = None,
    sample_arguments: Mapping[str, Foreign] | None = None,
    claim: TradeoffFunction | str | None = None,
    relation: Literal["add_remove", "replace_one"] = "add_remove",
    most: int = MAX_PAIRS,
    out_of_domain: bool = False,
    pairs: Iterable[Pair] | None = None,
    name: str = "",
    **arguments: Foreign,
) -> Subject:
    """Read the claim of a generator, and make pairs of tiny tables."""
    if not callable(make):
        raise UnknownSubject(f"subject takes a class or a function that makes an object, got {type(make).__name__}")
    try:
        columns = read_schema(schema)
    except ValueError as error:
        raise UnknownSubject(str(error)) from None
    made = inside.Generator(
        make, columns, arguments, fit, sample, rows, dict(fit_arguments or {}), dict(sample_arguments or {}), table
    )
    try:
        found = inside.facts(made)
    except (SystemExit, GeneratorExit) as error:  # a mechanism must not end this process
        raise UnknownSubject(f"{made.name} raised {type(error).__name__}: {error}; it must return an object") from error
    search = {"relation": relation, "most": most, "out_of_domain": out_of_domain}
    chosen = pairs_of({**found, "search": search}) if pairs is None else list(pairs)
    for pair in chosen[:1]:
        try:
            outputs = [made.run(dataset) for dataset in (pair.d0, pair.d1)]
        except (MemoryError, OSError) as error:
            raise UnknownSubject(
                f"fitting {name_of(found)} raised {type(error).__name__}: {error}; this failure of the machine is no "
                "output: provide the memory, the disk space and the file handles that a fit needs"
            ) from error
        refuse_failures(name_of(found), outputs, pair)
    module = getattr(make, "__module__", None)
    address = name_of(found) if module in (None, "__main__") else f"{module}:{name_of(found)}"
    return Subject(
        mechanism=Synthesizer(made, call_words(address, arguments, rows)),
        claim=claim_of(found) if claim is None else parse_claim(claim) if isinstance(claim, str) else claim,
        pairs=chosen,
        name=name or name_of(found),
        source=source_of(found),
        claim_stated_by="the constructor of the generator" if claim is None else None,
    )


def refuse_failures(name: str, outputs: RawOutputs, pair: Pair) -> None:
    """Refuse a generator that cannot be fitted to either table of a pair, because nothing would be audited."""
    if all(isinstance(output, dict) and set(output) == {"raised", "message"} for output in outputs):
        raise UnknownSubject(
            f"{name} raised {outputs[0]['raised']} for both tables of the pair {pair}: "
            f"{outputs[0]['message']}; check schema, fit, sample and table, or pass pairs=[Pair(d0, d1)]"
        )


@dataclass(frozen=True, slots=True)
class Synthesizer:
    """A generator as a mechanism on lists of rows.

    Libraries draw from the global generators of `random`, numpy and torch, which dpaudit seeds before each run.
    """

    made: Foreign
    named: str = ""

    @property
    def audited_class(self) -> Foreign:
        """The class or function that makes the generator."""
        return self.made.make

    @property
    def libraries(self) -> tuple[str, ...]:
        """The library that the mechanism calls."""
        return (self.made.library,)

    def raising(self, raises: bool) -> Synthesizer:
        """Return the same mechanism, whose exceptions end the run or are its outputs."""
        made = copy.copy(self.made)
        made.raises = raises
        return replace(self, made=made)

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
    """Return (epsilon, delta)-DP."""
    epsilon, delta = facts["epsilon"], facts["delta"]
    if facts.get("unreadable"):
        raise UnknownSubject(f"the claim of {facts['name']} cannot be read: {facts['unreadable']}; {_PASS_CLAIM}")
    if epsilon is None or not math.isfinite(epsilon):
        raise UnknownSubject(f"{facts['name']} has no finite epsilon among its arguments and attributes; {_PASS_CLAIM}")
    return ApproxDP(epsilon=epsilon, delta=delta) if delta else PureDP(epsilon)


def pairs_of(facts: JsonObject) -> list[Pair]:
    """Make pairs of tiny tables from the schema."""
    try:
        return pairs_from(facts["schema"], facts.get("search", {}))
    except ValueError as error:
        raise UnknownSubject(str(error)) from None
