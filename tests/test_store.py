"""An audit that was interrupted ends as if it had not been; damaged and foreign stores are refused."""

from __future__ import annotations

import enum
import hashlib
import os
import signal
import struct
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, Pair, Verdict, audit, batched
from dpaudit.engine import Progress
from dpaudit.mechanisms.builtin import Gaussian
from dpaudit.trials.digest import OutputsDigest
from dpaudit.trials.store import Store, StoreError

from .unseeded import audit_unseeded, unseeded_generator

PAIRS = [Pair([0], [1]), Pair([0], [0.5])]


def comparable(result: AuditResult) -> dict[str, Any]:
    values = result.to_dict()
    values["environment"] = values["environment"]["outputs"]
    del values["elapsed_s"]
    return values


@pytest.mark.chance
def test_an_interrupted_audit_goes_on_where_it_stood(tmp_path: Path) -> None:
    """With a mechanism that cannot be seeded, so that only what is stored can be the same.

    Fails by chance < 1 in 10**6: the true claim is refuted with probability 1e-7 at most, in any of the audits, since
    they are parts of one.
    """
    noise = unseeded_generator()
    runs = {"n": 0}

    @batched
    def unseeded(dataset: list[float], n: int, rng: np.random.Generator) -> Any:
        runs["n"] += n
        return dataset[0] + noise.normal(size=n)

    def stop_at(trials: int) -> Any:
        def stop(progress: Progress) -> None:
            if progress.trials >= trials:
                raise KeyboardInterrupt

        return stop

    store = tmp_path / "trials"
    for trials in (100, 400):
        part = audit_unseeded(unseeded, "gaussian(mu=1)", PAIRS, trials=1000, store=store, progress=stop_at(trials))
        assert part.stopped_by == "interruption"
        assert part.verdict is Verdict.INCONCLUSIVE
    whole = audit_unseeded(unseeded, "gaussian(mu=1)", PAIRS, trials=1000, store=store)
    assert whole.trials_used == 1000
    assert runs["n"] == 2000  # no run was made twice
    again = audit_unseeded(unseeded, "gaussian(mu=1)", PAIRS, trials=1000, store=store)
    assert comparable(again) == comparable(whole)
    assert runs["n"] == 2000


def test_a_store_changes_no_result(tmp_path: Path) -> None:
    for method in ("sequential", "fixed"):
        plain = audit(Gaussian(1.0), "gaussian(mu=1)", PAIRS, trials=600, method=method, seed=0, confidence=0.95)
        stored = audit(
            Gaussian(1.0),
            "gaussian(mu=1)",
            PAIRS,
            trials=600,
            method=method,
            store=tmp_path / method,
            seed=0,
            confidence=0.95,
        )
        read = audit(
            Gaussian(1.0),
            "gaussian(mu=1)",
            PAIRS,
            trials=600,
            method=method,
            store=tmp_path / method,
            seed=0,
            confidence=0.95,
        )
        assert comparable(plain) == comparable(stored) == comparable(read)


_SCRIPT = """
import sys, time
from dpaudit import Pair, audit
def slow(dataset, rng):
    time.sleep(0.002)
    return dataset[0] + rng.normal()
result = audit(slow, "gaussian(mu=1)", Pair([0], [1]), trials=120, store=sys.argv[1], seed=0, confidence=0.95)
result.to_json(sys.argv[2])
"""


@pytest.mark.chance
def test_a_killed_process_loses_at_most_one_block(tmp_path: Path) -> None:
    """Killed at moments of chance; then the result is that of an undisturbed process."""
    command = [sys.executable, "-c", _SCRIPT]
    subprocess.run([*command, tmp_path / "undisturbed", tmp_path / "expected.json"], check=True)
    rng = np.random.default_rng(0)
    kept = 0
    for _ in range(2):
        process = subprocess.Popen([*command, tmp_path / "store", tmp_path / "found.json"])
        time.sleep(1.2 + rng.random())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        size = (tmp_path / "store").stat().st_size if (tmp_path / "store").exists() else 0
        assert size >= kept
        kept = size
    subprocess.run([*command, tmp_path / "store", tmp_path / "found.json"], check=True)
    expected, found = (AuditResult.from_json(tmp_path / name) for name in ("expected.json", "found.json"))
    assert comparable(found) == comparable(expected)


def block(n: int) -> tuple[list[Any], list[Any]]:
    return [("a", n, b"\x00", None, float("nan"))] * n, [{"k": [1.5, 2**70]}] * n


