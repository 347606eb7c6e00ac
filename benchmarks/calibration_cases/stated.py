"""Statements of dpaudit that hold with a stated probability, and audits that show whether they came true.

- "seen, fixed" and "seen, sequential": the violation that a report says would have been seen with 90 % probability, by
  an attack that knows the likelihood ratio, as the report assumes.  The mechanism has just that law.
- "seen, one run" and "seen, canaries": the same for `audit_one_run`, and for scores of independent canaries.
- "plan": audits with as many trials as `plan` states and `attacks="auto"`, so all scores are learned.
- "planned runs": the same for `assert_private`, which plans for a probability of 99.9 %.
- "replay": p-values of at most 0.05 in replays of audits of true claims.
- "replay confirms": replays of the same audits that confirm a violation, at p-values of at most 0.001.
- "dependence": independent runs that are called dependent, which may happen in one of 10^9 tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from calibration_cases import Row
from dpaudit import Pair, Verdict, audit, audit_scores, batched, parse_claim, plan
from dpaudit.catalogue import Gaussian, Laplace
from dpaudit.engine.replay import replay
from dpaudit.engine.replay_outcome import CONFIRMED
from dpaudit.engine.score_design import Independence, coins_of, sorted_evidence
from dpaudit.inference.grid import BINS, CENTRES
from dpaudit.inference.one_run import half_included
from dpaudit.inference.sequential.alternatives import scaled
from dpaudit.testing.effort import POWER, Effort
from dpaudit_attacks.likelihood_ratio import LikelihoodRatio
from measure import Limit, Outcome

PAIR = Pair([0], [1])
RATIO = LikelihoodRatio(lambda bins: CENTRES[np.asarray(bins, dtype=np.intp)])
SIGNIFICANCE = 1e-3  # significance of a test in a suite
EQUAL = "so no violation could have been found"  # the warning if all outputs are equal, which is no dependence
ATTACKS = ("logistic", "auto")


def nothing() -> None:
    """Prepare nothing."""


@dataclass(frozen=True)
class Setting:
    """A statement, and an audit that shows whether it came true."""

    kind: str
    name: str
    stated: float
    least: bool  # whether `stated` is the least probability of the statement, or else the largest
    prepare: Callable[[], Any]  # computes the statement once for all audits
    measure: Callable[[Any, int], float]  # makes an audit and measures it; arguments: the statement and a seed
    came_true: Callable[[float], bool] = bool  # whether the statement came true; argument: what was measured

    @property
    def label(self) -> str:
        return f"{self.kind}: {self.name}"


def law_of(claim: str) -> Any:
    """Make a mechanism at the boundary of a claim, whose output is the bin of its log-likelihood ratio."""
    p, q = (side / side.sum() for side in scaled(parse_claim(claim).symmetrized(), 1.0))
    return batched(lambda dataset, n, rng: rng.choice(BINS, size=n, p=q if dataset[0] else p))


def response(epsilon: float) -> Any:
    """Randomised response that keeps its bit with probability e^epsilon / (1 + e^epsilon)."""
    odds = 1 / (1 + math.exp(-epsilon))
    return batched(lambda dataset, n, rng: (rng.random(n) < (odds if dataset[0] else 1 - odds)).astype(int))


def revealing(epsilon: float, delta: float) -> Any:
    """Randomised response that reveals the dataset with probability delta."""
    lie = 1 / (1 + math.exp(epsilon))
    p = np.array([delta, (1 - delta) * (1 - lie), (1 - delta) * lie, 0.0])
    return batched(lambda dataset, n, rng: rng.choice(4, size=n, p=p[::-1] if dataset[0] else p))


def noise(mu: float, numbers: int) -> Any:
    """Make a mechanism that adds Gaussian noise to several numbers, all of which change."""
    return batched(lambda dataset, n, rng: rng.normal(dataset[0] * mu / math.sqrt(numbers), 1, (n, numbers)))


def seen(claim: str, trials: int, method: str, *, confidence: float = 0.99, pairs: int = 1) -> Setting:
    """Test the violation that a report of an audit without a finding names.  One of several pairs leaks."""
    others = [Pair([0], [0], label=f"the same {i}") for i in range(1, pairs)]
    terms: dict[str, Any] = {"attacks": RATIO, "trials": trials, "method": method, "confidence": confidence}

    def named() -> str:
        for seed in range(10):
            result = audit(law_of(claim), claim, [PAIR, *others], seed=10**6 + seed, **terms)
            if result.detectable.claim and not result.violated:
                return result.detectable.claim
        raise AssertionError(f"no report of {claim} names a violation")

    def measure(claimed: Any, seed: int) -> float:
        return audit(law_of(claimed), claim, [PAIR, *others], seed=seed, **terms).violated

    where = "" if pairs == 1 else f", {pairs} pairs"
    return Setting(f"seen, {method}", f"{claim}, {trials} trials{where}, {confidence:g}", 0.9, True, named, measure)


def planned(
    claim: str, truth: str, mechanism: Any, power: float, outputs: str = "", *, detect: bool = False
) -> Setting:
    """Test audits with as many trials as `plan` states."""

    def trials() -> int:
        found = plan(claim, truth, power=power)
        return math.ceil(found.trials_detect if detect else found.trials)

    def measure(trials: Any, seed: int) -> float:
        return audit(mechanism, claim, PAIR, trials=trials, seed=seed, detect=truth if detect else None).violated

    name = f"{claim}, {truth} true{outputs}{', detect' if detect else ''}"
    return Setting("plan", name, power, True, trials, measure)


def in_a_suite(claim: str, detect: float, mechanism: Any) -> Setting:
    """Test as many runs as a suite's test plans for a violation of `detect` times the claim."""

    def runs() -> int:
        return Effort(parse_claim(claim), float(detect), SIGNIFICANCE).planned

    def measure(trials: Any, seed: int) -> float:
        return audit(mechanism, claim, PAIR, trials=trials, seed=seed, confidence=1 - SIGNIFICANCE).violated

    return Setting("planned runs", f"{claim}, {detect:g} times less private", POWER, True, runs, measure)


