"""Writes the lock file of an audit, which lists the exact packages of its environment for `dpaudit run --locked`."""

from __future__ import annotations

from dpaudit.cli.prepare_run import CommandSettings
from dpaudit.cli.terminal import say
from dpaudit.config import PlannedAudit, lock_file
from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.result.atomic_write import remove_placed, write_placed


def write_lock(planned: PlannedAudit, mechanism: object, command: CommandSettings) -> None:
    """Write DIR/NAME.lock if the mechanism has an environment that was not built from a lock file.

    If the new environment has no lock, the lock file of an earlier environment is removed.  A failure is reported, but
    does not end the command.
    """
    if not isinstance(mechanism, IsolatedMechanism) or planned.lock is not None:
        return
    file, name = lock_file(command.output, planned.config.name), planned.config.name
    try:
        if (lock := mechanism.installed) is not None:
            write_placed(file, lock.text)
            return
        remove_placed(file)
    except OSError as error:
        say(f"audit {name}: the lock file could not be written: {error.strerror or error}")
        return
    if not command.quiet:
        say(
            f"audit {name}: no lock file was written, because some packages have no hash.  Packages from version "
            "control or installed by uv have no hash"
        )
