"""Audits of the simulated library that are replaced by finished results, and a clock that they move."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dpaudit.cli import one_audit, sweep_cells
from dpaudit.cli.app import app
from dpaudit.engine.audit import Progress
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.running import MechanismError
from dpaudit.text import Reason, WarningCode

from .reports import sample
from .simulated_library import simulated_library

ENTRY = "  - {call: Right, name: NAME, grid: {epsilon: [0.5, 1.0]}, arguments: {epsilon: $epsilon}}\n"
HEAD = 'library: pydp\npackage: python-dp\nversions: ["1.1.5"]\nentries:\n'
_RUNS = 80  # counted runs of each result, so that the result is possible from the first round on


@cache
def _result(truth: float, verdict: Verdict) -> AuditResult:
    found = replace(sample.sample(truth, verdict, trials=_RUNS), mu_lower=0.0)
    return replace(found, mu_lower=found.evidence.lower(None, confidence=found.confidence) * 0.9)


KINDS: dict[str, Callable[[], AuditResult]] = {
    "bad": partial(_result, 5.0, Verdict.VIOLATION),
    "good": partial(_result, 0.5, Verdict.NO_VIOLATION),
}


@dataclass
class Audits:
    """Replaced audits.  The name of a cell states what happens: "bad", "good", "open", "failed", "internal" ...

    Attributes:
        rounds: The name, the maximum number of runs, the confidence and the seed of each audit, in order.
        now: The time of the clock, in seconds.
        bad_from: Number of runs from which a "bad" cell is refuted.
        p_values: The p-value of cells by the beginning of their names.
        interrupt_at: Number of audits after which the user interrupts.
    """

    rounds: list[tuple[str, int, float, int | None]] = field(default_factory=list)
    now: float = 0.0
    bad_from: int = 300
    seconds: dict[str, float] = field(default_factory=dict)
    p_values: dict[str, float] = field(default_factory=dict)
    interrupt_at: int | None = None

    def audit(self, mechanism: object, claim: object, pairs: object, **given: Any) -> AuditResult:
        name, trials, confidence = given["name"], given["trials"], given["confidence"]
        if len(self.rounds) == self.interrupt_at:
            raise KeyboardInterrupt
        self.rounds.append((name, trials, confidence, given["seed"]))
        Path(given["store"]).touch()
        self.now += self.seconds.get(name.split("-")[0], 0.1) * trials / 300
        kind = name.split("-")[0].split(" ")[0]
        if given["progress"] is not None:
            given["progress"](Progress(trials=trials - 1, allowed=trials, log_e=0.0, log_threshold=9.0))
        if kind == "failed":
            raise MechanismError("the mechanism raised RuntimeError: disk full")
        if kind == "internal":
            raise ZeroDivisionError("a mistake of dpaudit")
        result = KINDS["good" if kind == "bad" and trials < self.bad_from else kind if kind in KINDS else "good"]()
        changed: dict[str, Any] = {"trials_allowed": trials, "stopped_by": "trials"}
        if result.verdict is Verdict.VIOLATION:
            changed["stopped_by"] = "evidence"
        elif kind == "dropped":
            changed.update(verdict=Verdict.INCONCLUSIVE, warnings=(Reason("a run failed", WarningCode.FAILURE),))
        p_value = next((p for start, p in self.p_values.items() if name.startswith(start)), 1.0)
        if result.verdict is Verdict.NO_VIOLATION:
            changed["p_value"] = p_value
        return replace(result, name=name, confidence=confidence, _computed_at=confidence, **changed)


def replaced_audits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *names: str) -> Audits:
    """Replace the audits of a sweep, and write the catalogue counts.yaml with an entry of two cells for each name."""
    simulated_library(monkeypatch, tmp_path, HEAD + "".join(ENTRY.replace("NAME", name) for name in names))
    found = Audits()
    monkeypatch.setattr(one_audit, "audit", found.audit)
    for module in (sweep_cells, one_audit):
        monkeypatch.setattr(module, "_clock", lambda: found.now)
    return found


def swept(*options: str, catalogue: str = "counts.yaml") -> Result:
    """Run the command, with the audits in this process."""
    line = ["sweep", catalogue, "--no-pdf", "-q", "-o", "out", "--jobs", "1", *options]
    return CliRunner().invoke(app, line, catch_exceptions=False)


def written() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out/sweep.json").read_text())
    return found


def states() -> dict[str, str]:
    return {cell["title"]: cell["state"] for cell in written()["cells"]}


def prose(text: str) -> str:
    return " ".join(text.split())
