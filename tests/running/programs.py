"""Small programs for the tests: mechanisms like the scripts of users."""

from __future__ import annotations

import os
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import pytest

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
