"""Scripts of `dpaudit reproduce` that once described another dataset, another call or another event than the audit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpaudit import AuditResult, Pair, PureDP, audit
from dpaudit.pairs.brief import MAX_DATASET, brief
from dpaudit.reproduce.script import script_of
from dpaudit.reproduce.unwritable import Unwritable
from dpaudit.result.values import PairRow


@pytest.fixture(scope="module")
def found() -> AuditResult:
    """Return a violation.  The audit has a seed, so that it always finds the violation."""

    def released(dataset: list[int], rng: np.random.Generator) -> float:
        return dataset[0] + rng.laplace(0.0, 0.01)

    return audit(released, PureDP(1.0), Pair([0], [1], label="edge"), attacks="median_clipped", seed=1)


def of_config(found: AuditResult, *, mechanism: str = "", pairs: str = "", rows: tuple[Pair, ...] = ()) -> AuditResult:
    """Return the result as that of a config."""
    mechanism = mechanism or "{builtin: laplace, params: {scale: 0.01}}"
    text = f"name: x\nclaim: pure(epsilon=1)\nmechanism: {mechanism}\npairs: {pairs or '[{d0: [0], d1: [1], label: edge}]'}\n"
    return replace(found, provenance=replace(found.provenance, audit=text), pairs=table(rows) or found.pairs)


def table(pairs: tuple[Pair, ...]) -> tuple[PairRow, ...]:
    """Return rows of a result."""
    return tuple(
        PairRow(
            label=str(pair),
            relation=pair.relation,
            d0=brief(pair.d0, MAX_DATASET),
            d1=brief(pair.d1, MAX_DATASET),
            trials=10,
            log_e=0.0,
        )
        for pair in pairs
    )


@pytest.mark.parametrize(
    "other",
    ["{d0: [0], d1: [0], label: edge}", "{d0: [0], d1: [30], label: edge}"],
)
def test_two_pairs_with_one_label_are_refused(found: AuditResult, other: str) -> None:
    """The script held the first of the pairs, although the witness may belong to the second."""
    pairs = f"[{other}, {{d0: [0], d1: [1], label: edge}}]"
    rows = (Pair([0], [0 if "[0], l" in other else 30], label="edge"), Pair([0], [1], label="edge"))
    with pytest.raises(Unwritable, match="several pairs of the audit can be 'edge'"):
        script_of(of_config(found, pairs=pairs, rows=rows))
    with pytest.raises(Unwritable, match="several pairs"):
        script_of(replace(found, pairs=table(rows)))
    with pytest.raises(Unwritable, match="no pair of the audit"):
        script_of(of_config(found, pairs=f"[{other}]"))


def test_a_label_that_two_pairs_shared_is_clear_if_the_texts_of_the_result_are(found: AuditResult) -> None:
    pairs = "[{d0: [0], d1: [30], label: edge}, {d0: [0], d1: [1], label: edge}]"
    assert "D1 = [1]\n" in script_of(of_config(found, pairs=pairs)).text


def test_equal_beginnings_of_long_datasets_are_refused(found: AuditResult) -> None:
    """Labels and texts of both pairs are equal, because the datasets differ after 200 characters only."""
    long = [Pair([0] * 300, [0] * 300 + [last], label="edge") for last in (1, 2)]
    pairs = ", ".join(f"{{d0: {pair.d0}, d1: {pair.d1}, label: edge}}" for pair in long)
    with pytest.raises(Unwritable, match="several pairs"):
        script_of(of_config(found, pairs=f"[{pairs}]", rows=tuple(long)))


def test_rounded_texts_of_datasets_become_places_to_fill_in(found: AuditResult) -> None:
    rows = table((Pair(np.array([0.123456789012]), "a  b", label="edge"),))
    script = script_of(replace(found, pairs=rows))
    assert "D0 = ...  # FILL IN: array([0.12345679])\nD1 = ...  # FILL IN: 'a b'\n" in script.text
    assert script.missing[1:] == ("write the dataset D0", "write the dataset D1")
