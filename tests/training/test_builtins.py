"""Builtin trainings and their configs: wrong trainings are refuted, and differ from their controls as stated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from dpaudit import audit
from dpaudit.catalogue import BUILTIN
from dpaudit.config.files import read_configs
from dpaudit.config.planned import PlannedAudit
from dpaudit.pairs.pair import Pair
from dpaudit.pairs.search import SearchPairs

NAMES = [name for name in BUILTIN if name.startswith("dp_")]
WRONG = [name for name in NAMES if not BUILTIN[name]().private]
DEAR = ("dp_sgd_shuffled_as_poisson", "dp_gd_unscaled_noise", "dp_gd_momentum_before_noise", "dp_gd_clipped_mean")
SHARED = ("dp_gd_unscaled_noise", "dp_gd_clipped_mean")  # their pair is that of dp_gd_shared_noise


def pair_of(name: str) -> Pair:
    (pair,) = SearchPairs(**BUILTIN[name]().inputs)
    return pair


def fast(name: str) -> list[str]:
    return ["trees", "derived_features"] if "sgd" in name else ["logistic", "quadratic", "derived_features"]


def drawn(name: str, dataset: Any, n: int = 1000, **params: Any) -> Any:
    return BUILTIN[name](**params).sample(dataset, n, np.random.default_rng(5))


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in DEAR else ()) for n in WRONG])
def test_a_wrong_training_is_refuted(name: str) -> None:
    mechanism = BUILTIN[name]()
    result = audit(
        mechanism,
        mechanism.claim,
        pair_of(name),
        trials=300,
        confidence=0.95,
        seed=0,
        attacks=fast(name),
        confirm="never",
    )
    assert result.violated


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("dp_gd_shared_noise", "dp_sgd_reused_seed") else pytest.mark.slow)
        for name in WRONG
        if name not in SHARED
    ],
)
def test_its_control_is_not(name: str) -> None:
    """The control is audited on the same pair; three wrong trainings share a pair.  Fails by chance < 1 in 10**6."""
    control = BUILTIN["dp_sgd" if "sgd" in name else "dp_gd"](model=BUILTIN[name]().model)
    result = audit(control, control.claim, pair_of(name), trials=60, confidence=1 - 1e-6, seed=0, attacks=fast(name))
    assert not result.violated


def test_spare_weights_have_the_stated_laws() -> None:
    """Kolmogorov-Smirnov at the spare weight of the Dirac record.  Fails by chance < 1 in 10**6."""
    laws: tuple[tuple[str, str, dict[str, Any], float, float], ...] = (
        ("dp_gd", "dp_gd", {}, 1.0, 1.0),
        ("dp_gd", "dp_gd", {"clip": 3.0, "noise_multiplier": 0.5}, 3.0, 1.5),
        ("dp_gd_unscaled_noise", "dp_gd", {}, 2.0, 1.0),
        ("dp_gd_clipped_mean", "dp_gd", {}, 5.0, 1.0),
        ("dp_gd_true_batch_size", "dp_gd_true_batch_size", {}, 0.0, 0.5),
        ("dp_gd_accumulated_before_clipping", "dp_gd_accumulated_before_clipping", {}, 2.0, 1.0),
    )
    for name, pair, params, mean, deviation in laws:
        outputs = drawn(name, pair_of(pair).d1, **params)[:, -2]
        assert kstest((outputs - mean) / deviation, "norm").pvalue > 1e-7, name


def test_momentum_adds_up_before_the_noise() -> None:
    """The test examines the sum of 10 releases.  Fails by chance < 1 in 10**7."""
    sizes = np.cumsum(0.9 ** np.arange(10))
    outputs = -drawn("dp_gd_momentum_before_noise", pair_of("dp_gd").d1)[:, -2] / 1e-3
    assert kstest((outputs - sizes.sum()) / np.sqrt(1000), "norm").pvalue > 1e-7


def test_layers_and_steps_share_noise() -> None:
    shared = drawn("dp_gd_shared_noise", pair_of("dp_gd").d0, 50)
    assert np.ptp(shared[:, -2] - shared[:, 0]) < 1e-9 < np.ptp(shared[:, -2])
    reused = drawn("dp_sgd_reused_seed", pair_of("dp_sgd_reused_seed").d0, 50).reshape(50, 2, -1)
    assert np.array_equal(reused[:, 0], reused[:, 1])
    assert len(np.unique(reused[:, 0])) == reused[:, 0].size


def test_batch_norm_lets_one_record_change_all_gradients() -> None:
    pair = pair_of("dp_gd_batch_norm")
    for name, low, high in (("dp_gd_batch_norm", 4.0, 10.0), ("dp_gd", 0.0, 1.1)):
        means = [drawn(name, d, 200, noise_multiplier=1e-6).mean(axis=0) for d in (pair.d0, pair.d1)]
        assert low < np.linalg.norm(means[1] - means[0]) < high


def test_shuffled_batches_tell_where_the_target_is() -> None:
    pair = pair_of("dp_sgd_shuffled_as_poisson")
    for dataset, sums in ((pair.d0, {(-2, -1)}), (pair.d1, {(-2, 0), (0, -2)})):
        outputs = drawn("dp_sgd_shuffled_as_poisson", dataset, 100, noise_multiplier=1e-6)
        assert {tuple(np.round(row).astype(int)) for row in outputs[:, [2, 5]]} == sums


FOLDER = Path(__file__).parents[2] / "configs" / "training"
AUDITS = {audit.config.name: audit for audit in read_configs([FOLDER])}


def builtin(audit: PlannedAudit) -> str:
    return str(audit.config.mechanism.builtin)


def test_every_builtin_training_has_a_config() -> None:
    assert {builtin(audit) for audit in AUDITS.values()} == {name for name in BUILTIN if name.startswith("dp_")}
    assert all(file.read_text(encoding="utf-8").startswith("# ") for file in FOLDER.iterdir())


@pytest.mark.parametrize("name", AUDITS)
def test_a_config_states_source_pair_expectation_and_parameters(name: str) -> None:
    """The claim is computed from the parameters, and the pair is the one that shows the mistake."""
    config = AUDITS[name].config
    mechanism = BUILTIN[builtin(AUDITS[name])](**config.mechanism.params or {})
    assert config.source
    assert config.claim == "from mechanism"
    assert "noise_multiplier" in (config.mechanism.params or {})
    assert AUDITS[name].load()[1] == mechanism.claim
    assert config.expect == ("no violation" if mechanism.private else "violation")
    (pair,), (searched,) = AUDITS[name].pairs, SearchPairs(**mechanism.inputs)
    assert {key: value for key, value in pair.d0.items() if value} == {k: v for k, v in searched.d0.items() if v}
    assert pair.d1 == searched.d1
    assert pair.relation == searched.relation == "add_remove"
