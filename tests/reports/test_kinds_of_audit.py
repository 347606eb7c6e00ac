"""The first page says of streams, of runs and of canaries only what makes sense for them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from dpaudit import audit_scores
from dpaudit.engine.online import OnlineAudit
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit_reports.formats import Audited, sentence

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
    """Return the text of the first page."""
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


def test_a_stream_without_violation_is_told_to_make_more_steps() -> None:
    for result, verdict in ((stream(2.0, 301), Verdict.NO_VIOLATION), (stream(2.0, 9), Verdict.INCONCLUSIVE)):
        assert result.verdict is verdict
        assert "make more steps" in page(result).split("What to do now")[1].lower()
    assert "trade-off curve at every step is that of gaussian(mu=" in page(stream(2.0, 301))


@pytest.mark.parametrize("shift", [0.5, 4.0])
def test_scores_of_runs_are_repeated_and_extended_by_runs(shift: float) -> None:
    found = page(of_scores(shift, "runs"))
    assert "Assumed, not tested: runs are independent of each other." in found
    assert "Make new runs with fresh randomness, score them, and audit the scores." in found
    assert ("audit more runs, such as more trained models" in found) == (shift < 1)
    for never in ("elsewhere", "canaries"):
        assert never not in found, never


def test_runs_of_canaries_are_not_runs_per_dataset() -> None:
    result = of_scores(9.0, None, runs=3)
    found = text_of(result)
    assert "200 canaries, each included at random" in page(result)
    assert "3 runs with 200 canaries" in str(result)
    assert "per dataset" not in found + str(result) + repr(result)
    assert "Make a new run with new coins, and audit it." in page(of_scores(4.0, None))


@pytest.mark.parametrize(
    "make",
    [
        lambda: of_scores(0.5, "runs"),
        pytest.param(lambda: of_scores(0.5, "canaries"), marks=pytest.mark.slow),
    ],
)
def test_a_detectable_violation_has_the_curve_of_its_name(make: Any) -> None:
    result = make()
    assert result.verdict is Verdict.NO_VIOLATION
    curve = f"the mechanism's trade-off curve is that of {result.detectable.claim} and scores are likelihood ratios"
    for text in (str(result), page(result), text_of(result)):
        assert curve in " ".join(text.replace("\u00a0", " ").split())
