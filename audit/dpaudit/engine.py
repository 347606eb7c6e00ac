"""The audit: sample, score with what the past taught, bet, look, learn, go on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.claims import Array, GaussianDP, TradeoffFunction, parse_claim
from dpaudit.inference.alternatives import scaled
from dpaudit.inference.bands import tradeoff_band
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.inference.planning import largest_epsilon, least_detectable, power_margin, smallest_rate
from dpaudit.inference.strategy import Counts, Strategy, lower_bound, strategy
from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.neighbours import Pair, brief
from dpaudit.outputs import OutputError, features
from dpaudit.provenance import environment
from dpaudit.registry import Attack, resolve_attacks
from dpaudit.result import AttackRow, AuditResult, Curve, Detectable, Evidence, History, PairRow, StoppedBy, Verdict
from dpaudit.scoring import FIRST_FIT, Learner
from dpaudit.trials.sampling import Sampler
from dpaudit.witness import make_witness

METHODS = ("sequential",)
POWER = 0.9  # with which the smallest detectable violation would have been seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where an audit stands."""

    trials: int  # runs per dataset so far
    allowed: int
    log_e: float  # evidence against the claim
    log_threshold: float  # evidence at which it is refuted


def audit(
    mechanism: Any,
    claim: TradeoffFunction | str,
    pairs: Pair | Sequence[Pair],
    *,
    attacks: str | Attack | Sequence[str | Attack] = "auto",
    trials: int = 100_000,
    confidence: float = 0.95,
    method: str = "sequential",
    seed: int = 0,
    jobs: int = 1,
    detect: TradeoffFunction | str | None = None,
    progress: Callable[[Progress], None] | None = None,
    name: str = "",
) -> AuditResult:
    """Try to refute `claim` about `mechanism`, and say how small a violation would have been found.

    `mechanism`: a callable `(dataset, rng) -> output`, or an object with `sample(dataset, n, rng)` that returns n
    outputs.  Runs must be independent of each other; the guarantee rests on that alone.
    `claim`: a claim, or text for `parse_claim`.  It is about both orders of each pair.
    `pairs`: neighbouring datasets; with several, the claim is refuted if it fails on any of them.
    `attacks`: "auto", a name, an Attack, or several.  `trials`: the most runs on each dataset, all pairs together.
    `confidence`: a true claim is called violated with probability at most 1 - confidence, whenever the audit stops.
    `seed`: of all randomness but the mechanism's own; a mechanism that draws only from its rng is repeated exactly.
    `jobs`: processes the mechanism runs in (-1: all cores); changes no result.
    `detect`: a violation, as a claim, that the audit should be able to see; if it could not, it ends INCONCLUSIVE.
    `progress`: called after each block of trials.  `name`: for the report.

    Raises ValueError for impossible arguments, MechanismError if the mechanism fails before anything was measured;
    a failure later ends the audit INCONCLUSIVE, with what was measured until then.
    """
    claim, detect = _claim(claim), None if detect is None else _claim(detect)
    pair_list = [pairs] if isinstance(pairs, Pair) else list(pairs)
    if not pair_list:
        raise ValueError("pairs must hold at least one Pair")
    if not trials >= 1:
        raise ValueError(f"trials must be at least 1, got {trials}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    if method not in METHODS:
        raise ValueError(f"method must be {' or '.join(METHODS)}, got {method!r}")
    chosen = resolve_attacks(attacks)
    run = _Run(
        sampler=Sampler(mechanism, pair_list, seed, jobs),
        tested=claim.symmetrized(),
        learners=[Learner(chosen, seed, index) for index in range(len(pair_list))],
        allowed=trials,
        log_threshold=-math.log1p(-confidence),
    )
    began = time.perf_counter()
    run.go(progress)
    return _result(
        run,
        claim,
        detect,
        confidence=confidence,
        method=method,
        name=name or _name(mechanism),
        environment=environment(seed=seed, mechanism=_name(mechanism)),
        elapsed_s=time.perf_counter() - began,
    )


@dataclass
class _Run:
    """State of a sequential audit.  Nothing in it looks ahead: a block is scored before it is learned from."""

    sampler: Sampler
    tested: TradeoffFunction  # the claim for both orders
    learners: list[Learner]
    allowed: int
    log_threshold: float
    columns: int | None = None
    trials: int = 0
    history: list[tuple[int, float]] = field(default_factory=list)
    bets: Strategy = field(init=False)
    log_prices: Array = field(init=False)  # of the bets, under the claim
    counts: Counts = field(init=False)  # (pairs, 2, BINS), scores of fresh outputs
    stopped_by: StoppedBy = "trials"
    failure: str = ""  # what the mechanism did, if that ended the audit

    def __post_init__(self) -> None:
        self.bets = strategy(self.tested)
        self.log_prices = self.bets.log_prices(self.tested)
        self.counts = np.zeros((len(self.learners), 2, BINS), dtype=np.int64)

    @property
    def refuted(self) -> bool:
        return self.most >= self.log_threshold

    @property
    def most(self) -> float:
        """Largest log-wealth so far; none has been won or lost at the start."""
        return max((log_e for _, log_e in self.history), default=0.0)

    def go(self, progress: Callable[[Progress], None] | None) -> None:
        try:
            while not self.refuted and not self.failure and self.trials < self.allowed:
                pair = self.next_pair()
                for outputs0, outputs1 in self.sample(pair):
                    self.bet(pair, outputs0, outputs1)
                    self.learners[pair].learn(outputs0, outputs1)
                    if progress is not None:
                        progress(self.progress())
        except KeyboardInterrupt:
            self.stopped_by = "interruption"
        if self.refuted:
            self.stopped_by = "evidence"
        elif self.failure:
            self.stopped_by = "failure"

    def next_pair(self) -> int:
        """Every pair in turn."""
        return int(np.argmin([learner.trials for learner in self.learners]))

    def sample(self, pair: int) -> list[tuple[Array, Array]]:
        """The next block of a pair; empty if the mechanism failed before it gave one output of each dataset.

        Blocks grow with the trials, a sixty-fourth each, and end where scores are learned anew.
        """
        learner = self.learners[pair]
        start = learner.trials
        size = max(2, start // 64) if learner.ready else FIRST_FIT
        stop = start + min(size, learner.next_fit - start, self.allowed - self.trials)
        outcomes = self.sampler.block(pair, start, stop)
        failures = [outcome.failure for outcome in outcomes if outcome.failure]
        complete = min(len(outcome.outputs) for outcome in outcomes)
        block: list[tuple[Array, Array]] = []
        try:
            if complete:
                sides = [features(outcome.outputs[:complete], self.columns) for outcome in outcomes]
                if sides[0].shape[1] != sides[1].shape[1]:
                    raise OutputError(
                        f"every output must have the same length, got {sides[0].shape[1]} numbers on d0 and "
                        f"{sides[1].shape[1]} on d1"
                    )
                block = [(sides[0], sides[1])]
        except OutputError as error:
            failures.insert(0, f"gave an output that cannot be read: {error}")
        if failures:
            self.failure = f"the mechanism {failures[0]} (pair {self.sampler.pairs[pair]})"
            if not block and self.trials == 0:
                raise MechanismError(self.failure)
        for outputs0, _ in block:
            self.columns = outputs0.shape[1]
            self.trials += len(outputs0)
        return block

    def bet(self, pair: int, outputs0: Array, outputs1: Array) -> None:
        """Score a block by what was learned before it, and count the evidence."""
        learner = self.learners[pair]
        if learner.ready:
            scores0, scores1 = learner.score_fresh(outputs0, outputs1)
            self.counts[pair] += [bin_counts(scores0), bin_counts(scores1)]
        self.history.append((self.trials, self.bets.log_wealth(self.log_prices, self.counts.sum(axis=0))))

    def progress(self) -> Progress:
        return Progress(
            trials=self.trials, allowed=self.allowed, log_e=self.history[-1][1], log_threshold=self.log_threshold
        )


def _result(
    run: _Run,
    claim: TradeoffFunction,
    detect: TradeoffFunction | None,
    *,
    confidence: float,
    method: str,
    name: str,
    environment: dict[str, Any],
    elapsed_s: float,
) -> AuditResult:
    significance = 1 - confidence
    total = run.counts.sum(axis=0)
    detectable = _detectable(run, claim, significance)
    warnings = [warning for learner in run.learners for warning in learner.warnings]
    if run.failure:
        warnings.append(f"{run.failure}; the {run.trials} runs per dataset before it are kept")
    if run.stopped_by == "interruption":
        warnings.append(f"interrupted after {run.trials} of {run.allowed} runs per dataset")
    verdict = Verdict.NO_VIOLATION
    if run.refuted:
        verdict = Verdict.VIOLATION
    elif run.stopped_by != "trials":
        verdict = Verdict.INCONCLUSIVE
    elif not detectable.claim:
        verdict = Verdict.INCONCLUSIVE
        warnings.append(f"{run.trials} runs per dataset are too few to see any violation of {claim.label}")
    elif detect is not None and not _would_see(run, detect, significance):
        verdict = Verdict.INCONCLUSIVE
        warnings.append(f"{run.trials} runs per dataset are too few to see {detect.label} with {POWER:.0%} probability")
    wealth = [run.bets.log_wealth(run.log_prices, counts) for counts in run.counts]
    best = int(np.argmax(wealth))
    alpha, beta, beta_upper = tradeoff_band(*total, significance=significance)
    return AuditResult(
        name=name,
        verdict=verdict,
        claim=claim,
        confidence=confidence,
        method=method,
        p_value=min(1.0, math.exp(-run.most)),
        e_value=math.exp(run.most) if run.most < 700 else math.inf,
        trials_used=run.trials,
        trials_allowed=run.allowed,
        stopped_by=run.stopped_by,
        mu_lower=lower_bound(lambda mu: run.bets.log_e(GaussianDP(mu), total) >= run.log_threshold),
        curve=Curve(alpha=alpha, beta=beta, beta_upper=beta_upper),
        witness=make_witness(
            run.learners[best],
            run.tested,
            *run.counts[best],
            pair=str(run.sampler.pairs[best]),
        ),
        detectable=detectable,
        history=History(
            trials=np.array([trials for trials, _ in run.history], dtype=np.int64),
            log_e=np.array([log_e for _, log_e in run.history]),
        ),
        evidence=Evidence(counts=run.counts),
        pairs=tuple(
            PairRow(
                label=str(pair),
                relation=pair.relation,
                d0=brief(pair.d0, 200),
                d1=brief(pair.d1, 200),
                trials=learner.trials,
                log_e=log_e,
            )
            for pair, learner, log_e in zip(run.sampler.pairs, run.learners, wealth, strict=True)
        ),
        attacks=tuple(_attack_rows(run.learners)),
        warnings=tuple(warnings),
        environment=environment,
        elapsed_s=elapsed_s,
    )


def _detectable(run: _Run, claim: TradeoffFunction, significance: float) -> Detectable:
    bets = int(run.counts[:, 0].sum())  # trials that were bet on, not only learned from
    least = least_detectable(run.bets, run.tested, bets, significance=significance, power=POWER) if bets else None
    return Detectable(
        claim="" if least is None else str(least),
        assumption="if an attack knows the likelihood ratio; learning it costs more",
        smallest_rate=smallest_rate(bets),
        largest_epsilon=largest_epsilon(bets, significance=significance),
    )


def _would_see(run: _Run, violation: TradeoffFunction, significance: float) -> bool:
    bets, truth = int(run.counts[:, 0].sum()), scaled(violation, 1.0)
    return power_margin(run.bets, run.tested, truth, bets, significance=significance, power=POWER) >= 0


def _attack_rows(learners: Sequence[Learner]) -> list[AttackRow]:
    """One row for each attack: means over the pairs on which it was used."""
    rows: list[AttackRow] = []
    for index, attack in enumerate(learners[0].attacks):
        weights = [learner.weights().get(index, 0.0) for learner in learners]
        losses = [loss for learner in learners if not math.isnan(loss := learner.mean_loss(index))]
        used = any(index in learner.weights() for learner in learners)
        rows.append(
            AttackRow(
                name=attack.name,
                weight=float(np.mean(weights)),
                log_loss=float(np.mean(losses)) if losses else math.nan,
                note="" if used else "not used: it does not suit these outputs, or it failed",
            )
        )
    return rows


def _claim(claim: TradeoffFunction | str) -> TradeoffFunction:
    return parse_claim(claim) if isinstance(claim, str) else claim


def _name(mechanism: Any) -> str:
    address = getattr(mechanism, "address", None) or getattr(mechanism, "__qualname__", None)
    return str(address or type(mechanism).__qualname__)
