"""A new warning states its subject, and the words of a warning from a file determine its subject.  Seeds are fixed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import numpy as np
import pytest

import dpaudit_reports
from dpaudit import AuditResult, Pair, audit, audit_one_run
from dpaudit.text.reasons import About, Reason, is_about, nothing_holds
from dpaudit_reports.verdicts import reason, why_inconclusive

PAIR = Pair([0.0], [1.0])


def noise(dataset: list[float], rng: np.random.Generator) -> float:
    return float(sum(dataset) + rng.laplace())


def interrupted(dataset: list[float], rng: np.random.Generator) -> float:
    if (drawn := float(rng.laplace())) > 4.5:
        raise KeyboardInterrupt
    return sum(dataset) + drawn


def failing(dataset: list[float], rng: np.random.Generator) -> float:
    if (drawn := float(rng.laplace())) > 4.5:
        raise ValueError("it broke")
    return sum(dataset) + drawn


def misleading(dataset: list[float], rng: np.random.Generator) -> float:
    if (drawn := float(rng.laplace())) > 4.5:
        raise ValueError("no guarantee holds: 3 are too few to see anything")
    return sum(dataset) + drawn


def legacy(dataset: list[float], rng: np.random.Generator) -> float:
    return float(sum(dataset) + np.random.laplace())  # noqa: NPY002  (the audit must report this)


class Walk:
    """A mechanism whose runs depend on each other."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self, dataset: list[float], rng: np.random.Generator) -> float:
        self.at = 0.99 * self.at + rng.laplace()
        return float(sum(dataset) + self.at)


def few() -> AuditResult:
    return audit(noise, "pure(epsilon=1)", PAIR, trials=8, seed=1)


def few_guesses() -> AuditResult:
    return audit_one_run([1.0, 2.0, 3.0, 4.0], [True, False, True, False], "pure(epsilon=8)")


def of(mechanism: Callable[..., float]) -> Callable[[], AuditResult]:
    return lambda: audit(mechanism, "pure(epsilon=1)", PAIR, trials=1500, seed=2)


CASES: list[tuple[Callable[[], AuditResult], About]] = [
    (few, About.TOO_FEW),
    (few_guesses, About.TOO_FEW),
    (of(interrupted), About.INTERRUPTION),
    (of(failing), About.FAILURE),
    (of(legacy), About.GLOBAL_STATE),
    (of(Walk()), About.DEPENDENT),
]


@pytest.mark.parametrize(("make", "about"), CASES, ids=lambda case: getattr(case, "name", ""))
def test_a_warning_is_about_the_same_when_it_is_read_back(make: Callable[[], AuditResult], about: About) -> None:
    result = make()
    again = AuditResult.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again.warnings == result.warnings
    assert any(is_about(warning, about) for warning in result.warnings)
    for fresh, read in zip(result.warnings, again.warnings, strict=True):
        assert isinstance(fresh, Reason)
        assert not isinstance(read, Reason)
        assert [is_about(fresh, one) for one in About if one is not About.OTHER] == [
            is_about(read, one) for one in About if one is not About.OTHER
        ]
    assert why_inconclusive(again) == why_inconclusive(result)
    assert reason(again).startswith("The file states: “" if reason(result) else "")
    fresh_words = dataclasses.replace(again, warnings=result.warnings)  # only the quotation of a reason differs
    assert dpaudit_reports.to_markdown([fresh_words]) == dpaudit_reports.to_markdown([result])


def test_the_words_of_an_exception_do_not_say_why_an_audit_ended() -> None:
    result = of(misleading)()
    assert [is_about(warning, About.FAILURE) for warning in result.warnings] == [True]
    assert not any(map(nothing_holds, result.warnings))
    assert why_inconclusive(result) == result.warnings


def test_a_result_writes_plain_text() -> None:
    warnings = few().to_dict()["warnings"]
    assert {type(warning) for warning in warnings} == {str}
