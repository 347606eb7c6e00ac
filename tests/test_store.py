"""An audit that was interrupted ends as if it had not been; damaged and foreign stores are refused."""

from __future__ import annotations

import enum
import hashlib
import importlib
import re
import struct
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, Pair, Verdict, audit
from dpaudit.catalogue import Gaussian
from dpaudit.cli.prepare_run import How, load
from dpaudit.config import PlannedAudit
from dpaudit.config.models import AuditConfig
from dpaudit.engine.audit import Progress
from dpaudit.mechanisms import CommandMechanism, IsolatedMechanism, MechanismError
from dpaudit.mechanisms.fingerprint import fingerprint
from dpaudit.mechanisms.modules import is_library
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.sampling.output_digest import OutputsDigest
from dpaudit.sampling.runs import Terms
from dpaudit.sampling.store import Store, StoreError
from dpaudit.sampling.store_identity import identity
from dpaudit_reports.sections.provenance import provenance

from .unseeded import audit_unseeded

PAIRS = [Pair([0], [1]), Pair([0], [0.5])]


def comparable(result: AuditResult) -> dict[str, Any]:
    values = result.to_dict()
    values["environment"] = values["environment"]["outputs"]
    del values["elapsed_s"]
    values["warnings"] = [words for words in values["warnings"] if "are from a store made at" not in words]
    return values


_UNSEEDED = """
import numpy as np
noise, runs = np.random.default_rng(), {"n": 0}
def release(dataset, n, rng):
    runs["n"] += n
    return dataset[0] + noise.normal(size=n)
"""


@pytest.mark.chance
def test_an_interrupted_audit_goes_on_where_it_stood(tmp_path: Path) -> None:
    """With a mechanism that cannot be seeded, so that only what is stored can be the same.

    Fails by chance < 1 in 10**6: the true claim is refuted with probability 1e-7 at most, in any of the audits, since
    they are parts of one.
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
        return audit_unseeded(
            unseeded, "gaussian(mu=1)", PAIRS, attacks="threshold", trials=400, store=tmp_path / "trials", **options
        )

    for trials in (50, 200):
        stopped = part(progress=stop_at(trials))
        assert stopped.stopped_by == "interruption"
        assert stopped.verdict is Verdict.INCONCLUSIVE
    whole = part()
    assert whole.trials_used == 400
    assert runs["n"] == 800  # no run was made twice
    assert comparable(part()) == comparable(whole)
    assert runs["n"] == 800


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_a_store_changes_no_result(method: str, tmp_path: Path) -> None:
    plain, stored, read = (
        audit(
            Gaussian(1.0),
            "gaussian(mu=1)",
            PAIRS,
            trials=250,
            method=method,
            store=store,
            seed=0,
            confidence=0.95,
        )
        for store in (None, tmp_path / "s", tmp_path / "s")
    )
    assert comparable(plain) == comparable(stored) == comparable(read)


_SCRIPT = """
import sys, time
from dpaudit import Pair, audit
def slow(dataset, rng):
    time.sleep(0.002)
    return dataset[0] + rng.normal()
result = audit(slow, "gaussian(mu=1)", Pair([0], [1]), trials=120, store=sys.argv[1], seed=0, confidence=0.95,
               name="slow")
