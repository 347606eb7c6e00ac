"""The plugin from the user's point of view.  Seeds are fixed, so outcomes do not change from run to run."""

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from dpaudit.result.model import AuditResult

pytest_plugins = ["pytester"]
Run = Callable[..., Any]

ONE_OF_TWO = """
def test_right(dpaudit):
    dpaudit.assert_private(noise(1.0), claim=CLAIM, pairs=BIT, attacks="threshold")

def test_wrong(dpaudit):
    dpaudit.assert_private(noise(0.2), claim=CLAIM, pairs=BIT, attacks="threshold")
"""


def test_a_failure_shows_and_keeps_the_evidence(run: Run, pdf: None, pytester: pytest.Pytester) -> None:
    done = run(ONE_OF_TWO, "--dpaudit-trials", "100", "--dpaudit-report", "found", "--junit-xml", "junit.xml")
    assert done.counts == {"passed": 1, "failed": 1}
    for line in (
        r"dpaudit\.PrivacyViolation: VIOLATION of gaussian\(mu=1\)",
        r"VIOLATION of gaussian\(mu=1\): mu >= \d\.\d+, epsilon >= \d",
        r"  p <= .*, this audit refutes at p <= 0.0003; \d+ runs per dataset",
        r"confirmed by \d+ fresh runs per dataset in 8 new processes: p <= .* from these runs alone$",
        r"  output above .* of the outputs of d0, .* the claim allows at most",
        r"  seed \d+; result found/\S+\.json",
        r"report found/\S+\.pdf",
        r"same runs: .*pytest test_project.py::test_wrong --dpaudit-seed 0 \(new runs: 1\)",
        r"2 audits: ▲ 1 violation, ○ 1 no violation found$",
        r"split over 2 tests: a true claim fails this suite in at most one session of 1,000$",
    ):
        assert re.search(line, done.out, re.MULTILINE), line
    assert "assertion.py" not in done.out  # the traceback ends in the user's test
    (kept,) = Path(pytester.path, "found").glob("*.json")
    result = AuditResult.from_json(kept)
    assert result.violated
    assert result.environment["test"] == "test_project.py::test_wrong"
    assert kept.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    cases = xml.etree.ElementTree.parse(pytester.path / "junit.xml").iter("testcase")
    properties = {case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")} for case in cases}
    assert properties["test_right"]["dpaudit_verdict"] == "no violation found"
    assert properties["test_right"]["dpaudit_trials"] == "100"
    assert properties["test_wrong"]["dpaudit_claim"] == "gaussian(mu=1)"
    assert float(properties["test_wrong"]["dpaudit_mu_lower"] or 0) > 1
    assert float(properties["test_wrong"]["dpaudit_p_value"] or 1) < 1e-3


def test_an_inconclusive_audit_fails_with_another_message(run: Run) -> None:
    done = run(
        """
def raises(dataset, rng):
    raise OSError("no entropy")

def test_raises(dpaudit):
    dpaudit.assert_private(raises, claim=CLAIM, pairs=BIT)

@pytest.mark.parametrize("detect", ["gaussian(mu=1.5)", 1.5])
def test_too_few(dpaudit, detect):
    dpaudit.assert_private(noise(1.0), claim=CLAIM, pairs=BIT, trials=20, detect=detect, attacks="threshold")

@batched
def repeats(dataset, n, rng):
    return [float(i % 3) for i in range(n)]

def test_repeats(dpaudit):
    dpaudit.assert_private(repeats, claim=CLAIM, pairs=BIT, attacks="threshold")
""",
        "--dpaudit-trials",
        "2000",
    )
    assert done.counts == {"failed": 4}
    assert "VIOLATION" not in done.out
    assert done.out.count("E       dpaudit.AuditInconclusive: INCONCLUSIVE about gaussian(mu=1): the audit") == 4
    assert "because the mechanism raised OSError: no entropy on run 0 of d0" in done.out
    assert done.out.count("E         because 20 runs per dataset are too few to see") == 2
    assert done.out.count("would detect this mechanism with probability 99.9 % if the attack is optimal\nE") == 2
    assert "3 audits: ◇ 3 inconclusive" in done.out
    assert "because a sequence of " in done.out
    assert "what to do: independent runs appear dependent only once in 10^9 audits" in done.out


MANY = """
@pytest.mark.parametrize("audits", [1, 2])
def test_each(dpaudit, audits):
    for scale in range(audits):
        dpaudit.assert_private(noise(1.0 + scale), claim=CLAIM, pairs=BIT, attacks="threshold")

@pytest.mark.dpaudit
class TestInAClass(unittest.TestCase):
    def test_it(self):
        self.assertIs(assert_private(noise(1.0), CLAIM, BIT, attacks="threshold").violated, False)

class TestWithAFixture(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def privacy(self, dpaudit):
        self.dpaudit = dpaudit

    def test_it(self):
        self.dpaudit.assert_private(noise(1.0), claim=CLAIM, pairs=BIT, attacks="threshold")

def test_other():
    pass
"""


@pytest.mark.parametrize(
    ("arguments", "passed", "audits", "tests"),
    [(("-k", "not 2 and not Fixture"), 3, 2, 2), (("-m", "not dpaudit"), 1, 0, 0)],
    ids=["-k", "-m not dpaudit"],
)
def test_the_budget_is_split_over_what_is_selected(
    run: Run, arguments: tuple[str, ...], passed: int, audits: int, tests: int
) -> None:
    done = run(MANY, "--dpaudit-trials", "100", "--dpaudit-false-alarm", "0.01", *arguments)
    assert done.counts["passed"] == passed
    assert "failed" not in done.counts
    assert (f"\n{audits} audits: " in done.out) == (audits > 0)
    assert (f"split over {tests} tests: a true claim fails this suite in at most one session of 100\n" in done.out) == (
        tests > 0
    )


def test_the_last_failed_test_alone_gets_the_whole_budget(run: Run) -> None:
    one_of_two = """
@pytest.mark.dpaudit
def test_right():
    pass

def test_wrong(dpaudit):
    dpaudit.assert_private(noise(1.0), claim=CLAIM, pairs=BIT, attacks="threshold")
    assert False
"""
    first = run(one_of_two, "--dpaudit-trials", "100", "--lf")
    assert first.counts == {"passed": 1, "failed": 1}
    assert "split over 2 tests: " in first.out
    done = run(None, "--dpaudit-trials", "100", "--lf")
    assert done.counts["failed"] == 1
    assert "passed" not in done.counts
    assert "split over 1 test: " in done.out


def test_an_audit_outside_the_budget_is_refused(run: Run) -> None:
    done = run(
        """
def test_not_marked():
    assert_private(noise(1.0), CLAIM, BIT)

def test_late(request):
    request.getfixturevalue("dpaudit")

@pytest.mark.dpaudit
def test_marked():
    with pytest.raises(ValueError, match="seed: set by the session in a test"):
        assert_private(noise(1.0), CLAIM, BIT, seed=3)
"""
    )
    assert done.counts["passed"] == 1
    assert "does not count this test: mark it, or its class, with @pytest.mark.dpaudit" in done.out
    assert "the false-alarm budget was split before this test requested the fixture" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dpaudit-false-alarm", "2"), "must lie strictly between 0 and 1, got 2"),
        (("--dpaudit-trials", "0"), "must be at least 1, got 0"),
    ],
)
def test_impossible_options_are_refused(run: Run, arguments: tuple[str, ...], message: str) -> None:
    done = run(ONE_OF_TWO, *arguments)
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert message in done.err


