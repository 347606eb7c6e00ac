"""Repeated outputs that are not whole.  The seed decides."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.engine.pools import pool_words


def test_a_pool_is_told_from_grids_candidates_and_shared_values() -> None:
    rng = np.random.default_rng(0)
    pools = rng.normal(size=(2, 20))
    drawn = [list(rng.choice(pool, size=200)) for pool in pools]
    grids = [list(0.1 * rng.integers(-9, 9, size=200) + 0.1234567890123 * side) for side in (0, 1)]
    shared = [list(np.log(20 + rng.integers(9, size=200))) for _ in (0, 1)]
    whole = [list(rng.integers(9, size=200).astype(float)) for _ in (0, 1)]
    fresh_noise = [list(rng.normal(size=200)) for _ in (0, 1)]
    nothing = [[0], [1]]

    def strong(sides: Any, datasets: Any = nothing) -> bool:
        return bool(pool_words(sides, datasets))

    assert strong(drawn) is True
    assert strong([[[x, 1] for x in side] for side in drawn]) is True
    assert strong([[np.array([x, 1.0]) for x in side] for side in drawn]) is True
    assert strong(drawn, [list(pool) for pool in pools]) is False
    assert strong(grids) is False
    assert strong(shared) is False
    assert strong(whole) is False
    assert strong(fresh_noise) is False
    assert strong([["a", None, 0.5, float("nan")] * 9, [0.5] * 36]) is False
