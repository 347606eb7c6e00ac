"""Compute digests of audit results that change with the evidence, but not with the names of fields.

Each part of a result is read through a public attribute, whose name is stable.  The content of a part and the JSON file
of the result are read without the names of fields.  A dataclass is replaced by the values of its fields, in their
order.  A mapping is replaced by its values in sorted order, and a sequence by its items in their order.  Numbers are
rounded to 12 significant digits.  Times, versions, paths and properties of the machine are omitted.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import AuditResult, TradeoffFunction
from dpaudit.result.summary import witness_words

Digests = dict[str, str]
"""Part -> digest."""

DELTAS = (0.0, 1e-5)  # values of delta at which `epsilon_lower` is compared
_DIGITS = 12
_LETTERS = 8  # length of a digest; two different values have equal digests with probability 2**-32
# matches fingerprints of outputs; fingerprints of files have no colon
_FINGERPRINT = re.compile(r"\w+(:[0-9a-f]{16,})+")
# matches the date of a store or of an entry in a baseline
_DATE = re.compile(r"\b20\d\d-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d)?)?")
_FORMAT = re.compile(r"dpaudit-\w+/\d+")  # matches the name of a file format, which changes if keys are renamed

_FORMER = {"knn": "neighbours", "derived_features": "forms", "plug_in_ratio": "events", "median_clipped": "threshold"}
# matches renamed attacks; every version of dpaudit accepts their former names
_RENAMED = re.compile(rf"\b({'|'.join(_FORMER)})\b")


def written(value: Any) -> str:
    """Convert a value to text without the names of fields and keys.

    A TypeError is raised for an object of an unknown type.
    """
    match value:
        case str():
            return json.dumps(_RENAMED.sub(lambda name: _FORMER[name[0]], value), ensure_ascii=False)
        case None | bool():
            return json.dumps(value)
        case enum.Enum():
            return value.name
        case int() | float() | np.number() | np.bool_():
            return f"{value:.{_DIGITS}g}"
        case np.ndarray():
            return written(value.tolist())
        case TradeoffFunction():
            return written(str(value))
        case Mapping():
            return f"{{{', '.join(sorted(map(written, value.values())))}}}"
        case list() | tuple():
            return f"[{', '.join(map(written, value))}]"
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return f"({', '.join(written(getattr(value, field.name)) for field in dataclasses.fields(value))})"
    raise TypeError(f"{type(value).__name__} has no text without names")


def parts(found: Any, *, left_out: Sequence[Path] = ()) -> dict[str, str]:
    """Return the compared parts of what a kind of audit returned, as text.

    Args:
        found: A result, or a dictionary of results and plain values.
        left_out: Folders whose names are removed from the text.
    """
    plain = {"": found} if isinstance(found, AuditResult) else found
    texts: dict[str, str] = {}
    for name, value in plain.items():
        inner = _of_result(value) if isinstance(value, AuditResult) else {"": value}
        for part, content in inner.items():
            texts[" ".join(filter(None, (name, part)))] = _without(left_out, written(content))
    return texts


def digests(texts: Mapping[str, str]) -> Digests:
    """Return a short digest of the text of each part."""
    return {name: hashlib.sha256(text.encode()).hexdigest()[:_LETTERS] for name, text in texts.items()}


def headline(found: Any) -> str:
    """Summarise a result on one line for messages about a difference; return "" for other objects."""
    if not isinstance(found, AuditResult):
        return ""
    return (
        f"{found.verdict.value}, {found.trials_used} runs, p {found.p_value:.3g}, mu {found.mu_lower:.4g}, "
        f"epsilon {found.epsilon_lower(0.0):.4g}"
    )


def file_content(values: Any) -> Any:
    """Return the compared values of a JSON file, without the name of its format."""
    if isinstance(values, Mapping):
        kept = {key: file_content(value) for key, value in values.items()}
        return {key: value for key, value in kept.items() if value is not _NOTHING}
    if isinstance(values, list):
        return [file_content(value) for value in values]
    return _NOTHING if isinstance(values, str) and _FORMAT.fullmatch(values) else values


_NOTHING = object()


def _of_result(result: AuditResult) -> dict[str, Any]:
    witness = result.witness
    timeless = dataclasses.replace(result, elapsed_s=0.0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        timeless.to_json(file)
        content = json.loads(file.read_text(encoding="utf-8")) | {"environment": {}}
        content.pop("refuted_at", None)  # the history of the audit contains this value, and is compared separately
    return {
        "verdict": [result.verdict, result.violated, result.confidence, result.method, result.claim],
        "p-value": [result.p_value, result.e_value],
        "trials": result.trials_used,
        "bounds": [result.mu_lower, *(result.epsilon_lower(delta) for delta in DELTAS)],
        "curve": [result.curve.alpha, result.curve.beta, result.curve.beta_upper],
        "witness": None
        if witness is None
        else [witness.pair, witness.attack, witness.alpha, witness.beta, witness.claimed_beta, witness.counts],
        "witness words": None if witness is None else witness_words(result, witness),
        "detectable": result.detectable,
        "history": result.history,
        "pairs": result.pairs,
        "attacks": result.attacks,
        "warnings": result.warnings,
        "summary": str(timeless),
        "outputs": _fingerprints(result.environment),
        "file": file_content(content),
    }


def _fingerprints(environment: Mapping[str, Any]) -> list[str]:
    """Return the integers of an environment, such as the seed, and the fingerprints of outputs, in sorted order."""
    found = [str(value) for value in environment.values() if isinstance(value, int)]
    texts = [text for value in environment.values() for text in (value if isinstance(value, list) else [value])]
    return sorted(found + [text for text in texts if isinstance(text, str) and _FINGERPRINT.fullmatch(text)])


def _without(folders: Sequence[Path], text: str) -> str:
    for folder in folders:
        text = text.replace(str(folder), "FOLDER")
    return _DATE.sub("DATE", text)
