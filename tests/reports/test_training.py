"""The training section: design, scores of both sides, certified and claimed epsilon, and what is assumed."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, Pair, audit, training
from dpaudit.catalogue import BUILTIN
from dpaudit.result.training import BARS, histograms
from dpaudit_reports.blocks import Figure, Heading, Items, KeyValues
from dpaudit_reports.sections.training import training as section

from . import sample
from .audits import text_of


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


def block(result: AuditResult, kind: type[Any]) -> Any:
    return next(found for found in section(result) if isinstance(found, kind))


def test_an_audit_of_training_has_the_section_and_no_other_audit_has() -> None:
    assert section(sample.violation()) == ()
    assert "training" not in sample.violation().to_dict()
    for result, design in ((many(), "many runs"), (one(), "one run"), (steps(), "step by step")):
        assert isinstance(section(result)[0], Heading)
        assert dict(block(result, KeyValues).rows)["design"].startswith(design)
    assert "models on d0" in text_of(many())
    rows = dict(block(learned("sequential"), KeyValues).rows)
    assert rows["training"].startswith("DpGd with noise multiplier 1, clipping norm 1")
    assert rows["training"].endswith("full batches, 8 weights, 1 step")
    assert rows["datasets"] == "one Dirac record"
    assert block(learned("sequential"), Figure).panels[0].title == "Scores"


def test_the_histograms_count_every_score_of_each_side() -> None:
    rows = [dict(block(result, KeyValues).rows)["scores"] for result in (many(), one(), steps())]
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


def test_the_picture_compares_certified_with_claimed_epsilon() -> None:
    figure = block(many(), Figure)
    scores, bars = figure.panels
    assert scores.svg().count("<svg") == 1
    assert bars.title == "Certified and claimed ε at δ = 10⁻⁵"
    certified, assumed, claimed = (float(found) for found in re.findall(r"ε [≥≤]\xa0(\d+\.?\d*)", bars.alt))
    assert certified == pytest.approx(many().epsilon_lower(1e-5), abs=1e-3)
    assert assumed == pytest.approx(many().epsilon_lower(1e-5, assuming="gaussian"), abs=0.01)
    assert "assumes, untested, that the trade-off curve of the training is Gaussian" in figure.caption
    assert claimed == pytest.approx(many().claim.epsilon(1e-5), abs=0.01)
    assert "A better canary or score may certify more" in figure.caption
    assert "for some step" in block(steps(), Figure).caption
    assert "no shown bound on ε alone exceeds the claim" in block(many(2.0), Figure).caption
    void = dataclasses.replace(many(), bounds_valid=False)
    assert len(block(void, Figure).panels) == 1
    assert "Nothing is certified" in block(void, Figure).caption


def test_the_assumptions_are_those_of_the_design() -> None:
    assert any("trainings are independent" in str(item) for item in block(many(), Items).items)
    assert "Not tested: given which canaries were included, the scores" in block(one(), Items).items[-1]
    assert "depend on each other in any way" in block(one(None), Items).items[-1]
    assert any("full batch" in str(item) for item in block(steps(), Items).items)


def test_a_result_file_keeps_the_record() -> None:
    values: Any = many().to_dict()
    assert AuditResult.from_dict(values).training == many().training
    assert AuditResult.from_dict({key: value for key, value in values.items() if key != "training"}).training is None
