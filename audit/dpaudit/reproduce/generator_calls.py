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

_RAISED = 'return {"raised": type(error).__name__, "message": str(error)[:200]}'  # the output in place of a table


def generator_lines(module: str, name: str, given: JsonObject, *, raises: bool) -> list[str]:
    """Return lines that define `release(dataset)`.

    Args:
        module: The module that the script imports.
        name: The class.
        given: The arguments of the mechanism in the config.
        raises: Whether the config asks that an exception ends the run.  Otherwise, an exception is the output.

    Raises:
        Unwritable: If a name or a value cannot be written.
    """
    methods = {key: checked_name(str(given.get(key, key)), f"the method {key}") for key in ("fit", "sample")}
    rows = ", ".join(
        part for part in (literal(given.get("rows", ROWS)), arguments(given.get("sample_arguments"))) if part
    )
    fitting = ", ".join(part for part in ("table", arguments(given.get("fit_arguments"))) if part)
    columns = f"{{name: [row[name] for row in dataset] for name in {literal(list(given['schema']))}}}"
    form = given.get("table", "frame")
    table = {"frame": f"pd.DataFrame({columns})", "rows": "[dict(row) for row in dataset]"}.get(form, columns)
    indent = "" if raises else "    "
    return [
        *(["import pandas as pd"] if form == "frame" else []),
        f"from {module} import {name} as audited",
        "def release(dataset):",
        f"    made, table = audited({arguments(given.get('make'))}), {table}",
        *([] if raises else ["    try:"]),
        f"    {indent}fitted = made.{methods['fit']}({fitting})",
        f"    {indent}return (fitted if hasattr(fitted, {methods['sample']!r}) else made).{methods['sample']}({rows})",
        *([] if raises else [f"    except (Exception, SystemExit) as error: {_RAISED}"]),
    ]


def generator_pairs(library: str | None, given: Foreign) -> list[Pair]:
    """Return the pairs that an audit made from the schema of a generator; [] for other libraries.

    Args:
        library: The library of the config.
        given: The arguments of the mechanism in the config.
    """
    if library != GENERATORS:
        return []
    return pairs_from(given["schema"], {key: given[key] for key in SEARCH if key in given})
