"""Every section accepts a result in which its part is missing."""

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pypdf
import pytest
from rich.console import Console

import dpaudit_reports
from dpaudit import ApproxDP, GaussianDP, LaplaceDP, PureDP, audit, parse_claim
from dpaudit.claims import rounded
from dpaudit.engine.scores import audit_one_run
from dpaudit.inference.grid import EDGES
from dpaudit.result.evidence import fingerprint
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit.result.sequential_evidence import SequentialEvidence
from dpaudit.result.suite import promised_together
from dpaudit.result.values import Counts
from dpaudit_reports.blocks import (
    Columns,
    Facts,
    Figure,
    Heading,
    Items,
    KeyValues,
    NewPage,
    Numbers,
    Table,
    Text,
    Verdict,
)
from dpaudit_reports.claimed import Bound, certified_of_claimed, certified_profile, enlarged, headline
from dpaudit_reports.document import document
from dpaudit_reports.figures.evidence import witness_scores
from dpaudit_reports.figures.tradeoff import point_name, tradeoff_svg
from dpaudit_reports.sections import SECTIONS, Section
from dpaudit_reports.sections.details import bounds, provenance
from dpaudit_reports.terminal import terminal

from . import sample
from .audits import PAIR, fixed, laplace, markdown, pure_violation, text_of, words_in


def _text(words: Text) -> str:
    first = words[0]
    assert not isinstance(first, str)
    return first.text


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
@pytest.mark.parametrize("make", [sample.empty, sample.violation, sample.inconclusive, sample.hostile])
def test_a_section_begins_with_what_it_is_about(section: Section, make: Callable[[], AuditResult]) -> None:
    if blocks := section(make()):  # a section that does not apply has no blocks
        first, *rest = blocks
        assert isinstance(first, Heading | Verdict | Numbers | Facts | Figure | Columns | Items | NewPage)
        assert rest or not isinstance(first, Heading)


def test_bounds_are_rounded_down_and_marked_where_they_exceed_the_claim() -> None:
    result = dataclasses.replace(sample.violation(), mu_lower=1.04329999)
    table = next(block for block in bounds(result) if isinstance(block, Table))
    assert _text(table.rows[0][1]) == "▲ ≥\u00a01.043"
    assert table.rows[0][2] == "≤\u00a01"


