"""Every builtin mechanism, right and wrong, audited with all attacks and the pairs of a search.

    python benchmarks/catalogue.py [--only TEXT ...] [--most 5000000] [--confidence 0.95]
    python benchmarks/catalogue.py --only certified [--method fixed]
    python benchmarks/catalogue.py --only leaks [--audits 200]

The audit gets only the relation and the size of the input.  The audit must find out which pair leaks, and where in the
output.  A wrong mechanism must be refuted within the trials of its class (20,000 easy, 500,000 medium, 5,000,000 hard,
per dataset); a right one must not be refuted.  `--most` limits all these trials.  An audit stops as soon as it refutes
the claim; "certified" is the largest epsilon that it has proven by then.  The figures of other tools are the largest
epsilon that they certify at 90 %, and the number of all their samples; they come from their logs and from small budgets
on a machine with two cores.

The table "certified" compares the largest epsilon from similar numbers of outputs.  All tools get the pair.  "To beat"
is the largest epsilon that DP-Sniper, StatDP or Delta-Siege certify from this number of outputs.

The last table plants a leak in each kind of output of tests/outputs/leaks.py: how soon it is found, and how often
audits without it refute the claim of equal laws, which is true with equality, so up to 5 % do on average.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpaudit import Pair, PureDP, audit
from dpaudit.catalogue import BUILTIN
from dpaudit.pairs.search import SearchPairs
from dpaudit.rounding import lower, lower_as
from measure import ROOT, SECONDS, Case, Expected, Outcome, Table, count, mean, median, of, run, texts

ALLOWED = {"easy": 20_000, "medium": 500_000, "hard": 5_000_000}

CLASSES = {  # classes of wrong mechanisms; all other wrong mechanisms are easy
    "noisy_max_3": "medium",
    "noisy_max_4": "medium",
    "svt_3": "hard",
    "svt_4": "medium",
    "svt_6": "medium",
    "svt_34_parallel": "hard",
    "subsampled_wrongly": "medium",
    "truncated_geometric_as_0.1": "medium",
}

OTHERS = {
    "laplace": "DP-Sniper .0852 of .1, 20M; StatDP .0962, 13M; Delta-Siege .0984, 4M",
    "truncated_geometric": "DP-Sniper .1154 of .1178, 614M; StatDP .1146, 13M; Delta-Siege .1119, 4M",
    "truncated_geometric_as_0.1": "Delta-Siege .1119, 4M; StatDP .1146, 13M",
    "laplace_parallel": "DP-Sniper .035",
    "noisy_histogram_1": "DP-Sniper .0978; StatDP .0967, 13M; Delta-Siege .1002 (false alarm), 4M",
    "noisy_histogram_2": "DP-Sniper 4.60",
    "noisy_max_1": "DP-Sniper .0923; StatDP .0835, 15M; Delta-Siege .0839, 0.8M",
    "noisy_max_2": "DP-Sniper .0975",
    "noisy_max_3": "DP-Sniper .2338, 50M; StatDP .1862, 15M; Delta-Siege .0367 to .237, 4M",
    "noisy_max_4": "DP-Sniper .346",
    "svt_1": "DP-Sniper .0858; StatDP .0752, 15M; Delta-Siege .0468, 4M",
    "svt_2": "DP-Sniper .0859",
    "svt_3": "DP-Sniper .1673, 50M; StatDP .1644, 20M; Delta-Siege .1552, 4M",
    "svt_4": "DP-Sniper .169",
    "svt_5": "DP-Sniper 1.754, 50M; StatDP 8.99, 15M; Delta-Siege 8.99, 4M",
    "svt_6": "DP-Sniper .272",
    "svt_34_parallel": "DP-Sniper .261",
    "numerical_svt": "DP-Sniper .034",
    "prefix_sum": "DP-Sniper .504",
    "rappor": "DP-Sniper .2819, 20M; StatDP .1231, 12M; Delta-Siege .2538, 4M",
    "one_time_rappor": "DP-Sniper .598",
    "laplace_inverse_cdf": "DP-Sniper, low-order bits: .252 of Laplace .1",
}


CERTIFIED = {  # the claim, the pair, the true epsilon on this pair, outputs of both datasets together, and "to beat"
    "laplace": ("pure(epsilon=0.1)", Pair([0.0], [1.0]), "0.1", 4_000_000, "0.098"),
    "noisy_max_3": ("pure(epsilon=0.25)", Pair([1.0] * 5, [2.0] * 5), "0.25", 20_000_000, "0.234"),
    "svt_1": ("pure(epsilon=0.1)", Pair([1.0] * 10, [2.0] * 5 + [0.0] * 5), "0.0885", 10_000_000, "0.075"),
    "svt_3": ("pure(epsilon=0.5)", Pair([1.0] * 10, [2.0] * 5 + [0.0] * 5), "at most 0.5", 20_000_000, "0.167"),
    "rappor": ("pure(epsilon=0.4)", Pair(0, 1), "0.3", 10_000_000, "0.28"),
}


def audited(name: str, claim: str, trials: int, confidence: float, seed: int) -> Outcome:
    mechanism = BUILTIN[name]()
    leak = getattr(mechanism, "leak", "auto")
    result = audit(
        mechanism,
        claim or mechanism.claim,
        list(SearchPairs(**mechanism.inputs)),
        attacks=["auto", "float_bits", "reachable_floats"] if leak == "float_bits" else "auto",
        observe_time=leak == "time",
        trials=trials,
        confidence=confidence,
        seed=seed,
    )
    pair = str(result.witness.pair) if result.witness is not None and result.violated else ""
    return {
        "violated": result.violated,
        "trials": result.trials_used,
        "pair": pair,
        "certified": lower(result.epsilon_lower(0.0), 3),
    }


def _row(name: str, options: argparse.Namespace, claim: str = "") -> Expected:
    mechanism, title = BUILTIN[name](), f"{name}_as_0.1" if claim else name
    private = mechanism.private and not claim
    kind = "right" if private else CLASSES.get(title, "easy")
    trials = min(options.most, ALLOWED.get(kind, options.most))
    return Expected(
        cells=(title, claim or str(mechanism.claim), kind, OTHERS.get(title, "")),
        measure=partial(audited, name, claim, trials, options.confidence),
        right=lambda outcomes: all(one["violated"] != private for one in outcomes),
    )


def certified(name: str, method: str, seed: int) -> Outcome:
    """Return the epsilon that is certified for a true claim, so that the audit makes all its trials."""
    claim, pair, _, outputs, _ = CERTIFIED[name]
    mechanism: Any = BUILTIN[name](10.0) if name == "laplace" else BUILTIN[name]()
    terms: dict[str, Any] = {"trials": outputs // 2, "method": method, "confidence": 0.95}
    return {"epsilon": audit(mechanism, claim, pair, seed=seed, **terms).epsilon_lower(0.0)}


def planted_leak(kind: str, audits: int, seed: int) -> Outcome:
    """Audit the claim pure(epsilon=0.1) while half of the runs on d1 leak, and count false alarms without leaks."""
    from tests.outputs.leaks import Leaking
    from tests.outputs.test_leaks import PAIR, attacks_for, refutations

    terms: dict[str, Any] = {"attacks": attacks_for(kind), "confidence": 0.95}
    result = audit(Leaking(kind), PureDP(0.1), PAIR, trials=5000, seed=3 + seed, **terms)
    after = f"{result.trials_used:,}" if result.violated else "not found"
    return {"after": after, "refuted": f"{refutations(kind, audits, 600)} of {audits}"}


def _chosen(choose: Callable[[Any], Any], values: Any) -> str:
    return lower_as(float(choose(values)), ".4f")


def tables(options: argparse.Namespace) -> list[Table]:
    sys.path.append(str(ROOT))
    from tests.outputs.leaks import LEAKS

    rows = [*(_row(name, options) for name in BUILTIN), _row("truncated_geometric", options, "pure(epsilon=0.1)")]
    order = (*ALLOWED, "right")
    choices: dict[str, Callable[[Any], Any]] = {"median": np.median, "least": np.min, "largest": np.max}
    bounds = {name: of("epsilon", partial(_chosen, choose)) for name, choose in choices.items()}
    return [
        Table(
            name="catalogue",
            headings=("mechanism", "claim", "class", "others"),
            columns={
                "refuted": count("violated"),
                "trials per dataset": median("trials"),
                "pair": texts("pair"),
                "certified": texts("certified"),
                "s": mean(SECONDS),
            },
            cases=sorted(rows, key=lambda row: order.index(row.cells[2])),
        ),
        Table(
            name="certified",
            asked=True,
            headings=("mechanism", "true epsilon", "outputs", "to beat"),
            columns={**bounds, "s": mean(SECONDS)},
            cases=[
                Case(
                    cells=(name, epsilon, f"{outputs:,}", beaten),
                    measure=partial(certified, name, options.method),
                    seeds=5,
                )
                for name, (_, _, epsilon, outputs, beaten) in CERTIFIED.items()
            ],
        ),
        Table(
            name="planted leaks",
            asked=True,
            headings=("output",),
            columns={"found after": texts("after"), "refuted without": texts("refuted"), "s": mean(SECONDS)},
            cases=[Case(cells=(kind,), measure=partial(planted_leak, kind, options.audits)) for kind in LEAKS],
        ),
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, most=5_000_000, confidence=0.95, method="fixed", audits=200))