result.to_json(sys.argv[2])
"""


@pytest.mark.chance
def test_a_killed_process_loses_at_most_one_block(tmp_path: Path) -> None:
    """Killed at moments of chance; then the result is that of an undisturbed process."""
    expected = audit(
        _slow,
        "gaussian(mu=1)",
        Pair([0], [1]),
        trials=120,
        store=tmp_path / "undisturbed",
        seed=0,
        confidence=0.95,
        name="slow",
    )
    store, file = tmp_path / "store", tmp_path / "found.json"
    command = [sys.executable, "-c", _SCRIPT, store, file]
    rng = np.random.default_rng(0)
    kept = 0

    def size() -> int:
        return store.stat().st_size if store.exists() else 0

    for _ in range(2):
        process = subprocess.Popen(command)
        while process.poll() is None and size() <= kept:
            time.sleep(0.005)
        time.sleep(0.1 * rng.random())
        process.kill()
        process.wait()
        assert size() >= kept
        kept = size()
    subprocess.run(command, check=True)
    assert comparable(AuditResult.from_json(file)) == comparable(expected)


def _slow(dataset: list[float], rng: np.random.Generator) -> float:
    return float(dataset[0] + rng.normal())


def block(n: int) -> tuple[list[Any], list[Any]]:
    return [("a", n, b"\x00", None, float("nan"))] * n, [{"k": [1.5, 2**70]}] * n


def test_blocks_are_kept_exactly(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", {"part": "a"})
    store.put(0, 0, *block(3))
    store.put(0, 3, np.arange(4.0), np.arange(4))
    store.put(2, 0, *block(1))
    again = Store(tmp_path / "s", {"part": "a"})
    assert again.trials == {0: 7, 2: 1}
    assert repr(again.get(0, 0, 3)) == repr(block(3))
    found = again.get(0, 3, 5)
    assert found is not None
    assert found[0].tolist() == [0.0, 1.0]  # type: ignore[union-attr]
    assert found[1].dtype == np.arange(1).dtype  # type: ignore[union-attr]
    assert again.get(1, 0, 1) is None


def test_a_block_that_was_cut_off_is_dropped_and_made_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", {"part": "a"})
    store.put(0, 0, *block(3))
    whole = (tmp_path / "s").stat().st_size
    store.put(0, 3, *block(5))
    data = (tmp_path / "s").read_bytes()
    for length in (whole + 1, whole + 70, len(data) - 1):
        (tmp_path / "s").write_bytes(data[:length])
        again = Store(tmp_path / "s", {"part": "a"})
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
    with pytest.raises(ValueError, match=r"another audit.  What differs:\n  seed: 0 there, 7 here\n"):
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
        if pair >= 0:  # the other records say what the store is of, and what side effects runs had
            blocks.append((pair, start, data[body : body + length]))
        at = body + length
    digest = hashlib.blake2b(digest_size=32)
    for pair, start, content in blocks:
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


# What a store is of: each of these was once accepted, so that an audit went on with the outputs of another mechanism.

PAIR = Pair([0], [1])


def stored(mechanism: Any, store: Path, pair: Pair = PAIR, **settings: Any) -> AuditResult:
    settings = {"trials": 60, "seed": 0, "confidence": 0.95, "attacks": "threshold"} | settings
    return audit(mechanism, "gaussian(mu=1)", pair, store=store, **settings)


def refused(mechanism: Any, store: Path, *parts: str, pair: Pair = PAIR, **settings: Any) -> None:
    before = store.read_bytes()
    with pytest.raises(ValueError, match="trials of another audit") as error:
        stored(mechanism, store, pair, **settings)
    text = str(error.value)
    assert all(f"\n  {part}: " in text for part in parts), text
    assert max(map(len, text.splitlines())) < 300
    assert store.read_bytes() == before


def test_a_store_of_other_parameters_is_refused(tmp_path: Path) -> None:
    stored(Gaussian(1.0), tmp_path / "s")
    refused(Gaussian(0.4), tmp_path / "s", "code")


def test_a_store_is_refused_after_the_file_of_the_mechanism_was_edited(tmp_path: Path) -> None:
    code = "def release(dataset, rng):\n    return dataset[0] + rng.normal(0, {scale})\n"
    (tmp_path / "rel.py").write_text(code.format(scale=1.0))
    stored(PythonMechanism("rel.py:release", folder=tmp_path), tmp_path / "s")
    (tmp_path / "rel.py").write_text(code.format(scale=0.2))
    refused(PythonMechanism("rel.py:release", folder=tmp_path), tmp_path / "s", "file of the mechanism")


def test_a_store_is_refused_if_params_of_a_file_mechanism_differ(tmp_path: Path) -> None:
    (tmp_path / "rel.py").write_text(
        "def make(scale):\n    return lambda dataset, rng: dataset[0] + rng.normal(0, scale)\n"
    )
    stored(PythonMechanism("rel.py:make", {"scale": 1.0}, folder=tmp_path), tmp_path / "s")
    refused(PythonMechanism("rel.py:make", {"scale": 0.2}, folder=tmp_path), tmp_path / "s", "params")


def test_a_store_is_refused_after_a_module_beside_the_mechanism_was_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "noise_of_ours.py").write_text("SCALE = 1.0\n")
    (tmp_path / "rel.py").write_text(
        "import noise_of_ours\ndef release(d, rng):\n    return d[0] + rng.normal(0, noise_of_ours.SCALE)\n"
    )
    mechanism = PythonMechanism("rel.py:release", folder=tmp_path)
    try:
        stored(mechanism, tmp_path / "s")
        (tmp_path / "noise_of_ours.py").write_text("SCALE = 0.2\n")
        stored(mechanism, tmp_path / "s")  # what was loaded is what runs
        refused(
            PythonMechanism("rel.py:release", folder=tmp_path),
            tmp_path / "s",
            "module beside it, noise_of_ours.py",
        )
    finally:
        sys.modules.pop("noise_of_ours", None)


_PACKAGE = {
    "rel.py": "import ours.a.core\nimport ours.b.core as core\ndef release(d, rng):\n    import later\n"
    "    return d[0] + rng.normal(0, ours.SCALE * ours.a.core.SCALE * core.SCALE * later.SCALE)\n",
    "ours/__init__.py": "SCALE = 1.0\n",
    "ours/a/__init__.py": "from .core import SCALE\nfrom ..far import *\n",
    "ours/a/core.py": "SCALE = 1.0\n",
    "ours/b/__init__.py": "",
    "ours/b/core.py": "SCALE = 1.0\n",
    "ours/far.py": "import importlib\nlast = importlib.import_module('last')\n",
    "last.py": "SCALE = 1.0\n",
    "later.py": "SCALE = 1.0\n",
}


@pytest.mark.parametrize("edited", ["ours/__init__.py", "ours/a/core.py", "ours/b/core.py", "last.py", "later.py"])
def test_a_store_is_refused_after_any_imported_module_was_edited(edited: str, tmp_path: Path) -> None:
    """Also the package of a module, one of two modules of one file name, and one that is imported when it runs.

    Nothing is drawn here, so it never fails by chance.
    """
    for name, text in _PACKAGE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = identity(PythonMechanism("rel.py:release", folder=tmp_path), PAIRS, 0, Terms())
    (tmp_path / edited).write_text("SCALE = 0.2\n")
    after = identity(PythonMechanism("rel.py:release", folder=tmp_path), PAIRS, 0, Terms())
    assert {name for name in before if before[name] != after[name]} == {f"module beside it, {edited}"}


def test_a_mechanism_whose_file_is_edited_after_it_was_loaded_keeps_the_identity_of_what_runs(tmp_path: Path) -> None:
    """Of several audits of one command, the last may begin an hour after the files were read."""
    (tmp_path / "rel.py").write_text("def release(d, rng):\n    return d[0] + rng.normal()\n")
    planned = PlannedAudit(
        file=tmp_path / "c.yaml",
        line=1,
        config=AuditConfig(
            name="c", claim="gaussian(mu=1)", mechanism={"python": "rel.py:release"}, pairs=[{"d0": [0], "d1": [1]}]
        ),
    )
    mechanism, _ = load(planned, How(settings={}, output=tmp_path))
    (tmp_path / "rel.py").write_text("def release(d, rng):\n    return d[0] + 0.2 * rng.normal()\n")
    stored(mechanism, tmp_path / "s")
    refused(load(planned, How(settings={}, output=tmp_path))[0], tmp_path / "s", "file of the mechanism")


def test_a_store_of_a_program_is_refused_after_a_module_that_it_imports_was_edited(tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text("SCALE = 1.0\n")
    (tmp_path / "m.py").write_text("import part\n")
    (tmp_path / "prog").write_text(f"#!{sys.executable}\nimport part\n")
    ways = [[sys.executable, "m.py"], [sys.executable, "-m", "m"], ["./prog"]]
    mechanisms = [CommandMechanism(words, cwd=tmp_path) for words in ways]
    before = [identity(mechanism, PAIRS, 0, Terms()) for mechanism in mechanisms]
    (tmp_path / "part.py").write_text("SCALE = 0.2\n")
    after = [identity(mechanism, PAIRS, 0, Terms()) for mechanism in mechanisms]
    for one, other in zip(before, after, strict=True):
        assert {name for name in one if one[name] != other[name]} == {"file part.py"}


def test_the_identity_of_an_isolated_mechanism_holds_the_modules_beside_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IsolatedMechanism, "packages", {})
    (tmp_path / "part.py").write_text("SCALE = 1.0\n")
    (tmp_path / "m.py").write_text("import part\ndef release(d, rng):\n    return d[0] + rng.normal(0, part.SCALE)\n")
    found = [
        identity(IsolatedMechanism(address="m.py:release", folder=tmp_path, requires=["numpy"]), PAIRS, 0, Terms())
        for scale in (1.0, 0.2)
        if (tmp_path / "part.py").write_text(f"SCALE = {scale}\n")
    ]
    assert {name for name in found[0] if found[0][name] != found[1][name]} == {"module beside it, part.py"}


class _WithALock:
    def __init__(self, scale: float) -> None:
        self.scale, self.lock = scale, threading.Lock()

    def __call__(self, dataset: list[float], rng: np.random.Generator) -> float:
        with self.lock:
            return float(dataset[0] + rng.normal(0, self.scale))


MADE = _WithALock(1.0)


def _uses_what_was_made(dataset: list[float], rng: np.random.Generator) -> float:
    return MADE(dataset, rng)


def test_a_store_is_refused_after_a_global_with_hidden_state_changed_in_what_can_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock has no content, but the scale beside it has: it may come from a command line.  The seed is fixed."""
    stored(_uses_what_was_made, tmp_path / "s")
    monkeypatch.setattr(sys.modules[__name__], "MADE", _WithALock(1.0))
    stored(_uses_what_was_made, tmp_path / "s")
    monkeypatch.setattr(sys.modules[__name__], "MADE", _WithALock(0.2))
    refused(_uses_what_was_made, tmp_path / "s", "code")


