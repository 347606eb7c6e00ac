"""Writes the call of a generator that a config names by `library: synthesizer`, without importing the generator.

`dpaudit.libraries.inside.synthesizer` makes the same calls in an audit.
"""

from __future__ import annotations

from dpaudit.libraries.configured import GENERATORS
from dpaudit.libraries.generator_calls import ROWS, pairs_from
from dpaudit.libraries.inside.synthesizer import SEARCH
from dpaudit.pairs.pair import Pair
from dpaudit.reproduce.literals import arguments, checked_name, literal
from dpaudit.values import Foreign, JsonObject


def generator_lines(module: str, name: str, given: JsonObject) -> list[str]:
    """Return lines that define `release(dataset)`."""
    methods = {key: checked_name(str(given.get(key, key)), f"the method {key}") for key in ("fit", "sample")}
    rows = ", ".join(
        part for part in (literal(given.get("rows", ROWS)), arguments(given.get("sample_arguments"))) if part
    )
    fitting = ", ".join(part for part in ("table", arguments(given.get("fit_arguments"))) if part)
    columns = f"{{name: [row[name] for row in dataset] for name in {literal(list(given['schema']))}}}"
    form = given.get("table", "frame")
    table = {"frame": f"pd.DataFrame({columns})", "rows": "[dict(row) for row in dataset]"}.get(form, columns)
    return [
        *(["import pandas as pd"] if form == "frame" else []),
        f"from {module} import {name} as audited",
        "def release(dataset):",
        f"    made, table = audited({arguments(given.get('make'))}), {table}",
        f"    fitted = made.{methods['fit']}({fitting})",
        f"    return (fitted if hasattr(fitted, {methods['sample']!r}) else made).{methods['sample']}({rows})",
    ]


def generator_pairs(library: str | None, given: Foreign) -> list[Pair]:
    """Return the pairs that an audit made from the schema of a generator; [] for other libraries."""
    if library != GENERATORS:
        return []
    return pairs_from(given["schema"], {key: given[key] for key in SEARCH if key in given})
