"""Who may import whom (ARCHITECTURE.md), and that importing is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

LAYERS = {
    # what a module starts with -> what of ours it may import
    "dpaudit._version": set(),
    "dpaudit.spelling": set(),
    "dpaudit.numerics": {"dpaudit.numerics"},
    "dpaudit.claims": {"dpaudit.claims", "dpaudit.spelling"},
    "dpaudit.neighbours": {"dpaudit.neighbours"},
    "dpaudit.search": {"dpaudit.neighbours"},
    "dpaudit.outputs": {"dpaudit.outputs"},
    "dpaudit.inference": {"dpaudit.inference", "dpaudit.claims"},
    "dpaudit.mechanisms": {"dpaudit.mechanisms", "dpaudit.claims"},
    "dpaudit.trials": {
        "dpaudit.trials",
        "dpaudit.mechanisms",
        "dpaudit.neighbours",
        "dpaudit.outputs",
        "dpaudit.printable",
    },
    "dpaudit.registry": {"dpaudit.claims", "dpaudit.spelling"},
    "dpaudit.regression": {"dpaudit.claims"},
    "dpaudit.provenance": {"dpaudit.mechanisms"},
    "dpaudit.diagnostics": {"dpaudit.claims"},
    "dpaudit.evidence": {"dpaudit.claims", "dpaudit.inference"},
    "dpaudit.writing": set(),
    "dpaudit.numbers": set(),
    "dpaudit.printable": set(),
    "dpaudit.terminal": set(),
    "dpaudit.internal_errors": {"dpaudit.terminal"},
    "dpaudit.result": {
        "dpaudit.claims",
        "dpaudit.evidence",
        "dpaudit.numbers",
        "dpaudit.printable",
        "dpaudit.writing",
    },
    "dpaudit.result_file": {"dpaudit.claims", "dpaudit.evidence", "dpaudit.result"},
    "dpaudit.suite": {"dpaudit.inference.suites", "dpaudit.result"},
    "dpaudit.scoring": {
        "dpaudit.scoring",
        "dpaudit.claims",
        "dpaudit.inference.grid",
        "dpaudit.outputs",
        "dpaudit.registry",
        "dpaudit.regression",
        "dpaudit.trials",
    },
    "dpaudit.witness": {"dpaudit.claims", "dpaudit.inference", "dpaudit.result", "dpaudit.scoring", "dpaudit.outputs"},
    "dpaudit.planning": {"dpaudit.claims", "dpaudit.inference", "dpaudit.scoring"},
    "dpaudit.one_run": {
        "dpaudit.claims",
        "dpaudit.evidence",
        "dpaudit.inference",
        "dpaudit.provenance",
        "dpaudit.result",
    },
    "dpaudit_attacks": {"dpaudit_attacks", "dpaudit.claims", "dpaudit.outputs", "dpaudit.regression"},
    "dpaudit_reports": {
        "dpaudit_reports",
        "dpaudit.claims",
        "dpaudit.numbers",
        "dpaudit.printable",
        "dpaudit.result",
        "dpaudit.suite",
        "dpaudit.writing",
    },
    "dpaudit.config": {
        "dpaudit.claims",
        "dpaudit.config",
        "dpaudit.mechanisms",
        "dpaudit.neighbours",
        "dpaudit.registry",
        "dpaudit.search",
        "dpaudit.spelling",
    },
    "dpaudit.engine": {
        "dpaudit.claims",
        "dpaudit.diagnostics",
        "dpaudit.engine",
        "dpaudit.evidence",
        "dpaudit.inference",
        "dpaudit.mechanisms",
        "dpaudit.neighbours",
        "dpaudit.numbers",
        "dpaudit.outputs",
        "dpaudit.printable",
        "dpaudit.provenance",
        "dpaudit.registry",
        "dpaudit.result",
        "dpaudit.scoring",
        "dpaudit.trials",
        "dpaudit.witness",
    },
    "dpaudit.testing": {
        "dpaudit.testing",
        "dpaudit.claims",
        "dpaudit.engine",
        "dpaudit.inference",
        "dpaudit.mechanisms",
        "dpaudit.neighbours",
        "dpaudit.numbers",
        "dpaudit.planning",
        "dpaudit.printable",
        "dpaudit.registry",
        "dpaudit.result",
        "dpaudit.scoring",
        "dpaudit.writing",
    },
}
SEES_EVERYTHING = {
    "dpaudit",
    "dpaudit.__main__",
    "dpaudit.cli",
    "dpaudit.console",
    "dpaudit.running",
    "dpaudit.replaying",
}


def modules() -> dict[str, Path]:
    found = {}
    for package in ("dpaudit", "dpaudit_attacks", "dpaudit_reports"):
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        root = Path(spec.origin).parent
        for file in root.rglob("*.py"):
            parts = file.relative_to(root.parent).with_suffix("").parts
            found[".".join(part for part in parts if part != "__init__")] = file
    return found


def imported(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names.add(node.module or "")
    names.discard("dpaudit._version")  # all may ask it; it imports nothing of ours
    return {name for name in names if name.split(".")[0] in ("dpaudit", "dpaudit_attacks", "dpaudit_reports")}


def within(name: str, roots: set[str]) -> bool:
    return any(name == root or name.startswith(root + ".") for root in roots)


@pytest.mark.parametrize("module", sorted(set(modules()) - SEES_EVERYTHING))
def test_arrows_point_downwards_only(module: str) -> None:
    layer = max((name for name in LAYERS if within(module, {name})), key=len, default=None)
    assert layer is not None, f"{module} has no layer; give it one here and in ARCHITECTURE.md"
    allowed = LAYERS[layer] | {"dpaudit.numerics"}  # which is below everything
    wrong = {name for name in imported(modules()[module]) if not within(name, allowed)}
    assert not wrong, f"{module} may not import {', '.join(sorted(wrong))}"


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import dpaudit", {"numpy", "scipy", "sklearn", "matplotlib", "pydantic", "typst"}),
        ("import dpaudit.claims", {"sklearn", "matplotlib", "pydantic", "typst", "scipy.stats", "dp_accounting"}),
        ("from dpaudit import audit", {"sklearn", "matplotlib", "pydantic", "typst", "joblib"}),
        ("import dpaudit.testing", {"numpy", "scipy", "sklearn", "matplotlib", "pydantic", "typst"}),
        ("import dpaudit.cli", {"numpy", "scipy", "sklearn", "matplotlib", "pydantic", "typst"}),
    ],
)
def test_importing_is_light(statement: str, absent: set[str]) -> None:
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not absent & set(loaded)
