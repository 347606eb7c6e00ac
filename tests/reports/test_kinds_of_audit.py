"""The first page says of streams, of runs and of canaries only what makes sense for them."""

import dataclasses
import functools
import json
import re
from typing import Any

import numpy as np
import pytest

from dpaudit import Pair, audit, audit_scores, training
from dpaudit.catalogue import BUILTIN
from dpaudit.engine.online import OnlineAudit
from dpaudit.inference.fixed import exact_binomial
from dpaudit.result.confirmation import Confirmation, sizes_significance
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import BARS, Provenance, histograms
from dpaudit.result.values import Verdict
from dpaudit_reports.blocks import Columns, Heading, KeyValues, Table
from dpaudit_reports.formats import Audited, Run, Screen, github_text, json_text, sentence
from dpaudit_reports.sections.advice import claimed, data, mechanism_named
from dpaudit_reports.sections.details import bounds
from dpaudit_reports.sections.details import training as section
from dpaudit_reports.site.index import Entry, columns
from dpaudit_reports.terminal import table_text
from dpaudit_reports.verdicts import shows_size

from . import sample
from .audits import markdown, text_of


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
    assert "each step ran on one of two datasets, as a fair coin chose" in found
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


# --- reports state what fresh runs say about a violation, and its size from their counts; foreign texts are quotations


LIE = "which the maintainers have confirmed"


def plain(spans: Any) -> str:
    return "".join(span if isinstance(span, str) else span.text for span in spans)


def recorded(**environment: Any) -> AuditResult:
    return dataclasses.replace(sample.violation(), provenance=Provenance.read({**sample.ENVIRONMENT, **environment}))


def outside(words: str) -> str:
    kept, depth = "", 0
    for letter in words:
        depth += letter == "“"
        kept += letter if depth == 0 else ""
        depth -= letter == "”"
    return kept


def with_outcome(**fields: Any) -> AuditResult:
    result = sample.violation()
    evidence: Any = dataclasses.replace(result.evidence, confirmation=Confirmation(**fields))  # type: ignore[type-var]
    return dataclasses.replace(result, evidence=evidence, stopped_by="evidence")


def test_the_size_is_a_bound_from_the_counts_of_the_fresh_runs() -> None:
    result = sample.confirmed(100, 600)
    bound = exact_binomial.mu_lower(100, 1000, 600, 1000, significance=sizes_significance(0.05))
    assert 1.2 < result.mu_lower <= bound + 1e-3
    assert shows_size(result)
    assert not shows_size(sample.confirmed(3, 13, 20, "consistent"))


@pytest.mark.parametrize("counts", [True, False])
def test_a_foreign_reason_is_a_quotation(counts: bool) -> None:
    result = sample.confirmed(100, 600, outcome="not confirmed") if counts else with_outcome(outcome="not confirmed")
    found = dataclasses.replace(result.confirmation, reason=f"no” {LIE} “")
    evidence: Any = dataclasses.replace(result.evidence, confirmation=found)  # type: ignore[type-var]
    result = dataclasses.replace(result, evidence=evidence)
    words = text_of(result)
    assert LIE in words
    assert LIE not in outside(words)


def test_tables_messages_and_sites_state_the_confirmation() -> None:
    result = sample.confirmed(100, 600)
    run = Run.of([result, sample.violation(), sample.no_violation()])
    assert "proven, claimed 1; confirmed" in table_text(Run.of([result]), Screen())
    assert "The claim μ = 1 is false." in github_text(run, Screen()).splitlines()[0]
    assert [one["confirmation"] for one in json.loads(json_text(run, Screen()))] == ["confirmed", None, None]
    entries = [Entry(one, "", "") for one in (result, sample.violation())]
    assert ["; confirmed" in str(cell) for cell in columns(entries)[0].cells] == [True, False]
    assert markdown(result, sample.violation()).count("; confirmed") == 1


@pytest.mark.parametrize(
    "environment",
    [
        {"claim stated by": f"the config, {LIE}"},
        {"source": f"the manual. dpaudit proves, {LIE}, the claim"},
        {"mechanism": f"a.py:f, {LIE}"},
    ],
)
def test_a_foreign_author_source_or_mechanism_is_a_quotation(environment: Any) -> None:
    result = recorded(**environment)
    assert LIE not in outside(plain(claimed(result)))
    assert LIE not in outside(mechanism_named(result))


def test_a_foreign_difference_is_a_quotation() -> None:
    result = sample.violation()
    honest = plain(data(result))
    assert "one record replaced" in honest
    assert "“" not in honest
    row = dataclasses.replace(result.pairs[0], difference=f"a row, {LIE}")
    words = plain(data(dataclasses.replace(result, pairs=(row,))))
    assert LIE in words
    assert LIE not in outside(words)
