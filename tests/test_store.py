"""A resumed audit ends like an uninterrupted audit; damaged stores and stores of other audits are refused."""

import enum
import hashlib
import os
import re
import runpy
import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, Verdict, audit
from dpaudit.catalogue import Gaussian
from dpaudit.engine.audit import Progress
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.store import APPLICATION, Store, StoreError

from .stores import PAIR, PAIRS, block, stored
from .unseeded import audit_unseeded


def comparable(result: AuditResult) -> dict[str, Any]:
    values = result.to_dict()
    values["environment"] = values["environment"]["outputs"]
    del values["elapsed_s"]
    values["warnings"] = [one for one in values["warnings"] if "come from a store of" not in one["text"]]
    return values


_UNSEEDED = """
import numpy as np
noise, runs = np.random.default_rng(), {"n": 0}
def release(dataset, n, rng):
    runs["n"] += n
    return dataset[0] + noise.normal(size=n)
"""


@pytest.mark.chance
def test_an_interrupted_audit_resumes_where_it_stopped(tmp_path: Path) -> None:
    """The mechanism cannot be seeded, so only stored outputs can be the same.

    Fails by chance < 1 in 10**6: all these audits are parts of one, which refutes the true claim with probability at
    most 1e-7.
    """
    (tmp_path / "unseeded.py").write_text(_UNSEEDED)
    unseeded = PythonMechanism("unseeded.py:release", batched=True, folder=tmp_path)
    runs = unseeded.loaded.function.__globals__["runs"]

    def stop_at(trials: int) -> Any:
        def stop(progress: Progress) -> None:
            if progress.trials >= trials:
                raise KeyboardInterrupt

        return stop

    def part(**options: Any) -> AuditResult:
        chosen: dict[str, Any] = {"attacks": "median_clipped", "trials": 120, "store": tmp_path / "trials"} | options
        return audit_unseeded(unseeded, "gaussian(mu=1)", PAIRS, **chosen)

    for trials in (30, 60):
        stopped = part(progress=stop_at(trials))
        assert stopped.stopped_by == "interruption"
        assert stopped.verdict is Verdict.INCONCLUSIVE
    whole = part()
    assert whole.trials_used == 120
    assert runs["n"] == 240  # no run was repeated
    assert comparable(part()) == comparable(whole)
    assert runs["n"] == 240


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_a_store_changes_no_result(method: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"attacks": "median_clipped", "trials": 100, "method": method, "seed": 0}
    plain, stored, read = (
        audit(Gaussian(1.0), "gaussian(mu=1)", PAIRS, store=store, **options)
        for store in (None, tmp_path / "s", tmp_path / "s")
    )
    assert comparable(plain) == comparable(stored) == comparable(read)


_SLOW = """
import time
def slow(dataset, rng):
    time.sleep(0.002)
    return dataset[0] + rng.normal()
"""
_SCRIPT = """
from dpaudit import Pair, audit
from dpaudit.running.mechanisms import PythonMechanism
def audited(store, progress=None):
    return audit(PythonMechanism("slow.py:slow"), "gaussian(mu=1)", Pair([0], [1]), trials=120, store=store, seed=0,
                 confidence=0.95, name="slow", attacks="median_clipped", progress=progress)
if __name__ == "__main__":
    audited("store", lambda now: print(now.trials, flush=True))
"""


