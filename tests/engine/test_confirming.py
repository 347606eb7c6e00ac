"""Fresh runs after a refutation: what a mechanism keeps makes the audit inconclusive, and other violations stand.

If the noise comes from the given rng, the seed decides everything.  Other noise is continuous, and each process draws
it independently, so two processes agree with probability 0.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, Pair, Verdict, audit, batched, replay
from dpaudit.result.values import Counts
from dpaudit.running import CommandMechanism, fresh_process
from dpaudit.running.mechanisms import PythonMechanism

from ..unseeded import unseeded_generator

PAIR = Pair([0], [1])
FAR = Pair([0], [10])
Rng = np.random.Generator


def audited(mechanism: Any, pairs: Any = PAIR, **settings: Any) -> AuditResult:
    chosen: dict[str, Any] = {"trials": 300, "seed": 0, "confidence": 0.95, "attacks": "logistic", "confirm": 16}
    return audit(mechanism, "pure(epsilon=1)", pairs, **(chosen | settings))


def outcome(result: AuditResult) -> str:
    assert result.confirmation is not None, result
    return result.confirmation.outcome


def is_contradicted(result: AuditResult) -> None:
    assert outcome(result) == "contradicted", result
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert (result.p_value, result.mu_lower) == (1.0, 0.0)
    assert result.e_value <= 1
    assert result.detectable.claim == ""


def stands(result: AuditResult) -> None:
    assert result.violated, result
    assert result.bounds_valid
    assert result.p_value <= 1 - result.confidence


def is_not_confirmed(result: AuditResult, why: str) -> None:
    stands(result)
    assert result.confirmation.outcome == "not confirmed"
    assert result.confirmation.processes == 0
    assert why in result.confirmation.reason


_IN_A_FILE = """
import functools, logging, pathlib, subprocess, sys, tempfile, threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np

FOLDER, unseeded = pathlib.Path(__file__).parent, np.random.default_rng()

@functools.lru_cache
def noisy(value):
    return value + float(unseeded.laplace())
def cached(dataset, rng):
    return noisy(dataset[0])
def on_disk(dataset, rng):
    place = FOLDER / f"kept {dataset}"
    if not place.exists():
        place.write_text(repr(dataset[0] + float(rng.laplace())))
    return float(place.read_text())

def on_disk_with_jitter(dataset, rng):
    return on_disk(dataset, rng) + 0.01 * float(rng.normal())
def of_its_own_file(dataset, rng):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "noisy").write_text(repr(dataset[0] + 0.3 * float(rng.laplace())))
        return float((pathlib.Path(folder) / "noisy").read_text())
seeded = np.random.default_rng(3)
def seeded_on_import(dataset, rng):
    return dataset[0] + 0.3 * float(seeded.laplace())
def fixed_seed(dataset, rng):  # the mechanisms from here on keep no noise
    public = float((FOLDER / "public").read_text())
    return dataset[0] + public + float(np.random.default_rng(42).laplace())
