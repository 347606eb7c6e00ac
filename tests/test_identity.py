"""The identity of code and data: stores of other code, data or settings are refused, and replays state differences."""

import functools
import importlib
import io
import platform
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import Pair, audit, replay
from dpaudit.catalogue import Gaussian
from dpaudit.running import CommandMechanism, IsolatedMechanism
from dpaudit.running.environments import Environment, Lock
from dpaudit.running.fingerprint import fingerprint
from dpaudit.running.identity import changed_since, of_code_and_data, public
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.sources import file_of, source_of
from dpaudit_reports.sections.details import provenance

from .other_hashes import output_with_other_hashes
from .stores import PAIR, PAIRS, refused, stored


def identity(mechanism: Any, pair: Pair = PAIR) -> dict[str, str]:
    return public(of_code_and_data(mechanism, source_of(mechanism), [pair]))


def differing(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


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


@pytest.mark.parametrize("isolated", [False, True])
def test_each_imported_file_of_the_user_is_named_and_compared_wherever_it_lies(
    isolated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes the package of a module, two modules with one file name, and an import inside a run."""
    monkeypatch.setattr(IsolatedMechanism, "_environment", Environment(Path("python"), {}))
    for name, text in _PACKAGE.items():
        (tmp_path / "a" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "a" / name).write_text(text)

    def now(folder: Path) -> dict[str, str]:
        if isolated:
            return identity(IsolatedMechanism(address="rel.py:release", folder=folder, requires=()))
        return identity(PythonMechanism("rel.py:release", folder=folder))

    before = now(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert now(tmp_path / "b") == before
    for name in _PACKAGE:
        (tmp_path / "a" / name).write_text(_PACKAGE[name] + "# edited\n")
        assert differing(before, now(tmp_path / "a")) == {f"file {name}"}
        (tmp_path / "a" / name).write_text(_PACKAGE[name])
    (tmp_path / "b" / "last.py").unlink()
    (words,) = changed_since(before, now(tmp_path / "b"))
    assert re.fullmatch(r"file last\.py \(sha256 [0-9a-f]{12} in the result, nothing now\)", words)


def test_the_package_of_an_isolated_mechanism_is_not_imported_here(tmp_path: Path) -> None:
    package = tmp_path / "package_of_an_isolated_mechanism"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "m.py").write_text("f = 1\n")
    mechanism = IsolatedMechanism(address=f"{package.name}.m:f", requires=(), folder=tmp_path)
    assert file_of(mechanism) == package / "m.py"
    assert package.name not in sys.modules


def test_code_that_is_edited_after_loading_counts_when_it_is_loaded_again(tmp_path: Path) -> None:
    code = "def make(scale):\n    return lambda dataset, rng: dataset[0] + rng.normal(0, {} * scale)\n"
    (tmp_path / "rel.py").write_text(code.format(1))
    mechanism = PythonMechanism("rel.py:make", {"scale": 1.0}, folder=tmp_path)
    stored(mechanism, tmp_path / "s")
    (tmp_path / "rel.py").write_text(code.format(0.2))
    stored(mechanism, tmp_path / "s")  # the loaded code runs, not the edited file
    refused(PythonMechanism("rel.py:make", {"scale": 2.0}, folder=tmp_path), tmp_path / "s", "file rel.py", "params")


def test_the_files_and_words_of_a_program_are_compared_but_no_file_of_a_password(tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text("SCALE = 1.0\n")
    (tmp_path / "m.py").write_text("import part\n")
    (tmp_path / "prog").write_text(f"#!{sys.executable}\nimport part\n")
    for name in ("a.json", "b.json", "token.txt"):
        (tmp_path / name).write_text("1")
    python = [sys.executable, "m.py", "a.json", "--params=b.json", "--token", "token.txt"]
    mechanisms = [CommandMechanism(words, cwd=tmp_path) for words in (python, [sys.executable, "-m", "m"], ["./prog"])]
    before = [identity(mechanism) for mechanism in mechanisms]
    assert "token.txt" not in "".join(before[0])  # its hash may be looked up
    for name, affected in {"part.py": {0, 1, 2}, "m.py": {0, 1}, "a.json": {0}, "b.json": {0}}.items():
        content = (tmp_path / name).read_text()
        (tmp_path / name).write_text(content + "\n")
        for number, mechanism in enumerate(mechanisms):
            assert differing(before[number], identity(mechanism)) == ({f"file {name}"} if number in affected else set())
        (tmp_path / name).write_text(content)
    other = CommandMechanism(python, cwd=tmp_path, env={"A": "b"})
    assert "variable A" in of_code_and_data(other, source_of(other), [PAIR])


def test_requirements_packages_and_their_hashes_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(version: str, sha256: str = "a" * 64, **changes: Any) -> dict[str, str]:
        lock = Lock("3.11", (), (f"p==1.0 --hash=sha256:{sha256}",))
        built = Environment(Path("python"), {"p": "1.0", "q": version}, lock)
        monkeypatch.setattr(IsolatedMechanism, "_environment", built)
        settings: dict[str, Any] = {"address": "rel.py:release", "requires": ["p==1.0"], "folder": tmp_path} | changes
        return identity(IsolatedMechanism(**settings))

    (tmp_path / "rel.py").write_text("")
    known = of("1.0")
    assert of("1.0") == known
    for part, other in (
        ("package q", of("2.0")),
        ("content of package p", of("1.0", "b" * 64)),
        ("requires", of("1.0", requires=["p"])),
        ("python_version", of("1.0", python_version="3.12")),
        ("batched", of("1.0", batched=True)),
        ("params", of("1.0", params={"scale": 1.0})),
    ):
        assert differing(known, other) == {part}


def test_a_result_names_the_file_and_the_packages_of_its_mechanism(tmp_path: Path) -> None:
    """The report names them too."""
    (tmp_path / "rel.py").write_text(
        "import numpy\nimport yaml\ndef release(d, rng):\n    return float(rng.normal())\n"
    )
    result = stored(PythonMechanism("rel.py:release", folder=tmp_path), tmp_path / "s")
    assert result.environment["packages of the mechanism"] == {
        "numpy": np.__version__,
        "PyYAML": importlib.import_module("yaml").__version__,
    }
    file = result.environment["file of the mechanism"]
    assert file["path"] == str(tmp_path / "rel.py")
    shown = str(provenance(result))
    assert file["sha256"] in shown
    assert "PyYAML" in shown
    assert "file of the mechanism" not in stored(Gaussian(1.0), tmp_path / "t").environment


# --- functions and objects

SCALE = 1.0


def _reads_a_global(dataset: list[float], rng: np.random.Generator) -> float:
    return float(dataset[0] + rng.normal(0, SCALE))


class Noise:
    """An object with a scale of its own, and one of its class."""

    factor = 1.0

    def __init__(self, scale: float) -> None:
        self.scale, self.log, self.lock, self.rng = scale, io.StringIO(), threading.Lock(), np.random.default_rng()
        self.folder = tempfile.mkdtemp()
        self.itself = self

    def __call__(self, dataset: list[float], rng: np.random.Generator) -> float:
        return float(dataset[0] + self.factor * rng.normal(0, self.scale) * _reads_a_global([0], rng))


def test_what_a_mechanism_reads_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(scale: float, pattern: str = "[0-9]") -> Callable[..., float]:
        digits, lock, cached = re.compile(pattern), threading.Lock(), functools.lru_cache(lambda n: scale * n)

        def release(dataset: list[float], rng: np.random.Generator, *, shift: float = scale) -> float:
            with lock:
                return float(cached(1.0) * rng.normal() + bool(digits.match("7")) + shift)

        return release

    def within(dataset: list[float], rng: np.random.Generator) -> float:
        return Noise(1.0)(dataset, rng)

    mechanisms: list[Callable[[float], Any]] = [
        made,
        Noise,
        lambda scale: Noise(scale).__call__,
        lambda scale: functools.partial(made, scale),
        lambda scale: lambda dataset, rng: dataset[0] + rng.normal(0, scale),
        Gaussian,
    ]
    for make in mechanisms:
        assert fingerprint(make(1.0)) == fingerprint(make(1.0))
        assert fingerprint(make(1.0)).sha256 != fingerprint(make(0.2)).sha256
        assert not fingerprint(make(1.0)).not_compared
    one, other = lambda d, rng: rng.normal(0, 1.0), lambda d, rng: rng.normal(0, 0.2)
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(made(1.0)) != fingerprint(made(1.0, "[1-9]"))
    before = [fingerprint(mechanism) for mechanism in (_reads_a_global, Noise(1.0), within)]
    for where, name in ((sys.modules[__name__], "SCALE"), (Noise, "factor")):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, 0.2)
            after = [fingerprint(mechanism) for mechanism in (_reads_a_global, Noise(1.0), within)]
            assert (after[0] != before[0]) == (name == "SCALE")
            assert after[1] != before[1]
            assert after[2] != before[2]


def test_a_value_that_code_reads_from_another_module_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "far_of_ours.py").write_text("SCALE = 1.0\ndef noise(rng):\n    return rng.normal(0, SCALE)\n")
    (tmp_path / "near_of_ours.py").write_text("import far_of_ours\nfrom far_of_ours import noise\n")
    near: Any = importlib.import_module("near_of_ours")

    def release(dataset: list[float], rng: np.random.Generator) -> float:
        return float(dataset[0] + near.noise(rng))

    before = fingerprint(release)
    near.far_of_ours.SCALE = 0.2
    assert fingerprint(release) != before


_SCRIPT = """
import functools, tempfile, threading
import numpy as np
from dpaudit.running.fingerprint import fingerprint

WORDS, CACHE = {"a", "b", "c", ("d", 1)}, functools.lru_cache(lambda n: n)

class Noise:
    kinds = frozenset(["x", "y", "z"])

    def __init__(self):
        self.folder, self.words = tempfile.mkdtemp() + "/x", {"p", "q", "r"}
        self.lock, self.itself = threading.Lock(), self

    def __call__(self, dataset, rng):
        return rng.normal() + (dataset in WORDS) + (dataset in {"k", "l", "m"}) + CACHE(1)

found = fingerprint([Noise(), lambda d, rng: Noise()(d, rng), {"u", "v"}, object()])
print(found.sha256, found.not_compared, sorted(found.libraries))
"""


def test_the_same_program_has_the_same_fingerprints_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of texts, memory addresses and names of temporary folders differ between the two processes."""
    one = output_with_other_hashes(_SCRIPT)
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    assert output_with_other_hashes(_SCRIPT) == one
    assert "frozenset()" in one  # everything was compared


def test_a_store_that_another_mechanism_could_continue_is_refused(tmp_path: Path) -> None:
    """Both mechanisms have the same code, and differ only in an object that cannot be pickled; the seed is fixed."""

    def of(scale: float) -> Callable[[list[float], np.random.Generator], float]:
        scales = (scale for _ in iter(int, 1))
        return lambda dataset, rng: float(dataset[0] + rng.normal(0, next(scales)))

    for scale in (0.1, 10.0):
        with pytest.raises(ValueError, match=r"cannot be compared.* content of the mechanism \(builtins.generator\)"):
            stored(of(scale), tmp_path / "s")
    first = stored(of(0.1), tmp_path / "s", resume="anyway")
    assert not any("could not compare" in words for words in first.warnings)
    again = stored(of(0.1), tmp_path / "s", trials=80, resume="anyway")
    words = "the store could not compare all of the content of the mechanism (builtins.generator): the guarantee"
    assert any(str(one).startswith(words) for one in again.warnings)
    found = replay(first, of(0.1), PAIR, attacks="median_clipped", trials=40, seed=1)
    assert not found.changes
    assert "not compared with the audit: content of the mechanism (builtins.generator)" in found.warnings


# --- datasets, settings and versions


def test_datasets_that_differ_anywhere_are_refused(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")

    def middle(dataset: Any, rng: np.random.Generator) -> float:
        return float(np.ravel(dataset)[2500] + rng.normal())

    def frame(value: float, kinds: Sequence[str] = ("low",)) -> Any:
        x = np.where(np.arange(5000) == 2500, value, 0)
        return pandas.DataFrame({"x": x, "kind": pandas.Categorical(["low"] * 5000, categories=kinds)})

    array = np.zeros(5000)
    one, five = array.copy(), array.copy()
    one[2500], five[2500] = 1, 5
    stored(middle, tmp_path / "s", Pair(array, one))
    stored(middle, tmp_path / "s", Pair(array.copy(), one.copy()))
    refused(middle, tmp_path / "s", "d1 of pair 1", pair=Pair(array, five))
    refused(middle, tmp_path / "s", "d0 of pair 1", "d1 of pair 1", pair=Pair(array.astype("f4"), one.astype("f4")))
    assert fingerprint(frame(0)) == fingerprint(frame(0))
    assert len({fingerprint(frame(0)), fingerprint(frame(1)), fingerprint(frame(0, ("low", "high")))}) == 3
    shared = np.dtype({"names": ["a", "b"], "formats": ["f8", "f4"], "offsets": [0, 0]})  # numpy has no `descr` for it
    assert fingerprint(np.zeros(2, shared)) != fingerprint(np.ones(2, shared).astype(shared))


def test_all_differences_are_named(tmp_path: Path) -> None:
    stored(Gaussian(1.0), tmp_path / "s", Pair([0] * 9000, [1] * 9000, label="a"), detect="gaussian(mu=2)")
    stored(Gaussian(1.0), tmp_path / "s", Pair([0] * 9000, [1] * 9000, label="b"), detect="mu=2", trials=80)
    parts = ("content of the mechanism", "d0 of pair 1", "relation of pair 1", "seed", "failures", "timeout", "detect")
    other = Pair([2, *[1] * 8999], [1] * 9000, "replace_one")
    refused(Gaussian(2.0), tmp_path / "s", *parts, pair=other, seed=1, failures="retry", timeout=90.0)


def test_only_a_bug_fix_release_of_python_or_numpy_resumes_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed is fixed."""
    stored(Gaussian(1.0), tmp_path / "s")
    monkeypatch.setattr(np, "__version__", ".".join([*np.__version__.split(".")[:2], "99"]))
    monkeypatch.setattr(platform, "python_version", lambda: ".".join(map(str, [*sys.version_info[:2], 99])))
    stored(Gaussian(1.0), tmp_path / "s")
    monkeypatch.setattr(np, "__version__", "1.0")
    refused(Gaussian(1.0), tmp_path / "s", "numpy")


def test_a_replay_finds_its_pair_among_several_and_names_a_dataset_that_differs() -> None:
    pairs = [Pair([0], [1], label="a"), Pair([0], [0.5], label="b"), *PAIRS]
    result = audit(Gaussian(1.0), "gaussian(mu=1)", pairs, attacks="median_clipped", trials=60, seed=0)
    recorded = result.provenance.identity
    assert recorded is not None
    for pair in pairs:
        assert changed_since(recorded, identity(Gaussian(1.0), pair)) == []
    (words,) = changed_since(recorded, identity(Gaussian(1.0), Pair([0], [0.7])))
    assert words.startswith("d1 (sha256 ")