def test_a_store_is_refused_after_what_the_code_takes_from_a_module_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set by hand, or made by a module that this module imports.  Never fails by chance: the seed is fixed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "far_of_ours.py").write_text("SCALE = 1.0\ndef noise(rng):\n    return rng.normal(0, SCALE)\n")
    (tmp_path / "near_of_ours.py").write_text("import far_of_ours\nfrom far_of_ours import noise\n")
    near: Any = importlib.import_module("near_of_ours")
    try:

        def by_name(dataset: list[float], rng: np.random.Generator) -> float:
            return float(dataset[0] + near.noise(rng))

        def within(dataset: list[float], rng: np.random.Generator) -> float:
            import near_of_ours

            return float(dataset[0] + near_of_ours.far_of_ours.noise(rng))

        stored(by_name, tmp_path / "s")
        stored(within, tmp_path / "t")
        near.far_of_ours.SCALE = 0.2
        refused(by_name, tmp_path / "s", "code")
        refused(within, tmp_path / "t", "code")
    finally:
        sys.modules.pop("near_of_ours", None)
        sys.modules.pop("far_of_ours", None)


def test_a_store_of_another_lambda_closure_or_default_is_refused(tmp_path: Path) -> None:
    def made(scale: float) -> Any:
        return lambda dataset, rng: dataset[0] + rng.normal(0, scale)

    stored(made(1.0), tmp_path / "s")
    stored(made(1.0), tmp_path / "s")
    refused(made(0.2), tmp_path / "s", "code")
    refused(lambda dataset, rng: dataset[0] + rng.normal(0, 0.2), tmp_path / "s", "code")
    refused(lambda dataset, rng, scale=0.2: dataset[0] + rng.normal(0, scale), tmp_path / "s", "code")


