"""The pytest plugin: the fixture `dpaudit`, its marker and its options.

Pytest loads the plugin in every project that has dpaudit installed.  So this module imports only pytest and modules
that pytest has already loaded.  The first test with an audit loads the rest.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dpaudit.result.model import AuditResult
    from dpaudit.testing.baseline import Baseline
    from dpaudit.testing.journal import Journal
    from dpaudit.testing.session import Allowance, Record, Settings

_MARK = "dpaudit"
_NODE = pytest.StashKey[str]()  # id of a test, without the suffix of pytest-xdist
_ALLOWANCE: pytest.StashKey[Allowance] = pytest.StashKey()  # budget of a test that audits
_BASELINE: pytest.StashKey[Baseline] = pytest.StashKey()  # the baseline when the session began
_JOURNAL: pytest.StashKey[Journal] = pytest.StashKey()  # the session's journal, in the folder of its baseline
_SESSION = pytest.StashKey[str]()  # name of the session, the same in all workers
_TESTS = pytest.StashKey[int]()  # number of tests over which the session's budget is split


class Dpaudit:
    """The value of the fixture `dpaudit`."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance

    def assert_private(self, mechanism: object, claim: Any, pairs: Any, **options: Any) -> AuditResult:
        """Fail the test if an audit refutes the claim; otherwise return the audit's result."""
        __tracebackhide__ = True
        from dpaudit.testing.assertion import carry_out

        return carry_out(self._allowance, mechanism, claim, pairs, **options)


@pytest.fixture
def dpaudit(request: pytest.FixtureRequest) -> Dpaudit:
    """Audit privacy claims with `dpaudit.assert_private(mechanism, claim=..., pairs=...)`."""
    allowance = request.node.stash.get(_ALLOWANCE, None)
    if allowance is None:
        pytest.fail(
            "the false-alarm budget was split before this test requested the fixture `dpaudit`: make it an argument of "
            "the test, or mark the test with @pytest.mark.dpaudit",
            pytrace=False,
        )
    return Dpaudit(allowance)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dpaudit", "privacy audits")
    group.addoption(
        "--dpaudit-report",
        metavar="DIR",
        help="write JSON and PDF of failures to DIR (default: .dpaudit)",
    )
    group.addoption(
        "--dpaudit-false-alarm",
        metavar="P",
        type=_probability,
        help="maximum probability that the session reports any true claim as violated (default: 0.001)",
    )
    group.addoption(
        "--dpaudit-trials",
        metavar="N",
        type=_positive,
        help="maximum number of runs per dataset of one audit (default: 100000)",
    )
    group.addoption("--dpaudit-seed", metavar="S", type=int, help="seed of all randomness of the audits (default: 0)")
    group.addoption(
        "--dpaudit-baseline",
        metavar="FILE",
        help="accumulate evidence in FILE from session to session, with one budget for all sessions",
    )
    group.addoption(
        "--dpaudit-restart",
        action="store_true",
        help="reset the baseline's evidence about refuted claims, after a correction of the mechanism",
    )


def _probability(text: str) -> float:
    from dpaudit.settings.limits import check_probability

    try:
        value = float(text)
    except ValueError:
        value = -1.0
    try:
        check_probability(value, "", written=text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return value


def _positive(text: str) -> int:
    from dpaudit.settings.limits import MIN_TRIALS

    if not (text.isdecimal() and int(text) >= MIN_TRIALS):
        raise argparse.ArgumentTypeError(f"must be at least {MIN_TRIALS}, got {text}")
    return int(text)


def _settings(config: pytest.Config, run: int = 0) -> Settings:
    """Return the settings from options and defaults; `run` is the number of this run in the baseline."""
    from dpaudit.testing.session import Settings

    folder = config.getoption("--dpaudit-report")
    options = {
        "false_alarm": config.getoption("--dpaudit-false-alarm"),
        "trials": config.getoption("--dpaudit-trials"),
        "seed": config.getoption("--dpaudit-seed"),
        "report": None if folder is None else Path(folder),
    }
    return Settings(run=run, **{name: value for name, value in options.items() if value is not None})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_MARK}: the test audits a privacy claim; implied by the fixture `dpaudit`")
    notes = _begin(config) if _baseline_file(config) is not None else []  # refuses a bad file before anything runs
    config.pluginmanager.register(_Gathering(config, notes), "dpaudit-gathering")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "dpaudit" in getattr(item, "fixturenames", ()):
            item.add_marker(_MARK)
        if item.get_closest_marker(_MARK) is not None:
            item.stash[_NODE] = item.nodeid


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Split the budget over the selected tests; every worker of pytest-xdist makes the same split.

    With `--dist=each`, every worker runs every test, and the budget is split over all these copies.
    """
    items = [item for item in session.items if _NODE in item.stash]
    if not items:
        return
    from dpaudit.testing.session import Allowance

    config = session.config
    copies = getattr(config, "workerinput", {}).get("dpaudit_copies", 1)
    config.stash[_TESTS] = len(items) * copies
    baseline = config.stash.get(_BASELINE, None)
    settings = _settings(config, run=0 if baseline is None else baseline.runs + 1)
    budget = settings.false_alarm
    nodes = [item.stash[_NODE] for item in items]
    if baseline is None:
        for item, node in zip(items, nodes, strict=True):
            item.stash[_ALLOWANCE] = Allowance(node=node, share=budget / config.stash[_TESTS], settings=settings)
        return
    numbers, founders = baseline.numbers(nodes), baseline.founders or len(items)
    journal = config.stash[_JOURNAL]
    for item, node in zip(items, nodes, strict=True):
        item.stash[_ALLOWANCE] = Allowance(
            node=node,
            share=baseline.share(numbers[node], founders),
            settings=settings,
            chains=baseline.tests[node].chains if node in baseline.tests else (),
            known=frozenset(baseline.tests[node].outputs if node in baseline.tests else ()),
            restart=config.getoption("--dpaudit-restart"),
            number=numbers[node],
            keep=lambda record: journal.add(record, len(items)),
        )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let `dpaudit.testing.assert_private` find the test's allowance, even in unittest classes."""
    allowance = item.stash.get(_ALLOWANCE, None)
    if allowance is not None:
        from dpaudit.testing import session

        allowance.calls = 0  # a repeated test makes the same calls again, and `Allowance.again` repeats the outcomes
        allowance.records.clear()
        session.current = allowance


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    if item.stash.get(_ALLOWANCE, None) is not None:
        from dpaudit.testing import session

        session.current = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the records to JUnit files and to the test's reports, which pytest-xdist sends to the controller."""
    allowance = item.stash.get(_ALLOWANCE, None)
    if allowance is not None and call.when == "call":
        item.user_properties.extend(_properties(allowance))
    report = yield
    if allowance is not None and call.when == "teardown":
        report.dpaudit = list(allowance.records)  # type: ignore[attr-defined]
        report.dpaudit_tests = item.config.stash[_TESTS]  # type: ignore[attr-defined]
    return report


