"""One module rounds all bounds to their safe side, in every medium."""

import ast
import dataclasses
import math
import re
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import AuditResult, GaussianDP, Pair, Verdict, audit
from dpaudit.catalogue import Gaussian
from dpaudit.claims import PureDP, TradeoffFunction, parse_claim
from dpaudit.claims.comparison import violates
from dpaudit.engine.arguments import planned_of
from dpaudit.rounding import (
    at_least,
    at_most,
    lower,
    number,
    percent_at_least,
    percent_at_most,
    percent_beyond,
    rate_at_most,
    upper,
)
from dpaudit.testing.effort import DETECT, violations_of
from dpaudit.testing.messages import violation
from dpaudit.testing.session import Allowance, Settings
from dpaudit_reports import plot_tradeoff, to_markdown
from dpaudit_reports.formats import Run, Screen
from dpaudit_reports.terminal import table_text as text_of_table

from .reports import sample
from .reports.audits import text_of, with_witness
from .reports.test_first_page import counted

NEAR = {**counted(300, 5000, 1675, 5000), "p_value": 0.1}

BOUND = re.compile(r"\b(p_value|\w*_lower|\w*_upper|mu_lower|epsilon_lower|claimed_beta|confidence)\b")
WRITERS = {"lower", "upper", "at_least", "at_most", "percent_at_least", "percent_at_most", "percent_beyond"}
ROUNDERS = {"number", "percent", "round", "format"}  # these round to nearest


def files() -> list[Path]:
    roots = [find_spec(name) for name in ("dpaudit", "dpaudit_attacks", "dpaudit_reports")]
    assert all(spec is not None and spec.origin is not None for spec in roots)
    return [file for spec in roots for file in sorted(Path(str(spec.origin)).parent.rglob("*.py"))]


