"""Verdicts of replays: when a violation is confirmed, which code runs, and what a stranger's file cannot cause."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from dpaudit import AuditResult, GaussianDP, Pair, Verdict, audit, batched, replay
from dpaudit.cli.app import app
from dpaudit.engine.replay import CONFIRMED, Replay, frozen_threshold
from dpaudit.inference.fixed.exact_binomial import p_value
from dpaudit.inference.grid import bin_of
from dpaudit.learning import Learner

PAIR = Pair([0], [1])
Command = Callable[..., Result]


def noise(mu: float) -> Any:
    return batched(lambda dataset, n, rng: rng.normal(mu * dataset[0], 1.0, n))


@pytest.fixture(scope="module")
def alarm() -> AuditResult:
    """Return a result with a false alarm: it refutes a claim that `noise(1)` keeps."""
    options: dict[str, Any] = {"attacks": "median_clipped", "trials": 5000, "seed": 3, "confidence": 0.95}
    wrong = audit(noise(2), GaussianDP(1.0), PAIR, **options, confirm="never")
    assert wrong.violated
    return wrong


def again(result: AuditResult, mechanism: Any, **options: Any) -> Replay:
    """Replay with the fast attack of `alarm`; these tests are about counts and not about other mechanisms."""
    found = replay(result, mechanism, PAIR, attacks="median_clipped", **options)
    return dataclasses.replace(found, changes=())


def test_a_replay_confirms_at_one_in_a_thousand_and_not_at_the_audits_level(alarm: AuditResult) -> None:
    """The seed is fixed: this replay has a p-value between 0.001 and 0.05."""
    one = again(alarm, noise(1.25), trials=300, seed=1)
    assert CONFIRMED < one.p_value <= 0.05
    assert not one.refuted
    assert not one.reproduced
    assert one.runs_needed > one.counts.n0
    assert "Not confirmed yet: p <= 0.001 is required." in str(one)
    assert f"dpaudit replay FILE --trials {round(one.runs_needed)}, or --extend" in str(one)


def test_a_replay_of_a_surer_audit_is_as_sure(alarm: AuditResult) -> None:
    surer = dataclasses.replace(alarm, confidence=1 - 1e-6, _computed_at=None)
    assert again(surer, noise(1.3), trials=200, seed=0).level == pytest.approx(1e-6)


def test_runs_that_a_replay_suggests_decide(alarm: AuditResult) -> None:
    """Seeds are fixed; a replay of the suggested size confirms with probability 0.9 if its rates are the true ones.

    The first replay with this seed, of the seeds 0 to 7, does not confirm.
    """
    one = again(alarm, noise(1.8), trials=80, seed=3)
    n = round(one.runs_needed)
    assert not one.refuted
    assert 80 < n < 1000
    rates = one.counts.false_positives / one.counts.n0, one.counts.false_negatives / one.counts.n1
    x, missed = (np.random.default_rng(0).binomial(n, rate, 10).tolist() for rate in rates)
    confirmed = [p_value(GaussianDP(1.0), a, n, n - b, n) <= CONFIRMED / 2 for a, b in zip(x, missed, strict=True)]
    assert sum(confirmed) >= 7
    assert again(alarm, noise(1.8), trials=n, seed=100).refuted


def test_an_extended_replay_goes_on_until_it_decides(alarm: AuditResult) -> None:
    found = again(alarm, noise(1.3), trials=250, seed=1, extend=True)
    assert 1 < found.looks < 7  # not the last interim analysis
    assert found.refuted
    assert found.counts.n0 == 250 * 2 ** (found.looks - 1)
    counts = found.counts
    y = counts.n1 - counts.false_negatives
    exact = p_value(GaussianDP(1.0), counts.false_positives, counts.n0, y, counts.n1)
    assert found.p_value == pytest.approx(exact * 2 ** (found.looks + 1))
    assert f"corrected for two replays and {found.looks} interim analyses" in str(found)


@pytest.mark.slow
def test_an_extended_replay_of_a_true_claim_rarely_confirms(alarm: AuditResult) -> None:
    """Each of 10 replays confirms with probability 0.001, and two or more with less than 5e-5.  The seeds are fixed."""
    found = [again(alarm, noise(1), trials=50, seed=seed, extend=True) for seed in range(10)]
    assert sum(one.refuted for one in found) <= 1
    assert any(one.looks > 1 for one in found)


def test_an_extended_replay_ends_where_there_is_no_sign_of_a_violation(alarm: AuditResult) -> None:
    found = again(alarm, noise(0.2), trials=200, seed=0, extend=True)
    assert found.looks == 2
    assert "Not confirmed: fresh runs show no sign of the violation." in str(found)


def test_runs_that_fail_in_a_replay_say_nothing(alarm: AuditResult) -> None:
    held = dataclasses.replace(alarm, verdict=Verdict.NO_VIOLATION, p_value=0.9)

    def fails(dataset: list[int], rng: np.random.Generator) -> float:
        if rng.random() < 0.01:
            raise RuntimeError("gone")
        return dataset[0] + rng.normal()

    found = again(held, fails, trials=1000, seed=0)
    assert not found.valid
    assert not found.reproduced
    assert "No conclusion" in str(found) or "does not reproduce" in str(found)


# --- a stranger's file

_CONFIG = """
name: replayed
seed: 0
confidence: 0.95
claim: gaussian(mu=1)
mechanism: {builtin: gaussian, params: {sigma: 0.5}}
pairs: [{d0: [0], d1: [1]}]
trials: 5000
attacks: median_clipped
confirm: never
"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    (folder / "audit.yaml").write_text(_CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(app, ["run", "audit.yaml", "-o", "out", "--no-pdf", "-q"], catch_exceptions=False)
    assert done.exit_code == 1
    return folder / "out" / "replayed.json"


