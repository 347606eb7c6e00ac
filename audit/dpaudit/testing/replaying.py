"""Replays the result of a test by running that test."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from dpaudit.engine.arguments import pairs_of
from dpaudit.engine.audit import Replay
from dpaudit.engine.replay import replay
from dpaudit.engine.replay_outcome import compared
from dpaudit.result.model import AuditResult
from dpaudit.testing import session
from dpaudit.text.printable import one_line, printable
from dpaudit.values import Foreign


class _Replayed(BaseException):
    """Raised to end the test after the replay.  The class is not an Exception, because a test may catch exceptions."""


def checked_test(result: AuditResult) -> str:
    """Return the id of the test that a result belongs to, if the test lies in the current folder or below.

    The result may come from anybody, and a replay must not run code elsewhere.
    """
    node = result.provenance.test or ""
    file, _, name = node.partition("::")
    path = Path(file).resolve()
    if not (name and path.suffix == ".py" and path.is_file() and path.is_relative_to(Path.cwd().resolve())):
        raise ValueError(
            f"the result belongs to the test {one_line(node)[:200]!r}, which must have the form file.py::name, with a "
            "file in the current folder or below; replay it in the folder in which pytest ran (nothing was run)"
        )
    return node


def replay_in_test(result: AuditResult, *, trials: int | None, extend: bool, seed: int | None, jobs: int) -> Replay:
    """Run the test that `result` belongs to, and replay the witness in place of the test's audit."""
    import pytest

    node, call = checked_test(result), result.provenance.call or 1
    found: list[Replay] = []

    def instead(
        allowance: session.Allowance, mechanism: Foreign, pairs: Foreign, attacks: Foreign, **about: Foreign
    ) -> None:
        if (allowance.node, allowance.calls) == (node, call):
            pairs = pairs_of(pairs)
            fresh = replay(
                result, mechanism, pairs, attacks=attacks, trials=trials, extend=extend, seed=seed, jobs=jobs
            )
            found.append(compared(fresh, "test", about["claim"], about["violations"]))
            raise _Replayed

    output = io.StringIO()
    session.instead = instead
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), contextlib.suppress(_Replayed):
            # Pytest reads an absolute path after "--" neither as an option nor as a file of arguments.
            pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--", str(Path.cwd() / node)])
    finally:
        session.instead = None
    if not found:
        last = "".join(f"\n    {printable(line)}" for line in output.getvalue().strip().splitlines()[-15:])
        raise ValueError(
            f"the result belongs to audit {call} of the test {node}, which was not reached; replay it in the folder "
            f"in which pytest ran.  Output of pytest:{last}"
        )
    return found[0]