def replayed(claim: str, mechanism: Any, trials: int) -> list[Setting]:
    """Test replays of audits of a true claim: whether the p-value is at most 0.05, and whether it confirms a violation.

    Both statements are about the same replays.
    """

    def p_value(_: Any, seed: int) -> float:
        result = audit(mechanism, claim, PAIR, attacks="logistic", trials=trials, seed=seed)
        if result.witness is None:
            return 1.0
        return replay(result, mechanism, PAIR, attacks="logistic", trials=1000, seed=10**6 + seed).p_value

    def small(kind: str, level: float) -> Setting:
        name = f"{claim} true, {trials} trials, p <= {level:g}"
        return Setting(kind, name, level, False, nothing, p_value, lambda value: value <= level)

    return [small("replay", 0.05), small("replay confirms", CONFIRMED)]


def independent(name: str, mechanism: Any, attacks: str) -> Setting:
    """Test independent runs with the same law on both datasets."""

    def measure(_: Any, seed: int) -> float:
        result = audit(mechanism, "pure(epsilon=1)", PAIR, attacks=attacks, trials=4000, seed=seed)
        return result.verdict is Verdict.INCONCLUSIVE and EQUAL not in " ".join(result.warnings)

    return Setting("dependence", name, 1e-9, False, nothing, measure)


