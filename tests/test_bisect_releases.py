"""`dpaudit bisect` with an index and audits that are replaced, so that no test installs a package or runs an audit."""

import re
import subprocess
from fractions import Fraction
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from packaging.version import Version

from dpaudit.cli import audit_releases
from dpaudit.cli.audit_releases import release_audits
from dpaudit.cli.options import RunOptions
from dpaudit.config.files import read_configs
from dpaudit.config.planned import PlannedAudit
from dpaudit.config.versions import pinned_versions, requiring
from dpaudit.running import MechanismError, requirements
from dpaudit.running.requirements import Releases

from .replaced_index import CONFIG, DOCS, OFFLINE, Index, bisected, prose, replaced_index, written
from .reports import sample


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Index:
    return replaced_index(monkeypatch, tmp_path)


HISTORIES = {
    "introduced": (
        "ggggbbbb",
        1,
        ["First bad release: 1.5. The listed release before it, 1.4, is good.", "changes once."],
    ),
    "mended": ("bbbggggg", 1, ["The oldest audited release, 1.1, is bad.", "First good release: 1.4."]),
    "both": ("ggbbbbgg", 1, ["First bad release: 1.3.", "First good release: 1.7.", "not monotone", "changes 2 times"]),
    "never": ("gggggggg", 0, ["All 8 audited releases are good: no change was found."]),
    "one": ("b", 1, ["The only audited release is bad"]),
    "skipped": ("ggssbb", 1, ["First bad release: 1.5, or a release between it and 1.2, which is good: 1.3, 1.4 ("]),
    "inconclusive": ("ggog", 3, ["1 release inside a stretch has no verdict, and may differ from the audited ones."]),
    "oldest skipped": ("sggg", 3, ["1.4: 3 of 4 releases audited with a verdict.", "verdict: 1 release before 1.2."]),
    "network": ("gwg", 3, ["noise (1.2)", "error sending request"]),
    "not ready": ("gngbb", 1, ["noise (1.2)", "is a folder", "First bad release: 1.4."]),
    "no verdict": ("ooo", 3, ["No release was found good or bad."]),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_gives_its_changes_and_its_exit_code(name: str, index: Index) -> None:
    history, code, words = HISTORIES[name]
    done = bisected(index, history)
    assert done.exit_code == code, done.output
    for part in words:
        assert part in prose(done)
    assert max(map(len, done.stdout.splitlines())) <= 80
    states = {
        "g": "good",
        "b": "bad",
        "o": "inconclusive",
        "s": "skipped",
        "x": "inconclusive",
        "n": "inconclusive",
        "w": "inconclusive",
    }
    assert [one["state"] for one in written()["releases"]] == [states[letter] for letter in history]


def test_the_file_names_changes_stretches_and_the_guarantee(index: Index) -> None:
    bisected(index, "ggbbbbgg", "--confidence", "0.95")
    found = written()
    assert found["format"] == "dpaudit-bisection/1"
    assert (found["from"], found["to"]) == ("1.1", "1.8")
    assert not {"first_bad", "first_good"} & set(found), "no single release answers for a history like this"
    assert found["monotone"] is False
    assert [(one["to"], one["last_before"], one["first_after"]) for one in found["changes"]] == [
        ("bad", "1.2", "1.3"),
        ("good", "1.6", "1.7"),
    ]
    assert [(one["state"], one["first"], one["last"]) for one in found["stretches"]][1] == ("bad", "1.3", "1.6")
    assert found["false_alarm_at_most"] == 0.05
    assert found["unread"] == []
    audit = found["releases"][0]["audits"]["noise"]
    assert audit["detectable_claim"] == sample.no_violation().detectable.claim


def test_the_significance_is_divided_among_the_most_releases_that_may_be_audited(index: Index) -> None:
    """The audits that a command makes never have more significance together than one audit had alone."""
    done = bisected(index, "g" * 40, "--confidence", "0.95")
    assert len(index.confidences) == written()["maximum_audited_releases"] == 14
    spent = sum(1 - Fraction(confidence) for confidence in index.confidences.values())
    assert Fraction("0.0499") < spent <= Fraction("0.05")
    assert "audit of each of at most 14 releases" in prose(done)
    assert "a true claim of any release with probability at most 5 %." in prose(done)


def test_the_audits_of_a_release_share_its_part(index: Index, tmp_path: Path) -> None:
    (tmp_path / "noise.yaml").write_text(CONFIG + "  - {<<: *noise, name: other, claim: gaussian(mu=2)}\n")
    done = bisected(index, "g" * 4, "--confidence", "0.9", "--most", "3")
    assert len(index.confidences) == 6
    assert sum(1 - Fraction(confidence) for confidence in index.confidences.values()) <= Fraction("0.1")
    assert "makes 2 audits of each of at most 3 releases" in prose(done)
    assert bisected(index, "g" * 4, "--only", "other", "--most", "3").exit_code == 0
    assert written()["audits_per_release"] == 1


def test_without_a_shared_guarantee_the_sum_is_stated(index: Index) -> None:
    done = bisected(index, "gggg", "--confidence", "0.99", "--each")
    assert set(index.confidences.values()) == {0.99}
    assert "with probability at most 4 %. Each audit has its own confidence (--each)." in prose(done)


def test_each_release_has_its_own_seed_because_earlier_verdicts_choose_the_releases(index: Index) -> None:
    """With one seed, the outcome of an audit that earlier verdicts chose would depend on those verdicts."""
    bisected(index, "ggggbbbb")
    seeds = dict(index.seeds)
    assert len(set(seeds.values())) == len(seeds) > 3
    bisected(index, "gggggggg", "--seed", "7")
    assert {name: index.seeds[name] for name in seeds} == seeds, "the same seed repeats the command"
    bisected(index, "ggggbbbb", "--seed", "8")
    assert not set(seeds.values()) & set(index.seeds.values())


def test_extras_are_kept_and_the_required_release_is_audited_first(index: Index, tmp_path: Path) -> None:
    audits = requiring(read_configs([tmp_path]), "TinyLaw")
    (planned,) = release_audits(audits, "TinyLaw", "1.4", None).values()
    assert planned.config.mechanism.requires == ["TinyLaw[fast]==1.4"]
    (tmp_path / "noise.yaml").write_text(CONFIG.replace("[fast]>=1", "[fast]==1.14"))
    assert pinned_versions(read_configs([tmp_path]), "tinylaw") == {Version("1.14")}
    index.history = {}
    assert bisected(index, "g" * 13 + "b" + "g" * 20).exit_code == 1
    assert next(iter(index.seeds)) == "noise-tinylaw-1.14"
    assert [one["first_after"] for one in written()["changes"]] == ["1.14", "1.15"]


def test_a_release_is_skipped_if_the_installer_chose_another_local_version(index: Index) -> None:
    """`pip install tinylaw==1.0` takes 1.0+cpu if an index has both."""
    index.installed = {"1.0": "1.0+cpu"}
    done = bisected(index, {"1.0": "b", "1.0+cpu": "g", "1.1": "g"})
    assert done.exit_code != 1, "the code of 1.0 was never run"
    skipped, *others = written()["releases"]
    assert (skipped["version"], skipped["state"]) == ("1.0", "skipped")
    assert skipped["reason"] == "the installer was asked for tinylaw 1.0, but the environment has tinylaw 1.0+cpu"
    assert [one["state"] for one in others] == ["good", "good"]


def test_an_interruption_keeps_what_was_found(index: Index) -> None:
    done = bisected(index, "ggib")
    assert done.exit_code == 1
    assert "The command was interrupted, so changes may be missing." in prose(done)
    assert written()["interrupted"] is True
    assert bisected(index, "ig").exit_code == 3


def test_ctrl_c_during_the_first_installation_has_the_code_of_an_interruption(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(planned: PlannedAudit, options: RunOptions) -> dict[str, str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(audit_releases, "_first_run", interrupted)
    done = bisected(index, "ggg")
    assert done.exit_code == 130
    assert "could be audited" not in done.stderr
    assert not Path("dpaudit-results/bisection.json").exists()


def test_other_packages_that_differ_at_a_change_are_named(index: Index) -> None:
    """The releases allow any numpy, so a change of numpy may be the cause."""
    index.environments = {
        "1.2": {"tinylaw": "1.2", "NumPy": "1.26.4", "scipy": "1.16.0", "six": "1.17"},
        "1.3": {"TinyLaw": "1.3", "numpy": "2.4.6", "scipy": "1.16.0", "pytz": "2026.1"},
    }
    said = prose(bisected(index, "ggbb"))
    words = (
        "the environments of 1.2 and 1.3: numpy (1.26.4, then 2.4.6), pytz (none, then 2026.1), six (1.17, then none)"
    )
    assert words in said
    assert written()["changes"][0]["other_packages"] == [
        {"name": "numpy", "before": "1.26.4", "after": "2.4.6"},
        {"name": "pytz", "before": None, "after": "2026.1"},
        {"name": "six", "before": "1.17", "after": None},
    ]


def test_the_releases_that_each_audit_refuted_are_named(
    index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All releases are bad, although one audit is refuted in the older ones, and another audit in the newer ones."""
    (tmp_path / "noise.yaml").write_text(CONFIG + "  - {<<: *noise, name: other, claim: gaussian(mu=2)}\n")

    def letter(planned: PlannedAudit) -> str:
        return "b" if ("other" in planned.config.name) is (index.version(planned) > "1.3") else "g"

    monkeypatch.setattr(index, "letter", letter)
    said = prose(bisected(index, "bbbbbb", "--most", "6"))
    assert "All 6 audited releases are bad by at least one audit: no change was found." in said
    assert "Audit noise refuted 1.1, 1.2, 1.3." in said
    assert "Audit other refuted 1.4, 1.5, 1.6." in said
    assert "With --only NAME" in said


def test_the_page_shows_what_the_command_prints(index: Index, tmp_path: Path) -> None:
    page = (DOCS / "after-a-violation.md").read_text(encoding="utf-8")
    shown = page.partition("## 6. Find the affected releases")[2].partition("```text\n")[2].partition("```")[0]
    (tmp_path / "noise.yaml").write_text(CONFIG.replace("[fast]>=1", "==1.6"))
    done = bisected(index, "gggggbbbssgggggg")
    assert shown.strip()
    assert shown in re.sub(r"(?s)^.*?\n(?=tinylaw 1)", "", done.stdout)


def test_pre_releases_and_yanked_releases_are_left_out_unless_an_end_names_them(index: Index) -> None:
    history = {"1.0": "b", "1.1": "b", "2.0rc1": "g", "2.0": "g", "2.1": "g", "3.0a1": "g"}
    index.left_out = {"1.0": "yanked", "2.0rc1": "pre-release", "3.0a1": "pre-release"}
    done = bisected(index, history)
    assert "First good release: 2.0. The listed release before it, 1.1, is bad." in prose(done)
    assert "Not considered between the two: 2.0rc1 (pre-release)." in prose(done)
    assert written()["changes"][0]["left_out_between"] == {"2.0rc1": "pre-release"}
    assert [one["version"] for one in written()["releases"]] == ["1.1", "2.0", "2.1"]
    assert written()["left_out"] == index.left_out
    bisected(index, history, "--from", "v1", "--to", "3.0.a1")
    assert [one["version"] for one in written()["releases"]] == ["1.0", "1.1", "2.0", "2.1", "3.0a1"]
    assert written()["left_out"] == {"2.0rc1": "pre-release"}


WRONG = {
    "--from 9.9": "--from 9.9: tinylaw has no such release for the Python of the audits. The releases are 1.1, 1",
    "--to 1.33": "--to 1.33: tinylaw has no such release for the Python of the audits; did you mean 1.3?",
    "--from 1.3 --to 1.2": "error: --from 1.3 is newer than --to 1.2; exchange them",
}


@pytest.mark.parametrize("options", WRONG)
def test_wrong_ends_are_explained(options: str, index: Index) -> None:
    done = bisected(index, "gggg", *options.split())
    assert done.exit_code == 2
    assert WRONG[options] in " ".join(done.stderr.replace("│", " ").split())
    assert not index.seeds


def test_an_index_without_an_answer_ends_the_command(index: Index) -> None:
    error = index.error = MechanismError("it could not be read")
    done = bisected(index, "gg")
    assert done.exit_code == 2
    assert f"error: {error}" in done.stderr
    assert done.stdout == ""


def test_three_releases_in_a_row_without_a_network_end_the_search(index: Index) -> None:
    done = bisected(index, "g" + "w" * 30 + "g")
    assert done.exit_code == 3
    assert sum(one["state"] == "inconclusive" for one in written()["releases"]) == 3
    assert written()["ended_by_network"] is True
    assert "The network failed during several installations in a row, which ended the search." in prose(done)


@pytest.mark.parametrize(
    ("said", "failed"),
    [
        (OFFLINE, True),
        ("error: Failed to fetch: `https://x/`\n      cause: dns error", True),
        ("cause: HTTP status server error (503 Service Unavailable) for url (https://x/)", True),
        ("hint: Packages were unavailable because the network was disabled.", True),
        ("cause: HTTP status client error (404 Not Found) for url (https://x/)", False),
        ("error: No solution found when resolving dependencies", False),
        (f"cause: Call to `build_wheel` failed\n{13 * ' '}[stderr]\n{13 * ' '}Connection refused", False),
    ],
)
def test_a_network_failure_is_recognised(said: str, failed: bool) -> None:
    said = f"uv printed:\n    {said}"
    assert requirements.is_network_failure(f"installing tinylaw==1.1 for Python 3.11 failed; {said}") is failed
    assert not requirements.is_network_failure(f"noise.py raised an error; {said}")


def test_what_an_index_calls_a_version_is_a_version_or_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of versions become requirements and parts of file names."""
    said = f"Available versions: {'1' * 5000}, 1.0, ../../x, -r evil, 2.0 --index-url x, 1.0.post1, \x1b[31m, v3.0\n"
    said += "Unsupported versions: 0.9, ../y, 1.0\n"
    monkeypatch.setattr(subprocess, "run", lambda command, **_: CompletedProcess(command, 0, said, ""))
    found = requirements.released("tinylaw")
    assert [str(version) for version in found.final] == ["1.0", "1.0.post1", "3.0"]
    assert found.left_out == {}
    assert found.unsupported == {Version("0.9")}


def test_an_index_that_could_not_be_read_is_reported_although_others_answered(index: Index) -> None:
    index.unread = ("https://example.org/simple/: 503 Server Error",)
    done = bisected(index, "gg", "-q")
    assert "releases may be missing: https://example.org/simple/: 503 Server Error" in done.stderr
    assert "releases may be missing: https://example.org/simple/: 503 Server Error." in prose(done)
    assert written()["unread"] == list(index.unread)


def test_a_release_for_only_one_python_of_the_audits_is_named_at_its_change(
    index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    second = "  - {<<: *noise, name: other, mechanism: {python: noise.py:release, requires: [tinylaw], "
    (tmp_path / "noise.yaml").write_text(CONFIG + second + 'python_version: "3.9"}}\n')

    def released(package: str, python_version: str | None = None) -> Releases:
        names = ["1.1", "1.3"] if python_version == "3.9" else ["1.1", "1.2", "1.3"]
        return Releases(final=tuple(map(Version, names)), left_out={}, unsupported=frozenset({Version("1.2.1")}))

    monkeypatch.setattr(audit_releases, "released", released)
    done = bisected(index, "ggb")
    why = "not for every Python of the audits"
    assert f"Not considered between the two: 1.2 ({why}), 1.2.1 ({why})." in prose(done)
    assert bisected(index, "ggb", "--from", "1.2.1").exit_code == 2
