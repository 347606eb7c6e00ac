"""`dpaudit clean`: lists the environments in the cache, and removes them on request."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from dpaudit.cli.ending import INCONCLUSIVE, leave, refuse
from dpaudit.cli.terminal import say, show
from dpaudit.text.printable import one_line


def clean(
    yes: Annotated[bool, typer.Option("--yes", help="Remove the listed environments.")] = False,
) -> None:
    """List the environments built for `requires:`; with --yes, remove those that are not in use.

    The list states size, days without use, requirements and folder.  An audit that needs a removed environment builds
    it again.

    Exit codes: 0 all environments were listed or removed, 2 wrong usage, and 3 some environments could not be removed.
    """
    from dpaudit.mechanisms import MechanismError
    from dpaudit.mechanisms.environments import cached_environments, environments_folder, remove

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
