"""Audits of sessions that answer query after query: claims about a whole session, and what sessions report.

A transcript of a session with any analyst, who may choose each query from the answers before, is one output of a
mechanism.  A claim about the whole session is a claim about this mechanism, so `audit` tests it as usual.

*What is reported.*  An odometer reports epsilon: after answer i, it has added some eps_i >= 0, which was fixed before
the answer.  Let p and q be the densities of transcripts on two neighbouring datasets, and eps(o) what a transcript o
reports at its end.

Theorem (ex-post privacy; Ligett, Neel, Roth, Waggoner & Wu 2017; Rogers, Roth, Ullman & Vadhan 2016).  If each answer
is eps_i-DP given the answers before, then p(o) <= exp(eps(o)) q(o) for every o, in both orders of the datasets.
Proof: p(o) / q(o) is the product of the ratios of the answers, and the analyst's choices cancel.

*The test.*  On the first dataset, a transcript survives with probability exp(-eps(o)), and is erased otherwise; on the
second it always survives.  Call these laws P' and Q.

Theorem.  If the reports are right, Q(S) <= exp(s) P'(S) + delta(s) for every real s and every event S that contains
what was erased, where delta(s) = max(0, 1 - exp(s)) is the profile of the claim epsilon = 0.
Proof: the complement T of S holds transcripts only, and P'(T) = E_P[exp(-eps) 1_T] <= Q(T).  So Q(S) <= P'(S), which is
the statement for s >= 0; for s < 0, P'(S) = exp(s) P'(S) + (1 - exp(s)) P'(S) <= exp(s) P'(S) + 1 - exp(s).

The sequential test bets only on events {score > t} (`inference.sequential.betting`), and what was erased has the
largest score (`dpaudit_attacks.sessions.ReportedLaw`).  So the test of epsilon = 0 refutes right reports with
probability at most 1 - confidence, at any stopping time.  Both orders of a pair are tested, at the price of two pairs.

Analysts are the same in all sessions.  They are chosen before the audit from the schema and from a pilot, whose
sessions are no evidence.  So all sessions of an audit with one analyst are independent runs of one mechanism.  The
pilot also estimates the probabilities of what an analyst waits for, and bets on them are planned
(`inference.sequential.planned`).  A wrong estimate costs sessions only.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from dpaudit.claims import Reported, TabulatedTradeoff, TradeoffFunction
from dpaudit.claims.comparison import violates
from dpaudit.engine.arguments import claim_of, pairs_of, violation_of
from dpaudit.engine.audit import audit_for
from dpaudit.inference.sequential.alternatives import Alternative, pair_laws
from dpaudit.inference.sequential.betting import best_bet
from dpaudit.inference.sequential.planned import growth_rate
from dpaudit.numerics import fit_logistic
from dpaudit.pairs.difference import brief
from dpaudit.pairs.pair import Pair
from dpaudit.result.model import AuditResult
from dpaudit.running.foreign import MechanismError
from dpaudit.running.identity import mechanism_name
from dpaudit.running.outcomes import in_words
from dpaudit.running.sessions import Analyst, NotReported, OfChild, Opens, Sessions, Step, Visit
from dpaudit.running.streams import fresh_seed, stream
from dpaudit.settings import AuditSettings
from dpaudit_attacks.sessions import ReportedLaw, SessionLaw, SessionRatio, SessionSums, session_ratio

PILOT, MOST = 40, 160  # sessions on each dataset with each plain analyst, from which analysts are chosen
_SURE = 6.0  # nats that the sessions of a pilot would win; with more, they are enough
_WORSE = 0.4  # analysts with a smaller share of the best growth rate are left out
_ASKS = 120  # queries of a session of a builtin analyst
_GROUPS = 6  # groups of queries that a pilot tries
_CHOSEN = 2  # analysts of a portfolio; each costs sessions
_BEYOND = (0.02, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0, 6.0)  # nats beyond the report at which analysts stop
_PATIENCE = 12  # refusals in a row after which an analyst gives up
_ERROR = 1.0  # standard errors by which an estimated difference is reduced before analysts are compared
_AHEAD = 4.0  # nats of log-loss, at most, by which an attack counts as better that predicted a pilot better
_PLANNED = 0.85  # share of the estimated difference on which a bet is planned


@dataclass(frozen=True, slots=True)
class Again:
    """Asks some queries in turn, again and again, and goes on after refusals and errors."""

    name: str
    queries: tuple[Any, ...]
    times: int = _ASKS

    def next(self, history: Sequence[Step], rng: np.random.Generator) -> Any | None:
        """Return the next query in turn; None after some refusals in a row."""
        last = history[-_PATIENCE:]
        gives_up = len(last) == _PATIENCE and all(step.outcome in ("refused", "nothing") for step in last)
        return None if gives_up or len(history) >= self.times else self.queries[len(history) % len(self.queries)]


@dataclass(frozen=True, slots=True)
class UntilClear:
    """Asks queries in turn until the session is clearer evidence for one dataset than what it reported allows.

    The evidence is a log-likelihood ratio that a pilot taught; a wrong one costs sessions only.
    """

    name: str
    plain: Again
    numbers: tuple[int, ...]  # of the queries in the schema
    ratio: SessionRatio  # of the dataset that the evidence is against, to the dataset that it is for
    beyond: float  # nats by which the evidence must exceed what was reported
    clear: float  # log-ratio of the probabilities that the evidence suffices; the conclusion if it does
    unclear: float  # the conclusion if it does not

    def next(self, history: Sequence[Step], rng: np.random.Generator) -> Any | None:
        """Return the next query in turn, or None as soon as the evidence suffices."""
        return self.begin().next(history, rng)

    def begin(self) -> _Watching:
        return _Watching(self)


@dataclass(slots=True)
class _Watching:
    """`UntilClear` in one session: adds up the evidence of each step once."""

    analyst: UntilClear
    read: int = field(default=0, init=False)
    evidence: float = field(default=0.0, init=False)

    def next(self, history: Sequence[Step], rng: np.random.Generator) -> Any | None:
        return None if self.cleared(history) else self.analyst.plain.next(history, rng)

    def concludes(self, history: Sequence[Step]) -> float:
        return self.analyst.clear if self.cleared(history) else self.analyst.unclear

    def cleared(self, history: Sequence[Step]) -> bool:
        numbers, ratio = self.analyst.numbers, self.analyst.ratio
        for place in range(self.read, len(history)):
            step, before = history[place], history[place - 1].outcome if place else ""
            self.evidence -= ratio.of_step(numbers[place % len(numbers)], before, step.outcome, step.value)
        self.read = len(history)
        return bool(history) and self.evidence > (history[-1].spent or 0.0) + self.analyst.beyond


@dataclass(frozen=True, slots=True)
class Design:
    """An analyst for one order of a pair, and what bets are planned on."""

    growth: float  # nats per session of the best bet, as a pilot estimates it
    order: int  # 0 if the loss of d0 is tested, 1 for that of d1
    analyst: Analyst
    violations: tuple[TradeoffFunction, ...] = ()
    attacks: tuple[SessionLaw, ...] = ()  # for claims about whole sessions, with what a pilot taught


def audit_interactive(
    open_session: Opens,
    claim: TradeoffFunction | str,
    pairs: Pair | Iterable[Pair],
    *,
    queries: Sequence[Any] | None = None,
    analysts: str | Sequence[Analyst] = "auto",
    sessions: int = 10_000,
    confidence: float = 0.99,
    seed: int | None = None,
    name: str = "",
    **settings: Any,
) -> AuditResult:
    """Try to refute what a session promises, or what it reports to have spent.

    Args:
        open_session: `(dataset, rng) -> session`.  A session has `ask(query) -> answer`, which raises `dpaudit.Refused`
            when it refuses, and optionally `spent`, the epsilon spent so far (a number or a function without
            arguments), `queries`, the schema, and `child()`, which opens a session within this one.
        claim: A claim about the whole session, or "reported": after every session, the privacy loss is at most what it
            reported, whichever queries were asked (pure DP, ex post).
        pairs: Pairs of neighbouring datasets.
        queries: The queries that may be asked, of any type; the session's own `queries` if None.
        analysts: "auto", or analysts: each has a `name` and `next(history, rng)`, which returns the next query, or
            None to end the session.  It must depend on nothing but the steps of this session.
        sessions: Maximum number of sessions on each dataset.
        confidence: A true claim is called violated with probability at most 1 - confidence.
        seed: Seed of all randomness; a fresh one if None.
        name: Name of the audit in reports.
        **settings: Further arguments of `audit`, such as `jobs`, `store`, `measure`, `confirm` and `progress`.

    Returns:
        The result; `trials_used` is the number of sessions on each dataset, over all analysts, without the pilot, whose
            number is `provenance.runs_before_evidence`.

    Raises:
        ValueError: If there is no schema, or a session does not report what "reported" needs.
    """
    claim = claim_of("claim", claim, sessions=True)
    reported = isinstance(claim, Reported)
    pair_list, detect = pairs_of(pairs), violation_of(settings.pop("detect", None))
    seed = fresh_seed() if seed is None else seed
    if reported and (detect is not None or "attacks" in settings):
        raise ValueError(
            "what sessions report is tested with one attack, and bets follow from a pilot: remove attacks, detect"
        )
    plain = Sessions(open_session, (), (), reported)
    plain = dataclasses.replace(plain, queries=_schema(plain, pair_list[0], queries, stream(seed, "schema")))
    most, piloted = max(PILOT, min(MOST, sessions // 4)), 0
    chosen: list[Pair] = []
    used: list[Analyst] = []
    attacks: list[tuple[SessionLaw, ...]] = []
    violations: list[TradeoffFunction] = [] if detect is None else [detect]
    for number, pair in enumerate(pair_list):
        designs, made = _designs(plain, pair, claim, analysts, most, stream(seed, "pilot", number))
        piloted += made
        for design in designs:
            analyst, (first, second) = design.analyst, (pair.d0, pair.d1)[:: -1 if design.order else 1]
            if isinstance(analysts, str) and number > 0:
                analyst = dataclasses.replace(cast(Any, analyst), name=f"{analyst.name} (pair {number + 1})")
            used += [analyst] if all(analyst is not one for one in used) else []
            label = f"{pair}, loss of d{design.order}, {analyst.name}" if reported else f"{pair}, {analyst.name}"
            visits = Visit(first, analyst.name, reported), Visit(second, analyst.name)
            chosen.append(Pair(*visits, label=label))
            violations += design.violations
            attacks.append(design.attacks)
    if len({analyst.name for analyst in used}) < len(used):
        raise ValueError(f"analysts must have different names, got {', '.join(one.name for one in used)}")
    taught = attacks[0] if len(attacks) == 1 else ()  # analysts for whom pilots differ share untaught attacks
    attack = ReportedLaw() if reported else (taught or (SessionLaw(), SessionSums()))
    given: dict[str, Any] = {"attacks": attack, **settings}
    name = name or mechanism_name(open_session)
    result = audit_for(
        dataclasses.replace(plain, analysts=tuple(used)),
        claim,
        chosen,
        AuditSettings(trials=sessions, confidence=confidence, seed=seed, name=name, detect=detect, **given),
        violations=violations,
    )
    provenance = dataclasses.replace(result.provenance, runs_before_evidence=piloted)
    return dataclasses.replace(result, provenance=provenance)


def _schema(
    mechanism: Sessions, pair: Pair, queries: Sequence[Any] | None, rng: np.random.Generator
) -> tuple[Any, ...]:
    """Return the queries that may be asked of a session, and of two children if it has such."""
    with _pilot():
        session = mechanism.open(copy.deepcopy(pair.d0), rng)
        queries = getattr(session, "queries", None) if queries is None else queries
    if queries is None or not len(queries):
        raise ValueError(
            "the session has no attribute `queries`: pass the queries that may be asked, queries=[...], of any type"
        )
    children = range(2 if hasattr(session, "child") else 0)
    return (*queries, *(OfChild(child, query) for query in queries for child in children))


def _designs(
    mechanism: Sessions,
    pair: Pair,
    claim: TradeoffFunction,
    analysts: str | Sequence[Analyst],
    most: int,
    rng: np.random.Generator,
) -> tuple[list[Design], int]:
    """Return the analysts for a pair, given or found best by a pilot, and its number of sessions on each dataset."""
    orders = (0, 1) if mechanism.reported else (0,)
    if not isinstance(analysts, str):
        return [Design(0.0, order, analyst) for order in orders for analyst in analysts], 0
    if analysts != "auto":
        raise ValueError(f'analysts must be "auto" or a list of analysts, got {analysts!r}')
    count = len(mechanism.queries)
    groups: list[tuple[int, ...]] = [(number,) for number in range(min(count, _GROUPS - 1))]
    groups += [tuple(range(count))] if count > 1 else []
    of_children = [number for number, query in enumerate(mechanism.queries) if isinstance(query, OfChild)]
    groups += [tuple(of_children)] if of_children else []
    found: list[Design] = []
    made = 0
    for group in groups:
        text = brief(mechanism.queries[group[0]])
        title = f"query {group[0]}" + f": {text}" * (" at 0x" not in text)  # an address is another one in the next run
        if len(group) > 1:
            title = "queries to two children in turn" if len(group) == len(of_children) else "all queries in turn"
        again = Again(f"{title}, again and again", tuple(mechanism.queries[number] for number in group))
        asking = dataclasses.replace(mechanism, analysts=(again,))
        sides: tuple[list[Any], list[Any]] = [], []
        tried: list[Design] = []
        while len(sides[0]) < most and all(design.growth * len(sides[0]) < _SURE for design in tried):
            more = max(PILOT, len(sides[0]))
            with _pilot():
                for side, dataset in zip(sides, (pair.d0, pair.d1), strict=True):
                    side += [asking(Visit(copy.deepcopy(dataset), again.name), rng) for _ in range(more)]
            if mechanism.reported:
                tried = [design for order in orders for design in _stopping(sides, order, group, again, rng)]
            else:
                tried = [_whole(sides, again, claim, rng)]
        found += tried
        made += len(sides[0])
    found.sort(key=lambda design: -design.growth)
    if found[0].growth * most >= _SURE:
        return found[:1], made
    return [design for design in found[:_CHOSEN] if design.growth >= _WORSE * found[0].growth], made


@contextmanager
def _pilot() -> Iterator[None]:
    """In a `with` block, make a MechanismError of what a session raises when it is opened."""
    try:
        yield
    except (NotReported, MechanismError):
        raise
    except Exception as error:
        raise MechanismError(f"a session of the pilot raised {in_words(error)}") from error


def _whole(
    sides: tuple[list[Any], list[Any]], again: Analyst, claim: TradeoffFunction, rng: np.random.Generator
) -> Design:
    """Estimate from a pilot how much sessions with a plain analyst violate a claim about the whole session.

    A score s, learned from one half, has in the other half the masses m e^-s / (1 + e^-s) and m / (1 + e^-s) on the two
    datasets, where m is the number of sessions with this score.  So rare scores are learned from both datasets.
    """
    best, mean = Design(0.0, 0, again), 0.0
    losses: list[float] = []
    for attack in (SessionLaw(), SessionSums()):
        scores: list[Any] = []
        for half in range(2):
            fitted = attack.learned(sides[0][half::2], sides[1][half::2], rng)
            scores += [fitted(side[1 - half :: 2]) for side in sides]
        held = [np.concatenate(scores[side::2]) for side in range(2)]
        slope, intercept = fit_logistic(np.concatenate(held)[:, None], len(held[0]))
        scored = [max(float(slope[0]), 0.0) * side + intercept for side in held]
        losses.append(float(np.logaddexp(0, scored[0]).sum() + np.logaddexp(0, -scored[1]).sum()))
        ratios = np.round(np.clip(np.concatenate(scored), -20, 20), 1)
        ratio, times = np.unique(ratios, return_counts=True)
        mean = max(mean, float(np.mean(held[1]) - np.mean(held[0])))
        p, q = times / (1 + np.exp(ratio)), times / (1 + np.exp(-ratio))
        alpha, beta = 1 - np.cumsum(p / p.sum())[::-1], np.cumsum(q / q.sum())[::-1]
        curve = TabulatedTradeoff(alpha=[0.0, *alpha[1:], 1.0], beta=[1.0, *beta[1:], 0.0])
        if violates(curve, claim):
            law = Alternative(p=(laws := pair_laws(curve)[0])[0], q=laws[1], weight=1.0)
            growth = growth_rate(best_bet(law, claim), claim, law)
            best = max(best, Design(growth, 0, again, (curve,)), key=lambda design: design.growth)
    ahead = [min(_AHEAD, max(losses) - loss) for loss in losses]
    attacks = SessionLaw(sides, ahead[0]), SessionSums(sides, ahead[1])
    return dataclasses.replace(best, growth=best.growth or 1e-9 * mean, attacks=attacks)


def _stopping(
    sides: Sequence[Sequence[Any]],
    order: int,
    group: tuple[int, ...],
    again: Again,
    rng: np.random.Generator,
) -> list[Design]:
    """Return the analyst that stops at the best moment in sessions of a pilot, for one order of the datasets."""
    first, second = sides[order], sides[1 - order]
    paths: tuple[list[tuple[Any, Any]], ...] = ([], [])
    for half in range(2):
        ratio = session_ratio(first[half::2], second[half::2], rng)
        for found, side in zip(paths, (first, second), strict=True):
            found += [_path(ratio, transcript) for transcript in side[1 - half :: 2]]
    best: Design | None = None
    learned = session_ratio(first, second, rng)
    for beyond in _BEYOND:
        stops = [np.array([_stop(*path, beyond) for path in side]) for side in paths]
        spent, evidence = np.concatenate(stops).T
        modelled = 2 * np.exp(-spent) / (1 + np.exp(-evidence)), 2 / (1 + np.exp(evidence))
        seen = np.exp(-stops[0][:, 0]), np.isfinite(stops[1][:, 0]).astype(float)
        apart = modelled[0] - modelled[1]
        noise = float(seen[0].var() + seen[1].var()) / len(first) + 1e-9
        contradicted = (float(apart.mean()) - float(seen[0].mean() - seen[1].mean())) ** 2
        doubt = float(apart.var()) / len(apart) + max(0.0, contradicted - 4 * noise)
        share = noise / (noise + doubt)
        p, q = (share * float(a.mean()) + (1 - share) * float(b.mean()) for a, b in zip(modelled, seen, strict=True))
        p, q = (min(max(rate, 0.005), 0.995) for rate in (p, q))
        growth = _growth(p, max(q, min(p, q + _ERROR * math.sqrt(share * doubt))))
        if best is None or growth > best.growth:
            name = f"{again.name}, until a session speaks for d{order} by {beyond:g} nats more than it reports"
            logs = float(np.log(q / p)), float(np.log((1 - q) / (1 - p)))
            p, q = (p + q) / 2 + _PLANNED * (p - q) / 2, (p + q) / 2 - _PLANNED * (p - q) / 2
            curves = (TabulatedTradeoff(alpha=(0.0, 1 - p, 1.0), beta=(1.0, q, 0.0)),) if p > q + 0.01 else ()
            best = Design(growth, order, UntilClear(name, again, group, learned, beyond, *logs), curves)
    return [] if best is None else [best]


def _path(ratio: SessionRatio, transcript: Sequence[Any]) -> tuple[Any, Any]:
    """Return the evidence for the first dataset after each step, and what was reported then."""
    before, gains = "", []
    for query, outcome, value, _ in transcript:
        gains.append(-ratio.of_step(query, before, outcome, value))
        before = outcome
    return np.cumsum(gains), np.array([step[3] for step in transcript], dtype=float)


def _stop(evidence: Any, spent: Any, beyond: float) -> tuple[float, float]:
    """Return (spent, evidence) when the evidence first exceeds the report by some nats; infinite if it never does."""
    places = np.flatnonzero(evidence > spent + beyond)
    return (float(spent[places[0]]), float(evidence[places[0]])) if len(places) else (math.inf, math.inf)


def _growth(p: float, q: float) -> float:
    """Return the growth rate of the best bet on an event with probability p on d0 and q < p on d1, in nats."""
    m = (p + q) / 2
    return float(sum(x * np.log(x / y) for x, y in ((p, m), (1 - p, 1 - m), (q, m), (1 - q, 1 - m)))) if p > q else 0.0
