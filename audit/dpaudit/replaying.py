"""Replaying a result file: the mechanism is the one that the file names, in a config or in a test."""

from __future__ import annotations

from pathlib import Path

from dpaudit.config import ConfigError, read_text
from dpaudit.console import progress_bar
from dpaudit.engine import Replay, replay
from dpaudit.result import AuditResult
from dpaudit.testing.replaying import replay_in_test
from dpaudit.trials.runs import Terms


def replay_file(
    result: AuditResult,
    *,
    trials: int | None = None,
    seed: int | None = None,
    folder: Path | None = None,
    jobs: int = 1,
    code: bool = True,
    quiet: bool = False,
) -> Replay:
    """Repeat the witness of a result, see `dpaudit.engine.replay`.

    `folder`: where the config's relative paths start; where they started when the audit ran, unless given.  `code`:
    whether code may run that is not dpaudit's own.  ValueError if the result does not say what was audited, if it is
    not allowed, or if the result has no witness; MechanismError if the mechanism cannot be had or fails at once.
    """
    about = result.environment
    if about.get("test"):
        if not code:
            raise ValueError(f"the result is of the test {about['test']}, which is code; --no-code refuses it")
        return replay_in_test(result, trials=trials, seed=seed, jobs=jobs)
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
    mechanism, _ = planned.load()
    with progress_bar(result.name, shown=not quiet) as progress:
        return replay(
            result,
            mechanism,
            planned.pairs,
            attacks=planned.config.attacks,
            trials=trials,
            seed=seed,
            jobs=jobs,
            terms=Terms(**planned.terms),
            progress=progress,
        )
