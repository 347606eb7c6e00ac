"""Every builtin mechanism, right and wrong, audited with all attacks and the pairs of a search.

    python benchmarks/catalogue.py [--most 200000] [--confidence 0.95] [--seed 0] [--only NAME...] [--markdown]

The audit gets only the relation and the size of the input.  The audit must find out which pair leaks, and where in the
output.  A wrong mechanism must be refuted within the trials of its class (20,000 easy, 500,000 medium, 5,000,000 hard,
per dataset); a right one must not be refuted.  `--most` limits all these trials.  The exit code is 1 if a right
mechanism is refuted, or a wrong one is not.

An audit stops as soon as it refutes the claim; "certified" is the largest epsilon that it has proven by then.  The
figures of other tools are the largest epsilon that they certify at 90 %, and the number of all their samples.  These
figures come from their logs and from small budgets on a machine with two cores.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

from dpaudit import audit
from dpaudit.catalogue import BUILTIN
from dpaudit.pairs.search import SearchPairs
from dpaudit.result.model import AuditResult
from dpaudit.rounding import lower

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


@dataclass(frozen=True, slots=True)
class Case:
    """One mechanism and a claim about it."""

    name: str
    mechanism: Any
    claim: Any
    private: bool

    @property
    def kind(self) -> str:
        return "right" if self.private else CLASSES.get(self.name, "easy")

    def allowed(self, most: int) -> int:
        return min(most, ALLOWED.get(self.kind, most))

    def audited(self, *, most: int, confidence: float, seed: int) -> AuditResult:
        leak = getattr(self.mechanism, "leak", "auto")
        return audit(
            self.mechanism,
            self.claim,
            list(SearchPairs(**self.mechanism.inputs)),
            attacks=["auto", "float_bits", "reachable_floats"] if leak == "float_bits" else "auto",
            observe_time=leak == "time",
            trials=self.allowed(most),
            confidence=confidence,
            seed=seed,
        )


def cases() -> list[Case]:
    found = [Case(name, m := make(), m.claim, m.private) for name, make in BUILTIN.items()]
    geometric = BUILTIN["truncated_geometric"]()
    found.append(Case("truncated_geometric_as_0.1", geometric, "pure(epsilon=0.1)", False))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=5_000_000, help="trials per dataset")
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=[case.name for case in cases()], metavar="NAME")
    parser.add_argument("--kinds", nargs="+", choices=["right", *ALLOWED], default=["easy", "medium", "hard", "right"])
    parser.add_argument("--markdown", action="store_true", help="print a table for the docs")
    options = parser.parse_args()
    chosen = [
        case
        for kind in options.kinds
        for case in cases()
        if case.kind == kind and (not options.only or case.name in options.only)
    ]
    head = ("mechanism", "claim", "class", "verdict", "trials per dataset", "seconds", "pair", "certified", "others")
    if options.markdown:
        print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    failed = False
    for case in chosen:
        began = time.perf_counter()
        result = case.audited(most=options.most, confidence=options.confidence, seed=options.seed)
        seconds = time.perf_counter() - began
        failed |= result.violated == case.private
        cells = (
            case.name,
            str(case.claim),
            case.kind,
            "VIOLATION" if result.violated else "no violation",
            f"{result.trials_used:,}",
            f"{seconds:.1f}",
            str(result.witness.pair) if result.witness is not None and result.violated else "",
            lower(result.epsilon_lower(0.0), 3),
            OTHERS.get(case.name, ""),
        )
        print(f"| {' | '.join(cells)} |" if options.markdown else "  ".join(cells), flush=True)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
