"""Checks the probabilities that reports and commands state, by counting whole audits.

    python benchmarks/stated_probabilities.py [--audits 200] [--only TEXT] [--jobs 2] [--markdown]
        [--save stated.json] [--into docs/statistics.md]

Every row is a setting.  It states a probability, how often the statement came true, and a bound for this count if the
statement holds (three standard errors are allowed).  The exit code is 1 if a row violates its bound.  With --save,
finished rows are kept in a file and are not run again, so a run can be interrupted and resumed.  --into puts the table
between the marks of a document.  The benchmark took 68 minutes with one job on a busy machine.

- "seen, fixed" and "seen, sequential": the violation that a report says would have been seen with 90 % probability, by
  an attack that knows the likelihood ratio, as the report assumes.  The mechanism has just that law.
- "seen, one run": the same for `audit_one_run`.
- "plan": audits with as many trials as `plan` states and `attacks="auto"`, so all scores are learned.
- "planned runs": the same for `assert_private`, which plans for a probability of 99.9 %.
- "replay": p-values of at most 0.05 in replays of false violations.
- "dependence": independent runs that are called dependent, which may happen in one of 10^9 tests.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from dpaudit import Pair, Verdict, audit, audit_one_run, batched, parse_claim, plan
from dpaudit.catalogue import Gaussian, Laplace
from dpaudit.engine.replay import replay
from dpaudit.inference.grid import BINS, CENTRES
from dpaudit.inference.sequential.alternatives import scaled
from dpaudit.testing.effort import POWER, planned_runs
from dpaudit_attacks.likelihood_ratio import LikelihoodRatio

HEADINGS = ("statement", "setting", "stated", "audits", "came true", "bound")
BEGIN, END = "<!-- stated probabilities: begin -->", "<!-- stated probabilities: end -->"
PAIR = Pair([0], [1])
RATIO = LikelihoodRatio(lambda bins: CENTRES[np.asarray(bins, dtype=np.intp)])
SIGNIFICANCE = 1e-3  # of a test in a suite


@dataclass(frozen=True)
class Setting:
    """A statement, and an audit that shows whether it came true."""

    kind: str
    name: str
    stated: float
    least: bool  # whether it is to happen at least so often, or at most
    prepare: Callable[[], Any]  # what is said, found once
    came_true: Callable[[Any, int], bool]  # given what was said, and a seed

    @property
    def label(self) -> str:
        return f"{self.kind}: {self.name}"

    def bound(self, audits: int) -> int:
        """Return how often the statement must come true at least, or may come true at most."""
        slack = 3 * math.sqrt(audits * self.stated * (1 - self.stated))
        mean = audits * self.stated
        return math.ceil(mean - slack) if self.least else math.floor(mean + slack)

    def fails(self, audits: int, count: int) -> bool:
        return count < self.bound(audits) if self.least else count > self.bound(audits)


def _drawing(sample: Callable[..., Any]) -> Any:
    """Make a batched mechanism from a function `(dataset, n, rng)` that returns an array."""
    return batched(sample)


def law_of(claim: str) -> Any:
    """Make a mechanism at the boundary of a claim, whose output is the bin of its log-likelihood ratio."""
    p, q = (side / side.sum() for side in scaled(parse_claim(claim).symmetrized(), 1.0))
    return _drawing(lambda dataset, n, rng: rng.choice(BINS, size=n, p=q if dataset[0] else p))


def response(epsilon: float) -> Any:
    """Randomised response with odds e^epsilon."""
    odds = 1 / (1 + math.exp(-epsilon))
    return _drawing(lambda dataset, n, rng: (rng.random(n) < (odds if dataset[0] else 1 - odds)).astype(int))


def revealing(epsilon: float, delta: float) -> Any:
    """Randomised response that gives the dataset away with probability delta."""
    lie = 1 / (1 + math.exp(epsilon))
    p = np.array([delta, (1 - delta) * (1 - lie), (1 - delta) * lie, 0.0])
    return _drawing(lambda dataset, n, rng: rng.choice(4, size=n, p=p[::-1] if dataset[0] else p))


def noise(mu: float, numbers: int) -> Any:
    """Make a mechanism that adds Gaussian noise to several numbers, all of which change."""
    return _drawing(lambda dataset, n, rng: rng.normal(dataset[0] * mu / math.sqrt(numbers), 1, (n, numbers)))


def seen(claim: str, trials: int, method: str, *, confidence: float = 0.99, pairs: int = 1) -> Setting:
    """Test the violation that a report of an audit without a finding names.  One of several pairs leaks."""
    others = [Pair([0], [0], label=f"the same {i}") for i in range(1, pairs)]
    terms: dict[str, Any] = {"attacks": RATIO, "trials": trials, "method": method, "confidence": confidence}

    def named() -> str:
        for seed in range(10):
            result = audit(law_of(claim), claim, [PAIR, *others], seed=10**6 + seed, **terms)
            if result.detectable.claim and not result.violated:
                return result.detectable.claim
        raise AssertionError(f"no report of {claim} names a violation")

    def came_true(claimed: Any, seed: int) -> bool:
        return audit(law_of(claimed), claim, [PAIR, *others], seed=seed, **terms).violated

    where = "" if pairs == 1 else f", {pairs} pairs"
    return Setting(f"seen, {method}", f"{claim}, {trials} trials{where}, {confidence:g}", 0.9, True, named, came_true)


def planned(claim: str, truth: str, mechanism: Any, power: float, outputs: str = "") -> Setting:
    """Test audits with as many trials as `plan` states."""

    def trials() -> int:
        return math.ceil(plan(claim, truth, power=power).trials)

    def came_true(trials: Any, seed: int) -> bool:
        return audit(mechanism, claim, PAIR, trials=trials, seed=seed).violated

    return Setting("plan", f"{claim}, {truth} true{outputs}", power, True, trials, came_true)


def in_a_suite(claim: str, detect: float, mechanism: Any) -> Setting:
    """Test as many runs as a suite's test plans for a violation of `detect` times the claim."""

    def runs() -> int:
        return planned_runs(parse_claim(claim), detect, significance=SIGNIFICANCE, pairs=1)

    def came_true(trials: Any, seed: int) -> bool:
        return audit(mechanism, claim, PAIR, trials=trials, seed=seed, confidence=1 - SIGNIFICANCE).violated

    return Setting("planned runs", f"{claim}, {detect:g} times less private", POWER, True, runs, came_true)


