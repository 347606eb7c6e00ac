"""The policy of `run` and `compare`: all audits in their order, after all mechanisms have been loaded."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.cli.one_audit import End, Outcome, Task
from dpaudit.cli.options import RunOptions
from dpaudit.cli.prepare_run import NotReady, check_claims, load, prepare_folder, share_guarantee
from dpaudit.cli.runner import Runner
from dpaudit.cli.terminal import say
from dpaudit.config import PlannedAudit, lock_file
from dpaudit.result.atomic_write import remove_placed, write_placed
from dpaudit.running.foreign import own_error_state
from dpaudit.running.mechanisms import IsolatedMechanism


class InOrder:
    """Makes each audit once; with `stop_first`, up to the first violation."""

    def __init__(self, planned: Sequence[PlannedAudit], *, needs_all: bool = True, stop_first: bool = False) -> None:
        self.planned, self._needs_all, self._stop_first = planned, needs_all, stop_first
        self._tasks: list[Task] = []
        self.stopped = False  # whether a violation ended the command

    @own_error_state()
    def run(self, options: RunOptions) -> Runner:
        """Load all mechanisms, and make all audits; without `needs_all`, a mechanism may fail to load."""
        runner = Runner(options=options, promise=share_guarantee(self.planned, options))
        check_claims(self.planned, options)
        prepare_folder(self.planned, options)
        failed = None if self._needs_all else runner.outcomes
        self._tasks = loaded(self.planned, runner.promise.confidences, options, failed)
        if not self._tasks:
            raise NotReady("no mechanism could be loaded; see the messages above")
        runner.run(self)
        return runner

    def next(self) -> Task | None:
        return self._tasks.pop(0) if self._tasks and not self.stopped else None

    def ended(self, task: Task, outcome: Outcome) -> None:
        violated = outcome.result is not None and outcome.result.violated
        self.stopped = self._stop_first and violated and bool(self._tasks)


def loaded(
    planned: Sequence[PlannedAudit],
    confidences: Sequence[float],
    options: RunOptions,
    failed: dict[str, Outcome] | None = None,
) -> list[Task]:
    """Load the mechanisms and claims of audits, and write their lock files; `failed` gets those that do not load."""
    tasks = []
    for number, (one, confidence) in enumerate(zip(planned, confidences, strict=False)):
        try:
            mechanism, claim = load(one, options)
        except NotReady as error:
            if failed is None:
                raise
            say(str(error))
            failed[one.config.name] = Outcome(end=End.NOT_READY, reason=error.reason)
            continue
        tasks.append(
            Task(number=number, audits=len(planned), planned=one, confidence=confidence, loaded=(mechanism, claim))
        )
    for task in tasks:
        mechanism = task.loaded and task.loaded[0]
        if isinstance(mechanism, IsolatedMechanism) and task.planned.lock is None:
            _write_lock(task.name, mechanism, options)
    return tasks


def _write_lock(name: str, mechanism: IsolatedMechanism, options: RunOptions) -> None:
    """Write DIR/NAME.lock for a new environment, or remove that of an earlier environment if this one has no lock."""
    file, lock = lock_file(options.output, name), mechanism.installed
    try:
        if lock is not None:
            write_placed(file, lock.text)
        else:
            remove_placed(file)
    except OSError as error:
        say(f"audit {name}: the lock file could not be written: {error.strerror or error}")
    if lock is None and not options.quiet:
        say(f"audit {name}: no lock file was written, because packages from version control have no hash")