class Holds:
    def __init__(self):
        self.lock, self.calls, self.history, self.last, self.helper = threading.Lock(), 0, [], 0.0, None
        self.pool = ThreadPoolExecutor(1)
        self.public = (FOLDER / "public").open()
        self.log = logging.getLogger("holds")
        self.log.addHandler(logging.FileHandler(FOLDER / "log", "a"))
        self.generator = np.random.default_rng()
    @functools.lru_cache
    def shift(self, value):
        return value + 0.123456789
    def __call__(self, dataset, rng):
        with self.lock:
            self.calls += 1
            self.log.warning("run %d", self.calls)
            if self.helper is None:
                program = "for line in iter(input, ''): print(line, flush=True)"
                self.helper = subprocess.Popen(
                    [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            self.helper.stdin.write(f"{dataset[0]}\\n")
            self.helper.stdin.flush()
            value = self.shift(int(self.helper.stdout.readline()))
            self.public.seek(0)
            value += float(self.public.read())
            self.last = value + self.pool.submit(self.generator.laplace).result()
            self.history.append(self.last)
            return self.last
holds = Holds()
"""


@pytest.fixture
def in_a_file(tmp_path: Path) -> Any:
    (tmp_path / "keeps_or_not.py").write_text(_IN_A_FILE)
    (tmp_path / "public").write_text("0.25")
    return lambda name: PythonMechanism(f"keeps_or_not.py:{name}", folder=tmp_path)


@pytest.mark.chance
@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("name", [pytest.param("cached", marks=pytest.mark.slow), "on_disk"])
def test_what_a_process_keeps_makes_a_violation_inconclusive(in_a_file: Any, name: str) -> None:
    is_contradicted(audited(in_a_file(name), attacks=["logistic", "plug_in_ratio"], confirm=64))


def keeps(shape: Any, size: int) -> Any:
    """Return a function that keeps `size` values for each dataset, to be copied for the fresh runs."""
    kept: dict[Any, float] = {}

    def release(dataset: list[int], rng: Rng) -> Any:
        slot, noisy = (dataset[0], int(rng.integers(size))), dataset[0] + float(rng.laplace())
        return shape(kept.setdefault(slot, noisy), dataset[0], rng)

    return release


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        (lambda kept, value, rng: kept + 1e-3 * float(rng.normal()), 1),
        (lambda kept, value, rng: {"cached": [kept], "noisy": value + float(rng.laplace(scale=2))}, 1),
        (lambda kept, value, rng: kept, 3),
    ],
    ids=["with jitter", "one part", "pool"],
)
def test_what_a_copied_function_keeps_makes_a_violation_inconclusive_on_any_pair(shape: Any, size: int) -> None:
    """The seed decides.  Apart from the cache, the claim is true."""
    mechanism = keeps(shape, size)
    is_contradicted(audited(mechanism, [Pair([2], [2.0001]), PAIR], attacks=["logistic", "plug_in_ratio"], confirm=64))


def draws(share: float) -> Any:
    generator = unseeded_generator()
    kept: dict[int, float] = {}

    def release(dataset: list[int], rng: Rng) -> float:
        noisy = dataset[0] + 0.3 * float(generator.laplace())
        return kept.setdefault(dataset[0], noisy) if rng.random() < share else noisy

    return release


@pytest.mark.chance
def test_noise_of_a_copied_generator_that_is_often_kept_is_inconclusive() -> None:
    """Fails by chance < 1 in 10**6: see `fresh_runs.DIFFERENT`."""
    is_contradicted(audited(draws(share=0.8), FAR, confirm=64))


_PROGRAM = """
import json, random, sys
noise = {"drawn": random.gauss(0, 1), "seeded": random.Random(3).gauss(0, 1)}
pool = [random.gauss(0, 1) for _ in range(5)]
for line in sys.stdin:
    q = json.loads(line)
    kept = [random.choice(pool) if sys.argv[1] == "pool" else noise[sys.argv[1]] for _ in range(q["n"])]
    print(json.dumps({"outputs": [q["dataset"][0] + one for one in kept]}), flush=True)
"""


@pytest.mark.usefixtures("two")
@pytest.mark.chance
def test_a_program_is_started_anew(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    for kept in ("drawn", "pool"):
        with CommandMechanism([sys.executable, "program.py", kept], cwd=tmp_path) as mechanism:
            is_contradicted(audited(mechanism, attacks=["logistic", "plug_in_ratio"], confirm=400, trials=600))
    with CommandMechanism([sys.executable, "program.py", "seeded"], cwd=tmp_path) as mechanism:
        result = audited(mechanism)
    stands(result)
    assert outcome(result) == "confirmed"


def test_a_replay_of_a_cache_does_not_reproduce() -> None:
    """The seed decides."""
    kept: dict[int, float] = {}

    def cached(dataset: list[int], rng: Rng) -> float:
        return kept.setdefault(dataset[0], dataset[0] + float(rng.laplace()))

    violation = audited(lambda dataset, rng: dataset[0] + 0.1 * float(rng.laplace()))
    assert violation.violated
    found = replay(violation, cached, PAIR, attacks="logistic", trials=100, seed=1)
    assert not found.refuted
    assert found.p_value == 1.0
    assert replay(violation, no_noise, PAIR, attacks="logistic", trials=100, seed=1).refuted


@pytest.mark.usefixtures("two")
def test_a_violation_that_may_come_from_a_cache_on_disk_is_not_confirmed(in_a_file: Any) -> None:
    """A file that a run has written itself is no cache."""
    is_not_confirmed(audited(in_a_file("on_disk_with_jitter"), FAR, confirm=64), "kept")
    assert outcome(audited(in_a_file("of_its_own_file"), FAR, confirm=64)) == "confirmed"


@pytest.mark.usefixtures("two")
def test_a_seed_that_is_fixed_on_import_is_no_kept_noise(in_a_file: Any) -> None:
    """Each new process repeats the same outputs, so the fresh runs are made in the process of the audit.

    The datasets are so far apart that no output is on the wrong side.
    """
    result = audited(in_a_file("seeded_on_import"), FAR, confirm=64)
    is_not_confirmed(result, "as if their seed was fixed")
    assert result.confirmation.processes == 0
    assert result.confirmation.counts == Counts(false_positives=0, n0=64, false_negatives=0, n1=64)
    assert result.epsilon_lower(0) > 2


@pytest.mark.usefixtures("two")
def test_outputs_that_no_process_varies_count_once_for_each_process(in_a_file: Any) -> None:
    """At confidence 0.8, three observations of each dataset are just enough to refute the claim."""
    result = audited(in_a_file("fixed_seed"), confidence=0.8)
    stands(result)
    found = result.confirmation
    assert (found.outcome, found.processes, found.runs, found.counts.n0) == ("confirmed", 3, 16, 3)
    assert "the mechanism has no noise or a fixed seed" in " ".join(result.warnings)


@pytest.mark.usefixtures("two")
@pytest.mark.chance
def test_a_mechanism_that_holds_helpers_threads_locks_and_files_stays_a_violation(in_a_file: Any) -> None:
    """It also holds a generator, a counter, a history, a log and a cache of public data.

    Fails by chance < 1 in 10**6: the datasets are 10 standard errors apart; see also `fresh_runs.DIFFERENT`.
    """
    result = audited(in_a_file("holds"), Pair([0], [30]), confirm=64)
    stands(result)
    assert (outcome(result), result.confirmation.processes, result.confirmation.runs) == ("confirmed", 2, 64)
    assert result.witness.counted == "frozen"
    assert result.witness.counts == result.confirmation.counts
    assert not result.warnings


@pytest.mark.usefixtures("two")
def test_the_same_seed_gives_the_same_confirmation_in_any_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed decides."""

    def release(dataset: list[int], rng: Rng) -> float:
        return dataset[0] + 0.5 * float(rng.laplace())

    def made_here(runs0: Any, runs1: Any, since: float) -> Any:
        return fresh_process._made((runs0, runs1), since, lambda reads: None)

    first = audited(release, confirm=60, trials=150)
    monkeypatch.setattr(fresh_process, "_in_a_new_process", made_here)
    second = audited(release, confirm=60, trials=150)
    assert first.confirmation == second.confirmation
    assert 0 < first.confirmation.counts.false_positives < 60
    assert first.mu_lower == second.mu_lower


def discrete(dataset: list[int], rng: Rng) -> float:
    return (0.25 if rng.random() < 0.6 else 0.75) if dataset[0] else (0.5 if rng.random() < 0.99 else 0.75)


def seldom(dataset: list[int], rng: Rng) -> float:
    return float(dataset[0] and rng.random() < 0.5)


def on_a_grid(dataset: list[int], rng: Rng) -> float:
    return dataset[0] + 0.1 * int(rng.geometric(0.25) - rng.geometric(0.25))


def exact_part(dataset: list[int], rng: Rng) -> dict[str, float]:
    return {"epsilon": 0.5, "mean": dataset[0] + 0.25, "noisy": float(rng.normal())}


@batched
def no_noise(dataset: list[int], n: int, rng: Rng) -> Any:
    return np.full(n, float(dataset[0]))


@pytest.mark.parametrize(
    "mechanism",
    [discrete, *(pytest.param(one, marks=pytest.mark.slow) for one in (seldom, exact_part)), on_a_grid, no_noise],
)
def test_an_honest_violation_stands(mechanism: Any) -> None:
    """Few values, constant outputs or parts, and grids are no cache.  The seed decides."""
    result = audited(mechanism, confirm=100, attacks=["logistic", "plug_in_ratio"])
    stands(result)
    assert outcome(result) in ("confirmed", "consistent")


@pytest.mark.usefixtures("eight")
def test_a_mechanism_that_cannot_be_copied_stays_a_violation() -> None:
    held = (i for i in range(3))
    result = audited(lambda dataset, rng: dataset[0] + 0.3 * float(rng.laplace()) + 0 * bool(held), FAR)
    is_not_confirmed(result, "cannot be sent to a new process")
    assert result.confirmation.counts is not None
    assert result.confirmation.p_value < 0.01  # the fresh runs of this process are counted


class Records:
    """A mechanism that records its outputs on each dataset, and cannot be copied."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.held, self.seconds = (i for i in range(3)), seconds
        self.outputs: dict[int, list[float]] = {0: [], 10: []}

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        time.sleep(self.seconds)
        self.outputs[dataset[0]].append(dataset[0] + 0.3 * float(rng.laplace()))
        return self.outputs[dataset[0]][-1]

    @property
    def runs(self) -> int:
        """Number of runs on each dataset, none of which repeats another run."""
        (n,) = {len(side) for side in self.outputs.values()}
        assert all(len(set(side)) == n for side in self.outputs.values())
        return n


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize("confirm", [None, pytest.param(50, marks=pytest.mark.slow)])
def test_no_run_is_made_beyond_the_trials(confirm: Any) -> None:
    """The seed decides: with 17 trials, the proof takes all of them."""
    for trials in (17, 101, 200):
        mechanism = Records()
        result = audited(mechanism, FAR, trials=trials, confirm=confirm)
        stands(result)
        fresh = result.confirmation.runs
        assert mechanism.runs <= trials
        assert mechanism.runs >= result.trials_used + fresh
        assert fresh <= (confirm or trials)
        if trials == 17:
            is_not_confirmed(result, "no run was left")
        elif trials > 100:  # after 100 runs that test whether runs are independent
            assert fresh >= 1


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize("settings", [pytest.param({"method": "fixed"}, marks=pytest.mark.slow), {"measure": True}])
def test_an_audit_that_uses_all_trials_makes_its_fresh_runs_on_top(settings: dict[str, Any]) -> None:
    mechanism = Records()
    result = audited(mechanism, FAR, trials=100, confirm=30, **settings)
    stands(result)
    assert result.trials_used == 100
    assert mechanism.runs == 130


@pytest.mark.usefixtures("eight")
def test_no_fresh_run_is_made_if_the_user_says_so() -> None:
    mechanism = Records()
    result = audited(mechanism, FAR, confirm="never")
    is_not_confirmed(result, "told to make no fresh runs")
    assert mechanism.runs <= max(100, result.trials_used)  # 100 runs test whether runs are independent
    assert audited(lambda dataset, rng: float(rng.normal()), confirm="never").confirmation is None


_SCRIPT = """
import json
from dpaudit import Pair, audit
from dpaudit.engine import fresh_runs

kept, SCALE = {}, 1e-3
def keeps(dataset, rng):
    return kept.setdefault(dataset[0], dataset[0] + rng.laplace()) + SCALE * rng.normal()
if __name__ == "__main__":
    fresh_runs.PROCESSES = 2
    result = audit(keeps, "pure(epsilon=1)", Pair([0], [10]), attacks="logistic", trials=100, seed=0, confirm=16)
    print(json.dumps([result.verdict.name, result.confirmation.outcome]))
"""


@pytest.mark.usefixtures("eight")
def test_new_processes_run_the_functions_of_a_script(tmp_path: Path) -> None:
    """The seed decides."""
    (tmp_path / "script.py").write_text(_SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["INCONCLUSIVE", "contradicted"]
