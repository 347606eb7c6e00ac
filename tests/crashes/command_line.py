"""Runs the command line in a copy of this process, and writes configs for it."""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import Result

from dpaudit.__main__ import main

Command = Callable[..., Result]
CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism: {builtin: gaussian, params: {sigma: 1.0}}
pairs: [{d0: [0], d1: [1]}]
trials: 60
seed: 0
confidence: 0.99
attacks: threshold
"""
MANY = """\
audits:
- {name: one, claim: &c gaussian(mu=1), mechanism: &m {builtin: gaussian, params: {sigma: 1.0}}, pairs: &p [{d0: [0], d1: [1]}], trials: 60, attacks: threshold, seed: 0}
- {name: two, claim: *c, mechanism: *m, pairs: *p, trials: 60, attacks: threshold, seed: 0}
- {name: three, claim: *c, mechanism: *m, pairs: *p, trials: 60, attacks: threshold, seed: 0}
"""  # noqa: E501


@dataclass
class Copy:
    """`dpaudit` in a copy of this process, which has loaded its modules; unlike `command`, it has its own streams.

    `first` is called before dpaudit.
    """

    folder: Path
    arguments: tuple[str, ...]
    first: Callable[[], object] = lambda: None
    process: int = field(init=False)

    def __post_init__(self) -> None:
        self.process = os.fork()
        if self.process:
            return
        code: int | str | None = 1  # as after an exception in a new process
        try:
            os.chdir(self.folder)
            os.closerange(3, 1000)  # what pytest has opened
            for number, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
                stream = open(number, "w", closefd=False, buffering=1)  # noqa: SIM115
                setattr(sys, name, stream)
                setattr(sys, f"__{name}__", stream)
            for name in ("SIGINT", "SIGHUP", "SIGTERM", "SIGQUIT"):  # which nohup ignores
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            sys.argv = ["dpaudit", *self.arguments]
            self.first()
            main()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code if isinstance(code, int) else 1)

    def ended(self) -> tuple[int, str, str]:
        """Wait for the end, and return the exit code, or minus the signal, and what stdout and stderr got."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        return code, (self.folder / "stdout").read_text(), (self.folder / "stderr").read_text()


def broken(*values: Any, **named: Any) -> Any:
    raise ZeroDivisionError("a mistake of dpaudit")