def test_workers_share_budget_and_baseline(elsewhere: Run, pytester: pytest.Pytester) -> None:
    """Workers write the beginning and the end of each audit into the journal at once."""
    code = (
        MANY
        + """
@pytest.fixture(autouse=True)
def journal(request):
    audits = request.getfixturevalue("audits") if "audits" in request.fixturenames else 0
    yield
    if audits:
        assert open("b.json.journal").read().count(f'"node": "{request.node.nodeid}"') == 2 * audits
"""
    )
    done = elsewhere(code, "-n", "2", "--dpaudit-trials", "40", "--dpaudit-baseline", "b.json")
    assert done.counts == {"passed": 5}, done.out
    assert "5 audits: ○ 5 no violation found" in done.out
    assert "split over 4 tests: " in done.out
    values = json.loads((pytester.path / "b.json").read_text())
    assert (values["runs"], values["founders"]) == (1, 4)
    assert sorted(entry["number"] for entry in values["tests"].values()) == [1, 2, 3, 4]
    assert sorted(len(entry["chains"]) for entry in values["tests"].values()) == [1, 1, 1, 2]


def test_a_session_without_audits_loads_nothing(elsewhere: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_project="import sys\n\ndef test_it(pytestconfig):\n"
        "    assert pytestconfig.pluginmanager.hasplugin('dpaudit')\n"
        "    assert not {'dpaudit', 'numpy', 'scipy'} & set(sys.modules)\n"
    )
    done = elsewhere(None, "-q")
    assert done.counts == {"passed": 1}, done.out
    assert "dpaudit" not in done.out


