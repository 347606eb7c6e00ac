"""Reads subjects from generators of synthetic tables in the fit-and-sample habit.

The claim is the epsilon and the delta of the constructor, and the pairs are tiny tables that are made from a schema.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.libraries.configured import GENERATED_PAIRS, ROWS, call_words, pairs_from
from dpaudit.libraries.inside import synthesizer as inside
from dpaudit.libraries.subject import LibraryObject, Subject, UnknownSubject, stated_claim
from dpaudit.pairs.pair import Pair
from dpaudit.pairs.search import read_schema
from dpaudit.values import JsonObject, RawOutputs

_PASS_CLAIM = 'pass the claim, such as claim="pure(epsilon=1)" or claim="approximate(epsilon=1, delta=1e-5)"'


def subject(
    make: Any,
    schema: Mapping[str, Sequence[Any]],
    *,
    fit: Any = "fit",
    sample: Any = "sample",
    rows: int = ROWS,
    table: str = "frame",
    fit_arguments: Mapping[str, Any] | None = None,
    sample_arguments: Mapping[str, Any] | None = None,
    claim: TradeoffFunction | str | None = None,
    relation: Literal["add_remove", "replace_one"] = "add_remove",
    most: int = GENERATED_PAIRS,
    out_of_domain: bool = False,
    pairs: Iterable[Pair] | None = None,
    name: str = "",
    **arguments: Any,
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
    found = inside.facts(made)
    generator = found["name"]
    search = {"relation": relation, "most": most, "out_of_domain": out_of_domain}
    chosen = pairs_of({**found, "search": search}) if pairs is None else list(pairs)
    for pair in chosen[:1]:
        refuse_failures(generator, [made.run(dataset) for dataset in (pair.d0, pair.d1)], pair)
    module = getattr(make, "__module__", None)
    address = generator if module in (None, "__main__") else f"{module}:{generator}"
    return Subject(
        mechanism=Synthesizer(made, call_words(address, arguments, rows)),
        claim=claim_of(found) if claim is None else parse_claim(claim) if isinstance(claim, str) else claim,
        pairs=chosen,
        name=name or generator,
        source=f"{found['version']}, {generator}: epsilon and delta of the constructor",
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
class Synthesizer(LibraryObject, inside=inside):
    """A generator as a mechanism on lists of rows; it draws from global generators, seeded before each run."""

    named: str = ""

    @property
    def audited_class(self) -> Any:
        return self.made.make

    @property
    def libraries(self) -> tuple[str, ...]:
        return (self.made.library,)

    def raising(self, raises: bool) -> Synthesizer:
        """Return the same mechanism, whose exceptions end the run or are its outputs."""
        made = copy.copy(self.made)
        made.raises = raises
        return replace(self, made=made)


def claim_of(facts: JsonObject) -> TradeoffFunction:
    if facts.get("unreadable"):
        raise UnknownSubject(f"the claim of {facts['name']} cannot be read: {facts['unreadable']}; {_PASS_CLAIM}")
    if facts["epsilon"] is None or not math.isfinite(facts["epsilon"]):
        raise UnknownSubject(f"{facts['name']} has no finite epsilon among its arguments and attributes; {_PASS_CLAIM}")
    return stated_claim(facts["name"], facts["epsilon"], facts["delta"])


def pairs_of(facts: JsonObject) -> list[Pair]:
    try:
        return pairs_from(facts["schema"], facts.get("search", {}))
    except ValueError as error:
        raise UnknownSubject(str(error)) from None
