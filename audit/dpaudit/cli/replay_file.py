"""Replays a result with the mechanism that the result names, which belongs to a config or to a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dpaudit.claims import TradeoffFunction
from dpaudit.cli.progress import progress_bar
from dpaudit.cli.replay_lock import UNLOCKED, with_lock_of
from dpaudit.cli.terminal import keep_stdout
from dpaudit.config import ConfigError, PlannedAudit, read_configs, read_text
from dpaudit.engine.arguments import execution_settings_of
from dpaudit.engine.audit import Replay
from dpaudit.engine.replay import replay
from dpaudit.engine.replay_agreement import Origin, compared
from dpaudit.engine.replay_runs import runs_of_replay, witness_with_region
from dpaudit.result.model import AuditResult
from dpaudit.settings.audit import DEFAULTS
from dpaudit.testing.replaying import checked_test, replay_in_test
from dpaudit.text.masking import MASK, masked
from dpaudit.text.printable import one_line, shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedReplay:
    """A replay that is ready to run.  No code that the file names has run yet."""

    result: AuditResult
    code: str  # the code outside dpaudit that would run, as one printable line; "" for a builtin mechanism
    audit: PlannedAudit | None  # None if the audit belongs to a test
    warnings: tuple[str, ...] = ()  # why the replay may run other code or packages than the audit

    @property
    def inputs(self) -> list[str]:
        """Printable lines with the parameters and datasets that `code` receives, and files; none for a test."""
        return [] if self.audit is None else self.audit.inputs

    def __str__(self) -> str:
        return f"{one_line(self.result.name)}: the replay runs {self.code or 'no code outside dpaudit'}"

    def runs(self, trials: int | None, *, extend: bool) -> list[str]:
        """Return printable lines with the claim and the numbers of runs of the replay; none without a region to replay.
        """
        witness = witness_with_region(self.result)
        if witness is None:
            return []
        runs = runs_of_replay(self.result, witness, trials).describe(extend=extend)
        name = one_line(self.result.name)
        return [f"{name}: the replay tests the claim {self.result.claim.label}", f"{name}: the replay makes {runs}"]

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

        Returns:
            The counts of the fresh runs and the counts in the result.
        """
        keep_stdout()
        if self.audit is None:
            return replay_in_test(self.result, trials=trials, extend=extend, seed=seed, jobs=jobs)
        mechanism, claim = self.audit.load()
        pairs = self.audit.pairs
        with progress_bar(self.result.name, shown=not quiet) as progress:
            found = replay(
                self.result,
                mechanism,
                pairs,
                attacks=self.audit.config.attacks,
                trials=trials,
                extend=extend,
                seed=seed,
                jobs=jobs,
                execution=execution_settings_of(self.audit.settings),
                progress=progress,
            )
        found = compared(found, _origin(self.audit, claim), mechanism, pairs)
        changes = changed_data(self.result.provenance.data_files or {}, self.audit.data_files)
        return replace(found, changes=(*found.changes, *changes), warnings=(*found.warnings, *self.warnings))


def changed_data(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Describe which files with datasets differ from those of the audit."""
    found = []
    for name, digest in now.items():
        if name not in then:
            found.append(f"the result records no hash of {name}, so the replay may have used other datasets")
        elif then[name] != digest:
            found.append(f"{name} has changed since the audit (SHA-256 {then[name][:12]} then, {digest[:12]} now)")
    return [one_line(words) for words in found]


def _origin(audit: PlannedAudit, claim: TradeoffFunction) -> Origin:
    """Return what a config states about its audit."""
    config = audit.config
    recorded = {"source": masked(config.source), "claim_stated_by": audit.claim_stated_by}
    _, detect = audit.claims()
    violations = () if detect is None else (detect,)
    return Origin(
        kind="config",
        claim=claim,
        name=config.name,
        method=config.method,
        violations=violations,
        recorded=recorded,
    )


def plan_replay(
    result: AuditResult, *, folder: Path | None = None, code: bool = True, locked: bool = True
) -> PlannedReplay:
    """Determine what code a replay would run, without running it.

    Returns:
        The replay, ready to run.
    """
    about = result.provenance
    if test := result.environment.get("test"):  # a file may hold any type here; `checked_test` accepts only text
        if not code:
            raise ValueError(f"the result belongs to the test {test}, which is code; --no-code refuses it")
        where = f"the test {checked_test(result)} with pytest, including its conftest.py files, in {Path.cwd()}"
        if about.audit is not None:
            raise ValueError("the result names both a test and a config; a replay runs only one of them")
        return PlannedReplay(result=result, code=one_line(where), audit=None)
    if about.audit is None:
        raise ValueError(
            "the result holds no config of its audit; only results of `dpaudit run` and of tests do.  "
            "Call dpaudit.replay(result, mechanism, pairs) instead"
        )
    name = about.config or "config"
    if name in (".", "..") or Path(name).name != name or "\0" in name:
        raise ValueError(f"the result must name its config as a plain file name, got {one_line(shortened(name, 100))}")
    try:
        planned = read_text(about.audit, (folder or Path(about.folder or ".")) / name)
    except ConfigError as error:
        raise ValueError(f"the config in the result is not valid: {error}") from None
    mechanism = planned.config.mechanism
    if any(MASK in str(part) for part in (mechanism.command, mechanism.params, mechanism.arguments)):
        planned = _unmasked(planned, about.audit)
    if planned.code and not code:
        raise ValueError(f"the replay runs {planned.code}; --no-code refuses it")
    if planned.code and not (place := planned.place).is_dir():
        raise ValueError(
            f"the folder of the audit's config, {place}, does not exist; replay in the folder where the audit ran, or "
            "give the config's folder with --folder"
        )
    unlocked = f"{UNLOCKED} (--unlocked)" if planned.config.mechanism.isolated else ""
    if locked:
        planned, unlocked = with_lock_of(planned, about)
    warnings = (unlocked,) if unlocked else ()
    return PlannedReplay(result=result, code=one_line(planned.code), audit=planned, warnings=warnings)


def _unmasked(planned: PlannedAudit, text: str) -> PlannedAudit:
    """Return the audit from its original config, including the secrets that the result does not hold."""
    try:
        there = [planned.file] if planned.file.is_file() else []  # `read_configs` would search a folder
        found = [audit for audit in read_configs(there) if audit.text == text]
    except (ConfigError, OSError, ValueError):  # a result may state a name that no file can have
        found = []
    if not found:
        raise ValueError(
            f"the result does not hold the secrets of its config ({MASK} replaces them), and {planned.file} does not "
            "hold the same audit; restore that file, or give its new folder with --folder"
        )
    return found[0]
