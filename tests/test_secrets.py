"""Results and stores hold no password, although commands, URLs and variables may."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dpaudit import AuditResult
from dpaudit.mechanisms import CommandMechanism
from dpaudit.mechanisms.fingerprint import fingerprint
from dpaudit.mechanisms.requirements import project_name
from dpaudit.sampling.store import Store, StoreError
from dpaudit.text.masking import masked, masked_values, masked_words

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
            stored(mechanism, tmp_path / name)
        identity = json.loads(_about(tmp_path / name)["identity"])
        hashes.append(identity["variable PIN"])
        for plain in (PIN, fingerprint({"PIN": PIN}), fingerprint(PIN), hashlib.sha256(PIN.encode()).hexdigest()):
            assert plain not in str(_about(tmp_path / name))
    assert hashes[0] != hashes[1]
    with _with_pin(tmp_path) as mechanism:
        stored(mechanism, tmp_path / "one")  # continued, as the variables are the same


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


@pytest.mark.parametrize("salt", [None, "", "ab", 5, "zz" * 16])
def test_a_store_without_a_proper_salt_is_refused(tmp_path: Path, salt: object) -> None:
    with Store(tmp_path / "s", {"part": "a"}) as store:
        store.put(0, 0, [1.0], [2.0])
    with closing(sqlite3.connect(tmp_path / "s")) as connection, connection:
        connection.execute("UPDATE about SET value = ? WHERE name = 'salt'", [json.dumps(salt)])
    with pytest.raises(StoreError, match="no salt for the hashes of secrets"):
        Store(tmp_path / "s", {"part": "a"})


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
        ("curl -H 'Authorization: Bearer abc.def'", "curl -H 'Authorization: ***'"),
        ("bearer abc.def", "***"),
        ("run ghp_" + 20 * "a", "run ***"),
        ("run eyJhbGciOi.eyJzdWIi.abc", "run ***"),
        ("aws_secret_access_key: A/b+", "aws_secret_access_key: ***"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "dpaudit run a.yaml -o out --jobs 4", "--max-tokens 5", "--tokenizer=bert", "--key=age", "https://host/a@b",
        "a token is drawn", "--token --next", "gaussian(mu=1)", "tcp://127.0.0.1:8786", "--token", "-p 8080:80",
    ],
)  # fmt: skip
def test_other_text_is_not_masked(text: str) -> None:
    assert masked(text) == text
    assert masked_words(text.split()) == text.split()


def test_the_word_after_a_secret_option_is_masked_and_so_are_values_under_secret_keys() -> None:
    assert masked_words(["run", "--password", "a b", "x"]) == ["run", "--password", "***", "x"]
    params = {"api_key": "abc", "n": 5, "deep": [{"token": 7}], "words": ["--secret", "s"], "auth": True}
    assert masked_values(params) == {
        "api_key": "***", "n": 5, "deep": [{"token": "***"}], "words": ["--secret", "***"], "auth": True
    }  # fmt: skip


CONFIG = """\
name: program
source: https://me:hunter2@example.org/claim
claim: gaussian(mu=1)
mechanism: {command: [PYTHON, m.py, --token=hunter2, --password, hunter2]}
pairs: [{d0: [0], d1: [1]}]
trials: 60
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
    assert command("replay", str(file), "--trials", "100", "-q").exit_code == 0
    (tmp_path / "c.yaml").write_text(CONFIG.replace("PYTHON", sys.executable).replace("trials: 60", "trials: 70"))
    refusal = command("replay", str(file))
    assert refusal.exit_code == 2
    assert "does not hold the secrets of its config (*** stands for them)" in refusal.stderr


def test_a_store_of_a_command_with_another_password_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(PROGRAM)
    with CommandMechanism([sys.executable, "m.py", "--token=one"], cwd=tmp_path) as mechanism:
        stored(mechanism, tmp_path / "s")
    refused(
        CommandMechanism([sys.executable, "m.py", "--token=two"], cwd=tmp_path),
        tmp_path / "s",
        "secrets in the command",
    )


def test_a_token_in_the_url_of_a_requirement_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="holds what looks like an access token") as error:
        project_name("x @ https://example.org/x-1.0-py3-none-any.whl?token=hunter2")
    assert "hunter2" not in str(error.value)
