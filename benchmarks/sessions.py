"""Builtin sessions, right and wrong: how many sessions refute the wrong ones, and how often right ones are refuted.

    python benchmarks/sessions.py [--only TEXT ...] [--confidence 0.99]
    python benchmarks/sessions.py --only right --confidence 0.95
    python benchmarks/sessions.py --only transcripts

The audits get the session and one pair of datasets, and learn everything else.  The limit is the least possible mean of
a test of the best event that an analyst with plain queries can wait for: log(1 / significance) by the growth rate

    min KL(p, p0) + KL(q, q0)  over all p0, q0 with q0 <= e^epsilon p0

(Turner, Ly & Grünwald 2021).  Its event is found with a score that 4,000 further sessions taught, so it is an estimate.
In an audit of what is reported, p is the probability that the analyst stops and the transcript survives, and epsilon is
0.  A mean must be at most 1.8 limits, and at most 250 sessions where the limit is below 140.

The table "right" counts false alarms: 100 audits of each right session, under what it reports and as a whole.  The
table "transcripts" leaves out all that dpaudit knows of sessions: the attacks are those for outputs of any kind.
"""

from __future__ import annotations

import argparse
import math
import sys
from functools import cache, partial
from typing import Any, cast

import numpy as np

from dpaudit import PureDP, audit_interactive
from dpaudit.catalogue.sessions import SESSIONS, BuiltinSession
from dpaudit.engine.interactive import Again
from dpaudit.running.sessions import Sessions, Visit
from dpaudit_attacks.sessions import SessionLaw, SessionSums, session_ratio
from measure import SECONDS, Case, Expected, Limit, Outcome, Outcomes, Table, count, mean, run

SAMPLED = 4_000  # sessions on each dataset from which a limit is estimated
WRONG = {name: session for name, session in SESSIONS.items() if not session.right}
RIGHT = {name: session for name, session in SESSIONS.items() if session.right}


def audited(name: str, claim: str, most: int, confidence: float, seed: int, **settings: Any) -> Outcome:
    session = SESSIONS[name]
    terms: dict[str, Any] = {"sessions": most, "confidence": confidence, "confirm": "never", "seed": seed, **settings}
    result = audit_interactive(session.open_session, claim, session.pair, **terms)
    return {"violated": result.violated, "sessions": result.trials_used}


@cache
def limit(name: str, confidence: float) -> float:
    """Return the least possible mean number of sessions until a claim is refuted, as the docstring says."""
    session, rng = WRONG[name], np.random.default_rng(1)
    queries = tuple(session.open_session(session.pair.d0, rng).queries)
    groups = {(query,) for query in queries} | {queries}
    reported = session.claim == "reported"
    best = 0.0
    for group in sorted(groups):
        plain = Again("plain", group)
        mechanism = Sessions(session.open_session, queries, (cast(Any, plain),), reported)
        sides = [
            [mechanism(Visit(dataset, plain.name), rng) for _ in range(SAMPLED)]
            for dataset in (session.pair.d0, session.pair.d1)
        ]
        rates = _stopped(sides, rng) if reported else _above(sides, rng)
        epsilon = 0.0 if reported else float(session.claim.parameters["epsilon"])  # type: ignore[union-attr]
        best = max([best, *(growth(p, q, epsilon) for p, q in rates)])
    return -math.log1p(-confidence) / best if best else math.inf


