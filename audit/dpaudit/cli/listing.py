"""`dpaudit list`: the attacks, claims, mechanisms and configs that there are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpaudit.cli.ending import refuse
from dpaudit.cli.terminal import show


def list_(
    what: Annotated[str, typer.Argument(metavar="attacks|claims|mechanisms|configs")],
) -> None:
    """List the attacks, claims, builtin mechanisms, or the configs in this folder."""
    listings = {"attacks": _attacks, "claims": _claims, "mechanisms": _mechanisms, "configs": _configs}
    if what not in listings:
        refuse(f"list must be followed by one of {', '.join(listings)}; got {what!r}")
    rows = listings[what]()
    width = max((len(name) for name, _ in rows), default=0)
    for name, about in rows:
        show(f"{name:{width}s}  {about}".rstrip())


def _attacks() -> list[tuple[str, str]]:
    from dpaudit.learning.attack import attack_classes

    return [(name, _first_line(kind)) for name, kind in attack_classes().items()]


def _claims() -> list[tuple[str, str]]:
    from dpaudit.claims import CLAIMS, OPERATIONS

    return [(name, _first_line(kind)) for name, kind in {**CLAIMS, **OPERATIONS}.items()]


def _mechanisms() -> list[tuple[str, str]]:
    from dpaudit.catalogue import BUILTIN

    return [(name, _first_line(kind)) for name, kind in BUILTIN.items()]


def _configs() -> list[tuple[str, str]]:
    from dpaudit.config import ConfigError, read_configs

    found: list[tuple[str, str]] = []
    for file in sorted(p for p in Path().rglob("*.y*ml") if p.suffix in (".yaml", ".yml")):
        try:
            found += [(str(file), audit.config.name) for audit in read_configs([file])]
        except ConfigError:
            continue  # some other YAML file
    return found


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().split("\n")[0]
