"""Where the numbers come from and how to get them again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dpaudit.result import AuditResult
from dpaudit_reports.blocks import Block, Code, Heading, KeyValues, Listing, Paragraph, Text
from dpaudit_reports.numbers import count, seconds


def provenance(result: AuditResult) -> tuple[Block, ...]:
    """All that is recorded about the run, a fingerprint of its evidence, and how to repeat it."""
    runs = f"{count(result.trials_used)} of at most {count(result.trials_allowed)} per dataset"
    return (
        Heading("Provenance"),
        KeyValues(
            (
                *((str(key), _value(value)) for key, value in result.environment.items() if key != "command"),
                ("runs", runs),
                ("elapsed", seconds(result.elapsed_s)),
                ("evidence", (Code(f"sha256:{result.evidence.fingerprint()}"),)),
            )
        ),
        *_repeat(result.environment.get("command")),
    )


def _repeat(command: Any) -> tuple[Block, ...]:
    words = (
        "A mechanism that draws only from the random generator it is given has, with the same seed and "
        "versions, the same result, bit for bit. One with randomness of its own gives new outputs; the "
        "guarantees stay."
    )
    if command is None:
        return (Paragraph(words, quiet=True),)
    return Paragraph(f"{words} To repeat the audit:", quiet=True), Listing(str(command))


def _value(value: Any) -> Text:
    match value:
        case None | "":
            return "–"
        case Mapping():
            return ", ".join(f"{name} {_scalar(part)}" for name, part in value.items()) or "–"
        case list() | tuple():
            return ", ".join(_scalar(part) for part in value) or "–"
        case _:
            return str(value)


def _scalar(value: Any) -> str:
    nested = isinstance(value, dict | list | tuple)
    return json.dumps(value, ensure_ascii=False, default=str) if nested else str(value)
