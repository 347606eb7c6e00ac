"""Replaying a result file: the mechanism is the one that the file names, in a config or in a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dpaudit.cli.console import progress_bar
from dpaudit.config import ConfigError, PlannedAudit, read_text
from dpaudit.engine.audit import Replay
from dpaudit.engine.replay import replay
from dpaudit.result.model import AuditResult
from dpaudit.sampling.runs import Terms
from dpaudit.testing.replaying import checked_test, replay_in_test
from dpaudit.text.printable import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedReplay:
    """A replay that is ready to run, and what it would run.  Nothing of the file has run yet."""

    result: AuditResult
    code: str  # what would run that is not dpaudit's own, in a line of printable text; "" for a builtin mechanism
    audit: PlannedAudit | None  # None: it is in a test

    def __str__(self) -> str:
        return f"{one_line(self.result.name)}: the replay runs {self.code or 'no code but dpaudit itself'}"

    def run(
        self,
        *,
        trials: int | None = None,
        extend: bool = False,
        seed: int | None = None,
        jobs: int = 1,
        quiet: bool = False,
    ) -> Replay:
        """Run the mechanism and repeat the witness, see `dpaudit.engine.replay`.

        Raises:
            ValueError: The result has no witness that can be replayed.
            MechanismError: The mechanism cannot be had, or fails at once.
        """
        if self.audit is None:
            return replay_in_test(self.result, trials=trials, extend=extend, seed=seed, jobs=jobs)
        mechanism, _ = self.audit.load()
        with progress_bar(self.result.name, shown=not quiet) as progress:
            return replay(
                self.result,
                mechanism,
                self.audit.pairs,
                attacks=self.audit.config.attacks,
                trials=trials,
                extend=extend,
                seed=seed,
                jobs=jobs,
                terms=Terms(**self.audit.terms),
                progress=progress,
            )


def plan_replay(result: AuditResult, *, folder: Path | None = None, code: bool = True) -> PlannedReplay:
    """Find out what a replay of a result would run.  It runs nothing.

    Args:
        result: From a file that anybody may have written.
        folder: Where the config's relative paths start; where they started when the audit ran, unless given.
        code: Whether code may run that is not dpaudit's own.

    Raises:
        ValueError: The result does not say what was audited, names a test that is none, or needs code that is not
            allowed or not there.
    """
    about = result.environment
    if about.get("test"):
        if not code:
            raise ValueError(f"the result is of the test {about['test']}, which is code; --no-code refuses it")
        where = f"the test {checked_test(result)} with pytest, and what its conftest.py files run, in {Path.cwd()}"
        return PlannedReplay(result=result, code=one_line(where), audit=None)
    if "audit" not in about:
        raise ValueError(
            "the result does not hold the config of its audit: `dpaudit run` and tests write one, dpaudit.audit does "
            "not; call dpaudit.replay(result, mechanism, pairs) instead"
        )
    try:
        planned = read_text(
            str(about["audit"]), (folder or Path(str(about.get("folder", ".")))) / str(about.get("config", "config"))
        )
    except ConfigError as error:
        raise ValueError(f"the config in the result cannot be used: {error}") from None
    if planned.code and not code:
        raise ValueError(f"the replay runs {planned.code}; --no-code refuses it")
    if planned.code and not (place := planned.file.parent).is_dir():
        raise ValueError(
            f"the audit's config was in {place}, and there is no such folder here; replay from where the audit ran, or "
            "say with --folder where the config is now"
        )
    return PlannedReplay(result=result, code=one_line(planned.code), audit=planned)


def replay_file(
    result: AuditResult,
    *,
    trials: int | None = None,
    extend: bool = False,
    seed: int | None = None,
    folder: Path | None = None,
    jobs: int = 1,
    code: bool = True,
    quiet: bool = False,
    say: Callable[[str], None] | None = None,
) -> Replay:
    """Plan a replay, pass what it would run to `say`, and run it; see `plan_replay` and `PlannedReplay.run`."""
    planned = plan_replay(result, folder=folder, code=code)
    if say is not None:
        say(str(planned))
    return planned.run(trials=trials, extend=extend, seed=seed, jobs=jobs, quiet=quiet)