def test_a_store_of_a_function_is_refused_after_a_global_that_it_reads_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(_reads_a_global, tmp_path / "s")
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 0.2)
    refused(_reads_a_global, tmp_path / "s", "code")


SCALE = 1.0


def _reads_a_global(dataset: list[float], rng: np.random.Generator) -> float:
    return float(dataset[0] + rng.normal(0, SCALE))


def test_a_store_of_arrays_that_differ_in_the_middle_is_refused(tmp_path: Path) -> None:
    a = np.zeros(5000)
    b, e = a.copy(), a.copy()
    b[2500], e[2500] = 1, 5
    stored(_middle, tmp_path / "s", Pair(a, b))
    stored(_middle, tmp_path / "s", Pair(a.copy(), b.copy()))
    refused(_middle, tmp_path / "s", "d1 of pair 1", pair=Pair(a, e))
    refused(_middle, tmp_path / "s", "d0 of pair 1", "d1 of pair 1", pair=Pair(a.astype("f4"), b.astype("f4")))


def test_arrays_of_records_that_share_their_bytes_have_fingerprints() -> None:
    """Numpy has no `descr` of such types."""
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
    refused(CommandMechanism([sys.executable, "m.py"], cwd=tmp_path, env={"A": "b"}), tmp_path / "s", "variables")


def test_a_store_made_with_other_packages_versions_or_terms_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(Gaussian(1.0), tmp_path / "s")
    refused(Gaussian(1.0), tmp_path / "s", "failures", "timeout", failures="retry", timeout=5.0)
    monkeypatch.setattr(np, "__version__", "1.0")
    refused(Gaussian(1.0), tmp_path / "s", "numpy")


def test_all_that_differs_is_named(tmp_path: Path) -> None:
    stored(Gaussian(1.0), tmp_path / "s", Pair([0] * 9000, [1] * 9000, label="a"))
    parts = ("code", "d0 of pair 1", "relation of pair 1", "seed")
    refused(Gaussian(2.0), tmp_path / "s", *parts, pair=Pair([2] * 9000, [1] * 9000, "replace_one"), seed=1)