def replayed(claim: str, mechanism: Any) -> Setting:
    """Test replays of audits of a true claim."""

    def came_true(_: Any, seed: int) -> bool:
        result = audit(mechanism, claim, PAIR, attacks="logistic", trials=500, seed=seed)
        if result.witness is None:
            return False
        return replay(result, mechanism, PAIR, attacks="logistic", trials=1000, seed=10**6 + seed).p_value <= 0.05

    return Setting("replay", f"{claim} true, p <= 0.05", 0.05, False, lambda: None, came_true)


def independent(name: str, mechanism: Any, attacks: str) -> Setting:
    """Test independent runs with the same law on both datasets."""

    def came_true(_: Any, seed: int) -> bool:
        result = audit(mechanism, "pure(epsilon=1)", PAIR, attacks=attacks, trials=4000, seed=seed)
        return result.verdict is Verdict.INCONCLUSIVE

    return Setting("dependence", name, 1e-9, False, lambda: None, came_true)


def guessed(claim: str, canaries: int) -> Setting:
    """Test guesses about canaries that are right with the odds that the report of one run names."""

    def one(epsilon: float, seed: int) -> Any:
        rng = np.random.default_rng([seed, canaries])
        scores = rng.normal(size=canaries)
        right = rng.random(canaries) < 1 / (1 + math.exp(-epsilon))
        return audit_one_run(scores, (scores > 0) == right, claim, seed=0)

    def named() -> float:
        return float(parse_claim(one(0.0, 10**6).detectable.claim).parameters["epsilon"])

    return Setting(
        "seen, one run",
        f"{claim}, {canaries} canaries",
        0.9,
        True,
        named,
        lambda epsilon, seed: bool(one(epsilon, seed).violated),
    )


