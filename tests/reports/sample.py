"""Results made from simulated Gaussian noise, with the shape and size of real ones."""

import dataclasses
import functools
from typing import Any

import numpy as np

from dpaudit.claims import GaussianDP
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.fixed.binomial import clopper_pearson
from dpaudit.inference.grid import BINS, EDGES, bin_counts
from dpaudit.inference.sequential.strategy import strategy
from dpaudit.result.confirmation import Confirmation, ConfirmationOutcome
from dpaudit.result.evidence import SequentialEvidence
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit.result.values import (
    AttackRow,
    Condition,
    Counts,
    Curve,
    Detectable,
    History,
    Interval,
    PairRow,
    Region,
    Verdict,
    Witness,
)
from dpaudit.text import Reason, WarningCode

ENVIRONMENT: dict[str, Any] = {
    "dpaudit": "0.1.0",
    "python": "3.11.9",
    "numpy": "2.4.6",
    "platform": "Linux-6.1-x86_64-with-glibc2.36",
    "packages": {"opendp": "0.14.2", "python-dp": "1.1.4", "scipy": "1.16.0"},
    "seed": 7,
    "date": "2026-03-01T12:30:00+00:00",
    "mechanism": "quickstart.opendp_sum:gaussian",
    "config": "configs/quickstart.yaml",
    "source": None,
    "command": "dpaudit run configs/quickstart.yaml --seed 7",
}


def sample(truth: float, verdict: Verdict, *, trials: int) -> AuditResult:
    claim = GaussianDP(1.0)
    rng = np.random.default_rng(3)
    ratio0 = truth * rng.normal(0, 1, trials) - truth**2 / 2
    ratio1 = truth * rng.normal(truth, 1, trials) - truth**2 / 2
    looks = np.unique(np.linspace(20, trials, 60).astype(np.int64))
    counted = [np.array([bin_counts(ratio0[:n]), bin_counts(ratio1[:n])]) for n in looks]
    log_e = np.array([strategy(claim).log_e(claim, counts[None]) for counts in counted])
    counts0, counts1 = bin_counts(ratio0), bin_counts(ratio1)
    evidence = SequentialEvidence(target=claim, counts=np.array([[counts0, counts1]]))
    alpha, beta, beta_upper = evidence.band(confidence=0.95, bounds_valid=True)
    e_value = float(np.exp(min(log_e.max(), 700.0)))
    return AuditResult(
        name="opendp-gaussian-sum",
        verdict=verdict,
        claim=claim,
        confidence=0.95,
        method="sequential",
        p_value=min(1.0, 1 / e_value),
        e_value=e_value,
        trials_used=trials + 200,
        trials_allowed=100_000,
        mu_lower=1.0432 if verdict is Verdict.VIOLATION else 0.8719,
        curve=Curve(alpha=alpha, beta=beta, beta_upper=beta_upper),
        witness=_witness(claim, counts0, counts1, p_value=0.01 if verdict is Verdict.VIOLATION else 0.5),
        detectable=Detectable(
            claim="gaussian(mu=1.12)",
            assumption="if the noise has the claim's own shape",
            rule_of_three_rate=3 / trials,
            largest_epsilon=float(np.log(trials / 3)),
        ),
        history=History(trials=looks + 200, log_e=log_e),
        evidence=evidence,
        pairs=(
            PairRow(
                label="one record changed",
                relation="replace_one",
                d0="[0, 0, 1]",
                d1="[0, 1, 1]",
                trials=trials + 200,
                log_e=float(log_e[-1]),
            ),
        ),
        attacks=(
            AttackRow(name="median_clipped", weight=0.71, log_loss=0.581, note="cut at 0.52"),
            AttackRow(name="classifier", weight=0.29, log_loss=0.597),
        ),
        warnings=(),
        provenance=Provenance.read(ENVIRONMENT),
        elapsed_s=3.217,
    )


def _witness(claim: GaussianDP, counts0: np.ndarray, counts1: np.ndarray, *, p_value: float) -> Witness:
    trials = int(counts0.sum())
    alphas, betas = 1 - np.cumsum(counts0)[:-1] / trials, np.cumsum(counts1)[:-1] / trials
    at = int(np.argmin(betas - claim.beta(alphas)))
    x, z = int(counts0[at + 1 :].sum()), int(counts1[: at + 1].sum())
    (low0, high0), (low1, high1) = (clopper_pearson(k, trials, significance=0.05) for k in (x, z))
    return Witness(
        pair="one record changed",
        attack="median_clipped",
        described=Region(condition=Condition(intervals=(Interval(low=0.52),))),
        threshold=float(EDGES[at]),
        alpha=float(alphas[at]),
        beta=float(betas[at]),
        claimed_beta=float(claim.beta(float(alphas[at]))),
        counts=Counts(false_positives=x, n0=trials, false_negatives=z, n1=trials),
        counted="later",
        p_value=p_value,
        alpha_lower=low0,
        alpha_upper=high0,
        beta_lower=low1,
        beta_upper=high1,
    )


