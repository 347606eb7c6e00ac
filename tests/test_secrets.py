"""Results and stores hold no password, although commands, URLs and variables may."""

import hashlib
import json
import re
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dpaudit import AuditResult
from dpaudit.config.files import read_configs
from dpaudit.running import CommandMechanism
from dpaudit.running.fingerprint import fingerprint
from dpaudit.text import masked, masked_command, masked_values, masked_words

from .conftest import Command
from .stores import refused, stored

PROGRAM = """\
import json, os, random, sys
for line in sys.stdin:
    q = json.loads(line)
    r = random.Random(q["seed"])
    print(json.dumps({"outputs": [q["dataset"][0] + r.gauss(0, 1) for _ in range(q["n"])]}), flush=True)
"""
PIN = "4711"  # short enough to be guessed from a plain hash


def _about(store: Path) -> dict[str, str]:
    with closing(sqlite3.connect(store)) as connection:
        return dict(connection.execute("SELECT name, value FROM about"))


def _with_pin(folder: Path, pin: str = PIN) -> CommandMechanism:
    (folder / "m.py").write_text(PROGRAM)
    return CommandMechanism([sys.executable, "m.py"], cwd=folder, env={"PIN": pin})


def test_a_store_holds_no_hash_of_a_variable_that_can_be_looked_up(tmp_path: Path) -> None:
    """Two stores of the same audit differ, so a table of hashes of short secrets is of no use."""
    hashes = []
    for name in ("one", "two"):
        with _with_pin(tmp_path) as mechanism:
            stored(mechanism, tmp_path / name, trials=30)
        identity = json.loads(_about(tmp_path / name)["identity"])
        hashes.append(identity["variable PIN"])
        hashed = fingerprint({"PIN": PIN}).sha256, fingerprint(PIN).sha256, hashlib.sha256(PIN.encode()).hexdigest()
        assert not [plain for plain in (PIN, *hashed) if plain in str(_about(tmp_path / name))]
    assert hashes[0] != hashes[1]
    with _with_pin(tmp_path) as mechanism:
        stored(mechanism, tmp_path / "one", trials=30)  # continues the store: the variables are equal


@pytest.mark.slow  # the test above, and the test of another password below
def test_a_store_with_another_value_of_a_variable_is_refused_without_its_hash(tmp_path: Path) -> None:
    with _with_pin(tmp_path) as mechanism:
        stored(mechanism, tmp_path / "s")
    there = json.loads(_about(tmp_path / "s")["identity"])["variable PIN"]
    other = _with_pin(tmp_path, "1234")
    refused(other, tmp_path / "s", "variable PIN")
    with other:
        result = stored(other, tmp_path / "s", trials=90, resume="anyway")
    warning = next(words for words in result.warnings if "resume=anyway" in words)
    assert "variable PIN (one value before, another now)" in warning
    assert there[-64:][:12] not in str(result.to_dict())


CONFIG = """\
name: program
source: https://me:hunter2@example.org/claim
claim: gaussian(mu=1)
mechanism: {command: [PYTHON, m.py, --token=hunter2, --password, hunter2]}
pairs: [{d0: [0], d1: [1]}]
trials: 30
attacks: median_clipped
"""


