"""Write all that users of dpaudit rely on into one file, so that a change of it is seen: python benchmarks/surface.py

    python benchmarks/surface.py [--check]

tests/surface.txt holds the public names with their signatures, the help of every command, the keys of configs, the
entry points, and the keys of the JSON results of several kinds of audits.  `--check` compares instead
of writing, and exits with 1 if anything differs.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

from dpaudit import OnlineAudit, Pair, audit, audit_one_run, audit_scores
from dpaudit.cli.app import app
from dpaudit.config.models import schema

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "surface.txt"
MODULES = (
    "dpaudit",
    "dpaudit.catalogue",
    "dpaudit.claims",
    "dpaudit.learning",
    "dpaudit.libraries",
    "dpaudit.running",
    "dpaudit.outputs",
    "dpaudit.testing",
    "dpaudit.training",
    "dpaudit.training.reference",
    "dpaudit.values",
)
SUBJECTS = ("accounting", "diffprivlib", "numpy", "opendp", "pydp", "smartnoise_sql", "synthesizer", "tumult")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_MODULE = re.compile(r"\b(?:dpaudit|numpy|collections|typing|pathlib)(?:\.\w+)*\.(?=\w)")  # modules may move


def surface() -> str:
    """Return the content of the file."""
    return "\n".join([*_names(), *_commands(), *_configs(), *_entry_points(), *_results()]) + "\n"


def _names() -> Iterator[str]:
    for module in MODULES:
        yield f"## {module}"
        for name in sorted(importlib.import_module(module).__all__):
            yield from _described(name, getattr(importlib.import_module(module), name))
    for name in SUBJECTS:
        yield f"## dpaudit.libraries.{name}"
        yield from _described("subject", importlib.import_module(f"dpaudit.libraries.{name}").subject)


def _described(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield f"class {name}{_signature(value)}"
        for member in sorted(name for name in dir(value) if not name.startswith("_")):
            found = inspect.getattr_static(value, member)
            function = getattr(found, "__func__", found)
            yield f"  {name}.{member}{_signature(function) if callable(function) else ''}"
    else:
        yield f"{name}{_signature(value)}" if callable(value) else name


def _signature(value: Any) -> str:
    try:
        return _MODULE.sub("", _ADDRESS.sub("", str(inspect.signature(value))))
    except (TypeError, ValueError):
        return "(?)"


def _commands() -> Iterator[str]:
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        yield f"## dpaudit {name}"
        yield from command.help.splitlines()
        for parameter in command.params:
            if not parameter.hidden:
                words = [*parameter.opts, *parameter.secondary_opts, f"default {parameter.default!r}"]
                yield f"  {', '.join(words)}: {' '.join((getattr(parameter, 'help', '') or '').split())}"


def _configs() -> Iterator[str]:
    for name, model in schema()["$defs"].items():
        yield f"## config: {name}"
        yield from (f"{key}: {value}" for key, value in sorted(model["properties"].items()))


def _keys(value: Any, place: str) -> Iterator[str]:
    """Yield the addresses of the keys of nested dictionaries."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{place}/{key}"
            if key not in ("counts", "description", "identity"):  # their keys are names of things that were audited
                yield from _keys(inner, f"{place}/{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner, f"{place}/*")


def _entry_points() -> Iterator[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield "## entry points"
    yield from (f"{group}: {entries}" for group, entries in sorted(project.get("entry-points", {}).items()))
    yield f"scripts: {project['scripts']}"
    yield f"extras: {', '.join(sorted(project['optional-dependencies']))}"


def _noisy(scale: float) -> Any:
    return lambda dataset, rng: float(sum(dataset) + rng.laplace(0, scale))


def _results() -> Iterator[str]:
    """Yield the keys of the JSON of a result of each kind."""
    rng, pair = np.random.default_rng(0), Pair([0.0], [1.0])
    one_run = audit_one_run(rng.normal(size=200) + (bits := rng.random(200) < 0.5), bits, "gaussian(mu=1)")
    online = OnlineAudit("pure(epsilon=1)", seed=0)
    for _ in range(40):
        online.update(float(online.coin() + rng.laplace(0, 0.3)))
    results = {
        "violation": audit(_noisy(0.2), "pure(epsilon=1)", pair, trials=500, seed=0),
        "no violation": audit(_noisy(1.0), "pure(epsilon=1)", pair, trials=500, seed=0),
        "fixed": audit(_noisy(1.0), "gaussian(mu=1)", pair, trials=500, seed=0, method="fixed"),
        "scores": audit_scores(rng.normal(size=200), rng.normal(1, 1, 200), "gaussian(mu=1)", independence="runs"),
        "one run": one_run,
        "stream": online.result(),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, result in results.items():
            path = Path(folder) / f"{name}.json"
            result.to_json(path)
            yield f"## JSON of {name}"
            yield from sorted(set(_keys(json.loads(path.read_text(encoding="utf-8")), "")))


def main() -> None:
    now = surface()
    if "--check" not in sys.argv:
        FILE.write_text(now, encoding="utf-8")
        return
    old = FILE.read_text(encoding="utf-8")
    print(*difflib.unified_diff(old.splitlines(), now.splitlines(), "before", "now", lineterm="", n=1), sep="\n")
    sys.exit(int(now != old))


if __name__ == "__main__":
    main()
