"""The file of a saved stream."""

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
        ({"steps": 2**60}, "steps: "),
        ({"confidence": 1}, "confidence"),
        ({"path": [[1]]}, "path.0.1: "),
        ({"outputs": [[2, "Tg=="]]}, "outputs.0.0: "),
        ({"outputs": [[0, "?"]]}, "base64|characters|padding"),
        ({"outputs": [[0, base64.b64encode(b"?").decode()]]}, "unknown tag"),
        ({"counts": [[[1, -1]], []]}, "counts >= 0"),
        ({"peak": [[[1, 2**40]], []]}, "no more counts at its peak"),
        ({"claim": "private"}, "private"),
        ({"format": "dpaudit-online/9"}, "format: Input should be 'dpaudit-online/2'"),
    ],
)
def test_a_file_that_is_no_stream_says_where_it_is_wrong(
    changed: dict[str, Any], words: str, saved: Any, tmp_path: Path
) -> None:
    (tmp_path / "s.json").write_text(json.dumps(saved | changed))
    with pytest.raises(ValueError, match=f"is not a stream of dpaudit.*({words})"):
        OnlineAudit.from_json(tmp_path / "s.json")


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
    monkeypatch.setattr(online_state, "MAX_FILE_BYTES", 10_000)
    stream.to_json(tmp_path / "s.json")
    outputs = json.loads((tmp_path / "s.json").read_text())["outputs"]
    assert 5 < len(outputs) < 40
    assert online_state.decoded(outputs[-1][1])[0] == 39.0
    assert sum(len(text) for _, text in outputs) <= 5_000
    again = OnlineAudit.from_json(tmp_path / "s.json")
    assert (again.steps, again.log_e) == (40, stream.log_e)
