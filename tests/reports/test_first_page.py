"""The first page: verdict in natural frequencies, six answers, two pictures and the next step."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit import ApproxDP, GaussianDP, LaplaceDP, PureDP, parse_claim
from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Code, Span, Strong
from dpaudit_reports.claimed import claim_in_words, least_found, least_found_in_words
from dpaudit_reports.rates import difference, frequencies, sides
from dpaudit_reports.sections.pictures import beside

from . import sample
from .audits import as_fixed, dependent, markdown, text_of
from .test_pdf import pages
from .test_truth import one_run
from .test_verdict_words import FAR, LATER, counted, with_witness


def words(spans: tuple[Span, ...]) -> str:
    return "".join(span if isinstance(span, str) else span.text for span in spans).replace("\u00a0", " ")


def with_pair(result: AuditResult, d0: str, d1: str) -> AuditResult:
    assert result.witness is not None
    row = dataclasses.replace(result.pairs[0], d0=d0, d1=d1, label=result.witness.pair)
    return dataclasses.replace(result, pairs=(row,))


ADDED = ("[0.2, 0.5]", "[0.2, 0.5, 1.0]")
SHOWN = {**counted(3, 200, 60, 200), **LATER, "allowed_upper": 0.1234}


def frozen(**fields: Any) -> AuditResult:
    """Return a violation whose region and number of runs were fixed beforehand."""
    shown = with_witness(sample.violation(), **(SHOWN | {"counted": "frozen"} | fields))
    return as_fixed(with_pair(shown, *ADDED))


def test_the_verdict_gives_whole_numbers_that_were_counted_and_rounds_the_allowance_up() -> None:
    assert (
        "The output is above 0.52 in 60 of 200 runs with the record 1.0 and in 3 of 200 without it; the claim allows "
        "at most 25 of 200.</b> The limit is an average, if the true rate without the record is at most 8.3 %, the "
        "upper end of its 95 % interval." in markdown(frozen())  # 24.68
    )


def test_counts_of_an_audit_that_stopped_by_them_are_not_compared_with_what_the_claim_allows() -> None:
    """In 119 of 119 audits, the interval of such a rate included what "the claim allows", which the box called less."""
    result = dataclasses.replace(with_witness(sample.violation(), **SHOWN), stopped_by="evidence")
    result = with_pair(with_witness(result, allowed_upper=0.29), *ADDED)
    # 60 of 200 are more than 29 %, but their interval begins at 28 %
    box = markdown(result).split("What was claimed")[0]
    assert "in 60 of 200 runs with the record 1.0 and in 3 of 200 without it.</b> These counts illustrate the" in box
    assert "They may exaggerate the difference, because the audit stopped as soon as it had a proof" in box
    panel, meaning = beside(result)
    assert panel is not None
    for never in ("allows at most", "claim allows", "refute"):
        assert never not in box.partition("60 of 200")[2] + panel.svg() + meaning, never


@pytest.mark.parametrize(("allowed", "alone"), [(0.29, True), (0.2951, False), (0.3, False), (0.4, False)])
def test_counts_within_the_allowance_are_not_called_a_proof(allowed: float, alone: bool) -> None:
    result = frozen(allowed_upper=allowed)
    found = frequencies(result)
    assert found is not None
    assert found.most is not None
    assert found.most >= 200 * allowed
    assert found.exceeded is alone
    box = markdown(result).split("What was claimed")[0]
    assert "the claim allows at most" in box
    assert ("The exact test of both rates together" in box) is not alone
    assert "These counts alone" not in markdown(result)  # the verdict of a fixed number of runs rests on them


@pytest.mark.parametrize("make", [sample.no_violation, sample.inconclusive, dependent])
def test_only_a_violation_has_frequencies(make: Callable[[], AuditResult]) -> None:
    box = markdown(make()).split("What was claimed")[0]
    assert not re.search(r"allows at most|\d runs (with|on) ", box)


@pytest.mark.parametrize(
    ("d0", "d1", "on0", "on1", "change"),
    [
        (*ADDED, "without it", "with the record 1.0", "one record added"),
        (*ADDED[::-1], "with it", "without the record 1.0", "one record removed"),
        ("[0, 0, 1]", "[0, 1, 1]", "with 0 in its place", "with the record 1", "one record replaced"),
        ("[1, 2]", "[2, 1]", "on d0", "on d1", ""),
        ("[1, …]", "[1, …, 2]", "on d0", "on d1", ""),
        ("array([1.])", "array([2.])", "on d0", "on d1", ""),
        ("[]", repr(["x" * 30]), "without it", "with the record", "one record added"),
        (repr(["y" * 30]), repr(["x" * 30]), "on d0", "on d1", "one record replaced"),
    ],
)
def test_a_record_is_named_only_if_the_datasets_are_known_and_differ_in_it(
    d0: str, d1: str, on0: str, on1: str, change: str
) -> None:
    found = sides(with_pair(sample.violation(), d0, d1), "one record changed")
    assert (found.on0, found.on1, found.change) == (on0, on1, change)


def test_the_difference_is_strong_and_nothing_of_a_short_dataset_is_left_out() -> None:
    assert difference(*ADDED) == (
        (Code("[0.2, 0.5]"),),
        (Code("[0.2, 0.5, "), Strong("1.0"), Code("]")),
    )
    long0, long1 = str([7] * 400 + [1] + [7] * 400), str([7] * 400 + [2] + [7] * 400)
    first, second = difference(long0, long1)
    assert [span.text for span in first + second if isinstance(span, Strong)] == ["1", "2"]
    assert len(words(first)) < 200
    assert difference("same", "same") == ((Code("same"),), (Code("same"),))


def test_datasets_that_the_first_page_shortens_are_listed_in_full() -> None:
    long0, long1 = str([7] * 100 + [1]), str([7] * 100 + [2])
    first, table = text_of(with_pair(sample.violation(), long0, long1)).split("Pairs of neighbouring datasets")
    assert long0 not in first
    assert long0 in table
    assert long1 in table
    assert "Pairs of neighbouring datasets" not in text_of(with_pair(sample.violation(), *ADDED))


QUESTIONS = (
    "What was claimed",
    "Was it kept",
    "How sure",
    "On what data",
    "What could not be seen",
    "How to repeat it",
    "What to do now",
)


@pytest.mark.parametrize("make", [sample.violation, pytest.param(sample.no_violation, marks=pytest.mark.slow)])
def test_the_first_page_answers_six_questions_and_says_what_to_do(
    make: Callable[[], AuditResult], tmp_path: Path
) -> None:
    found = " ".join(pages([make()], tmp_path).pages[0].extract_text().split())
    places = [found.index(question) for question in QUESTIONS]
    assert places == sorted(places)
    assert "type II error" in found[places[-1] :]
    assert "counts sha256:" in found  # the foot of the page


@pytest.mark.parametrize(
    ("make", "step"),
    [
        (sample.violation, "before you report it"),
        (sample.no_violation, "Do not report this result as a proof of the claim."),
        (dependent, "Give every run independent randomness"),
        (lambda: dataclasses.replace(sample.inconclusive(), stopped_by="failure"), "Correct the failure"),
        (
            lambda: dataclasses.replace(sample.inconclusive(), stopped_by="interruption"),
            "Run the audit again, without interruption",
        ),
        (sample.inconclusive, "dpaudit plan estimates how many runs are needed"),
        (lambda: one_run(4.0), "Confirm the violation with a new run and new canaries"),
        (lambda: one_run(1.0), "audit more canaries or runs"),
    ],
)
def test_the_next_step_follows_from_the_verdict(make: Callable[[], AuditResult], step: str) -> None:
    found = markdown(make())
    assert step in found.split("What to do now")[1]


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (PureDP(1.0), "ε-differential privacy with ε = 1"),
        (ApproxDP(epsilon=0.5, delta=1e-5), "(ε, δ)-differential privacy with ε = 0.5, δ = 10⁻⁵"),
        (GaussianDP(1.0), "Gaussian differential privacy with μ = 1"),
        (parse_claim("zcdp(rho=0.1)"), "zero-concentrated differential privacy with ρ = 0.1"),
        (LaplaceDP(1.0), "the privacy of Laplace noise with ε = 1"),
        (parse_claim("group(pure(epsilon=1), k=2)"), parse_claim("group(pure(epsilon=1), k=2)").label),
    ],
)
def test_a_claim_is_told_in_words(claim: Any, expected: str) -> None:
    assert words(claim_in_words(claim)) == expected


@pytest.mark.parametrize(
    ("detectable", "expected"),
    [
        ("gaussian(mu=1.27341)", "μ = 1.274"),
        ("pure(epsilon=2)", "pure(epsilon=2)"),
    ],
)
def test_what_would_have_been_found_is_in_the_parameter_of_the_claim_if_it_is_of_its_kind(
    detectable: str, expected: str
) -> None:
    seen = dataclasses.replace(sample.no_violation().detectable, claim=detectable)
    result = dataclasses.replace(sample.no_violation(), detectable=seen)
    assert words(least_found_in_words(result)) == expected
    assert (least_found(result) is not None) == expected.startswith("μ")


def test_the_query_that_gives_a_record_away_is_stated_before_the_counts(tmp_path: Path) -> None:
    query = "rows with city = Ulm: 0 without the record, 1 to 4 with it"
    plain, told = frozen(), frozen(query=query)
    for text in (markdown(told), pages([told], tmp_path).pages[0].extract_text()):
        said = " ".join(re.sub("</?b>", "", text).split())
        assert f"In the released tables: {query}." in said
        assert said.index(query) < said.index("60 of 200")
    assert "In the released tables" not in markdown(plain)


def test_the_pictures_say_what_the_verdict_says() -> None:
    panel, _ = beside(frozen())
    assert panel is not None
    for label in ("without the record: 3 of 200", "with the record: 60 of 200", "with the record: 25 of 200"):
        assert label in panel.svg()
        assert label in panel.alt
    nothing, meaning = beside(with_witness(sample.no_violation(), **FAR))
    assert nothing is not None
    assert "proven: ≥\u00a00.8719" in nothing.svg()
    assert "would have been found (90\u00a0%, best case): from 1.12" in nothing.svg()
    assert meaning.startswith(
        "Nothing is known above the proven bound. The last bar shows the violations that an optimal"
    )
    alone, meaning = beside(dataclasses.replace(sample.violation(), witness=None))
    assert alone is not None
    assert "would have been found" not in alone.svg() + meaning  # a violation was found
    assert beside(dependent()) == (None, "")
    guesses, _ = beside(one_run(4.0))
    assert guesses is not None
    assert "right guesses: 303 of 310" in guesses.svg()
