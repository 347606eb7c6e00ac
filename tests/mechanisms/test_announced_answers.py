"""An answer of a worker process that cannot be read."""

from __future__ import annotations

import sys

import pytest

from dpaudit.mechanisms.isolated import answer_of
from dpaudit.mechanisms.processes import Child
from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.mechanisms.wire import HEADER


def test_a_value_nested_too_deeply_is_no_answer() -> None:
    body = b"l\x01\0\0\0\0\0\0\0" * 50_000
    written = f"{HEADER.pack(len(body))!r} + {body[:9]!r} * 50_000"
    code = f"import sys; sys.stdin.buffer.read(9); sys.stdout.buffer.write({written})"
    child = Child([sys.executable, "-c", code], name="the worker")
    with pytest.raises(MechanismError, match="an answer that cannot be read"):
        answer_of(child, {"do": "nothing"}, 60.0, "an answer")
