"""Compare lower bounds on epsilon from dpaudit and from other tools on the same samples.

    python benchmarks/other_tools.py [--seeds 20] [--slow]

Each draw consists of n samples of N(0, 1) and n samples of N(1, 1).  Each lower bound on epsilon holds with 95 %
confidence at delta = 1e-5.  The command prints the median of each bound over the draws.  The packages jax-privacy and
privacy-estimates are installed from the package index into environments below build/.  In rows with "given", the
tool uses the threshold 0.5, the midpoint of the two means.  This threshold is optimal for mu, but not for epsilon at
delta = 1e-5.  In rows with "learned", the tool chooses its threshold on the same outputs.  If `--slow` is given, the
joint Bayesian region of privacy-estimates is included.  The Bayesian region has no frequentist guarantee, and its
computation takes a minute per draw.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import Pair, audit, batched
from dpaudit.inference.fixed.exact_binomial import epsilon_lower
from measure import ROOT, Case, Outcome, Table, median, run

DELTA, SIGNIFICANCE = 1e-5, 0.05
CUT = 0.5  # midpoint of the two means; the optimal threshold for a bound on mu

JAX_PRIVACY = """
import json, sys
import numpy as np
from jax_privacy.auditing import Bonferroni, CanaryScoreAuditor, Explicit, Split
x, y = np.load(sys.argv[1])
auditor, out = CanaryScoreAuditor(y, x), {}
for name, strategy in (("learned: Bonferroni", Bonferroni()), ("learned: split", Split()), ("given", Explicit(0.5))):
    bound = auditor.epsilon_clopper_pearson(0.05, 1e-5, False, threshold_strategy=strategy)
    out[f"jax-privacy, Clopper-Pearson, {name}"] = float(bound)
print(json.dumps(out))
"""

PRIVACY_ESTIMATES = """
import json, sys
import numpy as np
from privacy_estimates import AttackResults, compute_eps_lo
method, file = sys.argv[1:]
x, y = np.load(file) > 0.5
counts = AttackResults(FN=int((~y).sum()), FP=int(x.sum()), TN=int((~x).sum()), TP=int(y.sum()))
# its two-sided level: the lower end alone errs half as often
print(json.dumps(float(compute_eps_lo(counts, 1e-5, 0.05, method))))
"""


def interpreter(package: str) -> Path:
    """Return the interpreter of an environment with one package, which is made once."""
    folder = ROOT / "build" / "environments" / package
    if not (folder / "complete").exists():
        venv.create(folder, with_pip=True, clear=True)
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", package]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
        (folder / "complete").touch()
    return folder / "bin" / "python"


def asked(package: str, code: str, *arguments: str) -> Any:
    done = subprocess.run([interpreter(package), "-c", code, *arguments], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def ours(file: str) -> dict[str, float]:
    """Compute the bounds of dpaudit from the samples in a file, in the order in which they were drawn."""
    outputs = np.load(file)
    n = outputs.shape[1]
    x, y = (int((side > CUT).sum()) for side in outputs)
    found = {"dpaudit, exact, given": epsilon_lower(x, n, y, n, delta=DELTA, significance=SIGNIFICANCE)}
    for method in ("fixed", "sequential"):
        position = [0, 0]

        @batched
        def replay(dataset: list[int], count: int, rng: np.random.Generator, position: list[int] = position) -> Any:
            side = dataset[0]
            position[side] += count
            return outputs[side, position[side] - count : position[side]]

        # the claim is too weak to be refuted, so the audit makes all trials
        result = audit(replay, "gaussian(mu=1.3)", Pair([0], [1]), trials=n, method=method, seed=0, confidence=0.95)
        found[f"dpaudit, {method}, learned"] = result.epsilon_lower(DELTA)
    return found


def bounds(n: int, slow: bool, seed: int) -> Outcome:
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "samples.npy")
        np.save(file, np.array([rng.normal(0, 1, n), rng.normal(1, 1, n)]))
        values = asked("jax-privacy", JAX_PRIVACY, file)
        methods = {"Clopper-Pearson": "beta", **({"joint Beta": "joint-beta"} if slow else {})}
        for words, method in methods.items():
            values[f"privacy-estimates, {words}, given"] = asked("privacy-estimates", PRIVACY_ESTIMATES, method, file)
        return {**values, **ours(file)}


def tables(options: argparse.Namespace) -> list[Table]:
    names = (
        "privacy-estimates, Clopper-Pearson, given",
        *(("privacy-estimates, joint Beta, given",) if options.slow else ()),
        "jax-privacy, Clopper-Pearson, given",
        "dpaudit, exact, given",
        "jax-privacy, Clopper-Pearson, learned: split",
        "dpaudit, sequential, learned",
        "jax-privacy, Clopper-Pearson, learned: Bonferroni",
        "dpaudit, fixed, learned",
    )
    cases = [Case(cells=(f"{n:,}",), measure=partial(bounds, n, options.slow), seeds=20) for n in (1_000, 10_000)]
    for package in ("jax-privacy", "privacy-estimates"):
        interpreter(package)
    columns = {name: median(name, ".3f") for name in names}
    return [Table(headings=("n",), columns=columns, cases=cases, threads=True)]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, slow=False))
