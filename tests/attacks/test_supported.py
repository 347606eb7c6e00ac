"""Local reports with public randomness: the mechanism says which candidates an output supports."""

import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import Result

from dpaudit import AuditResult, Pair, Verdict, audit, batched
from dpaudit.pairs.pair import candidates
from dpaudit_attacks.supported import Supported

CELLS, EPSILON = 8, 2.0
TRUTH = math.exp(EPSILON) / (math.exp(EPSILON) + CELLS - 1)
PAIR = Pair(["a"], ["b"], relation="replace_one")


def cell(seeds: Any, record: str) -> Any:
    """Hash a record under n seeds to one of `CELLS` cells by the mixing steps of splitmix64."""
    z = np.asarray(seeds).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(
        2**32 * zlib.crc32(record.encode())
    )
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return (z ^ (z >> np.uint64(31))) % np.uint64(CELLS)


class Hashing:
    """Optimal local hashing (Wang et al. 2017): a random seed, and the noisy hash of the record."""

    def __init__(self, supports: Any = None) -> None:
        if supports is not None:
            self.supports = supports

    def sample(self, dataset: list[str], n: int, rng: np.random.Generator) -> Any:
        truth, lies = rng.random(n) < TRUTH, rng.integers(1, CELLS, n)
        seeds = rng.integers(2**32, size=n)
        found = cell(seeds, dataset[0]).astype(int)
        return np.column_stack([seeds, np.where(truth, found, (found + lies) % CELLS)])


def supports(candidate: str, outputs: Any) -> Any:
    return cell(outputs[:, 0], candidate) == outputs[:, 1]


def audited(hook: Any, claim: str = "pure(epsilon=1)", **terms: Any) -> AuditResult:
    given: dict[str, Any] = {"trials": 600, "seed": 1, "confirm": "never", **terms}
    return audit(Hashing(hook), claim, PAIR, **given)


def test_a_keyed_hash_shows_nothing_unless_the_mechanism_computes_it() -> None:
    """With `supports`, 100 audits took 90 runs on average, with a standard deviation of 40.  The seeds are fixed."""
    found = audited(supports)
    assert found.verdict is Verdict.VIOLATION
    assert not found.warnings
    assert not audited(None, trials=400).violated
    assert not audited(lambda candidate, outputs: supports(candidate, np.add(outputs, [1, 0])), trials=400).violated


def test_true_claims_are_rarely_refuted() -> None:
    """Each audit refutes its claim, which is exactly true, with probability at most 20 %."""
    terms: dict[str, Any] = {"trials": 100, "confidence": 0.8, "attacks": Supported(supports, ("a", "b"))}
    false = sum(audited(supports, f"pure(epsilon={EPSILON})", **terms, seed=seed).violated for seed in range(20))
    assert false <= binom.ppf(1 - 1e-6, 20, 0.2)


def drawn(rows: dict[tuple[int, int], int]) -> np.ndarray:
    return np.repeat(list(rows), list(rows.values()), axis=0).astype(float)


def answer(candidate: int, outputs: Any) -> Any:
    return outputs[:, candidate] > 0


def test_scores_are_the_log_ratios_of_four_cells() -> None:
    """A plain second version: counts of the cells (supports x0, supports x1), with mirror images if they are alike."""
    every = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    alike = {(0, 0): 400, (0, 1): 100, (1, 0): 740, (1, 1): 60}, {(0, 0): 410, (0, 1): 730, (1, 0): 105, (1, 1): 55}
    scorer = Supported(answer, (0, 1)).fit(drawn(alike[0]), drawn(alike[1]), np.random.default_rng(0))
    ratio = math.log((730 + 740) / (105 + 100))
    assert scorer(every) == pytest.approx([0, ratio, -ratio, 0], abs=0.02)
    apart = {(0, 0): 900, (0, 1): 300, (1, 0): 100, (1, 1): 60}, {(0, 0): 300, (0, 1): 100, (1, 0): 900, (1, 1): 60}
    apart[1][0, 0] = 1500  # the outputs of d1 that support nothing have no mirror image
    scorer = Supported(answer, (0, 1)).fit(drawn(apart[0]), drawn(apart[1]), np.random.default_rng(0))
    counts = [np.array([side[int(a), int(b)] for a, b in every]) for side in apart]
    assert scorer(every) == pytest.approx(np.log(counts[1] / counts[0]), abs=0.05)


