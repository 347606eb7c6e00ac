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

Analysts are the same in all sessions, and are chosen before the audit from the schema and from a few sessions that count
as no evidence.  So all sessions of an audit with one analyst are independent runs of one mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.claims import PureDP, TradeoffFunction
from dpaudit.engine.audit import audit
from dpaudit.pairs.pair import Pair
from dpaudit.result.model import AuditResult
from dpaudit.running.sessions import ASKS, Analyst, Sessions, Step, Visit
from dpaudit.running.streams import fresh_seed, stream
from dpaudit.values import Dataset
from dpaudit_attacks.sessions import ReportedLaw, SessionLaw, SessionRatio, session_ratio

PILOT = 30  # sessions on each dataset with each plain analyst, from which thresholds and analysts are chosen
MOST = 4  # analysts of a portfolio; each costs sessions
BEYOND = (0.1, 0.6)  # nats beyond what was reported at which an analyst stops
_PATIENCE = 12  # refusals in a row after which an analyst gives up


@dataclass(frozen=True, slots=True)
class Again:
    """Asks some queries in turn, again and again, and goes on after refusals and errors."""

    name: str
    queries: tuple[Any, ...]
    times: int = ASKS

    def next(self, history: Sequence[Step], rng: np.random.Generator) -> Any | None:
        """Return the next query in turn; None after some refusals in a row."""
        last = history[-_PATIENCE:]
        gives_up = len(last) == _PATIENCE and all(step.outcome == "refused" for step in last)
        return None if gives_up or len(history) >= self.times else self.queries[len(history) % len(self.queries)]


@dataclass(frozen=True, slots=True)
class UntilClear:
    """Asks a query again until the session is clearer evidence for one dataset than what it reported allows.

    The evidence is a log-likelihood ratio that a pilot taught; a wrong one costs sessions only.
    """

    name: str
    queries: tuple[Any, ...]
    numbers: tuple[int, ...]  # of the queries in the schema
    ratio: SessionRatio  # of the dataset that the evidence is against, to the dataset that it is for
    beyond: float  # nats by which the evidence must exceed what was reported

    def next(self, history: Sequence[Step], rng: np.random.Generator) -> Any | None:
        """Return the next query in turn, or None as soon as the evidence suffices."""
        turns = len(self.queries)
        known = tuple((self.numbers[place % turns], *step[1:]) for place, step in enumerate(history))
        if history and -float(self.ratio([known])[0]) > (history[-1].spent or 0.0) + self.beyond:
            return None
        return Again("", self.queries).next(history, rng)


def audit_interactive(
    open_session: Callable[[Dataset, np.random.Generator], Any],
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
            arguments), and `queries`, the schema.
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
        **settings: Further arguments of `audit`, such as `jobs`, `store`, `detect`, `confirm` and `progress`.

    Returns:
        The result; `trials_used` is the number of sessions on each dataset, over all analysts.

    Raises:
        ValueError: If there is no schema, or a session does not report what "reported" needs.
    """
    reported = isinstance(claim, str) and claim.strip() == "reported"
    pair_list = [pairs] if isinstance(pairs, Pair) else list(pairs)
    seed = fresh_seed() if seed is None else seed
    if not pair_list:
        raise ValueError("pairs must hold at least one pair of neighbouring datasets")
    if queries is None:
        queries = getattr(open_session(pair_list[0].d0, stream(seed, "schema")), "queries", None)
    if not queries:
        raise ValueError(
            "the session has no attribute `queries`: pass the queries that may be asked, queries=[...], of any type"
        )
    mechanism = Sessions(open_session, tuple(queries), reported)
    chosen: list[Pair] = []
    for number, pair in enumerate(pair_list):
        orders = [(pair.d0, pair.d1, str(pair))]
        if reported:
            orders = [(pair.d0, pair.d1, f"{pair}, loss of d0"), (pair.d1, pair.d0, f"{pair}, loss of d1")]
        for order, (first, second, label) in enumerate(orders):
            for analyst in _analysts(mechanism, first, second, analysts, stream(seed, "pilot", number, order)):
                visits = Visit(first, analyst, reported), Visit(second, analyst)
                chosen.append(Pair(*visits, label=f"{label}, {analyst.name}"))
    return audit(
        mechanism,
        PureDP(0.0) if reported else claim,
        chosen,
        trials=sessions,
        confidence=confidence,
        seed=seed,
        name=name or getattr(open_session, "__name__", type(open_session).__name__),
        **{"attacks": ReportedLaw() if reported else [SessionLaw(), "auto"], **settings},
    )


def _analysts(
    mechanism: Sessions, d0: Dataset, d1: Dataset, given: str | Sequence[Analyst], rng: np.random.Generator
) -> list[Analyst]:
    """Return the given analysts, or the portfolio: plain ones, and those whose thresholds a pilot gives."""
    if not isinstance(given, str):
        return list(given)
    if given != "auto":
        raise ValueError(f'analysts must be "auto" or a list of analysts, got {given!r}')
    queries = mechanism.queries
    groups = [(number,) for number in range(len(queries))]
    if len(queries) > 1:
        groups.append(tuple(range(len(queries))))
    gains: list[tuple[float, Analyst]] = []
    for group in groups:
        title = f"query {group[0]}" if len(group) == 1 else "all queries in turn"
        asked = tuple(queries[number] for number in group)
        plain = Again(f"{title}, again and again", asked)
        sides = [[mechanism(Visit(d, plain), rng) for _ in range(PILOT)] for d in (d0, d1)]
        ratio = session_ratio(sides[0][::2], sides[1][::2], rng, known=False)
        gain = float(ratio(sides[1][1::2]).mean() - ratio(sides[0][1::2]).mean())
        gains.append((gain, plain))
        if mechanism.reported:
            learned = session_ratio(*sides, rng, known=False)
            clear = [
                UntilClear(f"{title}, until {nats:g} nats beyond the report", asked, group, learned, nats)
                for nats in BEYOND
            ]
            gains = [(gain, analyst) for analyst in clear] + gains
    return [analyst for _, analyst in sorted(gains, key=lambda gain: -gain[0])[:MOST]]
