"""A store is refused after any code that its outputs depend on has changed."""

from __future__ import annotations

import hashlib
import importlib
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.catalogue import Gaussian
from dpaudit.cli.prepare_run import CommandSettings, load
from dpaudit.config import PlannedAudit
from dpaudit.config.models import AuditConfig
from dpaudit.mechanisms import CommandMechanism, IsolatedMechanism
from dpaudit.mechanisms.environments import Environment
from dpaudit.mechanisms.locks import Lock
from dpaudit.mechanisms.modules import is_library
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.sampling.runs import ExecutionSettings
from dpaudit.sampling.store_identity import Identity, identity
from dpaudit_reports.sections.provenance import provenance

from .stores import PAIR, PAIRS, refused, stored


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
        stored(mechanism, tmp_path / "s")  # the loaded code runs, not the edited file
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
    """This includes the package of a module, one of two modules with one file name, and an import inside a run.

    The test uses no randomness.
    """
    for name, text in _PACKAGE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = identity(PythonMechanism("rel.py:release", folder=tmp_path), PAIRS, 0, ExecutionSettings())
    (tmp_path / edited).write_text("SCALE = 0.2\n")
    after = identity(PythonMechanism("rel.py:release", folder=tmp_path), PAIRS, 0, ExecutionSettings())
    assert {name for name in before if before[name] != after[name]} == {f"module beside it, {edited}"}


def test_a_mechanism_whose_file_is_edited_after_loading_keeps_its_identity(tmp_path: Path) -> None:
    """The last audit of a command may begin an hour after the files were read."""
    (tmp_path / "rel.py").write_text("def release(d, rng):\n    return d[0] + rng.normal()\n")
    planned = PlannedAudit(
        file=tmp_path / "c.yaml",
        line=1,
        config=AuditConfig.model_validate(
            {
                "name": "c",
                "claim": "gaussian(mu=1)",
                "mechanism": {"python": "rel.py:release"},
                "pairs": [{"d0": [0], "d1": [1]}],
            }
        ),
    )
    mechanism, _ = load(planned, CommandSettings(output=tmp_path))
    (tmp_path / "rel.py").write_text("def release(d, rng):\n    return d[0] + 0.2 * rng.normal()\n")
    stored(mechanism, tmp_path / "s")
    refused(load(planned, CommandSettings(output=tmp_path))[0], tmp_path / "s", "file of the mechanism")


def test_a_store_of_a_program_is_refused_after_a_module_that_it_imports_was_edited(tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text("SCALE = 1.0\n")
    (tmp_path / "m.py").write_text("import part\n")
    (tmp_path / "prog").write_text(f"#!{sys.executable}\nimport part\n")
    ways = [[sys.executable, "m.py"], [sys.executable, "-m", "m"], ["./prog"]]
    mechanisms = [CommandMechanism(words, cwd=tmp_path) for words in ways]
    before = [identity(mechanism, PAIRS, 0, ExecutionSettings()) for mechanism in mechanisms]
    (tmp_path / "part.py").write_text("SCALE = 0.2\n")
    after = [identity(mechanism, PAIRS, 0, ExecutionSettings()) for mechanism in mechanisms]
    for one, other in zip(before, after, strict=True):
        assert {name for name in one if one[name] != other[name]} == {"file part.py"}


def test_the_identity_of_an_isolated_mechanism_holds_the_modules_beside_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IsolatedMechanism, "_environment", Environment(Path("python"), {}))
    (tmp_path / "part.py").write_text("SCALE = 1.0\n")
    (tmp_path / "m.py").write_text("import part\ndef release(d, rng):\n    return d[0] + rng.normal(0, part.SCALE)\n")
    found = [
        identity(
            IsolatedMechanism(address="m.py:release", folder=tmp_path, requires=["numpy"]),
            PAIRS,
            0,
            ExecutionSettings(),
        )
        for scale in (1.0, 0.2)
        if (tmp_path / "part.py").write_text(f"SCALE = {scale}\n")
    ]
    assert {name for name in found[0] if found[0][name] != found[1][name]} == {"module beside it, part.py"}