def settings() -> list[Setting]:
    """Return every setting, the cheap kinds first."""
    rare = _drawing(lambda dataset, n, rng: (rng.random(n) < 1e-3).astype(int))
    normal = _drawing(lambda dataset, n, rng: rng.normal(size=n))
    return [
        guessed("pure(epsilon=1)", 1_000),
        guessed("approximate(epsilon=1, delta=1e-5)", 1_000),
        seen("approximate(epsilon=1, delta=0.05)", 3_000, "fixed", confidence=0.95),
        seen("approximate(epsilon=0.5, delta=0.1)", 10_000, "fixed", confidence=0.95),
        seen("approximate(epsilon=1, delta=0.01)", 3_000, "fixed", confidence=0.95),
        seen("approximate(epsilon=1, delta=0.05)", 3_000, "fixed"),
        seen("approximate(epsilon=1, delta=1e-5)", 3_000, "fixed"),
        seen("pure(epsilon=1)", 1_000, "fixed"),
        seen("pure(epsilon=3)", 1_000, "fixed", confidence=0.95),
        seen("gaussian(mu=1)", 200, "fixed", confidence=0.95),
        seen("gaussian(mu=1)", 2_000, "fixed"),
        seen("laplace(epsilon=1)", 2_000, "fixed"),
        seen("subsampled(gaussian(mu=2), rate=0.1)", 5_000, "fixed", confidence=0.95),
        seen("gaussian(mu=1)", 300, "sequential"),
        seen("pure(epsilon=1)", 1_000, "sequential"),
        seen("approximate(epsilon=1, delta=0.05)", 3_000, "sequential"),
        seen("laplace(epsilon=1)", 1_000, "sequential"),
        seen("gaussian(mu=1)", 1_500, "sequential", pairs=3),
        planned("gaussian(mu=1)", "gaussian(mu=1.3)", Gaussian(1 / 1.3), 0.9),
        planned("gaussian(mu=1)", "gaussian(mu=1.3)", noise(1.3, 4), 0.9, ", four numbers"),
        planned("pure(epsilon=1)", "pure(epsilon=1.3)", response(1.3), 0.9),
        planned("laplace(epsilon=1)", "laplace(epsilon=1.4)", Laplace(1 / 1.4), 0.9),
        planned("pure(epsilon=1)", "laplace(epsilon=1.4)", Laplace(1 / 1.4), 0.8),
        planned("laplace(epsilon=1)", "laplace(epsilon=2)", Laplace(1 / 2), 0.95),
        planned(
            "approximate(epsilon=1, delta=0.05)", "approximate(epsilon=1.5, delta=0.05)", revealing(1.5, 0.05), 0.9
        ),
        in_a_suite("gaussian(mu=1)", 1.5, Gaussian(1 / 1.5)),
        in_a_suite("pure(epsilon=1)", 1.5, Laplace(1 / 1.5)),
        replayed("gaussian(mu=1)", Gaussian(1.0)),
        replayed("pure(epsilon=1)", response(1.0)),
        independent("an output in a thousand differs", rare, "logistic"),
        independent("normal numbers", normal, "logistic"),
    ]


def counted(setting: Setting, audits: int, jobs: int) -> int:
    """Count the audits in which the statement came true."""
    said = setting.prepare()

    def quiet(seed: int) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return setting.came_true(said, seed)

    return sum(Parallel(n_jobs=jobs)(delayed(quiet)(seed) for seed in range(audits)))


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|" + "---|" * len(HEADINGS)]
    lines += [f"| {' | '.join(cells(row))} |" for row in rows]
    return "\n".join(lines)


def cells(row: dict[str, Any]) -> list[str]:
    of = "at least" if row["least"] else "at most"
    stated = f"{of} {100 * row['stated']:.4g} %" if row["stated"] > 1e-6 else f"{of} {row['stated']:g}"
    return [row["kind"], row["name"], stated, str(row["audits"]), str(row["count"]), f"{of} {row['bound']}"]


def written(text: str, rows: list[dict[str, Any]]) -> str:
    """Return a document with the table between its marks.  ValueError if it has no marks."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"the document must hold the marks {BEGIN} and {END}")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    return f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=200, help="of each setting")
    parser.add_argument("--only", default="", help='settings whose "kind: name" contains this text')
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--markdown", action="store_true", help="print a table for the docs at the end")
    parser.add_argument("--save", type=Path, help="file of finished rows; these are not run again")
    parser.add_argument("--into", type=Path, help="document that gets the table between its marks")
    options = parser.parse_args()
    chosen = [setting for setting in settings() if options.only in setting.label]
    if len({setting.label for setting in chosen}) < len(chosen):
        raise AssertionError("two settings have one name, so that one would be kept as the other")
    if not chosen:
        parser.error(f"--only: no setting contains {options.only!r}")
    kept = json.loads(options.save.read_text()) if options.save and options.save.exists() else {}
    rows: list[dict[str, Any]] = []
    for number, setting in enumerate(chosen, 1):
        row = kept.get(setting.label)
        if row is None or row["audits"] != options.audits:
            began = time.perf_counter()
            row = {"kind": setting.kind, "name": setting.name, "stated": setting.stated, "least": setting.least}
            row |= {"audits": options.audits, "bound": setting.bound(options.audits)}
            row["count"] = counted(setting, options.audits, options.jobs)
            row["seconds"] = round(time.perf_counter() - began, 1)
            kept[setting.label] = row
            if options.save:
                options.save.write_text(json.dumps(kept, indent=1))
        row["failed"] = setting.fails(row["audits"], row["count"])
        rows.append(row)
        words = "  ".join(cells(row)) + f"  {row['seconds']:.0f} s{'  FAILED' if row['failed'] else ''}"
        print(f"[{number}/{len(chosen)}] {words}", file=sys.stderr if options.markdown else sys.stdout, flush=True)
    if options.markdown:
        print(table(rows))
    if options.into:
        options.into.write_text(written(options.into.read_text(), rows))
    sys.exit(1 if any(row["failed"] for row in rows) else 0)


if __name__ == "__main__":
    main()
