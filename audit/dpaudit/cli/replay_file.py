"""Replays a result with the mechanism that the result names, which belongs to a config or to a test."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpaudit.cli.one_audit import progress_bar
from dpaudit.cli.terminal import keep_stdout
from dpaudit.config.files import read_configs, read_text
from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.engine.arguments import execution_settings_of, pairs_of
from dpaudit.engine.audit import Replay
from dpaudit.engine.replay import replay, runs_of_replay, witness_with_region
from dpaudit.engine.replay_outcome import compared
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit.running.environments import Archive, cached_environment, lock_of
from dpaudit.running.requirements import normalised, parsed_requirement, project_name, this_version, unmet
from dpaudit.testing import session
from dpaudit.text import MASK, one_line, printable, shortened

_UNLOCKED = "the replay did not use the exact packages of the audit, but packages that the installer chose"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedReplay:
    """A replay that is ready to run.  No code that the file names has run yet."""

    result: AuditResult
    code: str  # the code outside dpaudit that would run, as one printable line; "" for a builtin mechanism
    audit: PlannedAudit | None  # None if the audit belongs to a test
    warnings: tuple[str, ...] = ()  # why the replay may run other code or packages than the audit

    def described(self, trials: int | None, *, extend: bool) -> list[str]:
        """Return printable lines: the code and, if there is a region to replay, the claim and the number of runs."""
        name, witness = one_line(self.result.name), witness_with_region(self.result)
        lines = [f"{name}: the replay runs {self.code or 'no code outside dpaudit'}"]
        if witness is not None:
            runs = runs_of_replay(self.result, witness, trials).describe(extend=extend)
            lines.append(f"{name}: the replay tests the claim {self.result.claim.label}")
            lines.append(f"{name}: the replay makes {runs}")
        return lines

    def run(
        self,
        *,
        trials: int | None = None,
        extend: bool = False,
        seed: int | None = None,
        jobs: int = 1,
        quiet: bool = False,
    ) -> Replay:
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
        _, detect = self.audit.claims()
        found = compared(found, "config", claim, () if detect is None else (detect,))
        return replace(found, warnings=(*found.warnings, *self.warnings))


def plan_replay(
    result: AuditResult, *, folder: Path | None = None, code: bool = True, locked: bool = True
) -> PlannedReplay:
    """Determine what code a replay would run, without running it."""
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
    unlocked = f"{_UNLOCKED} (--unlocked)" if planned.config.mechanism.installs else ""
    if locked:
        planned, unlocked = _with_lock_of(planned, about)
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


def _with_lock_of(planned: PlannedAudit, about: Provenance) -> tuple[PlannedAudit, str]:
    """Return an audit whose environment holds exactly the packages of a result; if that fails, also the reason."""
    mechanism = planned.config.mechanism
    requires, packages = mechanism.requires or [], dict(about.mechanism_packages or {})
    if not mechanism.installs or not (requires or packages):
        return planned, ""
    if not about.mechanism_hashes:
        return planned, f"{_UNLOCKED}: the result has no hashes of the audit's packages"
    version = mechanism.python_version or this_version()
    if mechanism.python_version is None and not f"{about.python or version}.".startswith(f"{version}."):
        return planned, f"{_UNLOCKED}: the audit ran with Python {about.python}, and this is {version}"
    if missing := unmet(requires, packages, version):
        return planned, f"{_UNLOCKED}: the packages in the result do not meet the audit's requirement {missing[0]}"
    try:
        versions = {project_name(name): one for name, one in packages.items()}
        sums = {project_name(name): sha256.removeprefix("sha256:") for name, sha256 in about.mechanism_hashes.items()}
        urls = {project_name(one): parsed_requirement(one).url or "" for one in requires}
        files = {
            name: Archive(versions[name], sums[name], urls.get(name, "")) for name in versions.keys() | sums.keys()
        }
        lock = lock_of(version, normalised(requires), files)
    except (ValueError, KeyError):  # a name, version or hash in the result is invalid, or one of them is missing
        return planned, f"{_UNLOCKED}: the packages and hashes in the result are inconsistent or not valid"
    there = cached_environment(requires, mechanism.python_version)
    if there is not None and there.lock is not None and there.lock.hashes == lock.hashes:
        return planned, ""
    return replace(planned, lock=lock), ""


class _Replayed(BaseException):
    """Raised to end the test after the replay.  The class is not an Exception, because a test may catch exceptions."""


def checked_test(result: AuditResult) -> str:
    """Return the id of a result's test in the current folder or below; a stranger's result must not run other code."""
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
    """Run the test that a result belongs to, and replay the witness in place of the test's audit."""
    import pytest

    node, call = checked_test(result), result.provenance.call or 1
    found: list[Replay] = []

    def instead(allowance: session.Allowance, mechanism: Any, pairs: Any, attacks: Any, **about: Any) -> None:
        if (allowance.test, allowance.calls) == (node, call):
            pairs = pairs_of(pairs)
            fresh = replay(
                result, mechanism, pairs, attacks=attacks, trials=trials, extend=extend, seed=seed, jobs=jobs
            )
            found.append(compared(fresh, "test", about["claim"], about["violations"]))
            raise _Replayed

    output = io.StringIO()
    sys.path.append(str(Path.cwd()))  # where `python -m pytest` looks first
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
