"""Numbers are readable, and bounds are never rounded to the wrong side."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.rounding import at_least, at_most, count, number, percent, seconds

_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def read(shown: str) -> Decimal:
    """Return the number that a reader sees."""
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


def test_a_p_value_is_never_shown_as_zero() -> None:
    assert at_most(1e-300) == "≤\u00a010⁻³⁰⁰"
    assert at_most(0.0499999) == "≤\u00a00.05"


@pytest.mark.parametrize(
    ("rate", "shown"),
    [
        (0.95, "95 %"),
        (0.99999, "99.999 %"),
        (1.0, "100 %"),
        (0.0, "0 %"),
        (0.07, "7 %"),
        (math.nan, "not known"),
    ],
)
def test_percent(rate: float, shown: str) -> None:
    assert percent(rate).replace("\u00a0", " ") == shown


def test_counts_and_durations() -> None:
    assert count(1234567) == "1,234,567"
    assert [seconds(s).replace("\u00a0", " ") for s in (3.217, 119.0, 600, 36000, math.nan)] == [
        "3.22 s",
        "119 s",
        "10 min",
        "10 h 0 min",
        "not known",
    ]