@functools.cache
def violation() -> AuditResult:
    """Return a violation: G_1 is claimed, G_1.3 is true."""
    return sample(1.3, Verdict.VIOLATION, trials=700)


def confirmed(x: int, y: int, n: int = 1000, outcome: ConfirmationOutcome = "confirmed") -> AuditResult:
    """Return a violation with fresh runs: x of n outputs of d0 are in the region, and y of n outputs of d1."""
    result, counts = violation(), Counts(false_positives=x, n0=n, false_negatives=n - y, n1=n)
    assert result.witness is not None
    claim = result.claim
    (low0, high0), (low1, high1) = (clopper_pearson(k, n, significance=0.05) for k in (x, n - y))
    witness = dataclasses.replace(
        result.witness,
        counts=counts,
        counted="frozen",
        alpha=x / n,
        beta=1 - y / n,
        claimed_beta=float(claim.beta(x / n)),
        alpha_lower=low0,
        alpha_upper=high0,
        beta_lower=low1,
        beta_upper=high1,
        allowed_upper=1 - float(claim.beta(high0)),
    )
    p_value = exact_binomial.p_value(claim, x, n, y, n)
    fresh = Confirmation(outcome=outcome, runs=n, processes=8, counts=counts, p_value=p_value)
    evidence: Any = dataclasses.replace(result.evidence, confirms=True, confirmation=fresh)  # type: ignore[type-var]
    return dataclasses.replace(
        result,
        stopped_by="evidence",
        evidence=evidence,
        witness=witness,
        mu_lower=evidence.lower(None, confidence=result.confidence),
    )


@functools.cache
def no_violation() -> AuditResult:
    """Return a result without a violation: G_1 is claimed and true."""
    return sample(1.0, Verdict.NO_VIOLATION, trials=20_000)


@functools.cache
def inconclusive() -> AuditResult:
    return dataclasses.replace(
        sample(1.0, Verdict.INCONCLUSIVE, trials=60),
        witness=None,
        detectable=Detectable(claim="", assumption="", rule_of_three_rate=0.05, largest_epsilon=2.9),
        mu_lower=0.0,
        warnings=(
            "the mechanism raised ZeroDivisionError on run 61; the trials before it were kept",
            Reason("60 trials are too few to see even a violation five times the claim", WarningCode.TOO_FEW),
        ),
    )


def empty() -> AuditResult:
    none, nothing = np.array([]), np.array([], dtype=np.int64)
    return dataclasses.replace(
        inconclusive(),
        p_value=float("nan"),
        e_value=float("inf"),
        trials_used=0,
        mu_lower=float("nan"),
        curve=Curve(alpha=none, beta=none, beta_upper=none),
        detectable=Detectable(claim="", assumption="", rule_of_three_rate=float("nan"), largest_epsilon=float("inf")),
        history=History(trials=nothing, log_e=none),
        evidence=SequentialEvidence(target=GaussianDP(1.0), counts=np.zeros((0, 2, BINS), dtype=np.int64)),
        pairs=(),
        attacks=(),
        warnings=(),
        provenance=Provenance(),
        elapsed_s=float("nan"),
    )


HOSTILE = '#panic("x") ]] $x$ *b* _i_ `c` <l> @r \\ // {} "q" ~ -- \'s'
LONG = "a_mechanism_whose_name_has_more_than_eighty_characters_without_any_space_in_between_them_all"


def hostile(text: str = HOSTILE) -> AuditResult:
    result, region = violation(), Region(condition=Condition(feature=(text,)))
    assert result.witness is not None
    return dataclasses.replace(
        result,
        name=text,
        witness=dataclasses.replace(result.witness, pair=text, attack=text, described=region),
        detectable=dataclasses.replace(result.detectable, claim=text, assumption=text),
        pairs=tuple(dataclasses.replace(row, label=text, relation=text, d0=text, d1=text) for row in result.pairs),
        attacks=tuple(dataclasses.replace(row, name=text, note=text) for row in result.attacks),
        warnings=(text,),
        provenance=Provenance.read(
            {"mechanism": text, text: text, "packages": {text: text}, "list": [text], "command": text}
        ),
    )


def long() -> AuditResult:
    """Return a violation in which every name has more than eighty characters and no space."""
    return hostile(LONG)


def crowded(pairs: int = 200) -> AuditResult:
    result = no_violation()
    (row,) = result.pairs
    rows = (dataclasses.replace(row, label=f"{i}-{LONG}", d0=str([i] * 12), d1=str([i + 1] * 12)) for i in range(pairs))
    return dataclasses.replace(result, name=LONG, pairs=tuple(rows))
