"""Plans a sweep: its catalogue, its versions, its cells and its guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpaudit.cli.prepare_run import CommandSettings, prepare_folder, share_guarantee
from dpaudit.cli.read_results import SWEEP, SWEEP_PDF
from dpaudit.cli.sweep_cells import Sweeping, answer_seconds, with_timeout
from dpaudit.cli.sweep_file import earlier, recorded, resume
from dpaudit.cli.sweep_row import Row
from dpaudit.config import ConfigError
from dpaudit.config.sweep_models import check_version_number
from dpaudit.config.sweeps import Catalogue, Cell, cells_of, only_matching, read_catalogue
from dpaudit.result.suite import Promise
from dpaudit.result.sweeps import Sweep
from dpaudit.settings.audit import BACKENDS
from dpaudit.settings.limits import ALL_CORES, cores
from dpaudit.values import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """The cells of a sweep."""

    catalogue: Catalogue
    versions: tuple[str, ...]
    cells: list[Cell]

    def prepare(self, command: CommandSettings) -> None:
        """Create the output folder and check that all files can be written there."""
        prepare_folder([cell.planned for cell in self.cells], command, others=(SWEEP, SWEEP_PDF))

    def start(self, seconds: float, command: CommandSettings) -> Sweeping:
        """Return the sweep, ready to run; it has the results of an earlier command that it resumes."""
        audits = [cell.planned for cell in self.cells]
        promise = share_guarantee(audits, command)
        before = earlier(command, [cell.name for cell in self.cells])
        wait = before.answer_seconds if before is not None else answer_seconds(seconds, len(audits))
        cells = with_timeout(self.cells, wait)
        rows = [
            Row(cell=cell, confidence=confidence) for cell, confidence in zip(cells, promise.confidences, strict=True)
        ]
        # on a cluster, the processes of `jobs` make the runs of one cell
        jobs = cores() if command.jobs == ALL_CORES else command.jobs
        at_once = min(jobs, len(rows)) if command.backend == BACKENDS[0] else 1
        sweeping = Sweeping(
            sweep=self._sweep(seconds, wait, rows, promise),
            rows=rows,
            command=replace(command, jobs=1) if command.backend == BACKENDS[0] else command,
            promise=promise,
            cells=at_once,
        )
        if before is not None:
            sweeping.promise = resume(before, sweeping.sweep, rows, promise, command)
            sweeping.sweep = replace(sweeping.sweep, number=sweeping.promise.number, spent=before.spent)
        return sweeping

    def _sweep(self, seconds: float, wait: float, rows: Sequence[Row], promise: Promise) -> Sweep:
        return Sweep(
            library=self.catalogue.config.library,
            package=self.catalogue.config.package,
            catalogue=self.catalogue.file.name,
            versions=self.versions,
            confidence=min(promise.confidences),
            false_alarm=min(float(promise.false_alarm), 1.0),
            shared=promise.shared,
            number=promise.number,
            seconds=seconds,
            spent=0.0,
            answer_seconds=wait,
            interrupted=False,
            cells=tuple(map(recorded, rows)),
        )


def planned_sweep(library: str, others: Sequence[str], patterns: Sequence[str], command: CommandSettings) -> SweepPlan:
    """Read the catalogue and list the cells."""
    from packaging.version import Version

    name, _, wanted = library.partition("==")
    if wanted == "" and library.endswith("=="):
        raise ConfigError(f"LIBRARY {library[:100]!r}: the version after == is missing; write {name}==VERSION")
    if not wanted and any(sign in name for sign in "<>~!=,"):
        raise ConfigError(f"LIBRARY {library[:100]!r}: only == is allowed; write NAME==VERSION, such as opendp==0.16.0")
    catalogue = read_catalogue(name)
    project = catalogue.config.package
    here = None if wanted else catalogue.installed
    versions = [_version("LIBRARY", wanted, project) if wanted else here or catalogue.newest]
    for other in others:
        version = _version("--with", other.removeprefix(f"{project}=="), project)
        if any(Version(version) == Version(one) for one in versions):
            raise ConfigError(f"--with {other}: the version {version} is given twice")
        versions.append(version)
    settings: JsonObject = {} if command.trials is None else {"trials": command.trials}
    found = [
        cells_of(catalogue, version, pinned=here is None or number > 0, settings=settings)
        for number, version in enumerate(versions)
    ]
    order = {title: number for number, title in enumerate(dict.fromkeys(c.title for one in found for c in one))}
    cells = sorted((cell for one in found for cell in one), key=lambda cell: order[cell.title])
    if not cells:
        raise ConfigError(f"{catalogue.file}: no entry is for version {' or '.join(versions)}; see its keys `versions`")
    return SweepPlan(catalogue=catalogue, versions=tuple(versions), cells=only_matching(cells, patterns))


def _version(option: str, text: str, package: str) -> str:
    try:
        return check_version_number(text)
    except ValueError:
        raise ConfigError(
            f"{option}: {text[:40]!r} is not a version of {package}; write a number such as 1.2.3"
        ) from None
