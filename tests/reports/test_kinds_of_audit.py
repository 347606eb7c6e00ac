"""The first page says of streams, of runs and of canaries only what makes sense for them."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest

from dpaudit import Pair, audit, audit_scores, training
from dpaudit.catalogue import BUILTIN
from dpaudit.engine.online import OnlineAudit
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import BARS, histograms
from dpaudit.result.values import Verdict
from dpaudit_reports.blocks import Columns, Heading, KeyValues, Table
from dpaudit_reports.formats import Audited, sentence
from dpaudit_reports.sections.details import bounds
from dpaudit_reports.sections.details import training as section

from . import sample
from .audits import text_of


@functools.cache
def stream(mu: float, steps: int) -> AuditResult:
    """Return the audit of steps that are 2-GDP; an odd number of steps is not twice a number of runs."""
    audit, rng = OnlineAudit(f"gaussian(mu={mu})", seed=1, attacks="logistic"), np.random.default_rng(1)
    while audit.steps < steps and not audit.refuted:
        audit.update(2 * audit.coin() + rng.normal())
    return audit.result()


@functools.cache
def of_scores(shift: float, independence: Any, runs: int = 0, n: int = 200) -> AuditResult:
    rng = np.random.default_rng(1)
    included = rng.random(n) < 0.5
    scores, label = rng.normal(size=n) + shift * included, np.arange(n) % max(1, runs)
    run = ([*label[~included]], [*label[included]]) if runs else None
    return audit_scores(
        scores[~included], scores[included], "gaussian(mu=1)", independence=independence, seed=1, run=run
    )


def page(result: AuditResult) -> str:
    return text_of(result).replace("\u00a0", " ").partition("Errors of the attack")[0]


def violated() -> AuditResult:
    return stream(0.5, 2001)


@pytest.mark.parametrize("made", [(0.5, 2001), (2.0, 301), (2.0, 9)], ids=["violation", "none", "few"])
def test_a_stream_has_steps_and_neither_pairs_nor_a_config(made: tuple[float, int]) -> None:
    result = stream(*made)
    (steps,) = [
        words.split()[0] for words in result.warnings if words.endswith("a fair coin chose the dataset of each")
    ]
    found = page(result)
    assert "each step ran on d0 or on d1, as a fair coin chose" in found
    assert "Gaussian differential privacy with μ =" in found
    assert " for each step" in found
    assert f"{steps} steps" in str(result).split("\n")[1]
    for never in ("unspecified", "per dataset", "search:", "trials:", "witness", "Closest", "other pairs"):
        assert never not in found + str(result) + text_of(result).partition("Provenance")[2], never


def test_a_violation_of_a_stream_is_of_some_step_given_its_past() -> None:
    assert violated().violated
    found = page(violated())
    assert "The claim μ = 0.5 for each step is false." in found
    assert "proven for some step" in found
    assert f"all {violated().warnings[0].split()[0]} steps" in sentence(Audited(name="a", result=violated()))


def test_runs_of_canaries_are_not_runs_per_dataset() -> None:
    result = of_scores(9.0, None, runs=3)
    found = text_of(result)
    assert "200 canaries, each included at random" in page(result)
    assert "3 runs with 200 canaries" in str(result)
    assert "per dataset" not in found + str(result) + repr(result)
    assert "Make a new run with new coins, and audit it." in page(of_scores(4.0, None))


@pytest.mark.parametrize(
    "make", [lambda: of_scores(0.5, "runs"), pytest.param(lambda: of_scores(0.5, "canaries"), marks=pytest.mark.slow)]
)
def test_a_detectable_violation_has_the_curve_of_its_name(make: Any) -> None:
    result = make()
    assert result.verdict is Verdict.NO_VIOLATION
    curve = f"the mechanism's trade-off curve is that of {result.detectable.claim} and scores are likelihood ratios"
    for text in (str(result), page(result), text_of(result)):
        assert curve in " ".join(text.replace("\u00a0", " ").split())


# --- the training section: design, scores of both sides, certified and claimed epsilon, and what is assumed


def score(dataset: list[int], rng: np.random.Generator) -> float:
    return float(3 * len(dataset) + rng.normal())


@functools.cache
def many(mu: float = 4.0) -> AuditResult:
    return training.many_runs(score, Pair([0], [0, 1], "add_remove", "one record"), f"gaussian(mu={mu})", seed=1)


@functools.cache
def one(independence: Any = "canaries") -> AuditResult:
    train = lambda included, rng: included + rng.normal(size=len(included))  # noqa: E731
    return training.one_run(train, 100, "gaussian(mu=1)", independence=independence, seed=1)


@functools.cache
def steps() -> AuditResult:
    rng = np.random.default_rng(1)
    return training.step_by_step(
        lambda coin: coin + rng.normal(), "gaussian(mu=1)", steps=99, seed=1, attacks="logistic"
    )


@functools.cache
def learned(method: str) -> AuditResult:
    """The audit of a builtin training, which learns its score."""
    mechanism = BUILTIN["dp_gd"]()
    pair = Pair({"diracs": []}, {"diracs": [0]}, "add_remove", "one Dirac record")
    return audit(mechanism, mechanism.claim, pair, trials=90, method=method, seed=1, attacks="logistic")


def facts(result: AuditResult) -> dict[str, Any]:
    blocks = [inner for found in section(result) for inner in (found.right if isinstance(found, Columns) else (found,))]
    return dict(next(found for found in blocks if isinstance(found, KeyValues)).rows)


def test_an_audit_of_training_has_the_section_and_no_other_audit_has() -> None:
    assert section(sample.violation()) == ()
    assert "training" not in sample.violation().to_dict()
    for result, design in ((many(), "many runs"), (one(), "one run"), (steps(), "step by step")):
        assert isinstance(section(result)[0], Heading)
        assert facts(result)["design"].startswith(design)
    assert "models on d0" in text_of(many())
    rows = facts(learned("sequential"))
    assert rows["training"].startswith("DpGd with noise multiplier 1, clipping norm 1")
    assert rows["training"].endswith("full batches, 8 weights, 1 step")
    assert rows["datasets"] == "one Dirac record"


def test_the_histograms_count_every_score_of_each_side() -> None:
    rows = [facts(result)["scores"] for result in (many(), one(), steps())]
    assert rows[0] == "100 models on d0, 100 models on d1"
    for words, total in zip(rows[1:], (100, 99), strict=True):
        assert sum(map(int, re.findall(r"\d+", words))) == total
    out, into = np.array([0.0, 1.0, 2.0, np.nan, -np.inf]), np.array([1.0, 2.0, 1e3, np.inf])
    edges, first, second = histograms(out, into)
    assert len(edges) == BARS + 1
    assert (sum(first), sum(second)) == (5, 4)
    assert first[0] >= 2
    assert second[-1] >= 1
    assert histograms(np.array([np.nan]), np.array([np.inf])) == ((), (), ())
    assert sum(histograms(np.ones(3), np.ones(2))[1]) == 3


def test_the_bounds_state_what_is_certified_if_the_curve_is_gaussian() -> None:
    table = next(found for found in bounds(many()) if isinstance(found, Table))
    name, certified, _ = table.rows[-1]
    assert name == "ε at δ = 10⁻⁵, if the curve is Gaussian"
    assert float(str(certified).split("\u00a0")[1]) == pytest.approx(
        many().epsilon_lower(1e-5, assuming="gaussian"), abs=0.01
    )


def test_the_assumptions_are_those_of_the_design() -> None:
    assert "trainings are independent" in facts(many())["assumed"]
    assert "depend on each other in any way" in facts(one(None))["assumed"]
    assert "depend on each other in any way" not in facts(one())["assumed"]
    assert "full batch" in facts(steps())["assumed"]


def test_a_result_file_keeps_the_record() -> None:
    values: Any = many().to_dict()
    assert AuditResult.from_dict(values).training == many().training
    assert AuditResult.from_dict({key: value for key, value in values.items() if key != "training"}).training is None