def test_answers_may_be_log_likelihoods() -> None:
    rng = np.random.default_rng(3)
    outputs0, outputs1 = rng.normal(0, 1, 2000), rng.normal(1, 1, 2000)
    attack = Supported(lambda x, outputs: -((outputs - x) ** 2) / 2, (0.0, 1.0))
    at = np.linspace(-3, 4, 8)
    assert attack.fit(outputs0, outputs1, rng)(at) == pytest.approx(at - 0.5, abs=0.3)
    alone = Supported(lambda x, outputs: outputs, (1.0,))  # a record was added, so there is one candidate
    assert alone.fit(outputs0, outputs1, rng)(at) == pytest.approx(at - 0.5, abs=0.4)


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (lambda candidate, outputs: np.ones(len(outputs)), "never told the candidates apart"),
        (lambda candidate, outputs: True, "must return a bool or a number for each"),
        (lambda candidate, outputs: np.full(len(outputs), np.nan), "got nan"),
        (lambda candidate: True, "raised TypeError"),
        (
            lambda candidate, outputs: supports(candidate, outputs) ^ (len(outputs) % 2 == 1) ^ (candidate == "a"),
            "may depend on a single output",
        ),
    ],
)
def test_a_useless_hook_costs_a_warning_only(hook: Any, words: str) -> None:
    found = audited(hook, trials=100)
    assert not found.violated
    assert any(words in warning for warning in found.warnings)
    assert found.trials_used == 100


@pytest.mark.parametrize(
    ("d0", "d1", "expected"),
    [
        (["a"], ["b"], ("a", "b")),
        (["c", "a", "a"], ["a", "b", "c"], ("a", "b")),
        ([1, 2], [1, 2, 7], (7,)),
        (np.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 5]]), ([3, 4], [3, 5])),
        ([{"age": 3}, {"age": 4}], [{"age": 3}, {"age": 5}], ({"age": 4}, {"age": 5})),
        ("yes", "no", ("yes", "no")),
        ([1, 2], [3, 4], ([1, 2], [3, 4])),
        ([1, 2], [2, 1], ([1, 2], [2, 1])),
        (np.array(1), np.array(2), (1, 2)),
    ],
)
def test_candidates_are_the_records_that_differ(d0: Any, d1: Any, expected: Any) -> None:
    found = [one.tolist() if isinstance(one, np.ndarray) else one for one in candidates(Pair(d0, d1))]
    assert tuple(found) == expected


MODULE = """
import zlib

def report(dataset, rng):
    seed = int(rng.integers(2**32))
    return seed, zlib.crc32(f"{seed}:{dataset[0]}".encode()) % 8

def supports(candidate, outputs):
    return [zlib.crc32(f"{int(seed)}:{candidate}".encode()) % 8 == answer for seed, answer in outputs]

def reports(dataset, n, rng):
    return [report(dataset, rng) for _ in range(n)]

report.supports = reports.supports = supports
"""
CONFIG = """
name: local
claim: pure(epsilon=1)
pairs: [{d0: [a], d1: [b]}]
trials: 300
confirm: never
"""


@pytest.mark.parametrize("mechanism", ["{python: local.py:report}", "{python: local.py:reports, batched: true}"])
def test_a_config_needs_no_key(mechanism: str, tmp_path: Path, command: Callable[..., Result]) -> None:
    (tmp_path / "local.py").write_text(MODULE)
    (tmp_path / "a.yaml").write_text(f"mechanism: {mechanism}\n{CONFIG}")
    assert command("run", str(tmp_path / "a.yaml"), "-o", str(tmp_path / "out"), "--no-pdf").exit_code == 1


def test_a_batched_function_passes_its_hook_on() -> None:
    def reports(dataset: list[str], n: int, rng: np.random.Generator) -> Any:
        return Hashing().sample(dataset, n, rng)

    reports.supports = supports  # type: ignore[attr-defined]
    assert audit(batched(reports), "pure(epsilon=1)", PAIR, trials=600, seed=1, confirm="never").violated
