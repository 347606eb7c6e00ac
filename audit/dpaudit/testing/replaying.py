"""Replays the result of a test by running that test."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.arguments import pairs_of
from dpaudit.engine.audit import Replay
from dpaudit.engine.provenance import mechanism_name
from dpaudit.engine.replay import replay
from dpaudit.engine.replay_agreement import Origin, compared
from dpaudit.learning.attack import Attack
from dpaudit.pairs.pair import Pair
from dpaudit.result.model import AuditResult
from dpaudit.testing import session
from dpaudit.text.printable import one_line, printable
from dpaudit.values import Foreign


class Replayed(BaseException):
    """Raised to end the test after the replay.  The class is not an Exception, because a test may catch exceptions."""

    def __init__(self, found: Replay) -> None:
        super().__init__("replayed")
        self.found = found


def checked_test(result: AuditResult) -> str:
    """Check and return the id of the test that a result belongs to.

    Pytest receives no other text from a result file.  Unchecked text could be an option of pytest, such as
    `--basetemp=DIR`, which empties a folder, or could name code elsewhere.
    """
    node = result.provenance.test
    if node is None:
        kind = type(result.provenance.other.get("test")).__name__
        raise ValueError(f"the id of the result's test must be text, got {kind}")
    file, _, name = node.partition("::")
    path = Path(file)
    wrong = (
        "it has no `::name`" if not name else
        "its file does not end in .py" if path.suffix != ".py" else
        "it begins with - or @" if node[0] in "-@" else
        "its file is outside the current folder" if path.is_absolute() or ".." in path.parts else
        "it has unprintable characters" if not node.isprintable() else
        ""
    )  # fmt: skip
    if wrong:
        raise ValueError(
            f"the result belongs to the test {one_line(node)[:200]!r}: {wrong}.  "
            "A test must have the form file.py::name, with a file in the current folder or below; nothing was run"
        )
    if not path.is_file() or not path.resolve().is_relative_to(Path.cwd().resolve()):
        raise ValueError(
            f"the result belongs to the test {node}, whose file does not exist here; replay it in the folder in which "
            "pytest ran"
        )
    return node


def replay_in_test(result: AuditResult, *, trials: int | None, extend: bool, seed: int | None, jobs: int) -> Replay:
    """Run the test that `result` belongs to, and replay the witness in place of the test's audit.

    Returns:
        The replay.
    """
    import pytest

    node, about = checked_test(result), result.provenance
    if "call" in about.other:
        call_said = about.other["call"]
        raise ValueError(f"the result must hold the number of its audit within the test, got {call_said!r}")
    call = 1 if about.call is None else about.call
    found: list[Replay] = []

    def instead(
        allowance: session.Allowance,
        mechanism: Foreign,
        claim: TradeoffFunction,
        pairs: Pair | Sequence[Pair],
        attacks: str | Attack | Sequence[str | Attack],
        name: str,
        violations: Sequence[TradeoffFunction],
    ) -> None:
        if (allowance.node, allowance.calls) == (node, call):
            given = pairs_of(pairs)
            fresh = replay(
                result, mechanism, given, attacks=attacks, trials=trials, extend=extend, seed=seed, jobs=jobs
            )
            planned = tuple(violations)
            origin = Origin(kind="test", claim=claim, name=name or mechanism_name(mechanism), violations=planned)
            found.append(compared(fresh, origin, mechanism, given))
            raise Replayed(found[-1])

    output = io.StringIO()
    session.instead = instead
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), contextlib.suppress(Replayed):
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
