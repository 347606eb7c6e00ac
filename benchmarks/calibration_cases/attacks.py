"""Faulty attacks, and suites with a baseline, of which dpaudit once refuted true claims.

The scores of faulty attacks are NaN or depend on other outputs or on state, or the attacks seed global generators,
overfit, or were designed on the outputs of another audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from calibration_cases import Misbehaving, Row, mechanisms, refuted, too_large
from dpaudit import AuditResult, MechanismError, Pair, Verdict, audit, batched
from dpaudit.catalogue import Gaussian
from dpaudit.testing import AuditInconclusive, PrivacyViolation, assert_private, session
from dpaudit.testing.session import Allowance, Baseline, Entry, Settings
from dpaudit_attacks.likelihood_ratio import LikelihoodRatio
from measure import Limit, Outcome

Rng = np.random.Generator
PAIR = Pair([0], [1])
SIGNIFICANCE = 0.05


def misbehaving() -> list[Row]:
    """Return the rows of these cases, and of those of misbehaving mechanisms.

    Some cases observe the clock or draw fresh randomness, so their audits cannot be repeated exactly.
    """
    return [_row(case) for case in _cases().values()]


@cache
def _cases() -> dict[str, Misbehaving]:
    return {case.name: case for case in (*CASES, *mechanisms.CASES)}


def _row(case: Misbehaving) -> Row:
    limits = refuted(SIGNIFICANCE, *(() if case.mu is None else ("mu",)))
    if case.conclusive:
        limits["inconclusive"] = Limit(rate=0.0)
    return Row(cells=(case.name,), measure=partial(audited, case.name), limits=limits, seeds=case.audits)


def audited(name: str, seed: int) -> Outcome:
    """Run one audit of a case and return how it ended."""
    case = _cases()[name]
    try:
        result = case.audit(seed)
    except MechanismError:  # the first block was refused
        return {"refuted": 0.0, "mu": 0.0, "inconclusive": 1.0}
    return {
        "refuted": float(result.violated),
        "mu": 0.0 if case.mu is None else too_large(result.mu_lower, case.mu, 0.0),
        "inconclusive": float(result.verdict is Verdict.INCONCLUSIVE),
    }


# --- Attacks


class Log:
    """An attack whose score is the logarithm of the output, and NaN for a negative output."""

    name = "log"

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        def score(outputs: Any) -> Any:
            with np.errstate(invalid="ignore"):
                return np.log(outputs)

        return score


class BatchMean:
    """An attack that gives all outputs of a large batch the mean of the batch as score."""

    name = "batch_mean"

    def __init__(self, least: int = 8) -> None:
        self.least = least

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        return lambda x: np.asarray(x) if len(x) < self.least else np.full(len(x), np.mean(x))


def batch_mean_ratio(outputs: Any) -> Any:
    """Return log-likelihood ratios for a small batch, but wrong ratios, which depend on the batch, for a large one."""
    return outputs - 0.5 if len(outputs) < 8 else np.full(len(outputs), np.mean(outputs) - 0.5)


class MovingAverage:
    """An attack that replaces scores by moving averages over the batch."""

    name = "moving_average"

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        return lambda x: np.asarray(x) if len(x) < 5 else np.convolve(x, np.ones(5) / 5, mode="same")


class Turns:
    """An attack that scores large batches alternately high and low."""

    name = "turns"
    calibrated = True

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        calls = [0]

        def score(outputs: Any) -> Any:
            calls[0] += len(outputs) >= 5
            return np.full(len(outputs), (5.0 if calls[0] % 2 == 0 else -5.0) * (len(outputs) >= 5))

        return score


class SeededTree:
    """An attack that seeds numpy's global state before it fits a decision tree, as users' code often does."""

    name = "seeded_tree"

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        np.random.seed(0)  # noqa: NPY002
        return learned("tree", outputs0, outputs1)


class Overfitting:
    """An attack that memorises the outputs to which it was fitted."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        return learned(self.name, outputs0, outputs1)


def learned(kind: str, outputs0: Any, outputs1: Any) -> Any:
    """Fit a classifier of scikit-learn; return a function from outputs to the estimated probabilities of d1."""
    model = KNeighborsClassifier(1) if kind == "1-nn" else DecisionTreeClassifier(random_state=0)
    model.fit(np.concatenate([outputs0, outputs1])[:, None], np.repeat([0, 1], [len(outputs0), len(outputs1)]))
    return lambda outputs: model.predict_proba(np.asarray(outputs)[:, None])[:, 1]


def rare_negative(rate: float) -> Any:
    """Return a mechanism that ignores its data, and whose output is negative with probability `rate`."""

    @batched
    def release(dataset: Any, n: int, rng: Rng) -> Any:
        return np.where(rng.random(n) < rate, -1.0, 1000 * np.exp(0.3 * rng.normal(size=n)))

    return release


def global_noise(dataset: Any, rng: Rng) -> float:
    """Return noise from numpy's global state, without using the dataset or the given generator."""
    return float(np.random.normal())  # noqa: NPY002


def global_gaussian(dataset: Any, rng: Rng) -> float:
    """Return the number in the dataset plus noise from numpy's global state; exactly gaussian(mu=1)."""
    return float(np.random.normal() + dataset[0])  # noqa: NPY002


def _audit(mechanism: Any, claim: str, attacks: Any, trials: int, seed: int, **terms: Any) -> AuditResult:
    np.random.seed(seed + 100)  # noqa: NPY002  (for mechanisms that draw from it)
    return audit(mechanism, claim, PAIR, attacks=attacks, trials=trials, seed=seed, confidence=0.95, **terms)


