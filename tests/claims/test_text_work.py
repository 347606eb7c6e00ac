"""The text of a claim may not ask for minutes of accounting, and claims within the limits are read."""

from __future__ import annotations

import re

import pytest

from dpaudit.claims import parse_claim


def _composed(term: str, many: int) -> str:
    return f"compose({', '.join(term.format(1 + i / 1000) for i in range(many))})"


SAMPLED_TERM = "subsampled(gaussian(mu={}), rate=0.01)"
GROUPED_TERM = f"group(repeated({SAMPLED_TERM}, n=1000000000000), k=2)"
ORDERS = [2 + i for i in range(300)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_composed(SAMPLED_TERM, 61), "has 61 terms such as group, privacy_loss, renyi, subsampled, tabulated"),
        (_composed("renyi(order=2{}, epsilon=0.01)", 450), "has 450 terms"),
        (_composed(GROUPED_TERM, 4), "has 4 compositions inside group, subsampled, symmetrized or inverse"),
        (_composed(f"symmetrized(compose(laplace(epsilon={{}}), {GROUPED_TERM.format(1)}))", 2), "has 4 compositions"),
        (_composed(f"renyi(order={ORDERS}, epsilon={ORDERS})", 2), "has 600 orders of renyi; the maximum is 500"),
    ],
)
def test_claims_that_take_minutes_are_refused_before_they_are_computed(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_claim(text)


def test_claims_within_the_limits_of_work_are_read() -> None:
    nested = f"group(compose(repeated({SAMPLED_TERM.format(1)}, n=10), repeated(gaussian(mu=0.1), n=2)), k=2)"
    closed = _composed("subsampled(repeated(gaussian(mu={}), n=4), rate=0.1)", 10)
    for text in (_composed(SAMPLED_TERM, 60), nested, closed, f"renyi(order={ORDERS}, epsilon={ORDERS})"):
        assert parse_claim(str(parse_claim(text))) == parse_claim(text)
