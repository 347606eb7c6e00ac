"""Selects releases of a package, and the policy that audits them in the order of `engine.schedule`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from packaging.version import Version

from dpaudit.cli.one_audit import Outcome, Task
from dpaudit.cli.options import RunOptions
from dpaudit.cli.prepare_run import NotReady, check_configs, load, prepare_folder, share_guarantee
from dpaudit.cli.runner import Runner, loaded
from dpaudit.cli.terminal import say
from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.config.versions import pinned_versions, side_by_side
from dpaudit.engine.schedule import most_audits, next_release
from dpaudit.result.command_outcomes import Bisection, Release, State
from dpaudit.result.values import Verdict
from dpaudit.running import IsolatedMechanism, MechanismError
from dpaudit.running.outcomes import message_of
from dpaudit.running.requirements import Releases, is_network_failure, released, wrong_version
from dpaudit.running.streams import stream
from dpaudit.text import nearest, shortened

_OFFLINE_IN_A_ROW = 3  # number of releases in a row after which a network failure ends the search

Audits = dict[str, PlannedAudit]  # the audits of one release, by their names without a version


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRange:
    """The releases of a package between two ends, from old to new."""

    versions: tuple[str, ...]
    left_out: dict[str, str]
    unread: tuple[str, ...] = ()


def release_range(
    package: str, python_versions: Collection[str | None], oldest: str | None, newest: str | None
) -> ReleaseRange:
    """Ask the package index for the releases of a package, and select those between two ends."""
    try:
        lists = [released(package, version) for version in sorted(python_versions, key=str)]
    except MechanismError as error:
        raise ConfigError(str(error)) from None
    first, last = _end("--from", oldest, package, lists), _end("--to", newest, package, lists)
    if first is not None and last is not None and first > last:
        raise ConfigError(f"--from {first} is newer than --to {last}; exchange them")
    known: list[set[Version]] = [{*one.final, *one.left_out} for one in lists]
    listed = set[Version]().union(*known, *(one.unsupported for one in lists))
    kinds = dict.fromkeys(listed.intersection(*known) ^ listed, "not for every Python of the audits")
    kinds |= {version: kind for one in lists for version, kind in one.left_out.items()}
    inside = [v for v in sorted(listed) if (first is None or first <= v) and (last is None or v <= last)]
    chosen = [v for v in inside if v not in kinds or v in (first, last)]
    if not chosen:
        raise ConfigError(
            f"{package} has no final release from {first or 'the first'} to {last or 'the latest'} that is not yanked; "
            "name pre-releases or yanked releases with --from and --to"
        )
    return ReleaseRange(
        versions=tuple(map(str, chosen)),
        left_out={str(v): kinds[v] for v in inside if v not in chosen},
        unread=tuple(dict.fromkeys(message for one in lists for message in one.unread)),
    )


def _end(option: str, given: str | None, package: str, lists: Collection[Releases]) -> Version | None:
    """Return the release that an option names, as the index writes it; None if the option is missing."""
    if given is None:
        return None
    known = sorted(set.intersection(*({*one.final, *one.left_out} for one in lists)))
    try:
        wanted = Version(given)
    except ValueError:  # no version, or a number with more digits than Python reads
        raise ConfigError(f"{option} must be a version such as {known[-1]}, got {shortened(given, 40)!r}") from None
    found = next((version for version in known if version == wanted), None)
    if found is None:
        names = [str(version) for version in known]
        meant = nearest(given, names)
        few = names if len(names) <= 6 else [*names[:3], "...", *names[-3:]]
        raise ConfigError(
            f"{option} {wanted}: {package} has no such release for the Python of the audits"
            + (f"; did you mean {meant}?" if meant else ".")
            + f"  The releases are {', '.join(few)}."
        )
    return found


class Search:
    """The policy of `bisect`: all audits of one release after the other, as `engine.schedule` chooses them.

    Theorem:
        Let each audit have significance s / (K m), where K is `most`, m is the number of audits of a release, and s is
        the requested significance.  The command refutes a true claim with probability at most s.

        *Proof.*  Different releases have different seeds, so their audits are independent.  Whatever the earlier audits
        have shown, the k-th audited release thus has m tests that are valid at significance s / (K m).  So the
        probability that the k-th audited release has a true claim that is refuted is at most s / K, and k <= K.

    The first run of each audit, which decides whether a release is skipped, is not used by the audit.
    """

    def __init__(
        self, audits: Sequence[PlannedAudit], package: str, between: ReleaseRange, options: RunOptions, most: int | None
    ) -> None:
        self._audits, self._package, self._between, self._seed = audits, package, between, options.seed
        self._releases = [Release(version=version) for version in between.versions]
        pinned = pinned_versions(audits, package)
        self._named = [number for number, version in enumerate(between.versions) if Version(version) in pinned]
        number = len(between.versions)
        self._most = min(number, most or most_audits(number, len(self._named)))
        first = list(release_audits(audits, package, between.versions[0], options.seed).values())
        self._each = len(first)  # audits of a release
        # Each release has its own seed, so the command's seed does not replace it.
        options = replace(options, seed=None, no_pdf=True)
        check_configs(first, options)
        prepare_folder(first, options)
        self.runner = Runner(options=options, promise=share_guarantee(first * self._most, options))
        self._tasks: list[Task] = []
        self._opened: tuple[int, Audits] | None = None  # the release whose audits are made
        self._audited = self._offline = 0  # releases whose audits were started, and the latest that had no network

    def run(self) -> Bisection:
        self.runner.run(self)
        self._close()
        promise = self.runner.promise
        return Bisection(
            package=self._package,
            releases=tuple(self._releases),
            left_out=self._between.left_out,
            unread=self._between.unread,
            offline=self._offline == _OFFLINE_IN_A_ROW,
            most=self._most,
            audits=self._each,
            false_alarm=promise.false_alarm,
            shared=promise.shared,
            interrupted=self.runner.interrupted,
        )

    def next(self) -> Task | None:
        """Return the next audit of the release, or the first of the next release that can be audited."""
        while not self._tasks and self._offline < _OFFLINE_IN_A_ROW:
            self._close()
            number = next_release([release.state for release in self._releases], self._named)
            if number is None or self._audited == self._most:
                break
            self._open(number)
        return self._tasks.pop(0) if self._tasks else None

    def ended(self, task: Task, outcome: Outcome) -> None:
        pass

    def _open(self, number: int) -> None:
        """Prepare the audits of a release, or record why it has none."""
        version, options = self._releases[number].version, self.runner.options
        audits = release_audits(self._audits, self._package, version, self._seed)
        if not options.quiet:
            say(f"release {version} of {self._package}: {self._audited + 1} of at most {self._most} to audit")
        started = offline = False
        try:
            for one in audits.values():  # `x==1.0` also allows the local version 1.0+cpu
                if wrong := wrong_version(_first_run(one, options), self._package, version):
                    raise NotReady(wrong)
            started, self._audited, planned = True, self._audited + 1, list(audits.values())
            prepare_folder(planned, options)
            self._tasks = loaded(planned, self.runner.promise.confidences, options)
            self._opened = number, audits
        except NotReady as error:
            if started and not self.runner.results:
                raise  # nothing was measured that could be lost
            offline = not started and is_network_failure(error.reason)
            skipped = not (started or offline)  # otherwise the cause may be something other than the release
            say(f"release {version} of {self._package} {'is skipped' if skipped else 'has no result'}: {error}")
            self._releases[number] = Release(
                version=version,
                state=State.SKIPPED if skipped else State.OPEN,
                reason=error.reason,
                missing={} if skipped else dict.fromkeys(audits, error.reason),
            )
        self._offline = self._offline + 1 if offline else 0

    def _close(self) -> None:
        """Record what the audits of a release have shown."""
        if self._opened is None:
            return
        (number, audits), self._opened = self._opened, None
        results, missing = {}, {}
        for title, one in audits.items():
            outcome = self.runner.outcomes.get(one.config.name)
            if outcome is not None and outcome.result is not None:
                results[title] = outcome.result
            else:
                missing[title] = "not run: the command was interrupted" if outcome is None else outcome.words
        verdicts = {result.verdict for result in results.values()}
        open_ = missing or Verdict.INCONCLUSIVE in verdicts
        state = State.BAD if Verdict.VIOLATION in verdicts else State.OPEN if open_ else State.GOOD
        version = self._releases[number].version
        self._releases[number] = Release(version=version, state=state, results=results, missing=missing)


def release_audits(audits: Sequence[PlannedAudit], package: str, version: str, seed: int | None) -> Audits:
    """Return the audits of one release, each with a seed that depends on the release."""
    audits_of: Audits = {}
    for (title, _), one in side_by_side(audits, [f"{package}=={version}"]).items():
        base = one.config.seed if seed is None else seed
        if base is not None:  # otherwise each audit draws its seed at random
            one = one.changed(seed=int(stream(base, "release", package, version).integers(10**9)))
        audits_of[title] = one
    return audits_of


def _first_run(planned: PlannedAudit, options: RunOptions) -> Mapping[str, str]:
    """Run a mechanism once, with random numbers that the audit does not use; return the versions of its packages."""
    mechanism, _ = load(planned, options)
    if not isinstance(mechanism, IsolatedMechanism):
        return {}
    if planned.config.failures == "stop":
        try:
            dataset: Any = planned.pairs[0].d0
            with mechanism:  # the audit begins with a new worker
                mechanism.sample(dataset, 1, stream(planned.config.seed or 0, "first run of a release"))
        except (MechanismError, ValueError) as error:
            raise NotReady(f"{planned.address}: {message_of(error)}", reason=message_of(error)) from None
    return mechanism.packages
