"""The attack knn counts the votes of the nearest outputs, whatever the size of the leaves of its tree."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.outputs import Scale
from dpaudit_attacks.knn import NearestNeighbours


@pytest.mark.parametrize("columns", [2, 4, 5, 10])
def test_votes_are_those_of_the_nearest_outputs(columns: int) -> None:
    rng = np.random.default_rng(columns)
    outputs0, outputs1, fresh = (rng.normal(shift, 1, (n, columns)) for shift, n in ((0, 300), (1, 300), (0.5, 50)))
    scores = NearestNeighbours().fit(outputs0, outputs1, rng)(fresh)
    rows = np.concatenate([outputs0, outputs1])
    scale = Scale.of(rows)
    distances = np.linalg.norm(scale(fresh)[:, None] - scale(rows)[None], axis=2)
    k = round(2 * len(rows) ** 0.5)
    votes = (np.argsort(distances, axis=1)[:, :k] >= 300).sum(axis=1)
    assert np.array_equal(scores, np.log((votes + 1) / (k - votes + 1)))


def test_outputs_at_equal_distances_have_the_same_scores_in_any_block() -> None:
    rng = np.random.default_rng(0)
    outputs0, outputs1 = rng.integers(0, 2, (2, 400, 6)).astype(float)
    score = NearestNeighbours().fit(outputs0, outputs1, rng)
    whole = score(outputs0)
    assert np.array_equal(whole[[5]], score(outputs0[[5]]))
    assert np.array_equal(whole[::-1], score(outputs0[::-1]))
