"""Families of claims that are written as text, with any one parameter free."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.claims import parse_claim
from dpaudit.inference.grid import BINS
from dpaudit.inference.scores.families import MAX_WHOLE, TextFamily, epsilon_inside, family_of, text_family
from dpaudit.result.evidence import FixedEvidence, bound_inside

COUNTS = np.zeros((2, BINS), dtype=np.int64)
COUNTS[:, [BINS // 2, BINS // 2 + 1]] = [[320, 80], [80, 320]]
EVIDENCE = FixedEvidence(pair=0, threshold=BINS // 2, pilot=COUNTS, counts=COUNTS)


def refuted(text: str, parameter: float) -> bool:
    shown = str(int(parameter)) if parameter == int(parameter) else repr(parameter)
    return EVIDENCE.p_value(parse_claim(text.replace("?", shown)).symmetrized()) <= 0.05


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("mu=?", "gaussian(mu=?)"),
        ("rho=?", "zcdp(rho=?)"),
        ("(?, 1e-5)", "approximate(epsilon=?, delta=1e-5)"),
        ("(0.1, ?)", "approximate(epsilon=0.1, delta=?)"),
        ("gaussian(?)", "gaussian(mu=?)"),
        ("repeated(gaussian(μ=?), n=4)", "repeated(gaussian(mu=?), n=4)"),
    ],
)
def test_short_forms_and_positions_name_the_same_parameter(text: str, complete: str) -> None:
    for place in (0.5, 21.0):
        assert text_family(text)(place) == text_family(complete)(place)


@pytest.mark.parametrize(
    "text",
    [
        "repeated(gaussian(mu=0.1), n=?)",
        "repeated(pure(epsilon=0.1), n=?)",
        "group(gaussian(mu=0.3), k=?)",
        "repeated(group(gaussian(mu=0.1), k=?), n=4)",
    ],
)
def test_bounds_of_whole_numbers_are_the_largest_refuted(text: str) -> None:
    bound = bound_inside(EVIDENCE, 1e-5, text, confidence=0.95, valid=True)
    assert bound.parameter == int(bound.parameter) > 1
    assert refuted(text, bound.parameter)
    assert not refuted(text, math.ceil(1.005 * bound.parameter) + 1)
    assert float(bound) == parse_claim(text.replace("?", str(int(bound.parameter)))).epsilon(1e-5)


@pytest.mark.parametrize("text", ["approximate(epsilon=0.1, delta=?)", "subsampled(gaussian(mu=3), rate=?)"])
def test_bounds_of_shares_lie_between_0_and_1(text: str) -> None:
    bound = bound_inside(EVIDENCE, 0.3, text, confidence=0.95, valid=True)
    assert 0 < bound.parameter < 1
    assert refuted(text, 0.999 * bound.parameter)
    assert not refuted(text, 1.003 * bound.parameter)


def test_parameters_cover_their_range_and_do_not_fall() -> None:
    places = [0.0, 1e-6, *(i / 4 for i in range(1, 257))]
    for name, first, last in (("n=?", 1.0, MAX_WHOLE), ("delta=?", 2e-9, 1.0), ("rate=?", 2e-9, 1.0)):
        values = [TextFamily("", name[:-2], "", "").parameter(place) for place in places]
        assert values == sorted(values)
        assert values[0] == pytest.approx(first, rel=0.1)
        assert values[-1] == pytest.approx(last)
    assert text_family("approximate(epsilon=1, delta=?)")(64.0).delta(0.0) < math.nextafter(1.0, 2.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("repeated(gaussian(mu=0.1) n=?)", "must take the place of a number"),
        ("renyi(order=?, epsilon=1)", "takes the place of order; allowed are mu, epsilon"),
        (
            "repeated(gaussian(mu=-1), n=?)",
            r"gaussian\(mu=-1\), n=\?\)' has no member at n = 2: mu",
        ),
        ("(" * 20_000 + "?", "20,001 characters"),
    ],
)
def test_texts_that_are_no_family_are_explained(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        family_of(text)(1.0)


def test_epsilon_is_that_of_the_parameter() -> None:
    family = family_of("repeated(gaussian(mu=0.1), n=?)")
    assert epsilon_inside(family, math.log(4.5), 1e-5) == parse_claim("repeated(gaussian(mu=0.1), n=4)").epsilon(1e-5)
