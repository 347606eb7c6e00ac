"""Writes the call of an audited mechanism: its imports, its construction, and a function `release(dataset)`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import PurePosixPath

from dpaudit.config import PlannedAudit
from dpaudit.config.models import builtin_mechanism
from dpaudit.libraries.configured import GENERATORS, LibraryCall
from dpaudit.reproduce.library_calls import generator_lines, library_lines
from dpaudit.reproduce.literals import Unwritable, arguments, brief_text, checked_name, comment, literal
from dpaudit.result.provenance import Provenance
from dpaudit.text import MASK

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
    notes = _packages(mechanism.requires, mechanism.python_version)
    if mechanism.builtin is not None:
        return _builtin(mechanism.builtin, mechanism.params)
    if mechanism.command is not None:
        program = comment(mechanism.command[0])
        return _placeholder(f"run the audited program {program} on the dataset", notes)
    called = mechanism.library_call(raises=planned.failures_end_runs)
    if called is not None and called.library == GENERATORS:
        return _generator(called, notes)
    if called is not None:
        return Call(lines=library_lines(called.library, called.call, called.arguments), notes=notes)
    assert mechanism.python is not None
    return _python(mechanism.python, mechanism.params, notes, batched=mechanism.batched)


def call_of_python(about: Provenance) -> Call:
    """Write a call that the reader must fill in.

    The result of an audit in Python records only the name of the mechanism and the name of its file.
    """
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


def _packages(requires: list[str] | None, python_version: str | None) -> list[str]:
    found = [f"packages of the audit: {comment(', '.join(requires), 300)}"] if requires else []
    return found + ([f"Python of the audit: {comment(python_version)}"] if python_version else [])


def _generator(called: LibraryCall, notes: list[str]) -> Call:
    place, _, name = called.call.partition(":")
    module, notes = _module(place, called.call, notes)
    checked_name(name, "the class of the generator")
    lines = generator_lines(module, name, called.arguments)
    return Call(lines=lines, notes=notes, file=module.partition(".")[0], outcomes=not called.raises)


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


def _builtin(name: str, params: object) -> Call:
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
