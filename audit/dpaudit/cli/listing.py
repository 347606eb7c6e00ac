"""`dpaudit list` lists attacks, claims, builtin mechanisms and configs, and `dpaudit clean` lists environments."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.ending import INCONCLUSIVE, leave, refuse
from dpaudit.cli.options import check_choice, completing, option
from dpaudit.cli.terminal import say, show
from dpaudit.text import one_line

if TYPE_CHECKING:
    from dpaudit.config import PlannedAudit

KINDS = ("attacks", "claims", "mechanisms", "configs")


def list_(
    what: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            autocompletion=completing(KINDS),
            help="What to list: attacks, claims, mechanisms or configs.",
        ),
    ],
) -> None:
    """List attacks, claims, builtin mechanisms, or the configs in this folder and its subfolders."""
    check_choice("KIND", what, KINDS, otherwise="write dpaudit list claims, for example")
    rows = _configs() if what == "configs" else _described(_classes(what))
    width = max((len(name) for name, _ in rows), default=0)
    for name, about in rows:
        show(one_line(f"{name:{width}s}  {about}".rstrip()))


def _classes(what: str) -> Mapping[str, object]:
    from dpaudit.catalogue import BUILTIN
    from dpaudit.claims import CLAIMS, OPERATIONS
    from dpaudit.learning.attack import attack_classes

    if what == "attacks":
        return attack_classes()
    return {**CLAIMS, **OPERATIONS} if what == "claims" else BUILTIN


def _configs() -> list[tuple[str, str]]:
    from dpaudit.config import ConfigError, read_configs

    found: list[tuple[str, str]] = []
    for file in sorted(p for p in Path().rglob("*.y*ml") if p.suffix in (".yaml", ".yml")):
        try:
            found += [(str(file), audit.config.name) for audit in read_configs([file])]
        except ConfigError:
            continue  # the YAML file is not a config
    return found


def _described(things: Mapping[str, object]) -> list[tuple[str, str]]:
    """Pair each name with the first line of its docstring, in the names that users of configs type."""
    names = {getattr(thing, "__name__", name): name for name, thing in things.items()}
    lines = {name: (thing.__doc__ or "").strip().split("\n")[0] for name, thing in things.items()}
    written = re.compile(r"\b(\w+)(?=\()|(?<=`)(\w+)(?=`)")
    return [(name, written.sub(lambda found: names.get(found[0], found[0]), line)) for name, line in lines.items()]


def list_code(planned: Iterable[PlannedAudit]) -> None:
    """Show the code that each audit runs, and what this code receives."""
    for one in planned:
        show(one_line(f"{one.config.name}: runs {one.code or 'no code outside dpaudit'}"))
        for line in one.inputs:
            show(f"  {line}")


def clean(yes: Annotated[bool, option("Remove the listed environments.", "--yes")] = False) -> None:
    """List the environments built for `requires:`; with --yes, remove those that are not in use.

    The list states size, days without use, requirements and folder.  An audit that needs a removed environment builds
    it again.

    Exit codes: 0 all environments were listed or removed, 2 wrong usage, and 3 some environments could not be removed.
    """
    from dpaudit.running import MechanismError
    from dpaudit.running.environments import cached_environments, environments_folder, remove

    try:
        found = cached_environments()
        if not found:
            say(f"there are no environments in {environments_folder()}")
        stayed = 0
        for one in found:
            days = f"unused for {max(0, int((time.time() - one.used) / 86_400)):4d} days"
            show(one_line(f"{one.size / 1e6:8.1f} MB  {days}  {one.about}  {one.path}"))
            try:
                if yes:
                    remove(one)
            except OSError as error:
                stayed += 1
                reason = "the environment is in use" if isinstance(error, BlockingIOError) else error
                say(f"{one.path} stays: {reason}")
    except (MechanismError, OSError) as error:
        refuse(str(error))
    if found and yes:
        say(f"removed {len(found) - stayed} of {len(found)} environments")
    elif found:
        total = sum(one.size for one in found) / 1e6
        say(f"{len(found)} environments with {total:,.1f} MB.  To remove them: dpaudit clean --yes")
    if stayed:
        leave(INCONCLUSIVE)