def test_a_result_holds_no_password_of_a_command_and_is_replayed_with_its_config(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.py").write_text(PROGRAM.replace("for line", "assert sys.argv[3] == 'hunter2'\nfor line"))
    (tmp_path / "c.yaml").write_text(CONFIG.replace("PYTHON", sys.executable))
    arguments = ["run", "c.yaml", "--no-pdf", "--resume", "--log-json", "https://me:hunter2@events"]
    monkeypatch.setattr(sys, "argv", ["dpaudit", *arguments])
    arguments[-1] = "events"  # the command runs in this process, and the result records `sys.argv`
    assert command(*arguments).exit_code == 0
    file = tmp_path / "dpaudit-results" / "program.json"
    assert "hunter2" not in file.read_text()
    assert "https://***@events" in (AuditResult.from_json(file).provenance.command or "")
    assert b"hunter2" not in (tmp_path / "dpaudit-results" / "program.trials").read_bytes()
    assert command("replay", str(file), "--trials", "30", "-q").exit_code == 0
    (tmp_path / "c.yaml").write_text(CONFIG.replace("PYTHON", sys.executable).replace("trials: 30", "trials: 40"))
    refusal = command("replay", str(file))
    assert refusal.exit_code == 2
    assert "does not hold the secrets of its config (*** replaces them)" in refusal.stderr


def test_the_address_of_code_is_never_masked(tmp_path: Path) -> None:
    mechanism = "mechanism: {python: 'secret:token', params: {token: a}}"
    (tmp_path / "c.yaml").write_text(re.sub(r"mechanism: .*", mechanism, CONFIG))
    (planned,) = read_configs([tmp_path / "c.yaml"])
    assert "python: secret:token\n" in planned.text
    assert "token: '***'" in planned.text


def test_a_store_of_a_command_with_another_password_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(PROGRAM)
    with CommandMechanism([sys.executable, "m.py", "--token=one"], cwd=tmp_path) as mechanism:
        stored(mechanism, tmp_path / "s", trials=30)
    other = CommandMechanism([sys.executable, "m.py", "--token=two"], cwd=tmp_path)
    refused(other, tmp_path / "s", "secrets in the command")


@pytest.mark.parametrize("name", [".", "..", "sub", "sub/c.yaml", "/etc/passwd", "a\0b"])
def test_a_replay_searches_no_folder_that_a_result_names(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file = tmp_path / "stranger.json"
    (tmp_path / "sub").mkdir()
    (tmp_path / "c.yaml").write_text(BUILTIN)
    assert command("run", "c.yaml", "-o", "out", "--no-pdf", "-q").exit_code in (0, 3)
    values = json.loads((tmp_path / "out" / "program.json").read_text())
    secret = "mechanism: {command: [prog, '--token=***']}"
    values["environment"] |= {"config": name, "audit": re.sub("mechanism:\n.*\n", f"{secret}\n", BUILTIN)}
    file.write_text(json.dumps(values))
    monkeypatch.setattr(Path, "rglob", lambda *_: pytest.fail("a folder was searched"))
    refusal = command("replay", str(file), "--dry-run")
    assert refusal.exit_code == 2
    assert ("does not hold the same audit" if name == "sub" else "as a plain file name") in refusal.stderr


BUILTIN = """\
name: program
claim: gaussian(mu=1)
mechanism:
  builtin: gaussian
pairs: [{d0: [0], d1: [1]}]
trials: 30
attacks: median_clipped
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--token=abc", "--token=***"),
        ("--token abc --n 5", "--token *** --n 5"),
        ("API_KEY=abc run", "API_KEY=*** run"),
        ("PASSWORD='a b' run", "PASSWORD=*** run"),
        ("export apiKey=abc", "export apiKey=***"),
        ("https://user:p@ss@host/x", "https://***@host/x"),
        ("tls://token@host:8786", "tls://***@host:8786"),
        ("u=https://host/x?a=1&access_token=abc&b=2", "u=https://host/x?a=1&access_token=***&b=2"),
        ("https://host/x?X-Amz-Signature=ab12", "https://host/x?X-Amz-Signature=***"),
        ("aws_secret_access_key: A/b+", "aws_secret_access_key: ***"),
        ('{"password": "a", "n": 1}', '{"password": ***, "n": 1}'),
    ],
)
def test_passwords_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "dpaudit run a.yaml -o out --jobs 4", "--max-tokens 5", "--tokenizer=bert", "--key=age", "https://host/a@b",
        "a token is drawn", "--token --next", "src/token.py:m", "http://host:80/a@b", "--sig=0.05", "-p 8080:80",
        "gaussian(mu=1)", "tcp://127.0.0.1:8786", "--token", "tokens_per_step=2", "sort_key=a", "prog -u me -w 5",
    ],
)  # fmt: skip
def test_other_text_is_not_masked(text: str) -> None:
    assert masked(text) == text
    assert masked_words(text.split()) == text.split()


def test_a_recorded_command_can_be_pasted_into_a_shell() -> None:
    words = ["my program", "it's", "$HOME", "--token", "a b", "*.csv", "--password=two words"]
    shown = masked_command(words)
    assert shlex.split(shown) == [*words[:4], "***", words[5], "--password=***"]


def test_values_under_secret_names_are_masked_at_all_depths_and_numbers_never() -> None:
    params = {
        "api_key": "abc", "n": 5, "deep": [{"token": "a", "n_tokens": "b"}], "words": ["--secret", "s", 1],
        "password": {"value": "X", "bits": 8, "parts": ["X", {"a": "X"}, None, True]}, "token": 0.2,
        "hosts": {"https://u:X@h/": "https://u:X@h/"},
    }  # fmt: skip
    assert masked_values(params) == {
        "api_key": "***", "n": 5, "deep": [{"token": "***", "n_tokens": "b"}], "words": ["--secret", "***", 1],
        "password": {"value": "***", "bits": 8, "parts": ["***", {"a": "***"}, None, True]}, "token": 0.2,
        "hosts": {"https://***@h/": "https://***@h/"},
    }  # fmt: skip
