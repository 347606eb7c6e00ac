"""The score of an output depends only on that output and not on others in its block.  The guarantee relies on this."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit.learning import Learner
from dpaudit.learning.attack import attack_classes, resolve_attacks
from dpaudit.outputs.bits import bits

rng = np.random.default_rng(0)
INTEGERS = [int(value) for value in rng.integers(-(2**20), 2**20, 400)]
LARGE = [2**60 + 2 * int(value) + 1 for value in rng.integers(0, 2**20, 400)]
FLOATS = [float(value) for value in rng.normal(size=400)]
STRANGERS: list[Any] = [5.0, 7, math.nan, math.inf, None, "x", 2**61 + 1, 2**70, True, -0.0, (1, 2), [3.5]]


@pytest.mark.parametrize("name", list(attack_classes()))
@pytest.mark.parametrize("past", [INTEGERS, LARGE, FLOATS], ids=["integers", "large integers", "floats"])
def test_a_score_does_not_depend_on_other_outputs_of_the_block(name: str, past: list[Any]) -> None:
    learner = Learner(resolve_attacks(name), 0, 0)
    shifted = [value + 1 if isinstance(value, int) else value + 0.5 for value in past]
    learner.learn(*learner.read(past, shifted))
    if not learner.ready:
        pytest.skip("the attack is not applicable to these outputs")
    fresh = [*past[:20], *shifted[:20]]
    alone = np.concatenate([learner.score(learner.read([output], [output])[0]) for output in fresh])
    for stranger in STRANGERS:
        for mixed, at in (([*fresh, stranger], slice(0, 40)), ([stranger, *fresh], slice(1, 41))):
            assert learner.score(learner.read(mixed, mixed)[0])[at] == pytest.approx(alone, abs=1e-8), stranger


@pytest.mark.parametrize("name", list(attack_classes()))
def test_a_score_does_not_depend_on_the_type_of_the_array(name: str) -> None:
    """A NaN turns a batch of integers into floats."""
    learner = Learner(resolve_attacks(name), 0, 0)
    past = np.array(INTEGERS)
    learner.learn(*learner.read(past, past + 1))
    if not learner.ready:
        pytest.skip("the attack is not applicable to these outputs")
    fresh = past[:40]
    alone = learner.score(learner.read(fresh, fresh)[0])
    mixed = np.append(fresh.astype(float), math.nan)
    assert learner.score(learner.read(mixed, mixed)[0])[:40] == pytest.approx(alone, abs=1e-8)


def test_bits_are_those_of_the_value() -> None:
    values = [
        0,
        1,
        -1,
        3,
        -5,
        255,
        256,
        -256,
        257,
        -1000,
        2**31 + 1,
        -(2**40) - 3,
        2**52 + 5,
        2**53,
        -(2**53),
        2**60,
        2**62,
    ]
    whole = bits(np.array(values))
    assert bits(np.array(values, dtype=np.float64)).tolist() == whole.tolist()
    assert bits(values).tolist() == whole.tolist()
    assert bits([float(value) for value in values]).tolist() == whole.tolist()
