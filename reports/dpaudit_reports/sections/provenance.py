"""Shows the provenance of the result."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dpaudit.result.evidence import spent
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import key
from dpaudit.text.rounding import count, seconds
from dpaudit_reports.blocks import Block, Code, Heading, KeyValues, Listing, Paragraph, Text

# Fields that are shown elsewhere or are of no use to readers, and fields that come first: the code, and its claim.
_ELSEWHERE = ("command", "audit", "identity", "outputs", "first_outputs", "attack_seconds")
_FIRST = tuple(map(key, ("mechanism", "mechanism_packages", "claim_stated_by", "source")))

SEED = (
    "If the mechanism uses only the random generator that it receives, the same seed and versions give the same "
    "outputs, verdict and bounds. A mechanism with another source of randomness gives different outputs, but the "
    "guarantee is the same."
)


def provenance(result: AuditResult) -> tuple[Block, ...]:
    """Return the recorded facts about the audit, the fingerprint of its evidence, and the config."""
    config = result.provenance.audit
    return (
        Heading("Provenance"),
        KeyValues(origin(result)),
        Paragraph(SEED, quiet=True),
        *((Heading("Config"), Listing(config.strip())) if config else ()),
    )


def origin(result: AuditResult) -> tuple[tuple[str, Text], ...]:
    """Return the names and values of the recorded facts, without the config."""
    runs = f"{count(result.trials_used)} of at most {count(result.trials_allowed)} per dataset"
    if not result.evidence.of_pairs or result.evidence.words.data:
        runs = "one" if result.evidence.once else spent(result.evidence, result.trials_used)
    shown = result.provenance.besides(*_ELSEWHERE)
    about = [(name, shown[name]) for name in _FIRST if name in shown]
    about += [(name, value) for name, value in shown.items() if name not in _FIRST]
    outputs = result.provenance.outputs
    return (
        *((str(name), _value(value)) for name, value in about),
        ("runs", runs),
        ("stopped by", result.stopped_by),
        ("elapsed", seconds(result.elapsed_s)),
        ("outputs", (Code(outputs),) if outputs else "–"),
        ("counts", (Code(f"sha256:{result.evidence.fingerprint()}"),)),
    )


def _value(value: object) -> Text:
    match value:
        case None | "":
            return "–"
        case Mapping() if len(value) > 40:  # files or packages, which would fill pages
            return f"{count(len(value))}, listed in the JSON of the result"
        case Mapping():
            return ", ".join(f"{name} {_scalar(part)}" for name, part in value.items()) or "–"
        case list() | tuple():
            return ", ".join(_scalar(part) for part in value) or "–"
        case _:
            return str(value)


def _scalar(value: object) -> str:
    nested = isinstance(value, dict | list | tuple)
    return json.dumps(value, ensure_ascii=False, default=str) if nested else str(value)
