"""A store of other parameters, data, packages or versions is refused, and the message names the differences."""

from __future__ import annotations

import functools
import io
import platform
import re
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import Pair
from dpaudit.catalogue import Gaussian
from dpaudit.mechanisms import CommandMechanism, MechanismError
from dpaudit.mechanisms.fingerprint import fingerprint

from .stores import refused, stored


def test_a_store_of_other_parameters_is_refused(tmp_path: Path) -> None:
    stored(Gaussian(1.0), tmp_path / "s")
    refused(Gaussian(0.4), tmp_path / "s", "code")


def test_a_store_of_another_violation_to_detect_is_refused(tmp_path: Path) -> None:
    stored(Gaussian(1.0), tmp_path / "s", detect="gaussian(mu=2)")
    stored(Gaussian(1.0), tmp_path / "s", detect="mu=2", trials=80)
    refused(Gaussian(1.0), tmp_path / "s", "detect", detect="gaussian(mu=3)")
    refused(Gaussian(1.0), tmp_path / "s", "detect")
    stored(Gaussian(1.0), tmp_path / "without")
    refused(Gaussian(1.0), tmp_path / "without", "detect", detect="gaussian(mu=2)")


def test_a_store_of_another_lambda_closure_or_default_is_refused(tmp_path: Path) -> None:
    def made(scale: float) -> Any:
        return lambda dataset, rng: dataset[0] + rng.normal(0, scale)

    stored(made(1.0), tmp_path / "s")
    stored(made(1.0), tmp_path / "s")
    refused(made(0.2), tmp_path / "s", "code")
    refused(lambda dataset, rng: dataset[0] + rng.normal(0, 0.2), tmp_path / "s", "code")
    refused(lambda dataset, rng, scale=0.2: dataset[0] + rng.normal(0, scale), tmp_path / "s", "code")


def test_a_store_of_arrays_that_differ_in_the_middle_is_refused(tmp_path: Path) -> None:
    a = np.zeros(5000)
    b, e = a.copy(), a.copy()
    b[2500], e[2500] = 1, 5
    stored(_middle, tmp_path / "s", Pair(a, b))
    stored(_middle, tmp_path / "s", Pair(a.copy(), b.copy()))
    refused(_middle, tmp_path / "s", "d1 of pair 1", pair=Pair(a, e))
    refused(_middle, tmp_path / "s", "d0 of pair 1", "d1 of pair 1", pair=Pair(a.astype("f4"), b.astype("f4")))


def test_arrays_of_records_that_share_their_bytes_have_fingerprints() -> None:
    """Numpy has no `descr` for such types."""
    shared = np.dtype({"names": ["a", "b"], "formats": ["f8", "f4"], "offsets": [0, 0]})
    assert fingerprint(np.zeros(2, shared)) != fingerprint(np.ones(2, shared).astype(shared))
    assert fingerprint(shared) == fingerprint(np.zeros(1, shared).dtype)


def _middle(dataset: Any, rng: np.random.Generator) -> float:
    return float(dataset[2500] + rng.normal())