def _stopped(sides: list[list[Any]], rng: np.random.Generator) -> list[tuple[float, float]]:
    """Return, for both orders and many moments to stop, the probabilities on the other dataset and on the first."""
    rates = []
    for first, second in (sides, sides[::-1]):
        ratio = session_ratio(first[::2], second[::2], rng)
        paths = []
        for side in (first, second):
            evidence, spent = np.full((2, len(side) // 2, max(map(len, side)) + 1), -np.inf)
            for row, transcript in enumerate(side[1::2]):
                sums, before = 0.0, ""
                for place, (query, outcome, value, reported) in enumerate(transcript):
                    sums -= ratio.of_step(query, before, outcome, value)
                    evidence[row, place], spent[row, place], before = sums, reported, outcome
            paths.append((evidence, spent))
        for beyond in np.geomspace(0.02, 8, 30):
            stops = [(evidence > np.maximum(spent, 0) + beyond) for evidence, spent in paths]
            at = np.take_along_axis(paths[0][1], stops[0].argmax(axis=1)[:, None], axis=1)[:, 0]
            survived = np.where(stops[0].any(axis=1), np.exp(-at.clip(0)), 0.0).mean()
            rates.append((float(stops[1].any(axis=1).mean()), float(survived)))
    return rates


def _above(sides: list[list[Any]], rng: np.random.Generator) -> list[tuple[float, float]]:
    """Return the probabilities of many events, on the dataset whose rate bounds the other rate, and on the other."""
    rates = []
    for attack in (SessionLaw(), SessionSums()):
        scorer = attack.fit(sides[0][::2], sides[1][::2], rng)
        scores = [np.asarray(scorer(side[1::2])) for side in sides]
        for threshold in np.unique(np.quantile(np.concatenate(scores), np.linspace(0, 1, 200))):
            p, q = (float(np.mean(side > threshold)) for side in scores)
            rates += [(p, q), (1 - q, 1 - p)]
    return rates


def growth(p: float, q: float, epsilon: float) -> float:
    """Return the growth rate of the best bet that q <= e^epsilon p is false, in nats; p and q are probabilities."""
    p, q = (min(max(rate, 0.5 / SAMPLED), 1 - 0.5 / SAMPLED) for rate in (p, q))
    if q <= math.exp(epsilon) * p:
        return 0.0
    p0 = np.linspace(p, min(q, math.exp(-epsilon)), 4_002)[1:-1]
    q0 = math.exp(epsilon) * p0

    def divergence(rate: float, other: Any) -> Any:
        return rate * np.log(rate / other) + (1 - rate) * np.log((1 - rate) / (1 - other))

    return float(np.min(divergence(p, p0) + divergence(q, q0)))


def _soon(name: str, confidence: float, outcomes: Outcomes) -> bool:
    used, least = float(np.mean([outcome["sessions"] for outcome in outcomes])), limit(name, confidence)
    refuted = all(outcome["violated"] for outcome in outcomes)
    return refuted and used <= 1.8 * least and (used <= 250 or least >= 140)


def _claims(session: BuiltinSession) -> list[str]:
    opened = session.open_session(session.pair.d0, np.random.default_rng(0))
    return ["reported", str(PureDP(opened.budget))]


def tables(options: argparse.Namespace) -> list[Table]:
    confidence = options.confidence
    alarms = Limit(rate=1 - confidence)

    def least(row: Case, _: Outcomes) -> str:
        return f"{limit(row.cells[0], confidence):,.0f}"

    def ratio(row: Case, outcomes: Outcomes) -> str:
        return f"{np.mean([outcome['sessions'] for outcome in outcomes]) / limit(row.cells[0], confidence):.2f}"

    columns = {"refuted": count("violated"), "mean sessions": mean("sessions", ",.0f"), "limit": least, "ratio": ratio}
    return [
        Table(
            name="wrong",
            headings=("session", "claim"),
            columns={**columns, "s": mean(SECONDS)},
            cases=[
                Expected(
                    cells=(name, str(session.claim)),
                    measure=partial(audited, name, str(session.claim), options.most, confidence),
                    right=partial(_soon, name, confidence),
                    seeds=20,
                )
                for name, session in WRONG.items()
            ],
        ),
        Table(
            name="right",
            asked=True,
            headings=("session", "claim"),
            columns={"refuted": count("violated"), "s": mean(SECONDS)},
            cases=[
                Expected(
                    cells=(name, claim),
                    measure=partial(audited, name, claim, 500, confidence),
                    right=lambda outcomes: not alarms.broken(len(outcomes), sum(one["violated"] for one in outcomes)),
                    seeds=50,
                )
                for name, session in RIGHT.items()
                for claim in _claims(session)
            ],
        ),
        Table(
            name="transcripts",
            asked=True,
            headings=("session", "claim"),
            columns={"refuted": count("violated"), "mean sessions": mean("sessions", ",.0f")},
            cases=[
                Case(
                    cells=(name, str(session.claim)),
                    measure=partial(audited, name, str(session.claim), options.most, confidence, attacks="auto"),
                    seeds=5,
                )
                for name, session in WRONG.items()
                if session.claim != "reported"
            ],
        ),
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, confidence=0.99, most=5_000))
