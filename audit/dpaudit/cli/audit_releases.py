"""Selects releases of a package, and audits them one after the other in the order of `engine.release_search`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from dpaudit.cli.prepare_run import CommandSettings, NotReady, check_claims, load, prepare_folder, share_guarantee
from dpaudit.cli.run_configs import Outcome, run_all
from dpaudit.cli.terminal import say
from dpaudit.config import ConfigError, PlannedAudit, pinned_versions, side_by_side
from dpaudit.engine.release_search import most_audits, next_release
from dpaudit.mechanisms import IsolatedMechanism, MechanismError
from dpaudit.mechanisms.installer import Releases, is_network_failure, released
from dpaudit.mechanisms.raised import message_of
from dpaudit.mechanisms.requirements import wrong_version
from dpaudit.result.releases import Bisection, Release, State
from dpaudit.result.suite import Promise
from dpaudit.result.values import Verdict
from dpaudit.sampling.streams import stream
from dpaudit.text.printable import shortened
from dpaudit.text.spelling import nearest
from dpaudit.values import Foreign

_MOST_OFFLINE = 3  # number of releases in a row after which a network failure ends the search

Audits = dict[str, PlannedAudit]
"""The audits of one release, by their names without a version."""


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
    lists = [released(package, version) for version in sorted(python_versions, key=str)]
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


@dataclass(slots=True)
class _Search:
    """The releases so far, and what all audits share."""

    audits: Sequence[PlannedAudit]
    package: str
    releases: list[Release]
    command: CommandSettings
    promise: Promise
    most: int  # maximum number of releases that are audited
    named: list[int]  # indices of the releases that the configs name
    audited: int = 0  # number of releases whose audits were started
    offline: int = 0  # number of latest releases, in a row, that were not installed because the network failed
    broken: bool = False
    interrupted: bool = False

    def go_on(self) -> None:
        """Audit releases until the search ends, the maximum is reached, the network fails or the user interrupts."""
        while self.audited < self.most and not self.interrupted and self.offline < _MOST_OFFLINE:
            number = next_release([release.state for release in self.releases], self.named)
            if number is None:
                return
            try:
                self.releases[number] = self._audited(self.releases[number].version)
            except KeyboardInterrupt:
                self.interrupted = True

    def _audited(self, version: str) -> Release:
        """Audit a release, or skip it."""
        audits = release_audits(self.audits, self.package, version, self.command.seed)
        if not self.command.quiet:
            say(f"release {version} of {self.package}: {self.audited + 1} of at most {self.most} to audit")
        try:
            for one in audits.values():  # `x==1.0` also allows the local version 1.0+cpu
                if wrong := wrong_version(_first_run(one, self.command), self.package, version):
                    raise NotReady(wrong)
        except NotReady as error:
            if is_network_failure(error.reason):
                self.offline += 1
                return self._open(version, audits, error)
            self.offline = 0
            say(f"release {version} of {self.package} is skipped: {error}")
            return Release(version=version, state=State.SKIPPED, reason=error.reason)
        self.audited, self.offline = self.audited + 1, 0
        # Each release has its own seed, so the command's seed does not replace it.
        try:
            outcome = run_all(list(audits.values()), replace(self.command, seed=None), self.promise)
        except NotReady as error:
            if not any(release.results for release in self.releases):
                raise  # nothing was measured that could be lost
            return self._open(version, audits, error)
        self.broken = self.broken or bool(outcome.broken)
        self.interrupted = outcome.interrupted
        return _release(version, audits, outcome)

    def _open(self, version: str, audits: Audits, error: NotReady) -> Release:
        """Return a release without results, whose cause may be something other than the release."""
        say(f"release {version} of {self.package} has no result: {error}")
        return Release(
            version=version, state=State.OPEN, reason=error.reason, missing=dict.fromkeys(audits, error.reason)
        )


def audit_releases(
    audits: Sequence[PlannedAudit], package: str, between: ReleaseRange, command: CommandSettings, most: int | None
) -> tuple[Bisection, bool]:
    """Audit releases until the changes are located; also return whether an audit ended in an internal error.

    Theorem:
        Let each audit have significance s / (K m), where K is `most`, m is the number of audits of a release, and s is
        the requested significance.  The command refutes a true claim with probability at most s.

        *Proof.*  Different releases have different seeds, so their audits are independent.  Whatever the earlier audits
        have shown, the k-th audited release thus has m tests that are valid at significance s / (K m).  So the
        probability that the k-th audited release has a true claim that is refuted is at most s / K, and k <= K.

    The first run of each audit, which decides whether a release is skipped, is not used by the audit.
    """
    versions = between.versions
    pinned = pinned_versions(audits, package)
    named = [number for number, version in enumerate(versions) if Version(version) in pinned]
    limit = min(len(versions), most or most_audits(len(versions), len(named)))
    first = list(release_audits(audits, package, versions[0], command.seed).values())
    promise = share_guarantee(first * limit, command)
    check_claims(first, command)
    prepare_folder(first, command)
    releases = [Release(version=version) for version in versions]
    search = _Search(audits, package, releases, command, promise, limit, named)
    search.go_on()
    bisection = Bisection(
        package=package,
        releases=tuple(search.releases),
        left_out=between.left_out,
        unread=between.unread,
        offline=search.offline == _MOST_OFFLINE,
        most=limit,
        audits=len(first),
        false_alarm=promise.false_alarm,
        shared=promise.shared,
        interrupted=search.interrupted,
    )
    return bisection, search.broken


def release_audits(audits: Sequence[PlannedAudit], package: str, version: str, seed: int | None) -> Audits:
    """Return the audits of one release, each with a seed that depends on the release."""
    audits_of: Audits = {}
    for (title, _), one in side_by_side(audits, [f"{package}=={version}"]).items():
        base = one.config.seed if seed is None else seed
        if base is not None:  # otherwise each audit draws its seed at random
            one = one.changed(seed=int(stream(base, "release", package, version).integers(10**9)))
        audits_of[title] = one
    return audits_of


def _first_run(planned: PlannedAudit, command: CommandSettings) -> Mapping[str, str]:
    """Run a mechanism once, with random numbers that the audit does not use; return the versions of its packages."""
    mechanism, _ = load(planned, command)
    if not isinstance(mechanism, IsolatedMechanism):
        return {}
    if planned.config.failures == "stop":
        try:
            dataset: Foreign = planned.pairs[0].d0
            with mechanism:  # the audit begins with a new worker
                mechanism.sample(dataset, 1, stream(planned.config.seed or 0, "first run of a release"))
        except (MechanismError, ValueError) as error:
            place = f"{planned.file}:{planned.line}: audit {planned.config.name}"
            raise NotReady(f"{place}: {message_of(error)}", reason=message_of(error)) from None
    return mechanism.packages


def _release(version: str, audits: Audits, outcome: Outcome) -> Release:
    by_name = {result.name: result for result in outcome.results}
    results = {title: by_name[one.config.name] for title, one in audits.items() if one.config.name in by_name}
    missing = {
        title: outcome.reasons.get(one.config.name, "not run: the command was interrupted")
        for title, one in audits.items()
        if title not in results
    }
    open_ = missing or any(result.verdict is Verdict.INCONCLUSIVE for result in results.values())
    bad = any(result.violated for result in results.values())
    state = State.BAD if bad else State.OPEN if open_ else State.GOOD
    return Release(version=version, state=state, results=results, missing=missing)
