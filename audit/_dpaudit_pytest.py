"""The pytest plugin: the fixture `dpaudit`, its marker and its options.

Pytest loads it in every project with dpaudit, so it imports only pytest; the first test with an audit loads the rest.
"""

from __future__ import annotations

import argparse
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dpaudit.testing.session import Allowance, BaselineFile, Record, Settings

_MARK = "dpaudit"
_NODE = pytest.StashKey[str]()  # id of a test, without the suffix of pytest-xdist
_ALLOWANCE: pytest.StashKey[Allowance] = pytest.StashKey()  # budget of a test that audits


@pytest.fixture
def dpaudit(request: pytest.FixtureRequest) -> Any:
    """Audit privacy claims with `dpaudit.assert_private(mechanism, claim=..., pairs=...)`."""
    if _ALLOWANCE not in request.node.stash:
        pytest.fail(
            "the false-alarm budget was split before this test requested the fixture `dpaudit`: make it an argument of "
            "the test, or mark the test with @pytest.mark.dpaudit",
            pytrace=False,
        )
    import dpaudit.testing

    return dpaudit.testing


def pytest_addoption(parser: pytest.Parser) -> None:
    add = parser.getgroup("dpaudit", "privacy audits").addoption
    add("--dpaudit-report", metavar="DIR", help="write JSON and PDF of failures to DIR (default: .dpaudit)")
    add(
        "--dpaudit-false-alarm",
        metavar="P",
        type=probability,
        help="maximum probability that the session reports any true claim as violated (default: 0.001)",
    )
    add("--dpaudit-trials", metavar="N", type=count, help="maximum runs per dataset of one audit (default: 100000)")
    add("--dpaudit-seed", metavar="S", type=int, help="seed of all randomness of the audits (default: 0)")
    add("--dpaudit-baseline", metavar="FILE", help="accumulate evidence over all sessions in FILE, under one budget")
    add("--dpaudit-restart", action="store_true", help="reset the evidence of refuted claims after a correction")


def probability(text: str) -> float:
    if not 0 < float(text) < 1:
        raise argparse.ArgumentTypeError(f"must lie strictly between 0 and 1, got {text}")
    return float(text)


def count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_MARK}: the test audits a privacy claim; implied by the fixture `dpaudit`")
    config.pluginmanager.register(_Session(config), "dpaudit-session")


class _Session:
    """The audits of a process, and in the process that reports to the user also those of all workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._copies = config.getoption("dist", "no") == "each"
        self._notes: list[str] = []
        self._records: list[Record] = []
        self._tests = 0  # over which the budget is split
        self._run = 0  # number of this session in the baseline; 0 without a baseline
        self._baseline: BaselineFile | None = None
        if (given := config.getoption("--dpaudit-baseline")) is not None:
            self._baseline = self._opened(config.invocation_params.dir / given)  # relative like --junit-xml
            self._run = self._baseline.start.runs + 1

    def _opened(self, path: Path) -> BaselineFile:
        """Lock and read the baseline, and count the audits of a killed session."""
        from dpaudit.testing.session import BaselineError, lock, read
        from dpaudit.text import one_line

        if self._copies:
            raise pytest.UsageError("--dpaudit-baseline counts each test once, so it excludes --dist=each")
        budget = self._settings().false_alarm
        try:
            if self._worker is not None:
                return read(path, budget)
            self._config.add_cleanup(lock(path).release)
            _, killed = read(path, budget).settle()
            if killed:
                self._notes.append(f"an earlier session was killed: its {len(killed)} audits have been counted")
                self._note_unfinished(killed)
            return read(path, budget)
        except (BaselineError, OSError) as error:
            raise pytest.UsageError(f"--dpaudit-baseline: {one_line(str(error))}") from None

    def _note_unfinished(self, records: list[Record]) -> None:
        if lost := [record["node"] for record in records if record.get("begun")]:
            self._notes.append(f"unfinished audits are counted as lost bets: {', '.join(lost)}")

    def _settings(self) -> Settings:
        from dpaudit.testing.layout import Layout
        from dpaudit.testing.session import Settings

        names = ("false_alarm", "trials", "seed", "report")
        given = {name: self._config.getoption(f"dpaudit_{name}") for name in names}
        layout = Layout.of(self._config)
        return Settings(
            run=self._run, layout=layout, **{name: value for name, value in given.items() if value is not None}
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if "dpaudit" in getattr(item, "fixturenames", ()):
                item.add_marker(_MARK)
            if item.get_closest_marker(_MARK) is not None:
                item.stash[_NODE] = item.nodeid

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Split the budget over the selected tests, as each xdist worker does (`--dist=each`: over all copies)."""
        items = [item for item in session.items if _NODE in item.stash]
        if not items:
            return
        from dpaudit.testing.session import Allowance

        self._tests = len(items) * (self._worker or {}).get("dpaudit_copies", 1)
        settings, file, nodes = self._settings(), self._baseline, [item.stash[_NODE] for item in items]
        entries = {} if file is None else file.start.entries(nodes)
        for item, node in zip(items, nodes, strict=True):
            share = settings.false_alarm / self._tests
            allowance = Allowance(node=node, share=share, settings=settings, file=item.path)
            if file is not None:
                allowance.entry = entries[node]
                allowance.share = file.start.share(allowance.entry.number, file.start.founders or len(items))
                allowance.restart = self._config.getoption("--dpaudit-restart")
                allowance.keep = lambda record: file.add(record, len(items))
            item.stash[_ALLOWANCE] = allowance

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Let `assert_private` find the test's allowance, even in unittest classes."""
        if (allowance := item.stash.get(_ALLOWANCE, None)) is not None:
            from dpaudit.testing import session

            allowance.calls = 0  # a repeated test makes the same calls again, and `again` repeats the outcomes
            allowance.records.clear()
            session.current = allowance

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        if _ALLOWANCE in item.stash:
            from dpaudit.testing import session

            session.current = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the records to JUnit files and to the test's reports, which pytest-xdist sends to the controller."""
        allowance = item.stash.get(_ALLOWANCE, None)
        if allowance is not None and call.when == "call":
            for record in allowance.records:
                suffix = "" if record["call"] == 1 else f"_{record['call']}"
                for key in ("verdict", "claim", "p_value", "trials", "mu_lower"):
                    item.user_properties.append((f"dpaudit_{key}{suffix}", record[key]))
        report = yield
        if allowance is not None and call.when == "teardown":
            report.dpaudit = list(allowance.records), self._tests  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        records, self._tests = getattr(report, "dpaudit", ([], self._tests))
        self._records += records

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._baseline is None or self._worker is not None:
            return
        try:
            self._note_unfinished(self._baseline.settle()[1])
        except OSError as error:
            self._notes.append(f"the baseline was not written: {error}; the next session counts these audits")
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not (self._records or self._notes):
            return
        from dpaudit.testing.messages import summary
        from dpaudit.text import encodable, one_line

        lines = list(self._notes)
        if self._records:
            budget, verbose = self._settings().false_alarm, self._config.getoption("verbose") > 0
            lines += summary(self._records, tests=self._tests, false_alarm=budget, runs=self._run, verbose=verbose)
        terminalreporter.section("dpaudit")
        encoding = getattr(getattr(getattr(terminalreporter, "_tw", None), "_file", None), "encoding", None)
        for line in lines:
            terminalreporter.write_line(encodable(one_line(line), encoding))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell the workers of pytest-xdist how many of them run each test."""
        node.workerinput["dpaudit_copies"] = node.workerinput["workercount"] if self._copies else 1
