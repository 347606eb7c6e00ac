"""Replaying what a test of a suite found, in that test."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from dpaudit.engine import Replay, replay
from dpaudit.result import AuditResult
from dpaudit.testing import session


class Replayed(BaseException):
    """The replay was made; the test need not go on.  Not an Exception: tests may catch those."""

    def __init__(self, found: Replay) -> None:
        super().__init__("replayed")
        self.found = found


def replay_in_test(result: AuditResult, *, trials: int | None, seed: int | None, jobs: int) -> Replay:
    """Run the test that `result` is of, and replay its witness where the test would audit.

    ValueError if pytest does not find that test from here, or if the test does not get to that audit.
    """
    import pytest

    node, call = str(result.environment["test"]), int(result.environment.get("call", 1))
    found: list[Replay] = []

    def instead(allowance: session.Allowance, mechanism: Any, pairs: Any, attacks: Any) -> None:
        if (allowance.node, allowance.calls) == (node, call):
            found.append(replay(result, mechanism, pairs, attacks=attacks, trials=trials, seed=seed, jobs=jobs))
            raise Replayed(found[-1])

    said = io.StringIO()
    session.instead = instead
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(Replayed):
            pytest.main([node, "-q", "-p", "no:cacheprovider", "-p", "no:xdist"])
    finally:
        session.instead = None
    if not found:
        last = "".join(f"\n    {line}" for line in said.getvalue().strip().splitlines()[-15:])
        raise ValueError(
            f"the result is of audit {call} of the test {node}, which was not reached; replay it in the folder "
            f"in which pytest ran.  pytest said:{last}"
        )
    return found[0]
