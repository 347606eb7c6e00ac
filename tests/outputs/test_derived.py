"""Derived columns agree with plain loops over single numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit.numerics import Array
from dpaudit.outputs import derived, derived_names


def decimals(number: float) -> int:
    """Return the least number of decimals, up to 6, to which a number equals its rounded value; otherwise 7."""
    return next((digits for digits in range(7) if float(np.round(number, digits)) == number), 7)


def denominator(number: float) -> int:
    """Return the least denominator up to 12, with a relative tolerance of 1e-12; otherwise 13."""
    for q in range(1, 13):
        multiple = number * q
        if abs(multiple) < 1e9 and abs(multiple - round(multiple)) <= 1e-12 * max(1.0, abs(multiple)):
            return q
    return 13


def numbers(kind: str) -> Array:
    return np.asarray(_numbers(kind), dtype=np.float64)


def _numbers(kind: str) -> Any:
    rng = np.random.default_rng(0)
    wholes = rng.integers(-(10**6), 10**6, 400)
    match kind:
        case "noise":
            return rng.normal(size=400)
        case "rounded":
            return np.round(rng.normal(size=400) * 10.0 ** rng.integers(0, 9, 400), rng.integers(1, 8))
        case "fractions":
            return wholes / rng.integers(1, 15, 400)
        case "near fractions":  # within about the tolerance
            return wholes / rng.integers(1, 13, 400) * (1 + rng.uniform(-3e-12, 3e-12, 400))
        case "near decimals":
            return np.nextafter(np.round(rng.normal(size=400), 4), rng.choice([-9.0, 0.0, 9.0], 400))
        case "every magnitude":
            return rng.choice([-1.0, 1.0], 400) * 10.0 ** rng.uniform(-320, 308, 400)
        case _:
            return np.array([0.0, -0.0, 1.0, 5e-324, 1e300, 1.7e308, 2.0**53, 2.0**53 + 2, 1e9 / 7, 1 / 27720, 1e-6])


@pytest.mark.parametrize(
    "kind", ["noise", "rounded", "fractions", "near fractions", "near decimals", "every magnitude", "special"]
)
def test_decimals_and_denominators_are_those_of_a_plain_loop(kind: str) -> None:
    column = numbers(kind)
    found = derived(column[:, None])
    names = derived_names([("x",)])
    with np.errstate(over="ignore", invalid="ignore"):
        assert found[:, names.index(("decimals of {}", ("x",)))].tolist() == [decimals(float(x)) for x in column]
        whole = [denominator(float(x)) if math.isfinite(x * 12) else 13 for x in column]
    assert found[:, names.index(("denominator of {}", ("x",)))].tolist() == whole


def test_numbers_that_are_not_finite_have_no_decimals_and_no_denominator() -> None:
    names = derived_names([("x",)])
    found = derived(np.array([[np.nan], [np.inf], [-np.inf], [0.5]]))
    assert found[:, names.index(("decimals of {}", ("x",)))].tolist() == [7, 7, 7, 1]
    assert found[:, names.index(("denominator of {}", ("x",)))].tolist() == [13, 13, 13, 2]
