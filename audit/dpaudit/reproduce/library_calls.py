"""Writes the calls of libraries and of generators that a config names (`mechanism.library`), without importing them.

`dpaudit.libraries.inside` makes the same calls in an audit.
"""

from __future__ import annotations

import re
from typing import Any

from dpaudit.libraries.configured import ROWS
from dpaudit.libraries.inside import diffprivlib, opendp
from dpaudit.reproduce.literals import (
    Unwritable,
    arguments,
    brief_text,
    checked_name,
    literal,
    named_arguments,
    refuse_secrets,
)
from dpaudit.values import JsonObject

_COMBINATORS = re.compile(
    r"make_\w*(?:composition|_to_|fix_delta|amplification|select_private|odometer|filter|approximate|chain_)\w*"
)
_FEATURES = '"contrib", "honest-but-curious", "floating-point"'


def library_lines(library: str, call: str, given: Any) -> list[str]:
    """Return lines that define `release(dataset)`.

    Functions are imported under the name `audited`, because a name such as `sum` would hide a function that the script
    itself calls.
    """
    if library == "smartnoise_sql":
        raise Unwritable("a query of smartnoise-sql needs a data frame and metadata, more than a short script holds")
    if library == "tumult":
        raise Unwritable("a measurement of Tumult Core needs domains and metrics, more than a short script holds")
    checked_name(call, "the call of the library")
    if library != "diffprivlib" and "." in call:
        raise Unwritable(f"the call of {library} must be a name without a dot, got {brief_text(call)}")
    return {"opendp": _opendp, "diffprivlib": _diffprivlib, "pydp": _pydp}[library](call, given)


def _opendp(call: str, given: Any) -> list[str]:
    if call != "chain" and not opendp.CONSTRUCTOR.fullmatch(call):
        raise Unwritable(f"the call of opendp must be a constructor such as make_laplace, got {brief_text(call)}")
    homes: dict[str, set[str]] = {}
    made = _constructed(call, given, homes, inside=False)
    imports = [f"from opendp.{home} import {', '.join(sorted(names))}" for home, names in sorted(homes.items())]
    return [
        "from opendp.mod import enable_features",
        *imports,
        f"enable_features({_FEATURES})",
        f"release = {made}",
    ]


def _constructed(call: str, given: Any, homes: dict[str, set[str]], *, inside: bool) -> str:
    """Return the call of a constructor of OpenDP, and add the module of each constructor to `homes`."""
    if call == "chain":
        raise Unwritable("a chain of OpenDP's constructors is longer than a short script; audit a function in a file")
    if call.endswith("_domain") or call == "with_margin":
        home = "domains"
    elif call.endswith("_distance"):
        home = "metrics"
    elif call.endswith("_divergence") or call == "approximate":
        home = "measures"
    elif _COMBINATORS.fullmatch(call):
        home = "combinators"
    elif inside and not re.search(r"laplace|gaussian|geometric|noise|randomized|noisy|report|private|threshold", call):
        home = "transformations"
    else:
        home = "measurements"
    homes.setdefault(home, set()).add(call)
    if isinstance(given, list):
        return f"{call}({', '.join(_built(value, homes) for value in given)})"
    refuse_secrets(given)
    names = [checked_name(name, "an argument of the call") for name in named_arguments(given)]
    taken = {
        name: tuple(given[name]) if name in opendp.TUPLES and isinstance(given[name], list) else given[name]
        for name in names
    }
    return f"{call}({', '.join(f'{name}={_built(taken[name], homes)}' for name in names)})"


def _is_constructor(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    name = next(iter(value))
    constructor = isinstance(name, str) and (name == "chain" or opendp.CONSTRUCTOR.fullmatch(name) is not None)
    return constructor and name.isascii()


def _built(value: Any, homes: dict[str, set[str]]) -> str:
    if isinstance(value, list) and any(map(_is_constructor, value)):
        return f"[{', '.join(_built(part, homes) for part in value)}]"
    if _is_constructor(value):
        ((name, given),) = value.items()
        return _constructed(name, given, homes, inside=True)
    return literal(value)


def _diffprivlib(call: str, given: Any) -> list[str]:
    name = call.rpartition(".")[2]
    named = diffprivlib.with_tuples(named_arguments(given))
    if name in ("histogram2d", "histogramdd"):
        raise Unwritable(f"{name} of diffprivlib needs columns of records; audit a function in a file instead")
    if name in diffprivlib.MODELS:
        raise Unwritable("a model of diffprivlib releases several attributes; audit a function in a file instead")
    if not name[0].isupper():
        records = "np.array(dataset, dtype=float)"
        more = f", {arguments(named)}" if named else ""
        return [
            f"from diffprivlib.tools import {name} as audited",
            "from diffprivlib.accountant import BudgetAccountant",
            "def release(dataset):",
            f"    return audited({records}, accountant=BudgetAccountant(){more}){'[0]' * (name == 'histogram')}",
        ]
    imported = f"from diffprivlib.mechanisms import {name} as audited"
    if name.startswith(("Exponential", "PermuteAndFlip")):
        more = f", {arguments(named)}" if (named := {k: v for k, v in named.items() if k != "utility"}) else ""
        return [imported, "def release(dataset):", f"    return audited(utility=list(dataset){more}).randomise()"]
    return [imported, f"release = audited({arguments(named)}).randomise"]


def _pydp(call: str, given: Any) -> list[str]:
    return [
        f"from pydp.algorithms.laplacian import {call} as audited",
        f"algorithm = audited({arguments(given)})",
        "def release(dataset):",
        "    return algorithm.quick_result(list(dataset))",
    ]


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
