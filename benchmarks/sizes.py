"""How large are the sizes that fresh runs prove, compared with those of an audit with a fixed number of runs?

    python benchmarks/sizes.py [--audits 50] [--only WORDS] [--jobs 2] [--new-processes]

Each false claim of `calibration_parts.sizes` is audited, and N fresh runs follow the refutation.  An audit with method
"fixed" counts the same number of runs in a region of the same family, and its bounds hold separately, not jointly.  A
row shows the median of both bounds in the family of the claim, their quotient, and the truth.  With --new-processes,
the fresh runs are made in new processes, which takes longer.  The exit code is 1 if any audit was inconclusive.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
from calibration_parts.sizes import CASES, Case, of
from joblib import Parallel, delayed

from dpaudit import Verdict, parse_claim
from dpaudit.inference.fixed.regions import delta_of

_PILOT = 0.1  # share of the runs of a fixed audit that are not counted


def sizes(case: Case, seed: int, *, here: bool) -> tuple[float, float, bool]:
    """Return the size that fresh runs prove, that of a fixed audit, and whether the first audit was inconclusive.

    The sizes are nan without fresh counts.
    """
    delta = delta_of(parse_claim(case.false))
    result = of(case, case.false, seed, here=here)
    fresh, inconclusive = result.confirmation, result.verdict is Verdict.INCONCLUSIVE
    if fresh is None or fresh.counts is None:
        return math.nan, math.nan, inconclusive
    trials = math.ceil(fresh.counts.n0 / (1 - _PILOT))
    fixed = of(case, case.false, seed + 10**6, method="fixed", trials=trials, confirm="never")
    if math.isnan(delta):
        return result.mu_lower, fixed.mu_lower, inconclusive
    return result.epsilon_lower(delta), fixed.epsilon_lower(delta), inconclusive


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=50)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--new-processes", action="store_true")
    options, doubted = parser.parse_args(), 0
    headings = ("mechanism", "claim", "truth", "with fresh runs", "inconclusive", "fresh", "fixed", "fresh / fixed")
    print(f"| {' | '.join(headings)} |\n|" + "---|" * len(headings))
    for case in (case for case in CASES if options.only in case.name):
        tasks = (delayed(sizes)(case, seed, here=not options.new_processes) for seed in range(options.audits))
        found = np.array(Parallel(n_jobs=options.jobs)(tasks))
        fresh, fixed = np.nanmedian(found[:, :2], axis=0)
        delta, truth = delta_of(parse_claim(case.false)), parse_claim(case.truth)
        true = truth.mu() if math.isnan(delta) else truth.epsilon(delta)
        counted, inconclusive = int(np.isfinite(found[:, 0]).sum()), int(found[:, 2].sum())
        doubted += inconclusive
        cells = [case.name, case.false, f"{float(true):.4g}", str(counted), str(inconclusive)]
        print("|", " | ".join([*cells, f"{fresh:.4g}", f"{fixed:.4g}", f"{fresh / fixed:.3f}"]), "|", flush=True)
    sys.exit(int(doubted > 0))


if __name__ == "__main__":
    main()
