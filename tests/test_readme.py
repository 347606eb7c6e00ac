"""The README is true: its code runs, its commands and files exist, and no text calls a mechanism private."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.usefixtures("known_seeds")
@pytest.mark.parametrize("code", blocks("python"))
def test_the_python_code_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_there_is_python_code() -> None:
    assert len(blocks("python")) >= 1


def test_ci_runs_the_readme_test_command() -> None:
    """CI runs exactly the second command, after it has changed to the root folder."""
    commands = [block.strip() for block in blocks("sh")]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()
    assert "pytest" in commands[1]
    assert script[-1] == commands[1]
    assert [line.split()[0] for line in script[:-1] if not line.startswith("#")] == ["set", "cd"]


def test_the_files_it_names_exist() -> None:
    named = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    named += [word for block in blocks("sh") for word in shlex.split(block, comments=True) if word.endswith(".yaml")]
    assert named
    for name in named:
        assert (ROOT / name).exists(), name


def test_no_mechanism_is_ever_said_to_be_private() -> None:
    """No text for users contains words that no audit can justify."""
    for file in [*ROOT.glob("*.md"), *(ROOT / "reports").rglob("*.py"), *(ROOT / "audit").rglob("*.py")]:
        for line in file.read_text(encoding="utf-8").lower().splitlines():
            claims_too_much = re.search(
                r"\b(is proven private|audit passed|passed the audit|certified private)\b", line
            )
            assert not claims_too_much, f"{file}: {line}"
