"""Streams, with a coin before each step and one output after the coin."""

import base64
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import dpaudit_reports
from dpaudit import AuditResult, GaussianDP, OnlineAudit, PureDP, Verdict
from dpaudit.claims import TradeoffFunction
from dpaudit.engine import online_state
from dpaudit.engine.online_state import OtherBets, check_bets, reference_wealth
from dpaudit.inference.sequential.alternatives import gaussian_noise
from dpaudit.inference.sequential.strategy import Strategy, strategy, stream_strategy
from dpaudit.result.evidence import OnlineEvidence
from dpaudit.rounding import lower

from .scored import check_agreement

FAST = ("median_clipped",)


def noisy(audit: OnlineAudit, steps: int, *, sigma: float, seed: int) -> OnlineAudit:
    """Audit a stream of Gaussian noise around the dataset's number, until a refutation or the last step."""
    rng = np.random.default_rng(seed)
    while audit.steps < steps and not audit.refuted:
        audit.update(float(rng.normal(audit.coin(), sigma)))
    return audit


def test_too_little_noise_is_refuted_and_the_result_is_kept(tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6."""
    audit = noisy(OnlineAudit(GaussianDP(0.2), attacks=FAST, confidence=0.95, seed=1), 3000, sigma=0.5, seed=1)
    assert audit.refuted
    assert audit.refuted_at == audit.steps
    assert audit.log_e >= math.log(20)
    assert 0.2 < audit.mu_lower < 1 / 0.5
    result = audit.result()
    assert result.verdict is Verdict.VIOLATION
    assert result.refuted_at == math.ceil(audit.steps / 2)
    check_agreement(result)
    result.to_json(tmp_path / "r.json")
    back = AuditResult.from_json(tmp_path / "r.json")
    assert back.to_dict() == result.to_dict()


def test_true_claims_are_rarely_refuted_by_a_state_that_drifts_and_adapts() -> None:
    """Makes 8 streams, in which each step is exactly 1-DP given the past.  Fails by chance < 1 in 10**6.

    The mechanism reports the dataset by two words, exchanges their meaning when the wealth grows, and drifts between
    randomised response and no report.
    """
    refuted, keeps = 0, math.exp(1) / (1 + math.exp(1))
    for seed in range(8):
        rng, turned = np.random.default_rng(seed), 0
        audit = OnlineAudit(PureDP(1.0), confidence=0.9, attacks=FAST, seed=seed)
        before = 0.0
        for step in range(120):
            side = audit.coin()
            told = side if rng.random() < keeps else 1 - side
            silent = rng.random() < 0.5 * math.sin(step / 20) ** 2
            audit.update(0.5 if silent else float(told != turned))
            turned = turned if audit.log_e >= before else 1 - turned
            before = audit.log_e
        refuted += audit.refuted
    assert refuted <= binom.ppf(1 - 1e-6, 8, 0.1)


def test_a_score_uses_the_past_only() -> None:
    """The evidence of a step does not change if later outputs do."""
    first, second = (OnlineAudit(GaussianDP(0.5), attacks=FAST, seed=3) for _ in range(2))
    rng = np.random.default_rng(0)
    for step in range(80):
        output = float(rng.normal(first.coin()))
        assert second.coin() == first.coin()
        first.update(output)
        second.update(output if step < 60 else -output)
        assert first.log_e == second.log_e or step >= 60
    assert first.log_e != second.log_e


def test_coins_are_fair_and_settled_before_the_output() -> None:
    audit = OnlineAudit(GaussianDP(1.0), attacks=FAST, seed=1)
    coins = []
    for _ in range(400):
        coin = audit.coin()
        assert audit.coin() == coin
        audit.steps, audit._coin = audit.steps + 1, None
        coins.append(coin)
    assert abs(sum(coins) - 200) < 5 * 10


def test_a_stream_outlives_its_process(tmp_path: Path) -> None:
    whole, saved = (OnlineAudit(GaussianDP(0.1), attacks=FAST, seed=2) for _ in range(2))
    outputs = np.random.default_rng(1).normal(size=80)
    for step, output in enumerate(outputs):
        assert whole.coin() == saved.coin()
        whole.update(float(output + whole.coin()))
        saved.update(float(output + saved.coin()))
        if step in (5, 60, 61):
            saved.to_json(tmp_path / "s.json")
            saved = OnlineAudit.from_json(tmp_path / "s.json")
    assert saved.log_e == whole.log_e
    assert saved.steps == whole.steps
    assert saved.refuted_at == whole.refuted_at
    mine, other = saved.result().to_dict(), whole.result().to_dict()
    assert {key for key in mine if mine[key] != other[key]} <= {"elapsed_s", "environment"}


def test_reports_agree_after_the_wealth_was_lost_again(tmp_path: Path) -> None:
    """A refutation is final, and the bounds come from the interim analysis with the most evidence."""
    audit = noisy(OnlineAudit(GaussianDP(0.2), attacks=FAST, confidence=0.95, seed=1), 3000, sigma=0.5, seed=1)
    before = audit.mu_lower
    rng = np.random.default_rng(5)
    for _ in range(300):
        audit.coin()
        audit.update(float(rng.normal()))
    assert audit.log_e < 0
    result = audit.result()
    assert result.evidence.refutes(GaussianDP(0.2), confidence=0.95)
    assert result.mu_lower == audit.mu_lower >= before > 0.2
    assert result.epsilon_lower(1e-3) > 0
    words = lower(result.mu_lower)
    for text in (str(result), dpaudit_reports.to_markdown([result])):
        assert words in text
        assert "interim analysis with the most evidence" in text
    result.to_json(tmp_path / "r.json")
    back = AuditResult.from_json(tmp_path / "r.json")
    assert back.to_dict() == result.to_dict()
    check_agreement(back)
    audit.to_json(tmp_path / "s.json")
    assert OnlineAudit.from_json(tmp_path / "s.json").mu_lower == audit.mu_lower


def test_a_stream_does_not_go_on_with_other_bets(tmp_path: Path) -> None:
    audit = noisy(OnlineAudit(GaussianDP(1.0), attacks=FAST, seed=1), 40, sigma=1.0, seed=1)
    audit.to_json(tmp_path / "s.json")
    state = json.loads((tmp_path / "s.json").read_text())
    for bets in ([wealth + 1e-6 for wealth in state["bets"]], state["bets"][:-1], []):
        (tmp_path / "s.json").write_text(json.dumps(state | {"bets": bets}))
        with pytest.raises(
            ValueError, match=r"s\.json cannot be continued: it was saved by a version .* places other bets"
        ):
            OnlineAudit.from_json(tmp_path / "s.json")
    rounded = [wealth * (1 + 1e-13) for wealth in state["bets"]]
    (tmp_path / "s.json").write_text(json.dumps(state | {"bets": rounded}))
    assert OnlineAudit.from_json(tmp_path / "s.json").steps == 40


def test_the_fingerprint_sees_every_bet() -> None:
    """A single bet whose weight, price or payoff differs by one in 10,000 changes the fingerprint."""
    placed = strategy(PureDP(1.0))
    prices = placed.log_prices(PureDP(1.0))
    ours = reference_wealth(placed, prices)
    for j in range(len(ours)):
        changed = np.arange(len(ours)) == j
        payoffs = placed.log_payoffs1 + 1e-4 * changed[:, None]
        for bets, costs in (
            (dataclasses.replace(placed, log_weights=placed.log_weights + 1e-4 * changed), prices),
            (dataclasses.replace(placed, log_payoffs1=payoffs), prices),
            (placed, prices + 1e-4 * changed),
        ):
            with pytest.raises(OtherBets):
                check_bets(ours, reference_wealth(bets, costs))


def test_wrong_use_is_explained(tmp_path: Path) -> None:
    audit = OnlineAudit(GaussianDP(1.0), attacks=FAST)
    with pytest.raises(RuntimeError, match="call coin"):
        audit.update(1.0)
    audit.coin()

    class Unreadable:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise ValueError("no")

    with pytest.raises(ValueError, match=r"a run is pending: call update\(\)"):
        audit.to_json(tmp_path / "s.json")
    audit.update(Unreadable())  # counts as None, because a repetition would select runs by their outputs
    assert audit.steps == 1
    assert any("1 outputs could not be read and counted as None" in words for words in audit.result().warnings)


def test_unreadable_outputs_do_not_let_a_true_claim_be_refuted() -> None:
    """Outputs are A, B or unreadable, and exactly 1-DP.  When they were retried, every audit refuted the claim.

    Fails by chance < 1 in 10**6: the stream is refuted with probability at most 1e-7.
    """
    laws = np.array([[0.1, 0.7, 0.2], [0.2718, 0.1846, 0.5436]])
    laws[:, 2] = 1 - laws[:, :2].sum(axis=1)
    rng = np.random.default_rng(0)
    audit = OnlineAudit(PureDP(1.0), attacks=FAST, seed=0, confidence=1 - 1e-7)
    for _ in range(400):
        drawn = int(rng.choice(3, p=laws[audit.coin()]))
        audit.update(object() if drawn == 2 else "AB"[drawn])
    assert audit.steps == 400
    assert not audit.refuted


def test_a_score_that_fails_ends_all_proof() -> None:
    class Fails:
        name = "fails"

        def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
            def score(outputs: Any) -> Any:
                raise ValueError("no")

            return score

    audit = OnlineAudit(GaussianDP(0.1), attacks=Fails(), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        audit.update(float(rng.normal(5 * audit.coin())))
    assert audit.steps == 200
    assert not audit.refuted
    assert audit.mu_lower == 0
    assert audit.result().verdict is Verdict.INCONCLUSIVE


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Any]:
    stream = OnlineAudit("gaussian(mu=1)", attacks="median_clipped", seed=0)
    for _ in range(40):
        stream.update(float(stream.coin()))
    stream.to_json(tmp_path / "s.json")
    found: dict[str, Any] = json.loads((tmp_path / "s.json").read_text())
    return found


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"path": [[1]]}, "path.0.1: "),
        ({"outputs": [[2, "Tg=="]]}, "outputs.0.0: "),
        ({"outputs": [[0, base64.b64encode(b"?").decode()]]}, "unknown tag"),
        ({"counts": [[[1, -1]], []]}, "counts >= 0"),
        ({"claim": "private"}, "private"),
        ({"format": "dpaudit-online/9"}, "format: Input should be 'dpaudit-online/2'"),
    ],
)
def test_a_file_that_is_no_stream_says_where_it_is_wrong(
    changed: dict[str, Any], words: str, saved: Any, tmp_path: Path
) -> None:
    (tmp_path / "s.json").write_text(json.dumps(saved | changed))
    with pytest.raises(ValueError, match=f"is not a stream of dpaudit.*({words})"):
        OnlineAudit.from_json(tmp_path / "s.json")


def test_the_state_itself_is_read(saved: Any, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(saved | {"a key of a later version": 1}))
    assert OnlineAudit.from_json(tmp_path / "s.json").steps == 40


def test_a_stream_of_large_outputs_saves_the_latest_that_it_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = OnlineAudit("gaussian(mu=1)", attacks="median_clipped", seed=0)
    for step in range(40):
        stream.coin()
        stream.update([float(step)] * 20)
    monkeypatch.setattr(online_state, "MAX_FILE_BYTES", 10_000)
    stream.to_json(tmp_path / "s.json")
    outputs = json.loads((tmp_path / "s.json").read_text())["outputs"]
    assert 5 < len(outputs) < 40
    assert online_state.decoded(outputs[-1][1])[0] == 39.0
    assert sum(len(text) for _, text in outputs) <= 5_000
    again = OnlineAudit.from_json(tmp_path / "s.json")
    assert (again.steps, again.log_e) == (40, stream.log_e)


# --- what lets a stream refute a claim in few steps: its shares of the wealth, and early fits of quick attacks


@pytest.mark.parametrize("claim", [GaussianDP(0.25), PureDP(1.0), PureDP(0.0), GaussianDP(40.0)], ids=str)
def test_the_bets_of_a_stream_differ_from_those_of_pairs_in_their_shares_only(claim: TradeoffFunction) -> None:
    ours, pairs = stream_strategy(claim), strategy(claim, edition=1)
    assert np.exp(ours.log_weights).sum() == pytest.approx(1.0, rel=1e-12)
    assert np.all(ours.log_weights >= pairs.log_weights - math.log(4) - 1e-12)
    assert np.array_equal(ours.log_payoffs0, pairs.log_payoffs0)
    assert np.array_equal(ours.log_payoffs1, pairs.log_payoffs1)
    assert np.array_equal(ours.log_prices(claim), pairs.log_prices(claim))


def test_a_stream_needs_fewer_steps_for_a_large_violation() -> None:
    """At the mean growth of the bets, a quadruple mu needs less than three quarters of the steps with pair bets."""
    claim, law = GaussianDP(0.25), gaussian_noise(1.0)

    def enough(bets: Strategy) -> int:
        growth = (bets.log_payoffs0 @ law.p + bets.log_payoffs1 @ law.q - bets.log_prices(claim)) / 2
        return next(n for n in range(1000) if np.logaddexp.reduce(bets.log_weights + n * growth) >= math.log(20))

    assert enough(stream_strategy(claim)) < 0.75 * enough(strategy(claim))


def test_the_evidence_of_a_stream_uses_the_bets_of_the_stream() -> None:
    claim = GaussianDP(0.2)
    audit = OnlineAudit(claim, attacks="logistic", seed=1)
    for step in range(60):
        audit.update(2.0 * audit.coin() + step % 3)
    evidence = audit.result().evidence
    assert isinstance(evidence, OnlineEvidence)
    assert audit.log_e > 1
    assert evidence.log_e(claim) == pytest.approx(max(path for _, path in audit._path), rel=1e-9)


class Sizes(list[int]):
    """A list that copies of an attack share."""

    def __deepcopy__(self, memo: Any) -> "Sizes":
        return self


class Noted:
    """An attack that records the numbers of outputs to which it was fitted."""

    sees = "features"
    calibrated = True

    def __init__(self, *, quick: bool) -> None:
        self.name, self.quick, self.sizes = f"noted {quick}", quick, Sizes()

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        self.sizes.append(len(outputs0))
        return lambda outputs: np.zeros(len(outputs))


def test_a_stream_fits_quick_attacks_early_and_often() -> None:
    quick, slow = Noted(quick=True), Noted(quick=False)
    audit = OnlineAudit(GaussianDP(1.0), attacks=[quick, slow], seed=0)
    for step in range(80):
        audit.update(float(audit.coin() + step % 3))
    assert [size for size in quick.sizes if size < 25] == [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 21, 23]
    assert [size for size in slow.sizes if size < 25] == [10, 13, 17, 23]


def test_a_quick_attack_is_not_dropped_after_a_fit_to_few_outputs() -> None:
    """Logistic regression raises an exception if no output has a finite number."""
    audit = OnlineAudit(GaussianDP(1.0), attacks="logistic", seed=0)
    for step in range(60):
        coin = audit.coin()
        audit.update(math.nan if step < 12 else float(coin + step % 3))
    assert not any("was dropped" in words for words in audit.result().warnings)
    assert audit._learner.ready


def test_a_change_of_the_encoding_refits_every_attack() -> None:
    """The new columns appear after the first fit of all attacks, between two of their fits."""
    quick, slow = Noted(quick=True), Noted(quick=False)
    audit = OnlineAudit(GaussianDP(1.0), attacks=[quick, slow], seed=0)
    while audit._learner.trials < 10:
        audit.update(float(audit.coin()))
    while audit._learner.trials < 11:
        audit.update([float(audit.coin()), 1.0])
    assert slow.sizes == [10, 11]