class _WithAStream:
    def __init__(self, scale: float) -> None:
        self.scale, self.text = scale, io.StringIO()

    def __call__(self, dataset: list[float], rng: np.random.Generator) -> float:
        self.text.write("called")
        return float(dataset[0] + rng.normal(0, self.scale))


MADE = _WithAStream(1.0)


def _uses_what_was_made(dataset: list[float], rng: np.random.Generator) -> float:
    return MADE(dataset, rng)


def test_a_store_is_refused_after_the_comparable_part_of_a_global_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of a stream is not compared, but the scale beside it may come from a command line.  Fixed seed."""
    stored(_uses_what_was_made, tmp_path / "s")
    monkeypatch.setattr(sys.modules[__name__], "MADE", _WithAStream(1.0))
    stored(_uses_what_was_made, tmp_path / "s")
    monkeypatch.setattr(sys.modules[__name__], "MADE", _WithAStream(0.2))
    refused(_uses_what_was_made, tmp_path / "s", "code")


def test_a_store_is_refused_after_a_value_that_the_code_reads_from_a_module_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value is set by hand, or made by a module that this module imports.  The seed is fixed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "far_of_ours.py").write_text("SCALE = 1.0\ndef noise(rng):\n    return rng.normal(0, SCALE)\n")
    (tmp_path / "near_of_ours.py").write_text("import far_of_ours\nfrom far_of_ours import noise\n")
    near: Any = importlib.import_module("near_of_ours")
    try:

        def by_name(dataset: list[float], rng: np.random.Generator) -> float:
            return float(dataset[0] + near.noise(rng))

        def within(dataset: list[float], rng: np.random.Generator) -> float:
            import near_of_ours  # type: ignore[import-not-found]

            return float(dataset[0] + near_of_ours.far_of_ours.noise(rng))

        stored(by_name, tmp_path / "s")
        stored(within, tmp_path / "t")
        near.far_of_ours.SCALE = 0.2
        refused(by_name, tmp_path / "s", "code")
        refused(within, tmp_path / "t", "code")
    finally:
        sys.modules.pop("near_of_ours", None)
        sys.modules.pop("far_of_ours", None)


def test_a_store_of_a_function_is_refused_after_a_global_that_it_reads_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(_reads_a_global, tmp_path / "s")
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 0.2)
    refused(_reads_a_global, tmp_path / "s", "code")


SCALE = 1.0


def _reads_a_global(dataset: list[float], rng: np.random.Generator) -> float:
    return float(dataset[0] + rng.normal(0, SCALE))


def test_a_result_names_the_file_and_the_packages_of_its_mechanism(tmp_path: Path) -> None:
    """The report names them too."""
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
    def of(version: str, sha256: str = "a" * 64, **changes: Any) -> Identity:
        lock = Lock("3.11", (), (f"p==1.0 --hash=sha256:{sha256}",))
        built = Environment(Path("python"), {"p": "1.0", "q": version}, lock)
        monkeypatch.setattr(IsolatedMechanism, "_environment", built)
        settings: dict[str, Any] = {"address": "rel.py:release", "requires": ["p==1.0"], "folder": tmp_path} | changes
        return identity(IsolatedMechanism(**settings), [PAIR], 0, ExecutionSettings())

    (tmp_path / "rel.py").write_text("")
    known = of("1.0")
    assert of("1.0") == known
    for part, other in (
        ("packages", of("2.0")),
        ("hashes of the packages", of("1.0", "b" * 64)),
        ("requires", of("1.0", requires=["p"])),
        ("python_version", of("1.0", python_version="3.12")),
        ("batched", of("1.0", batched=True)),
        ("params", of("1.0", params={"scale": 1.0})),
    ):
        assert [name for name in known if known[name] != other[name]] == [part]


def test_modules_of_another_environment_on_the_path_count_as_installed(
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
