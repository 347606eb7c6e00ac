"""Audits of one run, plans, replays, result files, commands with several audits, and tests under pytest."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dpaudit import AuditResult, Replay, audit, audit_one_run, plan, replay
from evidence_kinds import PAIR, SEVERAL, Found, dpaudit, family, noisy_sum, pytest
from evidence_kinds.digests import file_content

# --- Audits of one run with many canaries


def _one_run(canaries: int, leak: float, claim: str, infinite: bool = False) -> Callable[[Path], AuditResult]:
    def run(_: Path) -> AuditResult:
        rng = np.random.default_rng(71)
        included = rng.random(canaries) < 0.5
        scores = leak * included + rng.normal(size=canaries)
        if infinite:
            scores[:: canaries // 10] = np.inf
        return audit_one_run(scores, included, claim, seed=0)

    return run


_ONE_RUN = {
    "violation": _one_run(1000, 2.0, "pure(epsilon=0.5)"),
    "none found": _one_run(1000, 0.1, "pure(epsilon=1)"),
    "too few": _one_run(5, 2.0, "pure(epsilon=3)"),
    "gaussian claim": _one_run(400, 2.0, "gaussian(mu=0.5)"),
    "claim with a delta": _one_run(400, 2.0, "approximate(epsilon=0.5, delta=1e-5)"),
    "infinite scores": _one_run(300, 1.0, "pure(epsilon=1)", infinite=True),
}

# --- Plans of audits


def _planned(claim: str, truth: str, **settings: float) -> Callable[[Path], Found]:
    def run(_: Path) -> Found:
        found = plan(claim, truth, **settings)  # type: ignore[arg-type]
        return {"numbers": [getattr(found, field.name) for field in fields(found)], "text": str(found)}

    return run


_PLANS = {
    "gaussian": _planned("gaussian(mu=1)", "gaussian(mu=1.5)"),
    "pure": _planned("pure(epsilon=1)", "laplace(epsilon=2)", power=0.8, confidence=0.95),
    "with a delta": _planned("approximate(epsilon=1, delta=1e-3)", "gaussian(mu=2)"),
    "nothing to find": _planned("gaussian(mu=1)", "gaussian(mu=0.9)"),
}

# --- Replays of results


def _of_replay(found: Replay) -> Found:
    return {
        "numbers": [getattr(found, field.name) for field in fields(found) if field.name != "result"],
        "answers": [found.refuted, found.reproduced],
        "text": str(found),
    }


def _replayed(
    claim: str, method: str = "sequential", several: bool = False, **settings: Any
) -> Callable[[Path], Found]:
    def run(_: Path) -> Found:
        pairs = SEVERAL if several else PAIR
        audited = partial(audit, noisy_sum, claim, pairs, trials=400, attacks="logistic", name="replayed")
        result = audited(method=method, seed=72)
        return _of_replay(replay(result, noisy_sum, pairs, attacks="logistic", seed=73, **settings))

    return run


_REPLAYS = {
    "confirmed": _replayed("gaussian(mu=0.3)"),
    "confirmed, fixed": _replayed("gaussian(mu=0.3)", "fixed"),
    "confirmed, one of several pairs": _replayed("gaussian(mu=0.3)", several=True),
    "not confirmed": _replayed("gaussian(mu=0.3)", trials=20),
    "extended": _replayed("gaussian(mu=0.3)", trials=20, extend=True),
    "no violation": _replayed("gaussian(mu=1)"),
}

# --- Result files and the command line


def _read_back(method: str, folder: Path) -> Found:
    """Return a result and its copy from a file, which must give the same bounds."""
    result = audit(noisy_sum, "gaussian(mu=0.3)", SEVERAL, trials=400, method=method, seed=74, name="written")
    result.to_json(folder / "written.json")
    again = AuditResult.from_json(folder / "written.json")
    return {"written": result, "read": again, "asked": [again.epsilon_lower(delta) for delta in (0.05, 0.2)]}


def _config(name: str, claim: str, **settings: Any) -> dict[str, Any]:
    pairs = [{"d0": [0], "d1": [1], "relation": "replace_one"}]
    audited = {"mechanism": {"builtin": "laplace"}, "pairs": pairs, "attacks": ["threshold"], "trials": 400, "seed": 75}
    return {"name": name, "claim": claim, **audited, **settings}


def _suite(words: tuple[str, ...], folder: Path) -> Found:
    """Return the results of a command with three audits.

    The three audits share one joint guarantee unless each audit keeps its own confidence.
    """
    audits = [
        _config("false", "pure(epsilon=0.2)"),
        _config("true", "pure(epsilon=1)"),
        _config("fixed", "pure(epsilon=0.5)", method="fixed", confidence=0.95),
    ]
    file, found = folder / "suite.yaml", folder / "found"
    file.write_text(yaml.safe_dump({"audits": audits}), encoding="utf-8")
    printed = dpaudit("run", file, "-o", found, "--no-pdf", "--quiet", *words)
    results = {one["name"]: AuditResult.from_json(found / f"{one['name']}.json") for one in audits}
    together = [line for line in printed.splitlines() if "claims refuted" in line]
    return {"e-values": [result.e_value for result in results.values()], "said of all": together, **results}


def _replayed_file(folder: Path) -> Found:
    file = folder / "one.yaml"
    file.write_text(yaml.safe_dump(_config("one", "pure(epsilon=0.2)")), encoding="utf-8")
    dpaudit("run", file, "-o", folder / "found", "--no-pdf", "--quiet")
    return {"printed": dpaudit("replay", folder / "found" / "one.json", "--seed", "76", "--quiet").splitlines()}


_TESTS = """\
from dpaudit import GaussianDP, Pair

def release(dataset, rng):
    return sum(dataset) + rng.normal()

def test_false(dpaudit):
    dpaudit.assert_private(release, claim=GaussianDP(0.3), pairs=Pair([0], [1]), attacks="logistic")

def test_true(dpaudit):
    dpaudit.assert_private(release, claim=GaussianDP(1.0), pairs=Pair([0], [1]), attacks="logistic", detect=3.0)
"""


def _tested(folder: Path) -> Found:
    """Run a session of two tests; return their entries in the baseline, and the result of the failing test."""
    (folder / "test_release.py").write_text(_TESTS, encoding="utf-8")
    words = ("--dpaudit-report", "failures", "--dpaudit-baseline", "baseline.json", "--dpaudit-trials", "600")
    pytest(folder, "test_release.py", *words, "--dpaudit-seed", "77")
    failed = {file.stem: AuditResult.from_json(file) for file in sorted((folder / "failures").glob("*.json"))}
    baseline = json.loads((folder / "baseline.json").read_text(encoding="utf-8"))
    return {"baseline": file_content(baseline), **failed}


FAMILIES = [
    *family("one run", _ONE_RUN),
    *family("plan", _PLANS),
    *family("replay", _REPLAYS),
    *family("file", {method: partial(_read_back, method) for method in ("sequential", "fixed")}),
    *family("command", {"one promise": partial(_suite, ()), "each its own": partial(_suite, ("--each",))}),
    *family("command", {"replay of a file": _replayed_file, "two tests under pytest": _tested}),
]
