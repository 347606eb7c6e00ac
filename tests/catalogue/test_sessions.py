"""The builtin sessions keep or break their promises, by enumeration of all noise and by audits."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest

from dpaudit import audit_interactive
from dpaudit.catalogue.sessions import SESSIONS
from dpaudit.running.sessions import Refused

ENUMERATED = {  # queries of a session, and the largest noise that is not left out
    "uncharged_refusals": (2, 12),
    "charge_after": (2, 5),
    "refund_on_exception": (2, 12),
    "float_steps": (4, 4),
    "less_for_less_or_equal": (3, 5),
    "overlapping_parts": (3, 5),
    "cached_charge": (3, 5),
    "advanced_for_adaptive": (2, 12),
}
_RIGHT = [name for name in SESSIONS if SESSIONS[name].right]
MENDED = dict(zip([name for name in SESSIONS if name not in _RIGHT], _RIGHT, strict=True))
LIMITS = {"uncharged_refusals": 250, "shared_generator": 250, "sparse_vector_never_closes": 3000}


class Unscripted(Exception):
    """A session draws more noise than the script has."""


class Scripted:
    """A generator whose two-sided geometric noise is that of a script, and which multiplies its probabilities."""

    def __init__(self, script: Sequence[int]) -> None:
        self.script, self.chance = list(script), 1.0

    def geometric(self, p: float, size: int) -> Any:
        if not self.script:
            raise Unscripted
        noise = self.script.pop(0)
        self.chance *= p / (2 - p) * (1 - p) ** abs(noise)
        return np.array([1 + max(noise, 0), 1 + max(-noise, 0)])


def transcripts(open_session: Callable[..., Any], dataset: object, asks: int, wide: int) -> dict[Any, float]:
    """Return the probability of each transcript with an analyst who asks all queries in turn."""
    found: dict[Any, float] = defaultdict(float)
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        rng = Scripted(script := scripts.pop())
        try:
            session = open_session(dataset, rng)
            steps: list[Any] = []
            for place in range(asks):
                try:
                    answer = session.ask(session.queries[place % len(session.queries)])
                except Unscripted:
                    raise
                except Exception as error:
                    answer = f"{type(error).__name__}: {error}"
                steps.append((answer, session.spent))
            found[tuple(steps)] += rng.chance
        except Unscripted:
            scripts += [(*script, noise) for noise in range(-wide, wide + 1)]
    return found


def excess(name: str, asks: int, wide: int) -> float:
    """Return by how much the privacy loss of a transcript exceeds the promise, at most, in both orders."""
    session = SESSIONS[name]
    laws = [transcripts(session.open_session, data, asks, wide) for data in (session.pair.d0, session.pair.d1)]
    allowed = math.inf if session.claim == "reported" else cast(Any, session.claim).epsilon(0.0)
    return max(
        abs(math.log(laws[0][steps] / laws[1][steps])) - min(allowed, steps[-1][1] if allowed == math.inf else allowed)
        for steps in laws[0].keys() & laws[1].keys()
    )


@pytest.mark.parametrize("name", ENUMERATED)
def test_wrong_sessions_break_what_the_mended_ones_attain(name: str) -> None:
    """The noise that is left out changes the ratio of probabilities of a refusal by less than 2 %."""
    assert excess(name, *ENUMERATED[name]) > 0.5
    assert -0.02 < excess(MENDED[name], *ENUMERATED[name]) < 0.02


def test_the_sparse_vector_keeps_its_promise() -> None:
    assert excess("sparse_vector", 2, 8) < 0.05


def test_children_with_one_seed_have_the_same_noise() -> None:
    for name, same in (("shared_generator", True), ("separate_generators", False)):
        opened = [SESSIONS[name].open_session([0, 1], np.random.default_rng(seed)) for seed in range(30)]
        assert all(session.ask(0) == session.ask(1) for session in opened) == same


def test_the_budget_is_a_parameter() -> None:
    for session in SESSIONS.values():
        opened = session.open_session(session.pair.d0, np.random.default_rng(1), budget=8.0)
        assert opened.budget == 8.0
        with pytest.raises(ValueError, match="budget must be > 0"):
            session.open_session(session.pair.d0, np.random.default_rng(1), budget=0.0)


def test_a_spent_budget_refuses() -> None:
    session = SESSIONS["charge_before"]
    opened = session.open_session(session.pair.d1, np.random.default_rng(1), budget=1.0)
    with pytest.raises(Refused, match="spent"):
        opened.ask(2.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_wrong_sessions_are_refuted(name: str) -> None:
    session = SESSIONS[name]
    settings: dict[str, Any] = {"sessions": LIMITS[name], "confirm": "never", "seed": 1}
    assert audit_interactive(session.open_session, session.claim, session.pair, **settings).violated


@pytest.mark.slow
@pytest.mark.parametrize("name", MENDED.values())
def test_right_sessions_are_not_refuted(name: str) -> None:  # fails by chance < 1 in 10**6
    session = SESSIONS[name]
    settings: dict[str, Any] = {"sessions": 200, "confidence": 1 - 1e-8, "confirm": "never"}
    assert not audit_interactive(session.open_session, session.claim, session.pair, **settings).violated
