"""What an audit found, with the evidence, and how it is kept."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpaudit.claims import Array, TradeoffFunction
from dpaudit.evidence import Evidence, written
from dpaudit.writing import write_whole

FORMAT = "dpaudit-result/1"
StoppedBy = Literal["evidence", "trials", "failure", "interruption"]


class Verdict(enum.Enum):
    """What was shown.  There is no verdict that a mechanism is private: no audit can show that."""

    VIOLATION = "violation"
    NO_VIOLATION = "no violation found"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Mistakes of a rejection region on outputs it was not learned from."""

    false_positives: int  # outputs of d0 in the region, out of n0
    n0: int
    false_negatives: int  # outputs of d1 outside it, out of n1
    n1: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """The attack's trade-off curve at its thresholds, from certain rejection to none; arrays of one length."""

    alpha: Array  # observed type I error
    beta: Array  # observed type II error; an estimate, decides nothing
    beta_upper: Array  # with the audit's confidence, T(P, Q)(alpha) <= beta_upper at all alpha at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The rejection region that shows the violation, or came closest to showing one."""

    pair: str
    attack: str
    region: str  # in words, as the attack last knew it
    threshold: float = math.nan  # the region: estimated log-likelihood ratio above this; nan in older files
    alpha: float  # observed type I error
    beta: float  # observed type II error
    claimed_beta: float  # least type II error at this alpha under the claim
    counts: Counts

    def describe(self) -> str:
        """The region in a sentence, e.g. for an error message."""
        return (
            f"{self.region}: {_percent(self.alpha)} of the outputs of d0, {_percent(1 - self.beta)} of those of d1; "
            f"the claim allows at most {_percent(1 - self.claimed_beta)} (pair {self.pair}, attack {self.attack})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """One pair and what was spent on it."""

    label: str
    relation: str
    d0: str  # as text, shortened
    d1: str
    trials: int  # runs on each of its two datasets
    log_e: float  # evidence gathered on this pair, log of its wealth against the claim


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackRow:
    """One attack and how well it told the datasets apart."""

    name: str
    weight: float  # its final say in the combined score, 0..1, mean over pairs
    log_loss: float  # mean on outputs it had not seen, nats; ln 2 = 0.693 is blind guessing
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """How small a violation this audit would have seen with 90 % probability."""

    claim: str  # the least violation, as a claim, e.g. "gaussian(mu=1.08)"; "" if none would have been
    assumption: str  # about what the mechanism would have looked like
    smallest_rate: float  # an event of this probability shows in none of the runs with probability 5 %
    largest_epsilon: float  # at delta = 0; the audit certifies no more, and no valid test is sure to


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """Evidence as it grew."""

    trials: npt.NDArray[np.int64]  # runs per dataset so far
    log_e: Array  # log of the wealth against the claim at that moment


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditResult:
    """Everything an audit found.  `str(result)` is a summary."""

    name: str
    verdict: Verdict
    claim: TradeoffFunction
    confidence: float
    method: str
    p_value: float  # of the claim; sequential: valid at any stopping time, 1 over the largest wealth seen
    e_value: float  # of the claim, expectation <= 1 if it is true; sequential: the wealth at the end; may be inf
    trials_used: int  # runs per dataset, those the attacks learned from included
    trials_allowed: int
    stopped_by: StoppedBy = "trials"
    mu_lower: float  # certified: the mechanism is not mu-GDP for any mu below this
    curve: Curve
    witness: Witness | None
    detectable: Detectable
    history: History
    evidence: Evidence
    pairs: tuple[PairRow, ...]
    attacks: tuple[AttackRow, ...]
    warnings: tuple[str, ...]
    environment: Mapping[str, Any]  # versions, machine, seed, date, mechanism, config
    elapsed_s: float
    certified: bool = (
        True  # False if runs depended on each other, or a fixed number of trials was not reached: no bound
    )
    _bounds: dict[float, float] = field(default_factory=dict, repr=False)

    @property
    def violated(self) -> bool:
        """Whether the claim was refuted."""
        return self.verdict is Verdict.VIOLATION

    def epsilon_lower(self, delta: float = 0.0) -> float:
        """Certified: with the audit's confidence the mechanism is not (epsilon, `delta`)-DP for any epsilon below this.

        Of a sequential audit: for all `delta` at once, and together with `mu_lower` and the verdict.  Of the others: at
        each `delta` alone.  0 if nothing is `certified`.  See `evidence`.
        """
        if not self.certified:
            return 0.0
        if delta not in self._bounds:
            self._bounds[delta] = self.evidence.epsilon_lower(delta, confidence=self.confidence)
        return self._bounds[delta]

    # --- as a file

    def to_json(self, path: str | Path) -> None:
        """Write the result as JSON.  Floats keep all their digits; inf and nan are written as strings."""
        write_whole(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "_bounds"}
        return {"format": FORMAT, **_plain(values | {"evidence": written(self.evidence)})}

    @classmethod
    def from_json(cls, path: str | Path) -> AuditResult:
        """Read a result that `to_json` wrote.  ValueError, naming the file, for anything else."""
        try:
            return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except RecursionError:
            raise ValueError(f"{path} is not a result of dpaudit: it is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"{path} is not a complete result of dpaudit ({FORMAT}): {error}") from None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AuditResult:
        """The inverse of `to_dict`.  ValueError for anything that it did not make."""
        return cls(**importlib.import_module("dpaudit.result_file").read(values))  # which needs the types of this one

    # --- for people

    def to_pdf(self, path: str | Path) -> None:
        """Write the report of this audit as PDF."""
        _reports().write_pdf([self], path)

    def to_html(self, path: str | Path) -> None:
        """Write the same report as one HTML file that needs nothing else."""
        _reports().write_html([self], path)

    def to_markdown(self) -> str:
        """A short form of the report, as Markdown for a comment on a pull request."""
        return str(_reports().to_markdown([self]))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return str(_reports().to_fragment([self]))

    def plot(self, ax: Any = None) -> Any:
        """Draw the trade-off plot on `ax`, or on a new figure; returns the axes."""
        return _reports().plot_tradeoff(self, ax)

    def __str__(self) -> str:
        confidence = f"confidence {100 * self.confidence:.7g} %"
        found = {
            Verdict.VIOLATION: f"VIOLATION of {self.claim.label} (p <= {self.p_value:.2g}, {confidence})",
            Verdict.NO_VIOLATION: f"no violation of {self.claim.label} found ({confidence})",
            Verdict.INCONCLUSIVE: f"inconclusive about {self.claim.label}",
        }[self.verdict]
        lines = [
            f"{self.name}: {found}",
            f"  {self.trials_used:,} runs per dataset in {self.elapsed_s:.1f} s; certified: mu >= {self.mu_lower:.3f}, "
            f"epsilon >= {self.epsilon_lower(0.0):.3f} at delta = 0",
        ]
        if self.witness is not None:
            lines.append(f"  {self.witness.describe()}")
        if not self.violated:
            lines.append(f"  {_seen(self.detectable)}")
        return "\n".join([*lines, *(f"  warning: {warning}" for warning in self.warnings)])


def _seen(detectable: Detectable) -> str:
    if not detectable.claim:
        return "no violation of this kind could have been seen with so few runs"
    return f"would have been seen with 90 % probability: {detectable.claim} ({detectable.assumption})"


def _reports() -> Any:
    """The reports are loaded only when asked for: they read results, and nothing here depends on them."""
    return importlib.import_module("dpaudit_reports")


def _percent(rate: float) -> str:
    return f"{100 * rate:.3g} %"


def _plain(value: Any) -> Any:
    match value:
        case np.ndarray():
            return [_plain(x) for x in value.tolist()]
        case enum.Enum():
            return value.value
        case TradeoffFunction():
            return str(value)
        case bool() | int() | str() | None:
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(k): _plain(v) for k, v in value.items()}
        case tuple() | list():
            return [_plain(x) for x in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} has no place in a result file")
