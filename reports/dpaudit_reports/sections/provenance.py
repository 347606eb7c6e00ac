"""Where the numbers come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block, Code, Heading, KeyValues, Listing, Paragraph, Text
from dpaudit_reports.numbers import count, seconds

_ELSEWHERE = (
    "command",
    "audit",
    "outputs",
    "first outputs",
    "seconds of attacks",
)  # in `repeat`, below, and with the attacks

_MOST_LISTED = 40  # files or packages; a longer list would fill pages
_FIRST = ("mechanism", "packages of the mechanism", "claim stated by", "source")  # what was audited, and who says so


def provenance(result: AuditResult) -> tuple[Block, ...]:
    """All that is recorded about the run, a fingerprint of its evidence, and the config."""
    runs = f"{count(result.trials_used)} of at most {count(result.trials_allowed)} per dataset"
    if result.evidence.once:
        runs = "one"
    about = [(key, result.environment[key]) for key in _FIRST if key in result.environment]
    about += [(key, value) for key, value in result.environment.items() if key not in _FIRST]
    config = result.environment.get("audit")
    return (
        Heading("Provenance"),
        KeyValues(
            (
                *((str(key), _value(value)) for key, value in about if key not in _ELSEWHERE),
                ("runs", runs),
                ("stopped by", result.stopped_by),
                ("elapsed", seconds(result.elapsed_s)),
                ("outputs", (Code(str(outputs)),) if (outputs := result.environment.get("outputs")) else "–"),
                ("counts", (Code(f"sha256:{result.evidence.fingerprint()}"),)),
            )
        ),
        *((Paragraph("The config of the audit:", quiet=True), Listing(str(config).strip())) if config else ()),
    )


def _value(value: Any) -> Text:
    match value:
        case None | "":
            return "–"
        case Mapping() if len(value) > _MOST_LISTED:
            return f"{count(len(value))}, listed in the JSON of the result"
        case Mapping():
            return ", ".join(f"{name} {_scalar(part)}" for name, part in value.items()) or "–"
        case list() | tuple():
            return ", ".join(_scalar(part) for part in value) or "–"
        case _:
            return str(value)


def _scalar(value: Any) -> str:
    nested = isinstance(value, dict | list | tuple)
    return json.dumps(value, ensure_ascii=False, default=str) if nested else str(value)