def seen_in_scores(independence: Independence, claim: str, confidence: float, canaries: int) -> Setting:
    """Test the violation that an audit of one run names, with scores of just its curve."""

    def named() -> Any:
        scores = np.random.default_rng(10**6).normal(size=canaries)
        included = np.arange(canaries) < canaries // 2 - 2  # not half, so that coins must have decided
        terms: dict[str, Any] = {"independence": independence, "confidence": confidence, "seed": 0}
        return parse_claim(audit_scores(scores[~included], scores[included], claim, **terms).detectable.claim)

    def refuted(truth: Any, seed: int) -> float:
        rng, coins = np.random.default_rng([seed, canaries]), np.zeros(0, dtype=np.bool_)
        while half_included(canaries - int(coins.sum()), int(coins.sum())) or not len(coins):
            coins = rng.random(canaries) < 0.5
        uniform = rng.random(canaries)
        scores = -np.where(coins, truth.beta(uniform), uniform)  # the most distinguishable pair; see `scores.runs`
        sides = scores[~coins], scores[coins]
        evidence = sorted_evidence(
            *sides,
            independence or "inclusion",
            coins_of(None, (len(sides[0]), len(sides[1])), "coins"),
            runs=1,
            claim=parse_claim(claim),
            significance=1 - confidence,
            rng=rng,
        )
        return evidence.refutes(parse_claim(claim).symmetrized(), confidence=confidence)

    kind = "seen, canaries" if independence else "seen, one run"
    return Setting(kind, f"{claim}, {canaries} canaries, {confidence:g}", 0.9, True, named, refuted)


FIXED = [  # claim, trials, confidence
    ("approximate(epsilon=1, delta=0.05)", 3_000, 0.95),
    ("approximate(epsilon=0.5, delta=0.1)", 10_000, 0.95),
    ("approximate(epsilon=1, delta=0.01)", 3_000, 0.95),
    ("approximate(epsilon=1, delta=0.05)", 3_000, 0.99),
    ("approximate(epsilon=1, delta=1e-5)", 3_000, 0.99),
    ("approximate(epsilon=2, delta=0.001)", 3_000, 0.99),
    ("approximate(epsilon=0, delta=0.2)", 1_000, 0.99),
    ("pure(epsilon=0.5)", 3_000, 0.99),
    ("pure(epsilon=1)", 1_000, 0.99),
    ("pure(epsilon=2)", 500, 0.95),
    ("pure(epsilon=3)", 1_000, 0.95),
    ("gaussian(mu=0.5)", 2_000, 0.999),
    ("gaussian(mu=1)", 200, 0.95),
    ("gaussian(mu=1)", 2_000, 0.99),
    ("gaussian(mu=3)", 1_000, 0.95),
    ("laplace(epsilon=1)", 2_000, 0.99),
    ("laplace(epsilon=3)", 1_000, 0.999),
    ("subsampled(gaussian(mu=2), rate=0.1)", 5_000, 0.95),
    ("subsampled(gaussian(mu=4), rate=0.05)", 5_000, 0.99),
    ("repeated(pure(epsilon=0.3), n=5)", 2_000, 0.99),
]
SEQUENTIAL = [
    ("gaussian(mu=0.25)", 3_000, 0.99),
    ("gaussian(mu=0.5)", 1_000, 0.95),
    ("gaussian(mu=1)", 300, 0.99),
    ("gaussian(mu=1)", 3_000, 0.999),
    ("gaussian(mu=2)", 1_000, 0.95),
    ("gaussian(mu=3)", 1_000, 0.99),
    ("pure(epsilon=0.5)", 2_000, 0.95),
    ("pure(epsilon=1)", 1_000, 0.99),
    ("pure(epsilon=2)", 1_000, 0.999),
    ("pure(epsilon=4)", 1_000, 0.99),
    ("approximate(epsilon=1, delta=0.05)", 3_000, 0.99),
    ("approximate(epsilon=0.5, delta=0.1)", 3_000, 0.95),
    ("approximate(epsilon=2, delta=0.001)", 3_000, 0.99),
    ("approximate(epsilon=0, delta=0.2)", 1_000, 0.99),
    ("laplace(epsilon=0.5)", 2_000, 0.95),
    ("laplace(epsilon=1)", 1_000, 0.99),
    ("laplace(epsilon=3)", 1_000, 0.999),
    ("subsampled(gaussian(mu=2), rate=0.1)", 3_000, 0.95),
    ("repeated(pure(epsilon=0.3), n=5)", 2_000, 0.99),
]
# epsilon, claimed and true delta
RARE = [(1, 1e-5, 1e-3), (1, 1e-3, 1e-2), (1, 0.05, 0.1), (0.5, 1e-3, 1e-2), (2, 1e-4, 1e-2), (0, 0.01, 0.05)]
GAUSSIANS = [(1, 1.2), (1, 1.3), (1, 1.5), (1, 2), (1, 3), (0.5, 0.75), (0.5, 1), (2, 3)]  # claimed and true mu
RESPONSES = [(1, 1.3), (1, 1.5), (1, 2), (1, 3), (0.5, 1), (2, 3)]  # claimed and true epsilon