def test_a_store_of_data_frames_that_differ_in_the_middle_is_refused(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")

    def frame(value: int) -> Any:
        return pandas.DataFrame({"age": np.arange(200), "x": [value if row == 100 else 0 for row in range(200)]})

    def release(dataset: Any, rng: np.random.Generator) -> float:
        return float(dataset["x"][100] + rng.normal())

    stored(release, tmp_path / "s", Pair(frame(0), frame(1)))
    stored(release, tmp_path / "s", Pair(frame(0), frame(1)))
    refused(release, tmp_path / "s", "d1 of pair 1", pair=Pair(frame(0), frame(5)))


def test_a_store_of_a_program_that_was_edited_is_refused(tmp_path: Path) -> None:
    program = (
        "import json, random, sys\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line)\n"
        "    r = random.Random(q['seed'])\n"
        "    print(json.dumps({'outputs': [q['dataset'][0] + r.gauss(0, SCALE) for _ in range(q['n'])]}), flush=True)\n"
    )
    (tmp_path / "m.py").write_text(program.replace("SCALE", "1"))
    with CommandMechanism([sys.executable, "m.py"], cwd=tmp_path) as mechanism:
        stored(mechanism, tmp_path / "s")
        (tmp_path / "m.py").write_text(program.replace("SCALE", "0.2"))
        refused(mechanism, tmp_path / "s", "file m.py")
    refused(CommandMechanism([sys.executable, "m.py"], cwd=tmp_path, env={"A": "b"}), tmp_path / "s", "variable A")


def test_a_store_made_with_other_packages_versions_or_settings_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(Gaussian(1.0), tmp_path / "s")
    refused(Gaussian(1.0), tmp_path / "s", "failures", "timeout", failures="retry", timeout=90.0)
    monkeypatch.setattr(np, "__version__", "1.0")
    refused(Gaussian(1.0), tmp_path / "s", "numpy")


def test_all_differences_are_named(tmp_path: Path) -> None:
    stored(Gaussian(1.0), tmp_path / "s", Pair([0] * 9000, [1] * 9000, label="a"))
    parts = ("code", "d0 of pair 1", "relation of pair 1", "seed")
    refused(Gaussian(2.0), tmp_path / "s", *parts, pair=Pair([2, *[1] * 8999], [1] * 9000, "replace_one"), seed=1)


def test_a_value_with_uncertain_content_is_refused_with_advice(tmp_path: Path) -> None:
    text = io.StringIO()

    def writing(dataset: list[float], rng: np.random.Generator) -> float:
        text.write("called")
        return float(rng.normal())

    with pytest.raises(ValueError, match=r"the variable text of .*FILE\.py:OBJECT"):
        stored(writing, tmp_path / "s")
    with pytest.raises(ValueError, match=r"d0 of pair 1 holds .*plain values, arrays or data frames"):
        stored(Gaussian(1.0), tmp_path / "s", Pair(iter([1]), [2]))
    assert not (tmp_path / "s").exists()


def test_a_mechanism_with_a_lock_a_pattern_and_a_cached_function_is_resumed(tmp_path: Path) -> None:
    """The seed is fixed."""

    def mechanism(pattern: str, scale: float) -> Callable[[list[float], np.random.Generator], float]:
        digits, lock, cached = re.compile(pattern), threading.Lock(), functools.lru_cache(lambda n: scale * n)

        def made(dataset: list[float], rng: np.random.Generator) -> float:
            with lock:
                return float(cached(1.0) * rng.normal() + bool(digits.match("7")))

        return made

    for _ in range(2):
        assert stored(mechanism("[0-9]", 1.0), tmp_path / "s").trials_used > 0
    refused(mechanism("[1-9]", 1.0), tmp_path / "s", "code")
    refused(mechanism("[0-9]", 2.0), tmp_path / "s", "code")


def test_a_bug_fix_release_of_python_or_numpy_resumes_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed is fixed."""
    stored(Gaussian(1.0), tmp_path / "s")
    monkeypatch.setattr(np, "__version__", ".".join([*np.__version__.split(".")[:2], "99"]))
    monkeypatch.setattr(platform, "python_version", lambda: ".".join(map(str, [*sys.version_info[:2], 99])))
    stored(Gaussian(1.0), tmp_path / "s")


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_earlier_version_is_refused(version: int, tmp_path: Path) -> None:
    data = f"dpaudit-store/{version}\n".encode() + bytes(200)
    (tmp_path / "s").write_bytes(data)
    with pytest.raises(
        ValueError, match=r"comes from an earlier version of dpaudit.*Name another store, or remove this store"
    ):
        stored(Gaussian(1.0), tmp_path / "s")
    assert (tmp_path / "s").read_bytes() == data


def test_a_store_without_trials_refuses_nothing(tmp_path: Path) -> None:
    """The audit failed before any run, or was killed while the store was created."""

    def fails(dataset: list[float], rng: np.random.Generator) -> float:
        raise RuntimeError("not yet")

    with pytest.raises(MechanismError):
        stored(fails, tmp_path / "s")
    assert stored(Gaussian(1.0), tmp_path / "s", trials=30).trials_used == 30
    (tmp_path / "empty").write_bytes(b"")
    assert stored(Gaussian(1.0), tmp_path / "empty", trials=30).trials_used == 30
    with closing(sqlite3.connect(tmp_path / "begun")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert stored(Gaussian(1.0), tmp_path / "begun", trials=30).trials_used == 30
