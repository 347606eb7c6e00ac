"""Replays a result file with the mechanism that the file names, in a config or in a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dpaudit.cli.progress import progress_bar
from dpaudit.cli.replay_lock import UNLOCKED, with_lock_of
from dpaudit.config import ConfigError, PlannedAudit, read_configs, read_text
from dpaudit.engine.arguments import execution_settings_of
from dpaudit.engine.audit import Replay
from dpaudit.engine.replay import replay
from dpaudit.result.model import AuditResult
from dpaudit.settings.audit import DEFAULTS
from dpaudit.testing.replaying import checked_test, replay_in_test
from dpaudit.text.masking import MASK
from dpaudit.text.printable import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedReplay:
    """A replay that is ready to run.  No code that the file names has run yet."""

    result: AuditResult
    code: str  # one printable line: the code outside dpaudit that would run; "" for a builtin mechanism
    audit: PlannedAudit | None  # None if the audit belongs to a test
    unlocked: str = ""  # why the environment may hold other packages than in the audit

    def __str__(self) -> str:
        return f"{one_line(self.result.name)}: the replay runs {self.code or 'no code outside dpaudit'}"

    def run(
        self,
        *,
        trials: int | None = None,
        extend: bool = False,
        seed: int | None = None,
        jobs: int = DEFAULTS.jobs,
        quiet: bool = False,
    ) -> Replay:
        """Run the mechanism and test the witness, see `dpaudit.engine.replay`.

        Args:
            trials: Number of fresh runs per dataset to count.
            extend: Whether to double the runs until they decide.
            seed: Seed of the fresh runs; random if None.
            jobs: Number of worker processes.
            quiet: Whether to hide progress.

        Returns:
            The counts of the fresh runs, beside those of the result.

        Raises:
            ValueError: If the result has no witness that can be replayed.
            MechanismError: If the mechanism cannot be loaded, or fails on its first run.
        """
        if self.audit is None:
            return replay_in_test(self.result, trials=trials, extend=extend, seed=seed, jobs=jobs)
        mechanism, _ = self.audit.load()
        with progress_bar(self.result.name, shown=not quiet) as progress:
            found = replay(
                self.result,
                mechanism,
                self.audit.pairs,
                attacks=self.audit.config.attacks,
                trials=trials,
                extend=extend,
                seed=seed,
                jobs=jobs,
                execution=execution_settings_of(self.audit.settings),
                progress=progress,
            )
        return replace(found, warnings=(*found.warnings, self.unlocked)) if self.unlocked else found


def plan_replay(
    result: AuditResult, *, folder: Path | None = None, code: bool = True, locked: bool = True
) -> PlannedReplay:
    """Determine what code a replay would run, without running it.

    Args:
        result: A result, possibly from an untrusted file.
        folder: Folder for the config's relative paths; None: the folder of the original audit.
        code: Whether code outside dpaudit may run.
        locked: Whether an environment must hold the packages of the audit, with the same hashes.

    Returns:
        The replay, ready to run.

    Raises:
        ValueError: If the result does not name its audit, names an invalid test, or needs code that is forbidden or
            missing.
    """
    about = result.provenance
    if test := result.environment.get("test"):  # may have any type; `checked_test` accepts only text
        if not code:
            raise ValueError(f"the result belongs to the test {test}, which is code; --no-code refuses it")
        where = f"the test {checked_test(result)} with pytest, including its conftest.py files, in {Path.cwd()}"
        return PlannedReplay(result=result, code=one_line(where), audit=None)
    if about.audit is None:
        raise ValueError(
            "the result holds no config of its audit; only results of `dpaudit run` and of tests do.  "
            "Call dpaudit.replay(result, mechanism, pairs) instead"
        )
    try:
        planned = read_text(about.audit, (folder or Path(about.folder or ".")) / (about.config or "config"))
    except ConfigError as error:
        raise ValueError(f"the config in the result is not valid: {error}") from None
    if planned.is_masked:
        planned = _unmasked(planned, about.audit)
    if planned.code and not code:
        raise ValueError(f"the replay runs {planned.code}; --no-code refuses it")
    if planned.code and not (place := planned.file.parent).is_dir():
        raise ValueError(
            f"the folder of the audit's config, {place}, does not exist; replay in the folder where the audit ran, or "
            "name the config's folder with --folder"
        )
    unlocked = f"{UNLOCKED} (--unlocked)" if planned.config.mechanism.isolated else ""
    if locked:
        planned, unlocked = with_lock_of(planned, about)
    return PlannedReplay(result=result, code=one_line(planned.code), audit=planned, unlocked=unlocked)


def _unmasked(planned: PlannedAudit, text: str) -> PlannedAudit:
    """Return an audit with the secrets that its result does not hold, from the config that it was read from."""
    try:
        found = [audit for audit in read_configs([planned.file]) if audit.text == text]
    except ConfigError:
        found = []
    if not found:
        raise ValueError(
            f"the result does not hold the secrets of its config ({MASK} stands for them), and {planned.file} does not "
            "hold the same audit; restore that file, or name the folder that has it with --folder"
        )
    return found[0]


def replay_file(
    result: AuditResult,
    *,
    trials: int | None = None,
    extend: bool = False,
    seed: int | None = None,
    folder: Path | None = None,
    jobs: int = DEFAULTS.jobs,
    code: bool = True,
    quiet: bool = False,
    say: Callable[[str], None] | None = None,
) -> Replay:
    """Plan a replay, describe its code with `say`, and run it; see `plan_replay` and `PlannedReplay.run`."""
    planned = plan_replay(result, folder=folder, code=code)
    if say is not None:
        say(str(planned))
    return planned.run(trials=trials, extend=extend, seed=seed, jobs=jobs, quiet=quiet)