def test_what_has_no_certain_content_is_refused_with_what_to_do(tmp_path: Path) -> None:
    lock = threading.Lock()

    def locked(dataset: list[float], rng: np.random.Generator) -> float:
        with lock:
            return float(rng.normal())

    with pytest.raises(ValueError, match=r"the variable lock of .*FILE\.py:OBJECT"):
        stored(locked, tmp_path / "s")
    with pytest.raises(ValueError, match=r"d0 of pair 1 holds .*plain values, arrays or data frames"):
        stored(Gaussian(1.0), tmp_path / "s", Pair(iter([1]), [2]))
    assert not (tmp_path / "s").exists()


def test_a_store_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    stored(Gaussian(1.0), tmp_path / "s")
    data = (tmp_path / "s").read_bytes().replace(b"dpaudit-store/2", b"dpaudit-store/1")
    (tmp_path / "s").write_bytes(data)
    with pytest.raises(ValueError, match=r"made by an earlier version of dpaudit.*name another store, or remove it"):
        stored(Gaussian(1.0), tmp_path / "s")
    assert (tmp_path / "s").read_bytes() == data


def test_a_store_without_trials_refuses_nothing(tmp_path: Path) -> None:
    """Of an audit that failed before any run, of an earlier version, or cut off while it was begun."""

    def fails(dataset: list[float], rng: np.random.Generator) -> float:
        raise RuntimeError("not yet")

    with pytest.raises(MechanismError):
        stored(fails, tmp_path / "s")
    begun = (tmp_path / "s").read_bytes()
    for content in (begun, begun.replace(b"store/2", b"store/1"), begun[:16], begun[:9], begun[:-5], b""):
        (tmp_path / "s").write_bytes(content)
        assert stored(Gaussian(1.0), tmp_path / "s", trials=30).trials_used == 30


def test_a_resumed_audit_says_how_many_runs_are_from_the_store(tmp_path: Path) -> None:
    first = stored(Gaussian(1.0), tmp_path / "s", trials=40)
    assert not any("from a store" in words for words in first.warnings)
    words = " ".join(stored(Gaussian(1.0), tmp_path / "s", trials=60).warnings)
    assert re.search(r"40 of the 60 runs per dataset are from a store made at \d{4}-\d\d-\d\dT", words), words


def test_a_resumed_audit_has_the_warnings_of_an_uninterrupted_one(tmp_path: Path) -> None:
    """Failures, printed lines and global random state were once forgotten with `store`."""

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


def test_a_result_names_the_file_and_the_packages_of_its_mechanism(tmp_path: Path) -> None:
    """Also in the report."""
    code = "import numpy\nimport yaml\ndef release(dataset, rng):\n    return float(rng.normal())\n"
    (tmp_path / "rel.py").write_text(code)
    result = stored(PythonMechanism("rel.py:release", folder=tmp_path), tmp_path / "s")
    assert result.environment["packages of the mechanism"].keys() == {"numpy", "PyYAML"}
    assert result.environment["packages of the mechanism"]["numpy"] == np.__version__
    sha256 = hashlib.sha256(code.encode()).hexdigest()
    assert result.environment["file of the mechanism"] == {"path": str(tmp_path / "rel.py"), "sha256": sha256}
    shown = str(provenance(result))
    assert sha256 in shown
    assert "PyYAML" in shown
    assert "file of the mechanism" not in stored(Gaussian(1.0), tmp_path / "t").environment


def test_the_identity_of_an_isolated_mechanism_holds_its_requirements_and_all_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(version: str, **changes: Any) -> dict[str, str]:
        monkeypatch.setattr(IsolatedMechanism, "packages", property(lambda self: {"p": "1.0", "q": version}))
        settings: dict[str, Any] = {"address": "rel.py:release", "requires": ["p==1.0"], "folder": tmp_path} | changes
        return identity(IsolatedMechanism(**settings), [PAIR], 0, Terms())

    (tmp_path / "rel.py").write_text("")
    known = of("1.0")
    assert of("1.0") == known
    for part, other in (
        ("packages", of("2.0")),
        ("requires", of("1.0", requires=["p"])),
        ("python_version", of("1.0", python_version="3.12")),
        ("batched", of("1.0", batched=True)),
        ("params", of("1.0", params={"scale": 1.0})),
    ):
        assert [name for name in known if known[name] != other[name]] == [part]


def test_modules_of_another_environment_on_the_path_are_installed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "venv" / "lib" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "from_another_environment.py").write_text("x = 1\n")
    (tmp_path / "of_the_user.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("from_another_environment", "of_the_user"):
        importlib.import_module(name)
    assert is_library("from_another_environment")
    assert not is_library("of_the_user")
