"""How large are the sizes that fresh runs prove, compared with those of an audit with a fixed number of runs?

    python benchmarks/sizes.py [--audits 50] [--only WORDS] [--jobs 2]

Each false claim of `calibration_parts.sizes` is audited, and N fresh runs follow the refutation.  An audit with method
"fixed" counts the same number of runs in a region of the same family, and its bounds hold separately, not jointly.  A
row shows the median of both bounds in the family of the claim, their quotient, and the truth.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from calibration_parts.sizes import CASES, Case, of
from joblib import Parallel, delayed

from dpaudit import parse_claim
from dpaudit.inference.fixed.regions import delta_of

_PILOT = 0.1  # share of the runs of a fixed audit that are not counted


def sizes(case: Case, seed: int) -> tuple[float, float]:
    """Return the size that the fresh runs of one audit prove, nan without fresh counts, and that of a fixed audit."""
    delta = delta_of(parse_claim(case.false))
    result = of(case, case.false, seed)
    fresh = result.confirmation
    if fresh is None or fresh.counts is None:
        return math.nan, math.nan
    trials = math.ceil(fresh.counts.n0 / (1 - _PILOT))
    fixed = of(case, case.false, seed + 10**6, method="fixed", trials=trials, confirm="never")
    if math.isnan(delta):
        return result.mu_lower, fixed.mu_lower
    return result.epsilon_lower(delta), fixed.epsilon_lower(delta)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=50)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print("| mechanism | claim | truth | audits with fresh runs | fresh | fixed | fresh / fixed |\n|" + "---|" * 7)
    for case in (case for case in CASES if options.only in case.name):
        tasks = (delayed(sizes)(case, seed) for seed in range(options.audits))
        found = np.array(Parallel(n_jobs=options.jobs)(tasks))
        fresh, fixed = np.nanmedian(found, axis=0)
        delta, truth = delta_of(parse_claim(case.false)), parse_claim(case.truth)
        true = truth.mu() if math.isnan(delta) else truth.epsilon(delta)
        counted = int(np.isfinite(found[:, 0]).sum())
        cells = [case.name, case.false, f"{float(true):.4g}", str(counted)]
        print("|", " | ".join([*cells, f"{fresh:.4g}", f"{fixed:.4g}", f"{fresh / fixed:.3f}"]), "|", flush=True)


if __name__ == "__main__":
    main()