def settings() -> list[Setting]:
    """Return every setting, the cheap kinds first; each kind has at least 20."""
    return [*_one_run(), *_canaries(), *_seen(), *_replays(), *_dependence(), *_plans(), *_suites()]


def _one_run() -> list[Setting]:
    # with fewer canaries, no violation of the larger claims is detectable
    pure = [*product((0.5, 1), (100, 300, 1_000, 3_000)), *product((1.5, 2), (300, 1_000, 3_000)), (4, 3_000)]
    approximate = product((0.5, 1, 2), (1_000, 3_000))
    return [seen_in_scores(None, f"pure(epsilon={epsilon:g})", 0.99, canaries) for epsilon, canaries in pure] + [
        seen_in_scores(None, _approximate(epsilon, 1e-5), 0.99, canaries) for epsilon, canaries in approximate
    ]


def _canaries() -> list[Setting]:
    claims = [
        ("gaussian(mu=0.2)", 0.9),
        ("gaussian(mu=0.5)", 0.99),
        ("gaussian(mu=1)", 0.95),
        ("laplace(epsilon=0.5)", 0.95),
    ]
    given = [(*claim, size) for claim, size in product(claims, (20, 30, 40, 60, 300))]
    given += [("approximate(epsilon=0.5, delta=0.05)", 0.95, size) for size in (300, 1000)]
    return [seen_in_scores("canaries", *one) for one in given]


def _seen() -> list[Setting]:
    return [
        *(seen(claim, trials, "fixed", confidence=confidence) for claim, trials, confidence in FIXED),
        *(seen(claim, trials, "sequential", confidence=confidence) for claim, trials, confidence in SEQUENTIAL),
        seen("gaussian(mu=1)", 1_500, "sequential", pairs=3),
    ]


def _replays() -> list[Setting]:
    true: list[tuple[str, Any]] = []
    for level in (0.5, 1, 2, 3):
        true += [(f"gaussian(mu={level:g})", Gaussian(1 / level)), (f"laplace(epsilon={level:g})", Laplace(1 / level))]
    for level in (1, 3):
        true.append((f"pure(epsilon={level:g})", response(level)))
    cases = [(*each, trials) for each, trials in product(true, (100, 500))]
    both = [replayed(claim, mechanism, trials) for claim, mechanism, trials in cases]
    return [setting for settings in both for setting in settings]


def _dependence() -> list[Setting]:
    def rare(probability: float) -> Any:
        return batched(lambda dataset, n, rng: (rng.random(n) < probability).astype(int))

    laws = {
        "an output in ten thousand differs": rare(1e-4),
        "an output in a thousand differs": rare(1e-3),
        "an output in a hundred differs": rare(1e-2),
        "an output in ten differs": rare(0.1),
        "normal numbers": batched(lambda dataset, n, rng: rng.normal(size=n)),
        "Cauchy numbers": batched(lambda dataset, n, rng: rng.standard_cauchy(size=n)),
        "Poisson numbers, mean 0.01": batched(lambda dataset, n, rng: rng.poisson(0.01, size=n)),
        "Poisson numbers, mean 5": batched(lambda dataset, n, rng: rng.poisson(5, size=n)),
        "three normal numbers": batched(lambda dataset, n, rng: rng.normal(size=(n, 3))),
        "three rare bits": batched(lambda dataset, n, rng: (rng.random((n, 3)) < 1e-2).astype(int)),
    }
    return [independent(f"{name}, {attacks}", law, attacks) for attacks, (name, law) in product(ATTACKS, laws.items())]


