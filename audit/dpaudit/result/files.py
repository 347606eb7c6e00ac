"""Defines the format of result files.  Every value is checked on reading, because the file may have been edited."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.inference.grid import BINS
from dpaudit.result.evidence import KINDS, check_method, overstated, read_back
from dpaudit.result.older_formats import converted
from dpaudit.result.provenance import Provenance
from dpaudit.result.training import TrainingRecord
from dpaudit.result.values import AttackRow, Curve, Detectable, History, PairRow, StoppedBy, Verdict, Witness
from dpaudit.text.reasons import FromFile
from dpaudit.values import Foreign, Json, JsonObject, Parameters

if TYPE_CHECKING:
    _Method = str
else:
    _Method = Literal[tuple(kind.method for kind in KINDS)]

_Whole = Annotated[int, Field(ge=0, le=2**53)]


_PART = 500  # number of entries of a list that are validated together; pydantic takes some 2 kB for each wrong entry


class _InParts(BaseModel):
    """Base class of models with long lists, which are validated in parts, up to the first part with a wrong entry."""

    @field_validator("*", mode="wrap")
    @classmethod
    def _parts(cls, value: Json, validate: ValidatorFunctionWrapHandler) -> Foreign:
        if not isinstance(value, list) or len(value) <= _PART:
            return validate(value)
        parts = [validate(value[start : start + _PART]) for start in range(0, len(value), _PART)]
        return type(parts[0])(chain.from_iterable(parts))


class _Lists(_InParts):
    """Base class of lists of equal length that form the columns of a table."""

    @model_validator(mode="after")
    def _even(self) -> _Lists:
        if len({len(column) for _, column in self}) > 1:
            raise ValueError("its lists must have the same length")
        return self


class _Curve(_Lists):
    alpha: list[float]
    beta: list[float]
    beta_upper: list[float]


class _History(_Lists):
    trials: list[_Whole]
    log_e: list[float]


class _ResultFile(_InParts):
    model_config = ConfigDict(extra="ignore")  # later versions of dpaudit may add keys

    name: str
    verdict: Verdict
    claim: str
    confidence: float = Field(gt=0, lt=1)
    method: _Method
    p_value: float = Field(ge=0, le=1)
    e_value: float = Field(ge=0)
    trials_used: _Whole
    trials_allowed: _Whole
    stopped_by: StoppedBy = "trials"
    refuted_at: _Whole | None = None
    mu_lower: float = Field(ge=0)
    curve: _Curve
    witness: Witness | None
    detectable: Detectable
    history: _History
    evidence: JsonObject
    pairs: tuple[PairRow, ...]
    attacks: tuple[AttackRow, ...]
    warnings: tuple[str, ...]
    environment: JsonObject
    elapsed_s: float = Field(ge=0, allow_inf_nan=False)
    bounds_valid: bool
    training: TrainingRecord | None = None

    @field_validator("witness", "detectable", "training", mode="before")
    @classmethod
    def _short(cls, value: Json) -> Json:
        if _longest(value) > BINS:  # checked before validation, because a long list may have very many wrong entries
            raise ValueError(f"its lists must have at most {BINS} entries")
        return value

    @model_validator(mode="after")
    def _sound(self) -> _ResultFile:
        check_method(self.evidence, self.method)
        if self.witness is not None:
            counts = self.witness.counts
            if not (0 <= counts.false_positives <= counts.n0 and 0 <= counts.false_negatives <= counts.n1):
                raise ValueError(f"the witness counts more mistakes than outputs: {counts}")
            rates = (self.witness.alpha, self.witness.beta, self.witness.claimed_beta)
            if not (all(0 <= rate <= 1 for rate in rates) or (self.witness.guesses and all(map(math.isnan, rates)))):
                raise ValueError("the witness's alpha and beta must lie between 0 and 1")
            _check_intervals(self.witness)
            if not 0 <= self.witness.right <= self.witness.guesses:
                raise ValueError("the witness must have right <= guesses")
            _check_scores(self.witness)
        return self


def _longest(value: Json) -> int:
    """Return the length of the longest list or mapping inside a JSON value."""
    longest, rest = 0, [value]
    while rest:
        one = rest.pop()
        inside = one.values() if isinstance(one, Mapping) else one if isinstance(one, list) else ()
        longest = max(longest, len(inside))
        rest += inside
    return longest


def _check_intervals(witness: Witness) -> None:
    """Raise ValueError unless each interval of a witness contains its observed rate.  Missing intervals are allowed."""
    for rate, low, high in (
        (witness.alpha, witness.alpha_lower, witness.alpha_upper),
        (witness.beta, witness.beta_lower, witness.beta_upper),
    ):
        if low > rate or high < rate or low < 0 or high > 1:
            raise ValueError(f"the witness's interval {low} to {high} must lie between 0 and 1 and contain {rate}")


def _check_scores(witness: Witness) -> None:
    """Raise ValueError unless the score counts of a witness are valid counts for two datasets."""
    entries = [entry for side in witness.scores for entry in side]
    sound = all(0 <= place < BINS and 0 <= count <= 2**53 for place, count in entries)
    if not sound or len(witness.scores) not in (0, 2):
        raise ValueError(
            f"the witness's scores must be lists of [bin, count] for two datasets, with bins 0 to {BINS - 1}"
        )


def read(values: Json) -> Parameters:
    """Read the fields of an `AuditResult` from the values that `AuditResult.to_dict` wrote.

    Returns:
        The values of the fields by field name.
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"it must be an object, got {type(values).__name__}")
    values = converted(values)
    try:
        file = _ResultFile.model_validate(values)
    except ValidationError as error:
        raise ValueError("; ".join(_problem(dict(one)) for one in error.errors()[:5])) from None
    claim = parse_claim(file.claim)
    found = {name: getattr(file, name) for name in _ResultFile.model_fields if name != "environment"}
    try:
        evidence = read_back(file.evidence, claim.symmetrized(), pairs=len(file.pairs))
    except (KeyError, TypeError, IndexError, OverflowError) as error:
        raise ValueError(f"evidence: {type(error).__name__}: {error}") from None
    curve = {name: np.array(column, dtype=np.float64) for name, column in file.curve}
    history = History(
        trials=np.array(file.history.trials, dtype=np.int64), log_e=np.array(file.history.log_e, dtype=np.float64)
    )
    if any(math.isnan(x) for x in (file.p_value, file.mu_lower)):
        raise ValueError("p_value and mu_lower must be numbers, got nan")
    if file.bounds_valid and (
        words := overstated(evidence, file.detectable.largest_epsilon, confidence=file.confidence)
    ):
        raise ValueError(f"it contradicts itself: {words}")
    provenance = Provenance.read(file.environment)
    more = {"claim": claim, "evidence": evidence, "curve": Curve(**curve), "history": history, "provenance": provenance}
    return found | more | {"warnings": tuple(map(FromFile, file.warnings))}


def _problem(error: JsonObject) -> str:
    """Format a validation error of pydantic as "key: message"."""
    place = ".".join(str(part) for part in error["loc"])
    what = str(error["msg"]).removeprefix("Value error, ")
    return f"{place}: {what}" if place else what


def as_text(values: JsonObject) -> str:
    """Convert the values of a result to the text of a result file."""
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def plain(value: Foreign) -> Json:
    """Convert a value of a result to plain JSON values.  Infinite numbers and NaN are converted to text."""
    match value:
        case np.ndarray():
            return [plain(x) for x in value.tolist()]
        case enum.Enum():
            return value.value
        case TradeoffFunction():
            return str(value)
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