@pytest.mark.slow  # a test below kills a process that holds a store; test_damaged_stores.py truncates blocks
@pytest.mark.chance
def test_a_killed_process_loses_at_most_one_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process is killed at a random moment, after at least 60 runs.

    This process then continues the audit, with the result of an uninterrupted audit.
    """
    monkeypatch.chdir(tmp_path)
    Path("slow.py").write_text(_SLOW)
    Path("script.py").write_text(_SCRIPT)
    audited = runpy.run_path("script.py")["audited"]
    with subprocess.Popen([sys.executable, "script.py"], stdout=subprocess.PIPE, text=True) as process:
        while int(process.stdout.readline()) < 60:
            pass
        time.sleep(0.1 * np.random.default_rng(0).random())
        process.kill()
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # the other audits need not be slow
    result = audited("store")
    (kept,) = re.findall(r"(\d+) of the 120 runs per dataset come from a store", " ".join(result.warnings))
    assert int(kept) >= 60
    assert comparable(result) == comparable(audited("undisturbed"))


def test_blocks_are_kept_exactly(tmp_path: Path) -> None:
    with Store(tmp_path / "s", {"part": "a"}) as store:
        store.put(0, 0, *block(3))
        store.put(0, 3, np.arange(4.0), np.arange(4))
        store.put(2, 0, *block(1))
    with Store(tmp_path / "s", {"part": "a"}) as again:
        assert again.trials == {0: 7, 2: 1}
        assert repr(again.get(0, 0, 3)) == repr(block(3))
        found = again.get(0, 3, 5)
        assert found[0].tolist() == [0.0, 1.0]  # type: ignore[union-attr]
        assert found[1].dtype == np.arange(1).dtype  # type: ignore[union-attr]
        assert again.get(1, 0, 1) is None


_HOLDER = """
import sys
from dpaudit.running.store import Store
store = Store(sys.argv[1], {"part": "a"})
store.put(0, 0, [1.0], [2.0])
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_store_is_used_by_one_process_at_a_time_and_freed_by_its_death(tmp_path: Path) -> None:
    path = tmp_path / "s"
    command = [sys.executable, "-c", _HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(StoreError, match="is in use by another audit"):
            Store(path, {"part": "a"})
        holder.kill()
        holder.wait()
    with Store(path, {"part": "a"}) as store:
        assert store.get(0, 0, 1) == ([1.0], [2.0])


def test_other_files_are_refused_and_left_unchanged(tmp_path: Path) -> None:
    def audited(store: str, seed: int) -> AuditResult:
        return stored(Gaussian(1.0), tmp_path / store, trials=20, seed=seed)

    audited("s", 0)
    with pytest.raises(ValueError, match=r"another audit.  These parts differ:\n  seed \(0 in the store, 7 now\)\n"):
        audited("s", 7)
    (tmp_path / "other").write_text("some notes\n")
    with pytest.raises(ValueError, match="not a store of trials"):
        audited("other", 0)
    with closing(sqlite3.connect(tmp_path / "mine")) as connection, connection:
        connection.execute("CREATE TABLE songs (title)")
    with closing(sqlite3.connect(tmp_path / "newer")) as connection, connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute("PRAGMA user_version = 99")
    (tmp_path / "link").symlink_to(tmp_path / "s")
    (tmp_path / "planted-wal").symlink_to(tmp_path / "other")
    os.mkfifo(tmp_path / "pipe")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name, words in {
        ".": "is not a regular file",
        "pipe": "is not a regular file",
        "other": "is not a store of trials, and was left as it is",
        "mine": "is an SQLite database, but not a store of trials",
        "newer": "has store format 99; this version of dpaudit reads format 6",
        "link": "is a symbolic link to .*Name the target file itself",
        "planted": "is a symbolic link to .*Name the target file itself",
    }.items():
        with pytest.raises(StoreError, match=words):
            Store(tmp_path / name, {})
    assert all(path.read_bytes() == content for path, content in before.items())


def test_outputs_without_an_encoding_are_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "s", {}) as store, pytest.raises(StoreError, match="cannot be stored"):
        store.put(0, 0, [object()], [object()])


def test_a_reader_can_compute_the_fingerprint_of_the_outputs_from_the_store(tmp_path: Path) -> None:
    store = tmp_path / "trials"
    result = audit(Gaussian(1.0), "gaussian(mu=1)", PAIRS, attacks="logistic", trials=40, store=store, seed=0)
    query = "SELECT pair, start, outputs FROM blocks ORDER BY number"
    with closing(sqlite3.connect(store)) as connection:
        blocks = connection.execute(query).fetchall()
    digest = hashlib.blake2b(digest_size=32)
    for pair, start, content in blocks:
        digest.update(struct.pack("<qq", pair, start) + content)
    assert result.environment["outputs"] == f"blake2b:{digest.hexdigest()}"


def test_outputs_without_an_encoding_have_no_fingerprint() -> None:
    paths = lambda dataset, rng: PurePosixPath(str(rng.integers(9)))  # noqa: E731
    result = audit(paths, "gaussian(mu=1)", PAIR, attacks="logistic", trials=30, seed=0)
    assert result.environment["outputs"] == ""


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


def test_an_audit_uses_outputs_as_the_store_returns_them(tmp_path: Path) -> None:
    """Subclasses of int are read back as integers, so the audit uses integers from the first run on."""

    def colours(dataset: list[float], rng: np.random.Generator) -> Colour:
        return Colour(1 + int(rng.random() < 0.4 + 0.2 * dataset[0]))

    options: dict[str, Any] = {"attacks": "threshold", "trials": 60, "store": tmp_path / "trials", "seed": 0}
    first, again = (audit(colours, "pure(epsilon=1)", PAIRS, confidence=0.95, **options) for _ in range(2))
    assert comparable(again) == comparable(first)


def test_a_resumed_audit_has_the_warnings_of_an_uninterrupted_one(tmp_path: Path) -> None:
    """The store keeps failures, printed lines and the use of global random state."""

    def release(dataset: list[float], rng: np.random.Generator) -> float:
        print("hello")
        if dataset[0] and rng.random() < 0.2:
            raise RuntimeError("no answer")
        return float(np.random.normal())  # noqa: NPY002

    first = stored(release, tmp_path / "s", failures="retry")
    again = stored(release, tmp_path / "s", failures="retry")
    assert comparable(first) == comparable(again)
    text = " ".join(again.warnings)
    assert all(words in text for words in ("printed", "global random state", "failed and were retried")), text


@pytest.mark.parametrize("settings", [{}, {"observe_time": True}], ids=["output", "time"])
def test_exceptions_and_times_are_stored(tmp_path: Path, settings: dict[str, Any]) -> None:
    def release(dataset: list[float], rng: np.random.Generator) -> float:
        if dataset[0] and rng.random() < 0.2:
            raise RuntimeError("no answer")
        return float(rng.normal())

    first = stored(release, tmp_path / "s", failures="outcome", **settings)
    again = stored(release, tmp_path / "s", failures="outcome", **settings)
    assert first.trials_used == again.trials_used == 60
    assert "60 of the 60 runs per dataset come from a store" in " ".join(again.warnings)
    assert again.provenance.outputs == first.provenance.outputs != ""
