"""Audits with a store, for the tests of stores."""

from pathlib import Path
from typing import Any

import pytest

from dpaudit import AuditResult, Pair, audit

PAIRS = [Pair([0], [1]), Pair([0], [0.5])]
PAIR = Pair([0], [1])


def stored(mechanism: Any, store: Path, pair: Pair = PAIR, **settings: Any) -> AuditResult:
    chosen: dict[str, Any] = {"trials": 60, "seed": 0, "confidence": 0.95, "attacks": "median_clipped"} | settings
    return audit(mechanism, "gaussian(mu=1)", pair, store=store, **chosen)


def refused(mechanism: Any, store: Path, *parts: str, pair: Pair = PAIR, **settings: Any) -> None:
    before = store.read_bytes()
    with pytest.raises(ValueError, match="trials of another audit") as error:
        stored(mechanism, store, pair, **settings)
    text = str(error.value)
    assert all(f"\n  {part} (" in text for part in parts), text
    assert max(map(len, text.splitlines())) < 300
    assert store.read_bytes() == before


def block(n: int) -> tuple[list[Any], list[Any]]:
    return [("a", n, b"\x00", None, float("nan"))] * n, [{"k": [1.5, 2**70]}] * n
