"""Claims, mechanisms and result files that could crash dpaudit are refused with a message."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dpaudit import AuditResult
from dpaudit.config import ConfigError, read_text

from .command_line import CONFIG, Command

BUILTIN = "{builtin: gaussian, params: {sigma: 1.0}}"


def test_a_missing_dp_accounting_is_reported_before_anything_runs(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    (folder / "mine.py").write_text("from pathlib import Path\nPath('loaded').touch()\ndef f(d, rng): return d[0]\n")
    composed = CONFIG.replace("gaussian(mu=1)", "compose(gaussian(mu=1), pure(epsilon=1))")
    (folder / "c.yaml").write_text(composed.replace(BUILTIN, "{python: 'mine.py:f'}"))
    done = command("run", "c.yaml")
    assert done.exit_code == 2
    assert 'needs dp-accounting, which is not installed: pip install "dpaudit[accounting]"' in done.stderr
    assert not (folder / "loaded").exists()
    assert not (folder / "dpaudit-results").exists()
    (folder / "c.yaml").write_text(f"{CONFIG}detect: compose(gaussian(mu=2), pure(epsilon=1))\n")
    assert command("run", "c.yaml").exit_code == 2
    code = (
        "class M:\n    claim = 'compose(gaussian(mu=2), pure(epsilon=1))'\n    def __call__(self, d, rng): return 1\n"
    )
    (folder / "states.py").write_text(f"{code}m = M()\n")
    stated = CONFIG.replace("gaussian(mu=1)", "from mechanism")
    (folder / "c.yaml").write_text(stated.replace(BUILTIN, "{python: 'states.py:m'}"))
    assert command("run", "c.yaml").exit_code == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mu=1", f"mu={'9' * 400}"),
        ("gaussian(mu=1)", "-" * 50_000 + "1"),
        ("gaussian(mu=1)", "1" + "+1" * 50_000),
        ("{d0: [0], d1: [1]}", "{search: {relation: all_values, size: 1000000000}}"),
        ("name: noise", f"name: {'漢' * 67}"),
        ("trials: 60", "trials: 100000000000000000"),
    ],
    ids=["huge number", "signs", "sums", "huge search", "long name", "huge trials"],
)
def test_hostile_configs_are_refused_with_2(old: str, new: str, folder: Path, command: Command) -> None:
    (folder / "c.yaml").write_text(CONFIG.replace(old, new))
    done = command("run", "c.yaml", "--dry-run")
    assert done.exit_code == 2
    assert "c.yaml:" in done.stderr
    assert len(done.stderr) < 600


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit(0)", "raised SystemExit: 0, at mine.py:1"),
        ("quit()", "raised SystemExit"),
        ("raise GeneratorExit", "raised GeneratorExit"),
        ("class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E()", "its message is unavailable"),
    ],
)
def test_a_module_that_ends_the_process_is_named(code: str, message: str, folder: Path, command: Command) -> None:
    (folder / "mine.py").write_text(f"{code}\n")
    (folder / "c.yaml").write_text(CONFIG.replace(BUILTIN, "{python: 'mine.py:f'}"))
    done = command("run", "c.yaml", "--no-pdf")
    assert done.exit_code == 2
    assert "c.yaml:3: audit noise: mechanism: importing mine.py" in done.stderr
    assert message in done.stderr


def test_a_message_that_is_not_utf_8_is_kept_in_the_result(folder: Path, command: Command) -> None:
    (folder / "mine.py").write_text(
        "import os\ncalls = []\ndef f(d, rng):\n    calls.append(1)\n    if len(calls) > 80:\n"
        "        raise ValueError('no record ' + os.fsdecode(b'caf\\xe9'))\n    return d[0] + rng.normal()\n"
    )
    (folder / "c.yaml").write_text(CONFIG.replace(BUILTIN, "{python: 'mine.py:f'}"))
    done = command("run", "c.yaml", "--no-pdf")
    assert done.exit_code == 3
    result = AuditResult.from_json(folder / "dpaudit-results" / "noise.json")
    assert any("no record caf\udce9" in words and "at mine.py:6, in f" in words for words in result.warnings)


def test_a_mechanism_that_changes_the_folder_on_import_moves_no_file(folder: Path, command: Command) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (folder / "mine.py").write_text(
        f"import os\nos.chdir({str(elsewhere)!r})\ndef f(d, rng): return d[0] + rng.normal()\n"
    )
    (folder / "again.py").write_text("def f(d, rng): return d[0] + rng.normal()\n")
    own = CONFIG.replace(BUILTIN, "{python: 'mine.py:f'}").replace("name: noise", "name: a")
    (folder / "c.yaml").write_text(own)
    (folder / "d.yaml").write_text(own.replace("mine", "again").replace("name: a", "name: b"))
    done = command("run", "c.yaml", "d.yaml", "--no-pdf", "-o", "out", "--log-json", "log", "--resume")
    assert done.exit_code == 0, done.stderr
    assert {"a.json", "b.json", "a.trials"} <= {file.name for file in (folder / "out").iterdir()}
    assert (folder / "log").exists()
    assert not list(elsewhere.iterdir())
    assert "results are in out; to read one: dpaudit report out/a.json" in done.stderr


def test_environments_without_a_home_folder_are_reported(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HOME", "XDG_CACHE_HOME", "DPAUDIT_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: (_ for _ in ()).throw(KeyError("uid")))
    (folder / "mine.py").write_text("def f(d, rng): return 1\n")
    (folder / "c.yaml").write_text(CONFIG.replace(BUILTIN, "{python: 'mine.py:f', requires: []}"))
    done = command("run", "c.yaml")
    assert done.exit_code == 2
    assert "set DPAUDIT_CACHE" in done.stderr


@pytest.mark.parametrize("date", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "never"])
def test_a_result_of_an_impossible_date_can_be_reported(date: str, folder: Path, command: Command) -> None:
    command("run", "c.yaml", "--no-pdf", "-q")
    file = folder / "dpaudit-results" / "noise.json"
    values = json.loads(file.read_text())
    values["environment"]["date"] = date
    file.write_text(json.dumps(values))
    assert command("report", str(file), "-o", "r.md").exit_code == 0


def test_a_result_with_a_hostile_claim_is_refused_with_2(folder: Path, command: Command) -> None:
    command("run", "c.yaml", "--no-pdf", "-q")
    file = folder / "dpaudit-results" / "noise.json"
    values = json.loads(file.read_text())
    grid = "repeated(laplace(epsilon=1), n=1e18)"  # its curve raised OverflowError
    for claim in ("-" * 50_000 + "1", f"gaussian(mu={'9' * 400})", "compose(gaussian(mu=1), pure(epsilon=1))", grid):
        values["claim"] = claim
        file.write_text(json.dumps(values))
        for verb in ("report", "replay"):
            done = command(verb, str(file))
            assert done.exit_code in (1, 2, 3) if verb == "replay" and "compose" in claim else done.exit_code == 2
            assert "internal error" not in done.stderr


LAUGHS = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 9))


@pytest.mark.parametrize(
    "more",
    [
        f"source: [&a {'A' * 150_000}{', *a' * 30_000}]\n",
        f"source: {{? &a {'A' * 150_000} : [{'{*a : 1}, ' * 10_000}]}}\n",
        f"l0: &l0 [a]\n{LAUGHS}source: *l8\n",
    ],
    ids=["text", "key", "lists"],
)
def test_a_config_that_expands_is_refused_at_once(more: str, folder: Path) -> None:
    with pytest.raises(ConfigError, match="has more than 100,000 keys and list entries") as caught:
        read_text(f"{CONFIG}{more}", folder / "c.yaml")
    assert len(str(caught.value)) < 1_000
