"""The file of a saved stream is checked completely, because anybody may have edited it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from dpaudit import OnlineAudit
from dpaudit.engine import online_state


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Any]:
    stream = OnlineAudit("gaussian(mu=1)", attacks="median_clipped", seed=0)
    for _ in range(40):
        stream.update(float(stream.coin()))
    stream.to_json(tmp_path / "s.json")
    found: dict[str, Any] = json.loads((tmp_path / "s.json").read_text())
    return found


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"steps": 1e999}, "steps: "),
        ({"steps": 2**60}, "steps: "),
        ({"steps": True}, "steps: "),
        ({"steps": 3}, "more outputs or later steps than its 3 steps"),
        ({"seed": -1}, "seed: "),
        ({"confidence": 1}, "confidence: "),
        ({"most": 10**400}, "most: "),
        ({"most": 1e9}, "contradicts refuted_at = None"),
        ({"most": 50.0, "refuted_at": 20}, "largest wealth give"),
        ({"refuted_at": 7}, "contradicts refuted_at = 7"),
        ({"refuted_at": 1e999}, "refuted_at: "),
        ({"path": [[1, 1e999]]}, "path.0.1: "),
        ({"path": [[10**30, 0.0]]}, "path.0.0: "),
        ({"path": [[1, 0.0]] * 1000}, "path: "),
        ({"outputs": [[2, "Tg=="]]}, "outputs.0.0: "),
        ({"outputs": [[0, "?"]]}, "base64|characters|padding"),
        (
            {"outputs": [[0, base64.b64encode(b"l\x01\0\0\0\0\0\0\0" * 5000).decode()]]},
            "not an encoded value|too deeply",
        ),
        ({"counts": [[[1, 2**40]], []]}, "counts more outputs than its 40 steps"),
        ({"counts": [[[0, 0]] * 2**15, []]}, "more than 32,768 lists"),
        ({"peak": [[], [0] * 2**17]}, "more than 32,768 lists or 131,072 values"),
        ({"claim": "a" * 5000}, "claim"),
        ({"claim": "repeated(laplace(epsilon=1), n=1e18)"}, "needs a grid of more than"),
        ({"attacks": {"a": 1}}, "attacks"),
        ({"format": "dpaudit-online/9"}, "its format is"),
    ],
)
def test_an_impossible_state_is_refused(changed: dict[str, Any], words: str, saved: Any, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(saved | changed))
    with pytest.raises(ValueError, match=f"is not a stream of dpaudit.*({words})") as error:
        OnlineAudit.from_json(tmp_path / "s.json")
    assert len(str(error.value)) < 700


def test_the_state_itself_is_read(saved: Any, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(saved | {"a key of a later version": 1}))
    assert OnlineAudit.from_json(tmp_path / "s.json").steps == 40


def test_a_stream_of_large_outputs_saves_the_latest_that_it_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = OnlineAudit("gaussian(mu=1)", attacks="median_clipped", seed=0)
    for step in range(40):
        stream.coin()
        stream.update([float(step)] * 20)
    monkeypatch.setattr(online_state, "MAX_STATE_BYTES", 10_000)
    stream.to_json(tmp_path / "s.json")
    outputs = json.loads((tmp_path / "s.json").read_text())["outputs"]
    assert 5 < len(outputs) < 40
    assert online_state.decoded(outputs[-1][1])[0] == 39.0
    assert sum(len(text) for _, text in outputs) <= 5_000
    again = OnlineAudit.from_json(tmp_path / "s.json")
    assert (again.steps, again.log_e) == (40, stream.log_e)