@pytest.mark.chance
def test_the_plugin_loads_in_under_20_ms() -> None:
    """The limit holds for the least processor time of 5 fresh processes that have loaded pytest."""
    code = "import pytest, time; t = time.process_time(); import _dpaudit_pytest; print(time.process_time() - t)"
    seconds: list[float] = []
    while len(seconds) < 5 and min(seconds, default=1.0) >= 0.020:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        seconds.append(float(done.stdout))
    assert min(seconds) < 0.020, seconds


TWICE = """
@pytest.mark.parametrize("sigma", [1.0, 0.2])
def test_noise(dpaudit, sigma):
    constant = batched(lambda dataset, n, rng: rng.normal(size=n))
    dpaudit.assert_private(constant, claim=CLAIM, pairs=BIT, attacks="threshold")
    dpaudit.assert_private(noise(sigma), claim=CLAIM, pairs=BIT, attacks="threshold")
"""


def test_what_a_test_found_is_replayed_in_that_test(
    command: Callable[..., Result], run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])  # the replay adds the folder of the test
    done = run(TWICE, "--dpaudit-trials", "100", "test_project.py::test_noise[0.2]")
    line = next(line for line in done.out.splitlines() if "dpaudit replay " in line and line.startswith("E"))
    file = line.rsplit(" ", 1)[1]
    found = command("replay", file)
    assert found.exit_code == 1, found.stderr
    assert "Confirmed: fresh runs refute the claim again" in found.stdout
    sys.modules.pop("test_project", None)
    (pytester.path / "test_project.py").unlink()
    gone = command("replay", file)
    assert gone.exit_code == 2
    assert "replay it in the folder in which pytest ran" in gone.stderr


# --- the example project finds nothing in its code, and finds a planted bug; the seeds are fixed


EXAMPLE = Path(__file__).parent / "example"
RIGHT, WRONG = "(self.mu * len(dataset))", "(self.mu * (len(dataset) + 20))"


def test_the_example_finds_a_planted_bug(run: Callable[..., Any], pytester: pytest.Pytester) -> None:
    """Half of the noise."""
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    done = run(None, "--dpaudit-trials", "380", "-k", "not count or as_text")
    assert done.counts == {"passed": 3, "deselected": 2}, done.out
    assert "2 audits: ○ 2 no violation found" in done.out
    code = (pytester.path / "noise.py").read_text()
    assert RIGHT in code
    (pytester.path / "noise.py").write_text(code.replace(RIGHT, WRONG))
    done = run(None, "--dpaudit-trials", "1000", "-k", "test_mean or test_without")
    assert done.counts == {"passed": 1, "failed": 1, "deselected": 3}, done.out
    assert "VIOLATION of gaussian(mu=1)" in done.out
