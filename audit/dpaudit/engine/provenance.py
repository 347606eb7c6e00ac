"""Records where and with which versions an audit ran."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path

from dpaudit.engine.collector import Collector
from dpaudit.mechanisms import members
from dpaudit.mechanisms.sources import Source, source_of
from dpaudit.result.provenance import Provenance, SourceFile
from dpaudit.text.version import __version__

_FOR_DATA = ("numpy", "scipy", "pandas", "polars")  # packages that most mechanisms use, and that are rarely audited
_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")
_MAX_SHOWN = 10  # maximum number of modules or packages that a warning names


def provenance_of(*, seed: int, mechanism: str, source: Source | None = None) -> Provenance:
    """Return versions, machine, seed and date of an audit that begins now."""
    source = source or Source()
    return Provenance(
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seed=seed,
        mechanism=mechanism,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        packages={"dpaudit": __version__} | {name: found for name in _PACKAGES if (found := _version(name))},
        mechanism_packages=_used_first(source) or None,
        mechanism_hashes=dict(source.hashes) or None,
        mechanism_file=None if source.file is None else SourceFile(path=str(source.file), sha256=source.sha256),
        mechanism_modules=dict(source.modules) or None,
    )


def _used_first(source: Source) -> dict[str, str]:
    """Return the versions of packages: those that the mechanism names, then those for data, then dependencies."""
    from packaging.utils import canonicalize_name

    def rank(package: tuple[str, str]) -> tuple[bool, bool]:
        name = canonicalize_name(package[0])
        return name not in source.used, name in _FOR_DATA

    return dict(sorted(source.packages.items(), key=rank))


def mechanism_name(mechanism: object) -> str:
    """Return the name of a mechanism in results: its stated name, its address, or the name of its function or class."""
    named = members.named(mechanism) or members.address(mechanism) or getattr(mechanism, "__qualname__", None)
    return str(named or type(mechanism).__qualname__)


def with_costs(provenance: Provenance, collector: Collector, *, second_stage_trials: int) -> Provenance:
    """Add the costs of a finished audit and the fingerprints of its outputs."""
    seconds: dict[str, float] = {}
    for learner in collector.learners:
        for index, spent in learner.seconds.items():
            name = learner.attacks[index].name
            seconds[name] = round(seconds.get(name, 0.0) + spent, 3)
    return replace(
        provenance,
        outputs=str(collector.outputs_fingerprint),
        first_outputs=tuple(collector.beginning.fingerprints()),
        attack_seconds=seconds,
        runs_after_evidence=collector.observed or None,
        running_times=collector.sampler.clock or None,
        second_stage_trials=second_stage_trials or None,
    )


def changed_since(provenance: Provenance, mechanism: object) -> list[str]:
    """Return warnings about code of a mechanism that has changed since an audit."""
    recorded = provenance.mechanism_file
    source = source_of(mechanism)
    found = []
    if recorded is None or not recorded.sha256:
        if source.file is not None:
            found.append(f"the result records no hash of {source.file.name}, so the replay may have run other code")
        else:
            found += _other_program(provenance.mechanism_modules or {}, source.modules)
    elif source.file is None:
        name = Path(recorded.path).name
        found.append(f"the audit tested {name}; this mechanism has no file, so it may be another mechanism")
    else:
        then, now = recorded.sha256, source.sha256
        if now != then:
            found.append(f"{source.file.name} has changed since the audit (SHA-256 {then[:12]} then, {now[:12]} now)")
        found += _other_modules(recorded.path, provenance.mechanism_modules or {}, source)
    found += _other_versions(provenance.mechanism_packages or {}, source.packages)
    found += _other_files(provenance, source)
    return found


def _other_modules(path: str, recorded: Mapping[str, str], source: Source) -> list[str]:
    """Return a warning about changes of the user's other modules, identified by paths relative to the mechanism."""
    then = _from_folder_of(path, recorded)
    now = _from_folder_of(str(source.file), source.modules)
    other = _differing(then, now)
    return [f"modules of the mechanism differ from those of the audit: {other}"] if other else []


def _other_program(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a warning about changes of a program's files; both mappings are empty if the mechanism is no program."""
    if now and not then:
        return ["the result records no hash of the program, so the replay may have run other code"]
    other = _differing(then, now)
    return [f"files of the program differ from those of the audit: {other}"] if other else []


def _differing(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    other = [
        f"{name} ({'is new' if name not in then else 'is gone' if name not in now else 'has changed'})"
        for name in sorted(then.keys() | now.keys())
        if then.get(name) != now.get(name)
    ]
    return _some(other)


def _from_folder_of(file: str, modules: Mapping[str, str]) -> dict[str, str]:
    folder = os.path.dirname(file) or "."
    return {os.path.relpath(path or ".", folder): sha256 for path, sha256 in modules.items()}


def _other_versions(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return warnings about packages that have another version now, have no recorded version, or are not used now."""
    changed = [
        f"{name} {recorded[name]} then, {now[name]} now"
        for name in recorded
        if name in now and recorded[name] != now[name]
    ]
    new, gone = _some(now.keys() - recorded.keys()), _some(recorded.keys() - now.keys())
    return [
        *([f"packages of the mechanism have changed since the audit: {', '.join(changed)}"] if changed else []),
        *([f"the result records no version of {new}, so the replay may have run another version"] if new else []),
        *([f"the result records packages that the replay did not use: {gone}"] if gone else []),
    ]


def _some(names: Iterable[str]) -> str:
    """Join the first names of packages."""
    found = sorted(names)
    return ", ".join(found[:_MAX_SHOWN]) + (f" and {len(found) - _MAX_SHOWN:,} more" if found[_MAX_SHOWN:] else "")


def _other_files(recorded: Provenance, source: Source) -> list[str]:
    """Return warnings about packages of the same version whose content differs or whose hash was not recorded."""
    then, versions = recorded.mechanism_hashes or {}, recorded.mechanism_packages or {}
    same = {name: sha256 for name, sha256 in source.hashes.items() if versions.get(name) == source.packages.get(name)}
    differing = [name for name, sha256 in same.items() if then.get(name, sha256) != sha256]
    other = ", ".join(f"{name} {source.packages.get(name)}" for name in differing)
    unknown = _some(same.keys() - then.keys())
    return [
        *([f"packages have the same version as in the audit, but different content: {other}"] if other else []),
        *([f"the result records no hash of {unknown}, so the replay may have run other content"] if unknown else []),
    ]


@cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