def _approximate(epsilon: float, delta: float) -> str:
    return f"approximate(epsilon={epsilon:g}, delta={delta:g})"


def _plans() -> list[Setting]:
    return [
        *(
            planned(f"gaussian(mu={claimed:g})", f"gaussian(mu={true:g})", Gaussian(1 / true), 0.9)
            for claimed, true in GAUSSIANS
        ),
        *(
            planned(f"pure(epsilon={claimed:g})", f"pure(epsilon={true:g})", response(true), 0.9)
            for claimed, true in RESPONSES
        ),
        planned("gaussian(mu=1)", "gaussian(mu=1.3)", noise(1.3, 4), 0.9, ", four numbers"),
        planned("laplace(epsilon=1)", "laplace(epsilon=1.4)", Laplace(1 / 1.4), 0.9),
        planned("pure(epsilon=1)", "laplace(epsilon=1.4)", Laplace(1 / 1.4), 0.8),
        planned("laplace(epsilon=1)", "laplace(epsilon=2)", Laplace(1 / 2), 0.95),
        planned("laplace(epsilon=0.5)", "laplace(epsilon=1)", Laplace(1.0), 0.9),
        planned(
            "approximate(epsilon=1, delta=0.05)", "approximate(epsilon=1.5, delta=0.05)", revealing(1.5, 0.05), 0.9
        ),
        planned("approximate(epsilon=0.5, delta=0.1)", "approximate(epsilon=1, delta=0.1)", revealing(1, 0.1), 0.9),
        *(
            planned(_approximate(e, d0), _approximate(e, d1), revealing(e, d1), 0.9, detect=sought)
            for (e, d0, d1), sought in product(RARE, (False, True))
        ),
    ]


def _suites() -> list[Setting]:
    gaussian = product((0.5, 1, 2, 3), (1.5, 2, 3))
    pure = product((0.5, 1, 2, 3), (1.5, 2))
    return [in_a_suite(f"gaussian(mu={mu:g})", times, Gaussian(1 / (mu * times))) for mu, times in gaussian] + [
        in_a_suite(f"pure(epsilon={epsilon:g})", times, Laplace(1 / (epsilon * times))) for epsilon, times in pure
    ]


FIRST_SEED = 50_000  # no constant of dpaudit was chosen on audits with this seed or larger seeds


def stated() -> list[Row]:
    return [_row(setting) for setting in _settings().values()]


@cache
def _settings() -> dict[str, Setting]:
    found = settings()
    labelled = {setting.label: setting for setting in found}
    if len(labelled) < len(found):
        raise AssertionError("two settings have the same label, so one would be stored as the other")
    return labelled


@cache
def _said(label: str) -> Any:
    """Return the statement of a setting, which all its audits share."""
    return _settings()[label].prepare()


def _row(setting: Setting) -> Row:
    # the audits of settings with the same `measure` are the same
    shared = next(other for other in _settings().values() if other.measure is setting.measure)
    bound = "at least" if setting.least else "at most"
    percent = f"{bound} {100 * setting.stated:.4g} %" if setting.stated > 1e-6 else f"{bound} {setting.stated:g}"
    return Row(
        cells=(setting.kind, setting.name, percent),
        measure=partial(measured, shared.label),
        events=partial(_events, setting.label),
        limits={"came true": Limit(rate=setting.stated, least=setting.least)},
        seeds=200,
        first=FIRST_SEED,
        stored_as=f"stated: {shared.label}",
    )


def measured(label: str, seed: int) -> Outcome:
    """Make one audit of a setting and measure it."""
    return {"value": float(_settings()[label].measure(_said(label), seed))}


def _events(label: str, outcome: Outcome) -> Mapping[str, bool]:
    return {"came true": _settings()[label].came_true(outcome["value"])}