def _properties(allowance: Allowance) -> Iterator[tuple[str, object]]:
    for record in allowance.records:
        suffix = "" if record["call"] == 1 else f"_{record['call']}"
        for key in ("verdict", "claim", "p_value", "trials", "mu_lower"):
            yield f"dpaudit_{key}{suffix}", record[key]


class _Gathering:
    """Collects the records of all workers in the process that reports to the user."""

    def __init__(self, config: pytest.Config, notes: list[str]) -> None:
        self._config = config
        self._notes = notes  # about sessions that were killed
        self._records: list[Record] = []
        self._tests = 0
        self._trouble = ""
        self._runs = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = getattr(report, "dpaudit", ())
        self._records += found
        if found and _JOURNAL in self._config.stash:
            self._config.stash[_JOURNAL].hold()  # locks the journal even after all workers have ended
        self._tests = getattr(report, "dpaudit_tests", self._tests)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        path = _baseline_file(self._config)
        if path is None or hasattr(self._config, "workerinput"):
            return
        journal = self._config.stash[_JOURNAL]
        # The journal comes before the reports, because first audits count and a killed worker sends no report.
        lines = journal.lines()
        records = [line["record"] for line in lines] + self._records
        if not records:
            return
        from dpaudit.testing.baseline import BaselineError, first_audits, write

        if lost := [record["node"] for record in first_audits(records) if record.get("begun")]:
            self._notes.append(f"unfinished audits are counted as lost bets: {', '.join(dict.fromkeys(lost))}")
        try:
            tests = self._tests or lines[0]["tests"]
            after = self._config.stash[_BASELINE].after(records, founders=tests)
            self._runs = after.runs
            write(path, after)
            journal.remove()
        except BaselineError as error:
            journal.remove()  # another session is recorded instead of this one
            self._failed(session, error)
        except OSError as error:
            self._failed(session, error)  # the journal remains for the next session

    def _failed(self, session: pytest.Session, error: Exception) -> None:
        self._trouble = str(error)
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not (self._records or self._notes or self._trouble):
            return
        from dpaudit.testing.summary import summary
        from dpaudit.text.encodable import encodable
        from dpaudit.text.printable import one_line

        terminalreporter.section("dpaudit")
        for note in self._notes:
            terminalreporter.write_line(one_line(note))
        if self._trouble:
            terminalreporter.write_line(f"the baseline was not written: {one_line(self._trouble)}", red=True)
        if not self._records:
            return
        budget = _settings(self._config).false_alarm
        encoding = getattr(getattr(getattr(terminalreporter, "_tw", None), "_file", None), "encoding", None)
        for line in summary(self._records, tests=self._tests, false_alarm=budget, runs=self._runs):
            terminalreporter.write_line(encodable(one_line(line), encoding))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell the workers of pytest-xdist how many of them run each test, and whose journal they write."""
    node.workerinput["dpaudit_copies"] = node.workerinput["workercount"] if _runs_copies(node.config) else 1
    if _JOURNAL in node.config.stash:
        node.workerinput["dpaudit_session"] = node.config.stash[_SESSION]


def _runs_copies(config: pytest.Config) -> bool:
    return bool(config.getoption("dist", "no") == "each")


def _baseline_file(config: pytest.Config) -> Path | None:
    """Return the path of the baseline, relative to the folder in which pytest was called, like --junit-xml."""
    given = config.getoption("--dpaudit-baseline")
    return None if given is None else config.invocation_params.dir / given


def _begin(config: pytest.Config) -> list[str]:
    """Read the baseline and the journals of killed sessions; return notes about these sessions."""
    from dpaudit.testing.baseline import BaselineError, read
    from dpaudit.testing.journal import begin, take_up
    from dpaudit.text.printable import one_line

    if _runs_copies(config):
        raise pytest.UsageError("--dpaudit-baseline counts each test once, so it excludes --dist=each")
    path, budget = _baseline_file(config), _settings(config).false_alarm
    assert path is not None
    of_controller = getattr(config, "workerinput", {}).get("dpaudit_session")
    try:
        baseline, notes = take_up(path, budget) if of_controller is None else (read(path, budget), [])
    except BaselineError as error:
        raise pytest.UsageError(f"--dpaudit-baseline: {one_line(str(error))}") from None
    config.stash[_SESSION] = of_controller or f"{os.getpid()}-{time.time_ns():x}"
    config.stash[_BASELINE] = baseline
    config.stash[_JOURNAL] = begin(path, baseline, config.stash[_SESSION])
    return notes