@pytest.fixture
def file(audited: Path, tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return Path(shutil.copy(audited, tmp_path / "out"))


def changed(file: Path, **environment: Any) -> str:
    values = json.loads(file.read_text(encoding="utf-8"))
    values["environment"].update(environment)
    other = file.with_name("stranger.json")
    other.write_text(json.dumps(values), encoding="utf-8")
    return str(other)


@pytest.mark.parametrize(
    "test",
    [
        "--basetemp=precious",
        "-pown.py::test_it",
        "a/../../test_evil.py::test_e",
        "test_\x1b[2K.py::test_e",
        ["test_it.py::test_e"],
    ],
)
def test_a_result_file_passes_no_options_to_pytest(command: Command, tmp_path: Path, file: Path, test: Any) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "kept.txt").write_text("kept")
    (tmp_path / "test_mine.py").write_text("def test_mine():\n    open('ran', 'w').close()\n")
    (tmp_path / "own.py").write_text("open('imported', 'w').close()\n")
    done = command("replay", changed(file, test=test, call=1))
    assert done.exit_code == 2
    assert "in the current folder or below" in done.stderr
    assert "\x1b" not in done.stderr
    assert (tmp_path / "precious" / "kept.txt").read_text() == "kept"
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "imported").exists()


def test_a_replay_says_what_it_runs_before_and_runs_nothing_with_dry_run(
    command: Command, tmp_path: Path, file: Path
) -> None:
    code, claim, runs = command("replay", str(file), "--dry-run").stdout.splitlines()
    assert code == "replayed: the replay runs no code outside dpaudit"
    assert claim == "replayed: the replay tests the claim gaussian(mu=1)"
    assert runs.startswith("replayed: the replay makes 1,")
    done = command("replay", changed(file, audit=_COMMAND), "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert "touch RAN" in done.stdout
    assert not (tmp_path / "RAN").exists()
    done = command("replay", str(file))
    assert done.exit_code == 1
    assert "the replay runs no code outside dpaudit" in done.stderr


_COMMAND = _CONFIG.replace(
    "{builtin: gaussian, params: {sigma: 0.5}}", '{command: [sh, -c, "touch RAN; cat", "\\r\\e[2Kforged\\nline"]}'
)


class Atoms:
    """A learner that gives each output itself as its score.  A share of the outputs has the score `atom`."""

    ready = True

    def __init__(self, atom: float) -> None:
        self.atom = atom

    def outputs(self) -> tuple[Any, Any]:
        run = np.arange(1000)
        return np.where(run < 300, self.atom, -5.0), np.where(run < 600, self.atom, -5.0)

    def score(self, outputs: Any) -> Any:
        return outputs


@pytest.mark.parametrize(("atom", "moves"), [(1.2, False), (0.8, True)])
def test_the_threshold_of_a_replay_follows_an_atom_to_its_other_side(
    alarm: AuditResult, atom: float, moves: bool
) -> None:
    """The witness's region was "score above 1", which held the atom."""
    assert alarm.witness is not None
    witness = dataclasses.replace(alarm.witness, alpha=0.3, beta=0.4, threshold=1.0)
    after = frozen_threshold(cast(Learner, Atoms(atom)), witness)
    assert (after != witness.last_bin) == moves
    assert int(bin_of(np.array([-5.0]))[0]) <= after < int(bin_of(np.array([atom]))[0])