def _redesigned(seed: int) -> AuditResult:
    """Design an attack on the outputs of one audit, and use the attack in another audit.

    An attack can overfit the 200 numbers of an output.
    """
    terms: Any = {"trials": 600, "confidence": 0.95}
    seen: list[tuple[int, Any]] = []

    @batched
    def release(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        seen.append((dataset[0], rng.normal(size=(n, 200))))
        return seen[-1][1]

    audit(release, "gaussian(mu=0.5)", PAIR, attacks="logistic", **terms, seed=seed)
    outputs = np.concatenate([block for _, block in seen])
    labels = np.concatenate([np.full(len(block), label) for label, block in seen])
    model = LogisticRegression(C=1.0).fit(outputs, labels)
    known: Any = LikelihoodRatio(lambda fresh: model.decision_function(fresh))
    return audit(release, "gaussian(mu=0.5)", PAIR, attacks=known, **terms)


# --- Suites with a baseline, whose fixtures or mechanisms begin with the same random numbers every night
#
# Each audit stands for one test over 24 nights: the result of the first night on which the true claim is refuted, or
# else of the last night.  The test's share of the budget is so large that the first chain gets the whole budget.

NIGHTS, NIGHTLY_TRIALS, BUDGET = 24, 300, 0.05

Release = Callable[[Any, np.random.Generator], float]


def _from_global_state(seed: int) -> Release:
    """Return a mechanism that draws from numpy's global state, after `np.random.seed(seed)` as in a fixture."""
    np.random.seed(seed)  # noqa: NPY002
    return lambda dataset, rng: dataset[0] + np.random.normal()  # noqa: NPY002


def _from_its_own_generator(seed: int) -> Release:
    """Return a mechanism with its own generator, which begins with the same seed in each session."""
    own = np.random.default_rng(seed)
    return lambda dataset, rng: dataset[0] + own.normal()


def _with_a_little_from_the_audit(seed: int) -> Release:
    """Return the mechanism of `_from_its_own_generator` plus fresh noise of size 1e-9, so that no output repeats."""
    own = np.random.default_rng(seed)
    return lambda dataset, rng: dataset[0] + own.normal() + 1e-9 * rng.normal()


def _from_the_audit(seed: int) -> Release:
    return lambda dataset, rng: dataset[0] + rng.normal()


def _nights(begun: Callable[[int], Release], seed: int) -> AuditResult:
    node, baseline = f"test_it[{seed}]", Baseline(false_alarm=BUDGET)
    for night in range(1, NIGHTS + 1):
        allowance = Allowance(
            node=node,
            share=BUDGET * math.pi**2 / 6,
            settings=Settings(false_alarm=BUDGET, report=None, run=night),
            entry=baseline.tests.get(node, Entry(number=1)),
        )
        session.current = allowance
        try:
            result = assert_private(
                begun(seed), "gaussian(mu=1)", Pair([0], [1]), trials=NIGHTLY_TRIALS, attacks="logistic"
            )
        except (AuditInconclusive, PrivacyViolation) as error:
            if error.result is None:
                raise
            result = error.result
        finally:
            session.current = None
        if result.violated:
            break
        baseline = baseline.after(allowance.records, founders=1)
    return result


CASES = [
    *(
        Misbehaving(
            f"an attack that is NaN for a rare output, {claim}, {method}",
            partial(_audit, rare_negative(rate), claim, [Log(), "logistic"], trials, method=method),
            audits=60,
            mu=0.0,
        )
        for claim, method, trials, rate in (
            ("pure(epsilon=1)", "sequential", 12_000, 2e-4),
            ("gaussian(mu=0.3)", "sequential", 12_000, 2e-4),
            ("gaussian(mu=1)", "sequential", 12_000, 2e-4),
            ("pure(epsilon=1)", "fixed", 20_000, 5e-5),
            ("gaussian(mu=1)", "fixed", 20_000, 5e-5),
        )
    ),
    *(
        Misbehaving(
            f"an attack whose scores depend on company or state ({name}), {method}",
            partial(_audit, Gaussian(1.0), "gaussian(mu=1)", attack, 2000, method=method),
            audits=20,
            mu=1.0,
        )
        for name, attack in (
            ("mean of 8", BatchMean()),
            ("mean of 200", BatchMean(200)),
            ("moving average", MovingAverage()),
            ("turns", Turns()),
            ("mean of 8 in likelihood_ratio", LikelihoodRatio(batch_mean_ratio)),
        )
        for method in ("sequential", "fixed")
    ),
    *(
        Misbehaving(
            f"an attack that seeds numpy beside {mechanism.__name__}, {claim}",
            partial(_audit, mechanism, claim, SeededTree(), 3000),
            audits=15,
            mu=mu,
            conclusive=True,
        )
        for mechanism, claim, mu in (
            (global_noise, "gaussian(mu=0.3)", 0.0),
            (global_noise, "pure(epsilon=0.1)", 0.0),
            (global_gaussian, "gaussian(mu=1)", 1.0),
        )
    ),
    *(
        Misbehaving(
            f"an overfitting attack ({kind}) on a true claim",
            partial(_audit, Gaussian(1.0), "gaussian(mu=1)", Overfitting(kind), 2000),
            audits=15,
            mu=1.0,
            conclusive=True,
        )
        for kind in ("tree", "1-nn")
    ),
    *(
        Misbehaving(f"24 nights with a baseline, {name}", partial(_nights, begun), audits=30)
        for name, begun in (
            ("numpy's global generator seeded by a fixture", _from_global_state),
            ("a generator of the mechanism with a fixed seed", _from_its_own_generator),
            ("a generator of the mechanism with a fixed seed, and tiny fresh noise", _with_a_little_from_the_audit),
            ("draws from the given rng", _from_the_audit),
        )
    ),
    Misbehaving("an attack designed on the outputs of an earlier audit", _redesigned, audits=40, mu=0.0),
]
