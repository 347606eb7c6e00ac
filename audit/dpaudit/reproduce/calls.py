"""Writes the call of an audited mechanism: its imports, its construction, and a function `release(dataset)`."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from dpaudit.config.models import builtin_mechanism
from dpaudit.config.planned import PlannedAudit
from dpaudit.libraries.configured import GENERATORS, ROWS
from dpaudit.libraries.inside import diffprivlib, opendp
from dpaudit.reproduce.literals import (
    Unwritable,
    arguments,
    brief_text,
    checked_name,
    comment,
    literal,
    named_arguments,
    refuse_secrets,
)
from dpaudit.result.provenance import Provenance
from dpaudit.text import MASK
from dpaudit.values import JsonObject

_SUM = "np.sum(dataset)"
_COLUMN = "np.array(dataset, float)"  # None becomes NaN
_CLIPPED = f"np.clip(np.nan_to_num({_COLUMN}), {{low}}, 1.0).sum()"
_FORMS = {
    "gaussian": f"{_SUM} + rng.normal(0.0, {{sigma}})",
    "laplace": f"{_SUM} + rng.laplace(0.0, {{scale}})",
    "geometric": f"{_SUM} + float(rng.geometric(-np.expm1(-1 / {{scale}})) - rng.geometric(-np.expm1(-1 / {{scale}})))",
    "laplace_parallel": "np.ravel(dataset)[0] + rng.laplace(0.0, {times} / {epsilon}, {times})",
    "noisy_sum": f"{_CLIPPED.format(low='0.0')} + rng.laplace(0.0, 1 / {{epsilon}})",
    "nan_survives": f"np.clip({_COLUMN}, 0.0, 1.0).sum() + rng.laplace(0.0, 1 / {{epsilon}})",
    "sensitivity_off": f"{_CLIPPED.format(low='-1.0')} + rng.laplace(0.0, 1 / {{epsilon}})",
    "fixed_seed": f"{_COLUMN}.sum() + np.random.default_rng({{seed}}).laplace(0.0, 1 / {{epsilon}})",
    "spinner": "int(np.ravel(dataset)[0]) ^ int(rng.random() >= {truth})",
}


_SAMPLE = [
    "def release(dataset):",
    '    return mechanism.sample(dataset, 1, rng)[0] if hasattr(mechanism, "sample") else mechanism(dataset, rng)',
]
_BATCHED = ["def release(dataset):", '    return getattr(mechanism, "sample", mechanism)(dataset, 1, rng)[0]']


_OWN = ("dpaudit", "dpaudit_attacks", "dpaudit_reports")  # packages that a script does without


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The lines of a script that call a mechanism."""

    lines: list[str]
    notes: list[str]
    file: str = ""
    missing: str = ""
    outcomes: bool = False


def call_of_config(planned: PlannedAudit) -> Call:
    """Write the call of the mechanism of a config."""
    mechanism = planned.config.mechanism
    notes = [f"packages of the audit: {comment(', '.join(mechanism.requires), 300)}"] if mechanism.requires else []
    if mechanism.python_version:
        notes.append(f"Python of the audit: {comment(mechanism.python_version)}")
    if mechanism.builtin is not None:
        name, params = mechanism.builtin, mechanism.params
        if name not in _FORMS:
            raise Unwritable(
                f"a script cannot contain the builtin mechanism {name}, only {', '.join(_FORMS)}; copy the class "
                f"of {name} from dpaudit/catalogue into a file, and audit that file"
            )
        try:
            made = builtin_mechanism(name, dict(params) if isinstance(params, dict) else {})
        except ValueError as error:
            raise Unwritable(f"the config in the result is not valid: {error}") from None
        fields = {field: literal(getattr(made, field)) for field in made.__dataclass_fields__}
        return Call(lines=["def release(dataset):", f"    return {_FORMS[name].format(**fields)}"], notes=[])
    if mechanism.command is not None:
        program = comment(mechanism.command[0])
        return _placeholder(f"run the audited program {program} on the dataset", notes)
    if mechanism.http is not None:
        return _placeholder(f"send the dataset to {comment(mechanism.http.url)}", notes)
    if mechanism.sql is not None:
        return _placeholder(f"run the query {comment(mechanism.sql.query, 300)} on the dataset", notes)
    called = mechanism.library_call(raises=planned.failures_end_runs)
    if called is not None and called.library == GENERATORS:
        place, _, name = called.call.partition(":")
        module, notes = _module(place, called.call, notes)
        lines = generator_lines(module, checked_name(name, "the class of the generator"), called.arguments)
        return Call(lines=lines, notes=notes, file=module.partition(".")[0], outcomes=not called.raises)
    if called is not None:
        return Call(lines=library_lines(called.library, called.call, called.arguments), notes=notes)
    assert mechanism.python is not None
    return _python(mechanism.python, mechanism.params, notes, batched=mechanism.batched)