def test_blocks_are_kept_exactly(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", {"seed": 1})
    store.put(0, 0, *block(3))
    store.put(0, 3, np.arange(4.0), np.arange(4))
    store.put(2, 0, *block(1))
    again = Store(tmp_path / "s", {"seed": 1})
    assert again.trials == {0: 7, 2: 1}
    assert repr(again.get(0, 0, 3)) == repr(block(3))
    found = again.get(0, 3, 5)
    assert found is not None
    assert found[0].tolist() == [0.0, 1.0]  # type: ignore[union-attr]
    assert found[1].dtype == np.arange(1).dtype  # type: ignore[union-attr]
    assert again.get(1, 0, 1) is None


def test_a_block_that_was_cut_off_is_dropped_and_made_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", {"seed": 1})
    store.put(0, 0, *block(3))
    whole = (tmp_path / "s").stat().st_size
    store.put(0, 3, *block(5))
    data = (tmp_path / "s").read_bytes()
    for length in (whole + 1, whole + 70, len(data) - 1):
        (tmp_path / "s").write_bytes(data[:length])
        again = Store(tmp_path / "s", {"seed": 1})
        assert again.trials == {0: 3}
        again.put(0, 3, *block(5))
        assert (tmp_path / "s").read_bytes() == data


def test_a_flipped_bit_is_noticed_and_ends_the_audit_without_a_verdict(tmp_path: Path) -> None:
    audit(Gaussian(1.0), "gaussian(mu=1)", PAIRS[0], trials=200, store=tmp_path / "s", seed=0, confidence=0.95)
    data = bytearray((tmp_path / "s").read_bytes())
    data[-3] ^= 4  # in the last block
    (tmp_path / "s").write_bytes(data)
    result = audit(Gaussian(1.0), "gaussian(mu=1)", PAIRS[0], trials=200, store=tmp_path / "s", seed=0, confidence=0.95)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("damaged" in warning for warning in result.warnings)
    assert (tmp_path / "s").read_bytes() == data


def test_other_files_are_refused(tmp_path: Path) -> None:
    audit(Gaussian(1.0), "gaussian(mu=1)", PAIRS[0], trials=20, store=tmp_path / "s", seed=0, confidence=0.95)
    with pytest.raises(ValueError, match="another audit: seed is 0 there and 7 here"):
        audit(Gaussian(1.0), "gaussian(mu=1)", PAIRS[0], trials=20, store=tmp_path / "s", seed=7, confidence=0.95)
    (tmp_path / "other").write_text("some notes\n")
    with pytest.raises(ValueError, match="not a store of trials"):
        audit(Gaussian(1.0), "gaussian(mu=1)", PAIRS[0], trials=20, store=tmp_path / "other", seed=0, confidence=0.95)
    with pytest.raises(StoreError, match="Is a directory"):
        Store(tmp_path, {})


def test_outputs_that_have_no_encoding_are_said_to_have_none(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", {})
    with pytest.raises(StoreError, match="cannot be stored"):
        store.put(0, 0, [object()], [object()])


def test_a_reader_can_compute_the_fingerprint_of_the_outputs_from_the_store(tmp_path: Path) -> None:
    store = tmp_path / "trials"
    result = audit(Gaussian(1.0), "gaussian(mu=1)", PAIRS, trials=300, store=store, seed=0, confidence=0.95)
    data, blocks = store.read_bytes(), []
    at = data.index(b"\n") + 1
    while at < len(data):
        length, pair, start, _ = struct.unpack_from("<qqqq", data, at)
        body = at + 64
        blocks.append((pair, start, data[body : body + length]))
        at = body + length
    digest = hashlib.blake2b(digest_size=32)
    for pair, start, content in blocks[1:]:  # the first one says what the store is of
        digest.update(struct.pack("<qq", pair, start) + content)
    assert result.environment["outputs"] == f"blake2b:{digest.hexdigest()}"


def test_outputs_without_an_encoding_have_no_fingerprint() -> None:
    result = audit(
        lambda dataset, rng: Fraction(int(rng.integers(9)), 7),
        "gaussian(mu=1)",
        PAIRS,
        trials=50,
        seed=0,
        confidence=0.95,
    )
    assert result.environment["outputs"] == ""


@pytest.mark.parametrize("odd", ["frame with two columns of one name", "array that cannot be had"])
def test_outputs_that_only_pretend_have_no_fingerprint_and_do_no_harm(odd: str) -> None:
    class Pretends:
        """As a data frame does that has two columns of one name: it has no `to_list` for them."""

        columns = ("a", "a")

        def to_dict(self) -> None: ...

        def __getitem__(self, name: str) -> Pretends:
            return self

    class Elsewhere:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise TypeError("on another device")

    digest = OutputsDigest()
    digest.add(0, 0, ([1.0], [2.0]))
    assert str(digest)
    digest.add(0, 1, ([Pretends() if odd.startswith("frame") else Elsewhere()], [1.0]))
    assert str(digest) == ""


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


def test_an_audit_goes_on_with_what_a_store_gives_back(tmp_path: Path) -> None:
    """Python's own kinds of integers come back as integers: from the first run on."""

    def colours(dataset: list[float], rng: np.random.Generator) -> Colour:
        return Colour(1 + int(rng.random() < 0.4 + 0.2 * dataset[0]))

    first = audit(colours, "pure(epsilon=1)", PAIRS, trials=200, store=tmp_path / "trials", seed=0, confidence=0.95)
    again = audit(colours, "pure(epsilon=1)", PAIRS, trials=200, store=tmp_path / "trials", seed=0, confidence=0.95)
    assert comparable(again) == comparable(first)
