"""Names and objects are resolved to attacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.learning.attack import resolve_attacks
from dpaudit_attacks.logistic import Logistic


class User:
    """An attack with a setting."""

    name = "user"

    def __init__(self, score: Any) -> None:
        self.score = score

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        return self.score


def test_no_attack_is_listed_twice() -> None:
    automatic = [attack.name for attack in resolve_attacks("auto")]
    assert len(set(automatic)) == len(automatic)
    assert [attack.name for attack in resolve_attacks(["auto", "logistic", Logistic(), "auto"])] == automatic
    user = User(np.log)
    assert resolve_attacks([user, user, "logistic", "logistic"]) == [user, Logistic()]
    assert len(resolve_attacks([User(np.log), User(np.exp)])) == 2
    assert len(resolve_attacks([User(np.array([1, 2])), User(np.array([1, 3]))])) == 2  # cannot be compared