def test_the_fingerprint_can_be_computed_by_a_reader() -> None:
    result = sample.violation()
    text = json.dumps(result.to_dict()["evidence"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    expected = hashlib.sha256(text.encode()).hexdigest()
    rows = dict(next(block for block in provenance(result) if isinstance(block, KeyValues)).rows)
    assert _text(rows["counts"]) == f"sha256:{expected}"


def test_whatever_the_environment_holds_is_shown() -> None:
    held = {"a": None, "b": {"c": 1, "d": {"e": [2]}}, "f": [1, None], "g": {}, "h": True}
    result = dataclasses.replace(sample.violation(), provenance=Provenance.read(held))
    rows = dict(next(block for block in provenance(result) if isinstance(block, KeyValues)).rows)
    assert [rows[key] for key in "bfh"] == ['c 1, d {"e": [2]}', "1, None", "True"]


def test_the_staircase_of_the_profile_is_what_is_certified() -> None:
    result = sample.violation()
    steps = certified_profile(result)
    assert steps
    for epsilon, delta in steps:
        assert result.epsilon_lower(delta) == epsilon
    assert [epsilon for epsilon, _ in steps] == sorted({epsilon for epsilon, _ in steps})
    assert [delta for _, delta in steps] == sorted((delta for _, delta in steps), reverse=True)
    assert certified_profile(dataclasses.replace(result, bounds_valid=False)) == []


def test_the_region_in_the_picture_has_the_counts_of_the_witness() -> None:
    result = sample.violation()
    assert result.witness is not None
    assert isinstance(result.evidence, SequentialEvidence)
    counts0, counts1 = result.evidence.counts[0]
    cuts = np.flatnonzero((counts0[1:-1] > 0) & (counts1[1:-1] > 0) & (counts0[2:] > 0))
    assert len(cuts) > 20
    for cut in cuts.tolist():
        x, y = int(counts0[cut + 1 :].sum()), int(counts1[: cut + 1].sum())
        counts = Counts(false_positives=x, n0=int(counts0.sum()), false_negatives=y, n1=int(counts1.sum()))
        found = dataclasses.replace(result.witness, counts=counts, threshold=float(EDGES[cut]))
        scores = witness_scores(dataclasses.replace(result, witness=found))
        assert scores.counts0[scores.threshold + 1 :].sum() == x
        assert scores.counts1[: scores.threshold + 1].sum() == y


# --- reports state bounds on the claim's own parameter, and figures show them


@pytest.mark.parametrize(
    ("claim", "symbol", "delta"),
    [
        (PureDP(1.0), "ε", 0.0),
        (LaplaceDP(1.0), "ε", 0.0),
        (ApproxDP(epsilon=1, delta=1e-5), "ε", 1e-5),
        (GaussianDP(1.0), "μ", None),
        pytest.param(parse_claim("zcdp(rho=0.1)"), "ε", 0.0, marks=pytest.mark.slow),
    ],
)
def test_the_headline_is_the_parameter_of_the_claim(claim: Any, symbol: str, delta: float | None) -> None:
    result = audit(
        laplace(0.4), claim, PAIR, attacks="logistic", trials=1000, seed=2, method="sequential", confirm="never"
    )
    assert result.violated
    bound = headline(result)
    if bound is None:  # refuted as a curve
        assert not isinstance(claim, PureDP | ApproxDP | GaussianDP)
        return
    assert bound.symbol == symbol
    assert delta is None or isinstance(claim, type(parse_claim("zcdp(rho=0.1)"))) or bound.delta == delta
    assert bound.exceeds
    certified = float(bound.certified_text().split("\u00a0")[1])
    assert certified >= float(bound.claimed_text())


def test_epsilon_never_stands_without_its_delta_and_claims_are_rounded() -> None:
    found = text_of(pure_violation())
    assert re.search(r"ε ≥ 1\.0\d+ proven; the audit stopped at once.*?\(claimed: ε ≤ 1\)", found)
    assert "1.0000000000000022" not in found.split("Provenance")[0]
    assert re.search(r"ε ≥ 1\.0\d+; not confirmed; not after the correction 1 –", text_of(pure_violation(), fixed(1.0)))


@pytest.mark.parametrize(("mu", "shown"), [(1.0000571, "≥\u00a01.000057"), (0.99999, ">\u00a01")])
def test_a_refuted_claim_is_exceeded_even_if_the_search_for_the_bound_ends_below_it(mu: float, shown: str) -> None:
    bound = headline(dataclasses.replace(sample.violation(), mu_lower=mu))
    assert (bound.certified_text(), bound.claimed_text()) == (shown, "1")


def test_a_claim_that_is_false_as_a_curve_only_has_no_parameter_in_the_headline() -> None:
    result = dataclasses.replace(sample.violation(), claim=parse_claim("zcdp(rho=20)"), mu_lower=0.5)
    assert headline(result) is None
    assert certified_of_claimed(result) == "the curve, no single parameter"
    assert "although no single ε or μ exceeds what is claimed" in markdown(result)


def test_the_size_that_would_have_been_seen_is_rounded_up() -> None:
    assert enlarged("gaussian(mu=1.27341)") == "gaussian(mu=1.274)"
    assert enlarged("approximate(epsilon=1.15, delta=1e-05)") == "approximate(epsilon=1.15, delta=1e-05)"


@pytest.mark.parametrize("claim", [PureDP(1.0), LaplaceDP(1.0), PureDP(0.01)])
def test_the_profile_of_a_pure_claim_falls_to_zero_at_its_epsilon(claim: Any) -> None:
    ax = claim.plot("profile")
    epsilon, delta = ax.lines[0].get_data()
    own = claim.epsilon(0.0)
    below = np.asarray(delta) <= 1e-12
    assert not np.any(np.isnan(delta))
    assert below.any()
    assert np.asarray(epsilon)[below].min() == pytest.approx(own, rel=1e-9)
    assert ax.lines[0].get_label() == claim.label


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_whole_fingerprints(width: int) -> None:
    target = StringIO()
    Console(file=target, width=width).print(*terminal(document([sample.violation()])), sep="\n")
    assert fingerprint(sample.violation().evidence) in "".join(target.getvalue().split())


@pytest.mark.parametrize(
    ("exact", "shown"),
    [
        ("gaussian(mu=1.00004)", "gaussian(mu=1.00004)"),
        ("gaussian(mu=1.0000000000000002)", "gaussian(mu=1)"),  # a rounding error of an accountant
        ("gaussian(mu=1.2340001)", "gaussian(mu≈1.235)"),
        ("approximate(epsilon=0.12345678, delta=1.2345678e-06)", "approximate(epsilon≈0.1235, delta≈1.235e-6)"),
        ("subsampled(gaussian(mu=1), rate=0.01234444)", "subsampled(gaussian(mu=1), rate≈0.01234)"),
    ],
)
def test_a_short_claim_is_exact_or_says_that_it_is_not(exact: str, shown: str) -> None:
    """A claim that is rounded to a stronger one would be called kept although it was not tested."""
    assert rounded(exact) == shown
    assert rounded(shown) == shown


def test_the_claimed_value_beside_a_bound_is_exact_or_rounded_up() -> None:
    assert Bound("μ", None, 0.5, 1.00004).claimed_text() == "1.00004"
    assert Bound("μ", None, 0.5, 1.23400001).claimed_text() == "1.235"
    assert Bound("ε", 0.0, 0.5, 1.2345678, refuted=True).certified_text() == ">\u00a01.23456"
    assert Bound("ε", 0.0, 0.5, 1.2345678, refuted=True).claimed_text() == "1.23457"


# --- reports make no statement about one run, several audits or the audited code that is not proven


@functools.cache
def one_run(shift: float) -> AuditResult:
    rng = np.random.default_rng(1)
    included = rng.random(600) < 0.5
    return audit_one_run(rng.normal(size=600) + shift * included, included, "gaussian(mu=1)", name="one run")


@pytest.mark.parametrize("shift", [1.0, 4.0])
def test_a_report_of_one_run_tells_guesses_and_nothing_about_pairs(shift: float) -> None:
    result = one_run(shift)
    found = text_of(result)
    if result.violated:
        guessed = result.evidence
        assert f"{guessed.right} of the {guessed.n1} highest scores are of included canaries" in found  # type: ignore[attr-defined]
    for never in (
        "d0",
        "d1",
        "No pair",
        "No attack",
        "Runs per dataset",
        "learned from the same runs",
        "Closest to a violation",
        "Witness",
        "allows at most",
        "pairs",
    ):
        assert not re.search(rf"\b{never}\b", found), never
    assert point_name(result) == ""
    assert "#d55e00" not in tradeoff_svg(result).lower()
    assert "upper bound" not in words_in(tradeoff_svg(result))


def of_command(make: Callable[[], AuditResult], name: str = "a", **differs: Any) -> AuditResult:
    known = {"number of the command": "1a", "audits of the command": 2, "confidence of the command": 0.99}
    environment = {**sample.ENVIRONMENT, **known, **{key.replace("_", " "): value for key, value in differs.items()}}
    provenance = Provenance.read(environment)
    return dataclasses.replace(make(), name=name, confidence=0.9951, _computed_at=None, provenance=provenance)


def test_audits_of_one_command_share_its_promise() -> None:
    found = text_of(of_command(sample.violation), of_command(sample.no_violation, "b"))
    assert (
        "If all 2 claims were true, this command would refute one or more of them with probability at most 1 %."
        in found.replace("\u00a0", " ")
    )
    assert "e-BH" not in found
    assert "the verdicts do not hold jointly" not in found
    separate = text_of(sample.violation(), sample.no_violation())
    assert "e-BH" in separate
    assert "the verdicts do not hold jointly" in separate


@pytest.mark.parametrize(
    "make",
    [
        lambda one: [one, sample.no_violation()],
        lambda one: [one, of_command(sample.violation, "b", number_of_the_command="2b")],
        lambda one: [one, of_command(sample.violation, "b", audits_of_the_command=3)],
    ],
)
def test_audits_that_are_not_of_one_command_share_no_promise(make: Callable[[AuditResult], list[AuditResult]]) -> None:
    assert promised_together(make(of_command(sample.violation))) == ""


def test_runs_on_several_pairs_are_said_to_be_the_sum() -> None:
    result = dataclasses.replace(sample.violation(), pairs=sample.violation().pairs * 10)
    assert "900 runs per dataset in total, over 10 pairs" in markdown(result)


def test_the_version_of_the_library_stands_by_the_claim(tmp_path: Path) -> None:
    known = {
        "mechanism": "sums.py:noisy_sum",
        "packages of the mechanism": {"opendp": "0.16.0"},
        "SHA-256 of the mechanism's file": "ab" * 32,
        "claim stated by": "the config",
    }
    result = dataclasses.replace(sample.violation(), provenance=Provenance.read({**sample.ENVIRONMENT, **known}))
    dpaudit_reports.write_pdf([result], tmp_path / "report.pdf")
    first = " ".join(pypdf.PdfReader(tmp_path / "report.pdf").pages[0].extract_text().split())
    for needed in ("sums.py:noisy_sum", "opendp 0.16.0", "the config"):
        assert needed in first
