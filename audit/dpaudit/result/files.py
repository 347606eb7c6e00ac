"""The format of result files."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError, model_validator

from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.result.base_evidence import dense
from dpaudit.result.evidence import (
    Evidence,
    concluded,
    confirmation_of,
    disagreement,
    given_scores,
    pair_log_e,
    read_back,
)
from dpaudit.result.provenance import Provenance, TrainingRecord
from dpaudit.result.values import (
    FORMAT,
    AttackRow,
    Curve,
    Detectable,
    History,
    PairRow,
    StoppedBy,
    Verdict,
    Witness,
    beyond,
)
from dpaudit.text import Reason, WarningCode
from dpaudit.values import Json, JsonObject, Parameters

_Whole = Annotated[int, Field(ge=0, le=2**53)]


class _Columns(BaseModel):
    """The columns of a table, which are equally long."""

    @model_validator(mode="after")
    def _even(self) -> _Columns:
        if len({len(column) for _, column in self}) > 1:
            raise ValueError("its lists must have the same length")
        return self


class _Curve(_Columns):
    alpha: list[float]
    beta: list[float]
    beta_upper: list[float]


class _History(_Columns):
    trials: list[_Whole]
    log_e: list[float]


class _Warning(BaseModel):
    code: WarningCode
    text: str  # without the consequence that the code implies


class _ResultFile(BaseModel):
    """The entries that are read.  A file also states numbers that follow from them, for other readers."""

    name: str
    verdict: Verdict
    claim: str
    confidence: float = Field(gt=0, lt=1)
    trials_allowed: _Whole
    stopped_by: StoppedBy
    refuted_at: _Whole | None
    curve: _Curve
    witness: Witness | None
    detectable: Detectable
    history: _History
    evidence: JsonObject
    pairs: tuple[PairRow, ...]
    attacks: tuple[AttackRow, ...]
    warnings: tuple[_Warning, ...]
    environment: JsonObject
    elapsed_s: float = Field(ge=0, allow_inf_nan=False)
    bounds_valid: bool
    training: TrainingRecord | None = None


def read(values: Json) -> Parameters:
    """Return the fields of an `AuditResult`, by name, from the values that `AuditResult.to_dict` wrote."""
    if not isinstance(values, Mapping):
        raise ValueError(f"it must be an object, got {type(values).__name__}")
    if values.get("format") != FORMAT:
        raise ValueError(
            f"its format is {str(values.get('format'))[:100]!r}, but this version of dpaudit reads {FORMAT}; use the "
            "version that wrote it"
        )
    try:
        file = _ResultFile.model_validate(values)
    except ValidationError as error:
        raise ValueError("; ".join(_problem(dict(problem)) for problem in error.errors()[:5])) from None
    claim = parse_claim(file.claim)
    valid, failed, tested = file.bounds_valid, file.stopped_by == "failure", claim.symmetrized()
    try:
        evidence = read_back(file.evidence, tested)
        numbers = concluded(evidence, claim, confidence=file.confidence, valid=valid, failed=failed)
        wealth = pair_log_e(evidence, tested) or [row.log_e for row in file.pairs]
    except (KeyError, TypeError, IndexError, ArithmeticError) as error:
        raise ValueError(f"evidence: {type(error).__name__}: {error}") from None
    if words := disagreement(file.verdict, numbers["p_value"], confidence=file.confidence, valid=valid):
        raise ValueError(words)
    history, drawn = file.history, {name: np.array(column, dtype=np.float64) for name, column in file.curve}
    return {
        **{name: getattr(file, name) for name in _ResultFile.model_fields if name != "environment"},
        "trials_used": sum(row.trials for row in file.pairs) if file.pairs else evidence.trials,
        "curve": Curve(**drawn),
        "history": History(trials=np.array(history.trials, dtype=np.int64), log_e=np.array(history.log_e, dtype=float)),
        "pairs": tuple(replace(row, log_e=log_e) for row, log_e in zip(file.pairs, wealth, strict=True)),
        "witness": None if file.witness is None else _counted(file.witness, evidence, file.pairs),
        "provenance": Provenance.read(file.environment),
        "warnings": tuple(Reason(one.text, one.code, foreign=True) for one in file.warnings),
        **numbers,
    }


def written(fields: Parameters) -> JsonObject:
    """Return the plain values that `read` reads, from the fields of an `AuditResult` by name."""
    values = {"environment" if name == "provenance" else name: value for name, value in fields.items()}
    values["environment"] = fields["provenance"].environment
    values["evidence"] = fields["evidence"].to_json()
    values["warnings"] = tuple(map(Reason.of, fields["warnings"]))
    absent = {name for name in ("training", "bounds") if not values[name]}
    return {"format": FORMAT, **plain({name: value for name, value in values.items() if name not in absent})}


def _counted(witness: Witness, evidence: Evidence, pairs: tuple[PairRow, ...]) -> Witness:
    """Return a witness with the numbers that its evidence gives."""
    if (guessed := given_scores(evidence)) is not None:
        return replace(witness, guesses=guessed.n1, right=guessed.right)
    fresh = confirmation_of(evidence)
    counts = None if fresh is None else fresh.counts
    if counts is None:
        rows = zip(pairs, evidence.histograms, strict=True)
        if witness.scores:
            scores = dense(witness.scores)
        elif evidence.kind.frozen:
            scores = evidence.histograms[0]
        elif found := [histogram for row, histogram in rows if row.label == witness.pair]:
            scores = found[0]
        else:
            raise ValueError(f"the witness belongs to the pair {witness.pair!r:.100}, which is not among its pairs")
        counts = beyond(scores, witness.last_bin)
    alpha, beta = counts.rates
    return replace(witness, counts=counts, alpha=alpha, beta=beta)


def _problem(error: JsonObject) -> str:
    """Format a validation error of pydantic as "key: message"."""
    place = ".".join(str(part) for part in error["loc"])
    what = str(error["msg"]).removeprefix("Value error, ")
    return f"{place}: {what}" if place else what


def as_text(values: JsonObject) -> str:
    """Convert the values of a result to the text of a result file."""
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def plain(value: Any) -> Json:
    """Convert a value of a result to plain JSON values.  Infinite numbers and NaN are converted to text."""
    match value:
        case np.ndarray():
            return [plain(x) for x in value.tolist()]
        case enum.Enum():
            return value.value
        case TradeoffFunction():
            return str(value)
        case Reason():
            return {"code": value.code.value, "text": value.sign}
        case str():
            return str(value)
        case bool() | int() | None:
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(k): plain(v) for k, v in value.items()}
        case tuple() | list():
            return [plain(x) for x in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    raise TypeError(f"a result file cannot hold a value of type {type(value).__name__}")
