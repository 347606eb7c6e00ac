"""Checks and describes the calls of generators of synthetic tables, without making a generator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dpaudit.libraries.inside.synthesizer import SEARCH, TABLES, check_call, check_keys
from dpaudit.mechanisms.standard_library import is_standard
from dpaudit.pairs.pair import Pair
from dpaudit.pairs.records import bounds_or_list, is_date, read_schema
from dpaudit.pairs.search import SearchPairs
from dpaudit.text.masking import masked_values
from dpaudit.text.printable import one_line, shortened
from dpaudit.values import Foreign, JsonObject

ROWS = 100
"""Number of rows of a synthetic table, if none is given."""

MAX_PAIRS = 6
"""Maximum number of pairs of a subject, because all pairs of an audit share its trials, and fits are slow."""


def call_words(call: str, make: Mapping[str, Foreign], rows: int) -> str:
    """Return the name of a generator in results, such as `generators:Copies(epsilon=1.0), 20 rows`."""
    masked: Foreign = masked_values(dict(make))
    given = ", ".join(f"{name}={value!r}" for name, value in masked.items())
    return f"{call}({shortened(one_line(given))}), {rows} rows"


def pairs_from(schema: Mapping[str, Foreign], search: JsonObject) -> list[Pair]:
    """Make pairs of tiny tables from a schema."""
    columns = {name: bounds_or_list(entries) for name, entries in read_schema(schema).items()}
    settings = {"relation": "add_remove", "most": MAX_PAIRS, **search}
    return list(SearchPairs(schema=columns, tiny=True, **settings))


def file_beside(call: str, folder: Path) -> bool:
    """Whether a call names a file in a folder, or a module whose file is in the folder."""
    module = call.partition(":")[0]
    return module.endswith(".py") or (folder / f"{module.replace('.', '/')}.py").is_file()


def check_config(call: str, arguments: Foreign) -> None:
    """Check the call of a generator in a config before any code runs."""
    try:
        check_call(call)
        if is_standard(module := call.partition(":")[0]):
            raise LookupError(f"call must not name a module of Python's standard library, got {module}")
        if not isinstance(arguments, dict):
            raise LookupError("arguments must be a mapping with schema")
        check_keys(arguments)
    except LookupError as error:
        raise ValueError(str(error.args[0])) from None
    for key in ("make", "fit_arguments", "sample_arguments"):
        if not isinstance(arguments.get(key) or {}, dict):
            raise ValueError(f"arguments: {key} must be a mapping, got {type(arguments[key]).__name__}")
    for key in ("fit", "sample"):
        if not isinstance(arguments.get(key, ""), str):
            raise ValueError(f"arguments: {key} must be the name of a method, got {arguments[key]!r}")
    rows = arguments.get("rows", ROWS)
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 0:
        raise ValueError(f"arguments: rows must be a whole number, got {rows!r}")
    if (table := arguments.get("table", TABLES[0])) not in TABLES:
        raise ValueError(f"arguments: table must be frame, rows or columns, got {table!r}")
    _check_pairs(arguments)
    try:
        json.dumps(arguments)
    except TypeError:
        raise ValueError("arguments must hold texts, numbers, lists and mappings only, and no dates") from None


def _check_pairs(arguments: JsonObject) -> None:
    search = {key: arguments[key] for key in SEARCH if key in arguments}
    most, out_of_domain = search.get("most", 1), search.get("out_of_domain", False)
    if not isinstance(most, int) or isinstance(most, bool):
        raise ValueError(f"arguments: most must be a whole number, got {most!r}")
    if not isinstance(out_of_domain, bool):
        raise ValueError(f"arguments: out_of_domain must be true or false, got {out_of_domain!r}")
    if (relation := search.get("relation", "add_remove")) not in ("add_remove", "replace_one"):
        raise ValueError(f"arguments: relation must be add_remove or replace_one, got {relation!r}")
    try:
        pairs_from(arguments["schema"], search)
    except ValueError as error:
        raise ValueError(f"arguments: {error}") from None
    for column, entries in arguments["schema"].items():
        if any(map(is_date, entries)):
            raise ValueError(f"arguments: schema: {column} has dates; quote them, so that they are texts")
