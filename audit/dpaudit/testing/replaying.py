"""Replaying what a test of a suite found, in that test."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

from dpaudit.engine.audit import Replay
from dpaudit.engine.replay import replay
from dpaudit.result.model import AuditResult
from dpaudit.testing import session
from dpaudit.text.printable import one_line, printable


class Replayed(BaseException):
    """The replay was made; the test need not go on.  Not an Exception: tests may catch those."""

    def __init__(self, found: Replay) -> None:
        super().__init__("replayed")
        self.found = found


def checked_test(result: AuditResult) -> str:
    """The id of the test that a result is of, checked: pytest is given nothing else from a result file.

    Raises:
        ValueError: It is not `file.py::name` with a file in the current folder or below.  Anything else could be an
            option of pytest, such as `--basetemp=DIR`, which empties a folder, or code from elsewhere.
    """
    node = result.environment["test"]
    if not isinstance(node, str):
        raise ValueError(f"the result must name a test as text, got {type(node).__name__}")
    file, _, name = node.partition("::")
    path = Path(file)
    wrong = (
        "it has no `::name`" if not name else
        "its file does not end in .py" if path.suffix != ".py" else
        "it begins with - or @" if node[0] in "-@" else
        "its file is outside the current folder" if path.is_absolute() or ".." in path.parts else
        "it has characters that cannot be printed" if not node.isprintable() else
        ""
    )  # fmt: skip
    if wrong:
        raise ValueError(
            f"the result is of the test {one_line(node)[:200]!r}: {wrong}.  A test must be given as file.py::name, "
            "with a file in the current folder or below; nothing was run"
        )
    if not path.is_file() or not path.resolve().is_relative_to(Path.cwd().resolve()):
        raise ValueError(
            f"the result is of the test {node}, and there is no such file here; replay it in the folder in which "
            "pytest ran"
        )
    return node


def replay_in_test(result: AuditResult, *, trials: int | None, extend: bool, seed: int | None, jobs: int) -> Replay:
    """Run the test that `result` is of, and replay its witness where the test would audit.

    Raises:
        ValueError: The test is not named as `checked_test` demands, pytest does not find it from here, or it does not
            get to that audit.
    """
    import pytest

    node, call = checked_test(result), result.environment.get("call", 1)
    if not isinstance(call, int):
        raise ValueError(f"the result must say which audit of its test it is, got {call!r}")
    found: list[Replay] = []

    def instead(allowance: session.Allowance, mechanism: Any, pairs: Any, attacks: Any) -> None:
        if (allowance.node, allowance.calls) == (node, call):
            found.append(
                replay(result, mechanism, pairs, attacks=attacks, trials=trials, extend=extend, seed=seed, jobs=jobs)
            )
            raise Replayed(found[-1])

    said = io.StringIO()
    session.instead = instead
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(Replayed):
            # an absolute path after "--" can be neither an option nor a file of arguments
            pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--", str(Path.cwd() / node)])
    finally:
        session.instead = None
    if not found:
        last = "".join(f"\n    {printable(line)}" for line in said.getvalue().strip().splitlines()[-15:])
        raise ValueError(
            f"the result is of audit {call} of the test {node}, which was not reached; replay it in the folder "
            f"in which pytest ran.  pytest said:{last}"
        )
    return found[0]