def call_of_python(about: Provenance) -> Call:
    """Write a call that the reader must fill in: a result of Python holds only the mechanism's name and file."""
    name, file = comment(about.mechanism or "the mechanism", 80), about.mechanism_file
    where = f" of {comment(PurePosixPath(file.path.replace(chr(92), '/')).name, 80)}" if file is not None else ""
    versions = [f"{name} {version}" for name, version in (about.mechanism_packages or {}).items()]
    notes = [f"packages of the audit: {comment(', '.join(versions), 300)}"] if versions else []
    return _placeholder(f"call {name}{where} on the dataset", notes)


def _placeholder(task: str, notes: list[str]) -> Call:
    lines = [
        "def release(dataset):",
        f"    # FILL IN: {task}, with fresh randomness, and return its output.",
        '    raise NotImplementedError("fill in the function release")',
    ]
    return Call(lines=lines, notes=notes, missing=task)


def _module(place: str, address: str, notes: list[str]) -> tuple[str, list[str]]:
    """Return the module that a script imports, and the notes with a note about the folder of its file."""
    if place.endswith(".py"):
        module = PurePosixPath(place.replace("\\", "/")).stem
        checked_name(module, f"the name of the file {brief_text(place)}, which the script imports,")
        if "." in module or module in sys.stdlib_module_names:
            raise Unwritable(f"a script cannot import a file named {brief_text(place)}; rename it, and audit again")
        notes = [f"Put this script into the folder of {module}.py.", *notes]
    else:
        module = checked_name(place, "the module of the mechanism")
        if module.partition(".")[0] in _OWN:
            raise Unwritable(
                f"the mechanism {brief_text(address)} is code of dpaudit; copy it into a file, and audit that file"
            )
    return module, notes


def _python(address: str, params: object, notes: list[str], *, batched: bool) -> Call:
    place, _, name = address.rpartition(":")
    checked_name(name, "the object of the mechanism")
    first, _, inner = name.partition(".")
    module, notes = _module(place, address, notes)
    if MASK in repr(params):
        raise Unwritable(f"the result hides a parameter of the mechanism ({MASK}), so the call is unknown")
    if not inner and params is None:
        lines = [f"from {module} import {first} as mechanism"]
    else:  # the alias "audited" differs from all names of the script, so the import hides none of them
        made = f"audited{'.' * bool(inner)}{inner}" + ("" if params is None else f"({arguments(params)})")
        lines = [f"from {module} import {first} as audited", f"mechanism = {made}"]
    return Call(lines=[*lines, *(_BATCHED if batched else _SAMPLE)], notes=notes, file=module.partition(".")[0])


_COMBINATORS = re.compile(
    r"make_\w*(?:composition|_to_|fix_delta|amplification|select_private|odometer|filter|approximate|chain_)\w*"
)
_FEATURES = '"contrib", "honest-but-curious", "floating-point"'


def library_lines(library: str, call: str, given: Any) -> list[str]:
    """Return lines that define `release(dataset)`; functions are imported as `audited`, as `sum` would hide another."""
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
    return ["from opendp.mod import enable_features", *imports, f"enable_features({_FEATURES})", f"release = {made}"]


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
