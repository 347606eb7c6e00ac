"""Small programs for the tests: mechanisms like the scripts of users."""

import math
import os
import struct
import sys
import textwrap
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from dpaudit.running import CommandMechanism, IsolatedMechanism

needs_registry = pytest.mark.skipif(
    not os.environ.get("DPAUDIT_TEST_REGISTRY"), reason="installs released packages; set DPAUDIT_TEST_REGISTRY=1"
)

ANSWERING = """\
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    n = request["n"]
    {answer}
    sys.stdout.flush()
"""


def script(folder: Path, answer: str, **options: Any) -> CommandMechanism:
    """Write a Python program that runs the statements `answer` for each `request`."""
    file = folder / "program.py"
    file.write_text(ANSWERING.format(answer=textwrap.indent(answer, "    ").strip()))
    return CommandMechanism([sys.executable, "program.py"], cwd=folder, **options)


def isolated(folder: Path, code: str, found: str = "release", **options: Any) -> IsolatedMechanism:
    """Return `found` of a file with this code, in an environment without packages unless `options` names some."""
    (folder / "mine.py").write_text(textwrap.dedent(code))
    return IsolatedMechanism(address=f"mine.py:{found}", folder=folder, **options)


def wheel(folder: Path, name: str, version: str, code: str, requires: str = "") -> str:
    """Build a package with one module, which can be required without a registry."""
    file = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", code)
        archive.writestr(f"{about}/METADATA", metadata + (f"Requires-Dist: {requires}\n" if requires else ""))
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return f"{name} @ {file.as_uri()}"


Command = Callable[..., Result]
CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism: {python: m.py:release, requires: [tinylock==1.0]}
pairs: [{d0: [0], d1: [1]}]
attacks: median_clipped
trials: 40
seed: 0
"""
RELEASE = """\
import tinydep, tinylock
if tinydep.WORD == "bad":
    raise ValueError("this is not what was audited")
def release(dataset, rng): return dataset[0] + rng.gauss(0, 1.5)
"""


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder the current one, and install packages from there instead of a registry."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder / "packages"))
    monkeypatch.setenv("DPAUDIT_CACHE", str(folder / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(folder / "cache" / "uv"))
    monkeypatch.chdir(folder)


def bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def nan(payload: int, negative: bool = False) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", 0x7FF8 << 48 | negative << 63 | payload))[0])


FLOATS = [
    0.0,
    -0.0,
    5e-324,
    -2.2250738585072009e-308,
    sys.float_info.max,
    math.inf,
    -math.inf,
    0.1,
    nan(12345, True),
    nan(1),
]
OTHERS: list[Any] = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, 2**200, -(2**200), "", "é\ud800", b"\x00\xff", [], (), {},
    1 + 2j, Decimal("1.50"), Decimal("-0"), Decimal("inf"), Fraction(1, 3), date(2020, 2, 29), timedelta(-1, 5, 7),
    datetime(2020, 1, 2, 3, 4, 5, 6), datetime(2020, 1, 2, tzinfo=UTC), {1, "b", (2.0,)}, frozenset([None]), set(),
    [1, 2.0], [True, False], [2**63, 1], (1, [2, (3,)]), {"a": {1: [None]}, (1, 2): b""},
]  # fmt: skip
