"""Builtin sessions, right and wrong: how many sessions refute the wrong ones, and how often right ones are refuted.

    python benchmarks/sessions.py [--only TEXT ...] [--confidence 0.99]
    python benchmarks/sessions.py --only right --confidence 0.95
    python benchmarks/sessions.py --only transcripts

The audits get the session and one pair of datasets, and learn everything else.  The limit is the least possible mean of
a test that may stop at any time, for sessions of the best analyst with plain queries, who stops as soon as the session
shows more than it reports: log(1 / significance) by the growth rate

    min KL(P, P0) + KL(Q, Q0)  over all laws P0, Q0 that keep the claim

(Grünwald, de Heide & Koolen 2024).  P and Q are the laws of a score that other sessions taught, in a few cells, so the
limit is an estimate.  In an audit of what is reported, P is the law of what survives, and an analyst may stop early.
A mean must be at most 1.8 limits, and at most 250 sessions where the limit is below 140.

The table "right" counts false alarms: 100 audits of each right session, under what it reports and as a whole.  The
table "transcripts" leaves out all that dpaudit knows of sessions: the attacks are those for outputs of any kind.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, cast

import numpy as np
from scipy.optimize import minimize
from scipy.special import rel_entr

from dpaudit import PureDP, audit_interactive
from dpaudit.catalogue.sessions import SESSIONS, BuiltinSession
from dpaudit.engine.interactive import Again
from dpaudit.numerics import Array
from dpaudit.running.sessions import Sessions, Visit
from dpaudit_attacks.sessions import SessionLaw, SessionSums, session_ratio
from measure import SECONDS, Case, Expected, Limit, Outcome, Outcomes, Table, count, mean, run

SAMPLED = 12_000  # sessions on each dataset from which a limit is estimated
CELLS = 16  # of a score
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
    reported = session.claim == "reported"
    best = 0.0
    for group in sorted({(query,) for query in queries} | {queries}):
        plain = Again("plain", group)
        mechanism = Sessions(session.open_session, queries, (cast(Any, plain),), reported)
        sides = [
            [mechanism(Visit(dataset, plain.name), rng) for _ in range(SAMPLED)]
            for dataset in (session.pair.d0, session.pair.d1)
        ]
        if reported:
            rates = [growth(*laws, 0.0, math.inf) for laws in _survivors(sides, rng)]
        else:
            epsilon = float(cast(Any, session.claim).parameters["epsilon"])
            rates = [growth(*laws, -epsilon, epsilon) for laws in _laws(sides, rng)]
        best = max([best, *rates])
    return -math.log1p(-confidence) / best if best else math.inf


def _survivors(sides: list[list[Any]], rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """Return laws of survivors and of the other dataset, for both orders and many moments to stop; erased ones last."""
    laws = []
    for first, second in (sides, sides[::-1]):
        ratio = session_ratio(first[::2], second[::2], rng)
        paths = [[_path(ratio, transcript) for transcript in side[1::2]] for side in (first, second)]
        for beyond in np.geomspace(0.02, 8, 20):
            ends: list[Array] = []
            for side in paths:
                at = [next(iter(np.flatnonzero(path[0] > path[1] + beyond)), -1) for path in side]
                ends.append(np.array([path[:, place] for path, place in zip(side, at, strict=True)]).T)
            cells = _cells([evidence - spent for evidence, spent in ends])
            survived = np.bincount(cells[0], np.exp(-ends[0][1]), minlength=CELLS) / len(cells[0])
            other = np.bincount(cells[1], minlength=CELLS) / len(cells[1])
            laws.append((np.append(survived, 1 - survived.sum()), np.append(other, 0.0)))
    return laws


def _path(ratio: Any, transcript: Sequence[Any]) -> Array:
    """Return the evidence for the first dataset, and what was reported, after each step; (2, steps)."""
    before, gains = "", []
    for query, outcome, value, _ in transcript:
        gains.append(-ratio.of_step(query, before, outcome, value))
        before = outcome
    return np.array([np.cumsum(gains), [step[3] for step in transcript]])


def _laws(sides: list[list[Any]], rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """Return the laws of scores of whole sessions on both datasets."""
    laws = []
    for attack in (SessionLaw(), SessionSums()):
        scorer = attack.fit(sides[0][::2], sides[1][::2], rng)
        cells = _cells([np.asarray(scorer(side[1::2])) for side in sides])
        laws.append(tuple(np.bincount(side, minlength=CELLS) / len(side) for side in cells))
    return cast("list[tuple[Array, Array]]", laws)


def _cells(scores: list[Array]) -> list[Any]:
    cuts = np.unique(np.quantile(np.concatenate(scores), np.linspace(0, 1, CELLS + 1)[1:-1]))
    return [np.searchsorted(cuts, side) for side in scores]


def growth(p: Array, q: Array, low: float, high: float) -> float:
    """Return the growth rate of the best test that low <= log(q / p) <= high is false in some cell, in nats.

    Lagrange: the nearest laws of the claim are p / a and q / b where their ratio is allowed, and otherwise have the
    nearest allowed ratio r and (p + q) / (a + b r) on the first dataset.  What was erased, the last cell of a law of
    survivors, has no such bound.  The dual problem in a and b is concave.
    """
    free = (q == 0) & (np.arange(len(p)) == len(p) - 1) & (high == math.inf)

    def dual(logs: Array) -> float:
        a, b = np.exp(logs)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.clip(np.nan_to_num(q * a / (p * b), nan=1.0, posinf=1e9), math.exp(low), math.exp(min(high, 20)))
        ratio = np.where(free, 0.0, ratio)
        p0 = (p + q) / (a + b * ratio)
        q0 = p0 * ratio
        return -float(np.sum(rel_entr(p, p0) + rel_entr(q, q0) + a * p0 + b * q0) - a - b)

    return -float(minimize(dual, [0.0, 0.0], method="Nelder-Mead").fun)


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