def roundings_of_bounds(code: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            spec = "".join(str(part.value) for part in ast.walk(node.format_spec) if isinstance(part, ast.Constant))
            calls = any(isinstance(part, ast.Call) and ast.unparse(part.func) in WRITERS for part in ast.walk(node))
            if BOUND.search(ast.unparse(node.value)) and re.search(r"[efgn%]", spec) and not calls:
                found.append(ast.unparse(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ROUNDERS and node.args:
            called = node.args[0]
            names = [part for part in ast.walk(called) if isinstance(part, ast.Name | ast.Attribute)]
            if any(BOUND.search(ast.unparse(name)) for name in names):
                found.append(ast.unparse(node))
    return found


def test_bounds_are_formatted_by_the_module_numbers_only() -> None:
    texts = {file: file.read_text(encoding="utf-8") for file in files()}
    asked = re.compile(
        rf"\{{[^{{}}]*({BOUND.pattern})[^{{}}]*:|\b({'|'.join(ROUNDERS)})\("
    )  # other files are not parsed
    wrong = [
        f"{file}: {code}" for file, text in texts.items() if asked.search(text) for code in roundings_of_bounds(text)
    ]
    assert not wrong, "\n".join(["write these with lower, upper, at_least or at_most of dpaudit.rounding:", *wrong])


def test_the_search_for_formats_of_bounds_finds_them() -> None:
    assert roundings_of_bounds('f"mu >= {result.mu_lower:.3f}"') == ["result.mu_lower"]
    assert roundings_of_bounds('f"{result.epsilon_lower(0.0):.4g} {p_value:.2g}"') == [
        "result.epsilon_lower(0.0)",
        "p_value",
    ]
    assert roundings_of_bounds("percent(1 - self.claimed_beta)") == ["percent(1 - self.claimed_beta)"]
    assert roundings_of_bounds('f"{100 * self.confidence:.9g} %"') == ["100 * self.confidence"]
    assert roundings_of_bounds("number(result.mu_lower)") == ["number(result.mu_lower)"]
    assert not roundings_of_bounds('f"{lower(result.mu_lower)} {result.mu_lower!r} {result.elapsed_s:.1f}"')


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(1, 6))
def test_lower_bounds_are_rounded_down_and_upper_bounds_up(x: float, digits: int) -> None:
    exact = Decimal(repr(x))
    assert Decimal(lower(x, digits).replace(",", "")) <= exact <= Decimal(upper(x, digits).replace(",", ""))


@pytest.mark.parametrize(
    ("x", "over", "shown"),
    [
        (1.00064, 1.0, "1.0006"),  # four digits would show 1
        (1.0000004, 1.0, "1.0000004"),
        (1.0057, 1.0, "1.005"),
        (1.0, 1.0, "1"),
        (0.9999, 1.0, "0.9999"),
        (2.5, float("inf"), "2.5"),
    ],
)
def test_a_bound_above_the_claim_is_seen_to_be_above_it(x: float, over: float, shown: str) -> None:
    assert lower(x, over=over) == shown
    assert at_least(x, over=over) == f"≥\u00a0{shown}"


@pytest.mark.parametrize(
    ("p", "under", "shown"),
    [(0.03026, 0.05, "0.031"), (0.0102, 0.0105, "0.0102"), (0.05, 0.05, "0.05"), (8.83e-7, 0.01, "8.9e-7")],
)
def test_a_p_value_below_the_level_is_seen_to_be_below_it(p: float, under: float, shown: str) -> None:
    assert upper(p, under=under) == shown


@pytest.mark.parametrize(
    ("confidence", "shown", "missed"),
    [
        (0.95, "95", "5"),
        (0.9, "90", "10"),
        (0.9999, "99.99", "0.01"),
        (1 - 1e-10, "99.99999999", "10⁻⁸"),
        (1 - 0.01 / 3, "99.66", "0.334"),  # the nearest numbers are 99.67 and 0.333
    ],
)
def test_a_confidence_is_rounded_down_and_the_rest_up(confidence: float, shown: str, missed: str) -> None:
    assert percent_at_least(confidence) == f"{shown}\u00a0%"
    assert percent_beyond(confidence) == f"{missed}\u00a0%"


@given(st.floats(min_value=0.5, max_value=1, exclude_max=True))
def test_no_confidence_is_overstated(confidence: float) -> None:
    shown = Decimal(percent_at_least(confidence).removesuffix("\u00a0%"))
    assert shown <= 100 * Decimal(repr(confidence)) < 100
    assert 100 - shown <= Decimal("1.1") * (100 - 100 * Decimal(repr(confidence)))


@pytest.fixture(scope="module")
def violated() -> AuditResult:
    options: dict[str, Any] = {"attacks": "logistic", "seed": 3, "confidence": 0.95, "confirm": "never"}
    result = audit(Gaussian(0.5), GaussianDP(1.0), Pair([0], [1]), **options)
    assert result.verdict is Verdict.VIOLATION
    return dataclasses.replace(result, mu_lower=1.00064, p_value=0.03026)


def test_every_medium_rounds_the_bounds_of_a_result_safely(violated: AuditResult) -> None:
    pytest_says = violation(violated, None, 0.05, Allowance(node="", share=1.0, settings=Settings(report=None)))
    for said in (str(violated), pytest_says):
        assert "mu >= 1.0006" in said
        assert "p <= 0.031" in said
    shown = text_of_table(Run.of([violated]), Screen(width=200))
    assert "μ\u00a0≥\u00a01.0006" in shown
    assert "p <= 0.031" in repr(violated)


def test_every_medium_rounds_the_confidence_down(violated: AuditResult) -> None:
    options: dict[str, Any] = {"attacks": "logistic", "seed": 2, "confidence": 1 - 1e-10, "confirm": "never"}
    sure = audit(Gaussian(0.3), GaussianDP(1.0), Pair([0], [1]), **options)
    assert "confidence 99.99999999 %" in str(sure)
    assert "confidence 0.9999999999," in repr(sure)
    report = to_markdown([sure]).replace("\u00a0", " ")
    assert "100 % confidence" not in report
    assert "99.99999999 % confidence" in report
    (band,) = [str(line.get_label()) for line in plot_tradeoff(sure).lines if "upper bound" in str(line.get_label())]
    assert band == "upper bound (99.99999999\u00a0%)"


def test_terminal_and_pdf_write_the_same_p_value(violated: AuditResult, tmp_path: Path) -> None:
    close = dataclasses.replace(violated, p_value=0.0002457, confidence=0.99975, _computed_at=None)
    close.to_pdf(tmp_path / "a.pdf")
    text = " ".join(page.extract_text() for page in pypdf.PdfReader(tmp_path / "a.pdf").pages)
    assert "0.000246" in text  # 0.00025 does not show that it is below the level
    assert "0.000246" in str(close)


@pytest.mark.parametrize("rate", [0.000123, 0.0123, 0.19991, 0.2, 0.55612, 0.99999, 1.0])
def test_the_rounded_rate_is_the_one_that_is_shown(rate: float) -> None:
    shown = percent_at_most(rate).removesuffix("\u00a0%")
    assert rate_at_most(rate) == pytest.approx(float(shown) / 100, rel=1e-12)
    assert rate_at_most(rate) >= rate


@pytest.mark.parametrize("alpha_upper", [0.06001, 0.06123, 0.0649, 0.06999])
def test_the_claim_allows_at_most_the_stated_rate_under_the_stated_condition(alpha_upper: float) -> None:
    """The plain second version computes the limit of the claim from the condition in the text."""
    ends = {"alpha_lower": 0.05, "alpha_upper": alpha_upper, "beta_lower": 0.1, "beta_upper": 0.2}
    limit = 1 - float(GaussianDP(1.0).beta(alpha_upper))
    result = with_witness(sample.violation(), **NEAR, counted="later", **ends, allowed_upper=limit)
    for said in (str(result), text_of(result)):
        found = re.search(
            r"allows at most ([\d.]+)\s%[^%]*?, (?:even )?if (?:d0's rate|the rate of d0) is (?:at most )?([\d.]+)\s%",
            said,
        )
        assert found is not None, said
        allowed, condition = (float(text) / 100 for text in found.groups())
        assert allowed >= 1 - float(result.claim.symmetrized().beta(condition)) - 1e-12


@pytest.mark.parametrize("claim", [GaussianDP(0.0), GaussianDP(1e-3), PureDP(0.0), PureDP(25.0), GaussianDP(12.0)])
def test_planned_violations_of_a_test_are_never_refused(claim: TradeoffFunction) -> None:
    planned_of(violations_of(claim, DETECT), claim, 0.999)


@pytest.mark.parametrize(
    ("claim", "more"),
    [
        ("gaussian(mu=1)", "gaussian(mu=1.0001)"),
        ("(1, 1e-10)", "(1, 9e-10)"),
        ("(1, 1e-8)", "(1, 1.1e-8)"),
        ("pure(1)", "pure(1.00001)"),
    ],
)
def test_a_small_violation_is_a_violation(claim: str, more: str) -> None:
    assert violates(parse_claim(more), parse_claim(claim))
    assert not violates(parse_claim(claim), parse_claim(more))
    assert not violates(parse_claim(claim), parse_claim(claim))


_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def read(shown: str) -> Decimal:
    plain = shown.strip("≥≤\u00a0").replace(",", "").replace("−", "-")
    factor, _, power = plain.partition("\u00a0×\u00a0")
    if bare := re.fullmatch(r"(-?)10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", factor):
        return Decimal(f"{bare[1]}1e{bare[2].translate(_DIGITS)}")
    return Decimal(factor) * (Decimal(10) ** int(power[2:].translate(_DIGITS)) if power else 1)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (20.0, "20"),
        (0.03124, "0.0312"),
        (1250.4, "1,250"),
        (123456.0, "123,000"),
        (3.14159e-7, "3.14\u00a0×\u00a010⁻⁷"),
        (1e-6, "10⁻⁶"),
        (2e300, "2\u00a0×\u00a010³⁰⁰"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "not known"),
        (-0.5, "−0.5"),
    ],
)
def test_number(value: float, shown: str) -> None:
    assert number(value) == shown


@given(st.floats(min_value=-1e300, max_value=1e300))
def test_a_bound_is_rounded_to_its_safe_side(x: float) -> None:
    assert read(at_least(x)) <= Decimal(repr(x)) <= read(at_most(x))
