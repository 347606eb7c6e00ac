"""The claim of DP-SGD, computed from its parameters, and that of a single batch in loaders of Opacus."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from dpaudit import GaussianDP, audit, parse_claim, training
from dpaudit.catalogue import BUILTIN
from dpaudit.config.files import read_configs
from dpaudit.config.planned import PlannedAudit
from dpaudit.pairs.pair import Pair
from dpaudit.pairs.search import SearchPairs
from dpaudit.training import canaries, opacus, reference, views

MODEL = reference.Model((2, 2))


def test_full_batches_compose_in_closed_form() -> None:
    assert training.claim(noise_multiplier=5.0, steps=100, sampling="full") == GaussianDP(2.0)
    replaced = training.claim(noise_multiplier=5.0, steps=100, sampling="full", relation="replace_one")
    assert replaced == GaussianDP(4.0)


def test_poisson_batches_compose_the_subsampled_claim() -> None:
    found = training.claim(noise_multiplier=2.0, sampling_rate=0.25, steps=3)
    assert found == parse_claim("repeated(subsampled(gaussian(mu=0.5), rate=0.25, relation=add_remove), n=3)")
    replaced = training.claim(noise_multiplier=2.0, sampling_rate=0.25, steps=3, relation="replace_one")
    assert replaced == parse_claim("repeated(subsampled(gaussian(mu=1), rate=0.25, relation=replace_one), n=3)")


def test_one_step_of_poisson_batches_is_not_stronger_than_the_truth() -> None:
    """The law of one step, on a Dirac record: 3/4 N(0, 1) + 1/4 N(1, 1) against N(0, 1)."""
    claim = training.claim(noise_multiplier=1.0, sampling_rate=0.25, steps=1)
    gaussian = GaussianDP(1.0)
    for alpha in (0.05, 0.3, 0.7):
        assert claim.beta(alpha) <= 0.25 * gaussian.beta(alpha) + 0.75 * (1 - alpha) + 1e-12


def test_shuffled_batches_have_no_claim_unless_it_is_audited() -> None:
    with pytest.raises(ValueError, match=r"batches depend on each other.*2411\.10614.*claimed_as"):
        training.claim(noise_multiplier=1.0, sampling_rate=0.1, steps=10, sampling="shuffled")
    with pytest.raises(ValueError, match=r'no amplified claim.*pass claimed_as="poisson" to training\.claim$'):
        _ = reference.Trainer(model=MODEL, noise_multiplier=1.0, steps=2, sampling=reference.Shuffled(2)).claim
    audited = training.claim(
        noise_multiplier=1.0, sampling_rate=0.1, steps=10, sampling="shuffled", claimed_as="poisson"
    )
    assert audited == training.claim(noise_multiplier=1.0, sampling_rate=0.1, steps=10)


def test_a_trainer_states_its_claim() -> None:
    full = reference.Trainer(model=MODEL, noise_multiplier=4.0, steps=16)
    assert full.claim == GaussianDP(1.0)
    sampled = reference.Trainer(model=MODEL, noise_multiplier=4.0, steps=16, sampling=reference.Poisson(0.5))
    assert sampled.claim == training.claim(noise_multiplier=4.0, sampling_rate=0.5, steps=16)
    assert reference.Training(sampled, training.views.weights()).claim == sampled.claim


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"noise_multiplier": "1"}, "noise_multiplier must be a number > 0 and finite, got '1'"),
        ({"sampling_rate": None}, r"sampling_rate must lie in \(0, 1\], got None"),
        ({"sampling_rate": 1.5}, r"sampling_rate must lie in \(0, 1\], got 1.5"),
        ({"sampling": "full"}, "has no sampling rate, got 0.1; leave it out"),
        ({"sampling": "uniform"}, "sampling must be one of poisson, full, shuffled, got 'uniform'"),
        ({"relation": "zero_out"}, "relation must be one of add_remove, replace_one, got 'zero_out'"),
        ({"steps": 0}, "^steps must be a whole number >= 1, got 0"),
        ({"claimed_as": "poisson"}, 'is for sampling="shuffled"'),
    ],
)
def test_impossible_parameters_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        training.claim(**{"noise_multiplier": 1.0, "sampling_rate": 0.1, "steps": 10, **changed})


def test_public_names_exist_and_others_do_not() -> None:
    assert all(hasattr(training, name) for name in training.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'audit'"):
        _ = training.audit


ENGINE = SimpleNamespace(accountant=SimpleNamespace(history=[(1.0, 1, 3)]))


class Sampler(list[int]):
    """A sampler with the attributes of torch's `RandomSampler`."""

    replacement = False


def loader(records: int = 8, drop_last: bool = False, indices: int | None = None, replacement: bool = False) -> Any:
    sampler = Sampler(range(records if indices is None else indices))
    sampler.replacement = replacement
    return SimpleNamespace(
        dataset=range(records), sampler=sampler, drop_last=drop_last, batch_sampler=SimpleNamespace(drop_last=drop_last)
    )


@pytest.fixture(autouse=True)
def no_poisson(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opacus, "_samples_poisson", lambda loader: False)


def test_a_batch_of_all_records_has_the_claim_of_a_full_batch() -> None:
    full = training.claim(noise_multiplier=1.0, steps=3, sampling="full")
    assert opacus.claim(ENGINE, loader()) == full


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (loader(drop_last=True), "one batch and drop_last=True, so one record more.*Set drop_last=False"),
        (loader(records=15, drop_last=True), "one batch and drop_last=True"),
        (loader(indices=7), r"a sampler \(Sampler\) that does not put each record into its batch exactly once"),
        (loader(replacement=True), "exactly once: the claim of a full batch holds only if the batch holds all records"),
    ],
)
def test_a_batch_that_may_leave_out_records_has_no_claim(given: Any, message: str) -> None:
    """Otherwise an added record displaces another one, or is left out, depending on the other records."""
    with pytest.raises(ValueError, match=message):
        opacus.claim(ENGINE, given)
    poisson = opacus.claim(ENGINE, given, claimed_as="poisson")
    assert poisson == training.claim(noise_multiplier=1.0, steps=3, sampling="full")


# --- canaries and views agree with their descriptions


CANARY_MODEL = reference.Model((3, 4), spare=2)
RNG = np.random.default_rng(4)
START = RNG.normal(size=CANARY_MODEL.parameters)
DATA = reference.Records(RNG.normal(size=(20, 3)) * [3.0, 2.0, 0.1], RNG.integers(0, 4, 20))


def losses(records: reference.Records) -> Any:
    return CANARY_MODEL.losses(START[None], records.features, records.labels)[0]


def test_labels_are_the_least_likely() -> None:
    for canary in (
        canaries.blank(CANARY_MODEL, START),
        canaries.mislabelled(CANARY_MODEL, START, DATA, 3),
        canaries.clipbkd(CANARY_MODEL, START, DATA),
    ):
        every = [losses(reference.Records(canary.features, np.full(len(canary), c))) for c in range(4)]
        assert np.allclose(losses(canary), np.max(every, axis=0))
    assert not canaries.blank(CANARY_MODEL, START).features.any()
    with pytest.raises(ValueError, match="no gradient in a model without bias"):
        canaries.blank(reference.Model((3, 4), bias=False), START[:12])


def test_mislabelled_canaries_have_the_largest_losses() -> None:
    found = canaries.mislabelled(CANARY_MODEL, START, DATA, 3)
    worst = losses(canaries.least_likely(CANARY_MODEL, START, DATA.features))
    assert np.allclose(np.sort(losses(found)), np.sort(worst)[-3:])


def test_clipbkd_is_where_the_data_vary_least() -> None:
    canary = canaries.clipbkd(CANARY_MODEL, START, DATA)
    direction = canary.features[0] / np.linalg.norm(canary.features)
    spread = np.linalg.norm(DATA.features @ direction)
    assert spread == pytest.approx(np.linalg.svd(DATA.features)[1][-1])
    assert np.linalg.norm(canary.features) == pytest.approx(np.linalg.norm(DATA.features, axis=1).mean())


def trained(view: views.View, records: reference.Records, **changed: Any) -> Any:
    algorithm = reference.Trainer(
        **{"model": CANARY_MODEL, "noise_multiplier": 1e-9, "steps": 3, "learning_rate": 0.1, "start": START, **changed}
    )
    return reference.Training(algorithm, view).sample(records, 2, np.random.default_rng(0))


def test_views_of_the_last_weights() -> None:
    target = canaries.blank(CANARY_MODEL, START)
    weights = trained(views.weights(), DATA)
    now = CANARY_MODEL.losses(weights, target.features, target.labels)[:, 0]
    assert np.allclose(trained(views.loss(target), DATA), -now)
    assert np.allclose(trained(views.loss_gain(target), DATA), losses(target) - now)
    logits = CANARY_MODEL.forward(weights, target.features)[1][:, :, 0]
    label = int(target.labels[0])
    others = np.delete(logits, label, axis=1).max(axis=1)
    assert np.allclose(trained(views.margin(target), DATA), logits[:, label] - others)
    assert trained(views.loss(DATA), DATA).shape == (2, 20)


def test_scores_rise_when_the_target_is_in_the_data() -> None:
    """The noise is negligible."""
    target = canaries.blank(CANARY_MODEL, START)
    for view in (views.loss(target), views.loss_gain(target), views.margin(target), views.gradient_sum(target)):
        assert np.all(trained(view, DATA.joined(target)) > trained(view, DATA))


def test_views_of_every_step() -> None:
    data = DATA.joined(canaries.dirac(2).chosen([1]))
    noisy = {"noise_multiplier": 1.0, "clip": 2.0, "sampling": reference.Poisson(0.5)}
    releases = trained(views.releases(), data, **noisy).reshape(2, 3, -1)
    weights = trained(views.weights(), data, **noisy)
    assert np.allclose(START - 0.1 * releases.sum(axis=1), weights)
    spare = trained(views.spare_weights(), data, **noisy)
    assert np.allclose(spare, releases[:, :, -2:].sum(axis=1))
    along = trained(views.gradient_sum(reference.Records(diracs=[1])), data, **noisy)
    assert np.allclose(along, spare[:, 1])


def test_canaries_of_one_run_follow_the_coins() -> None:
    algorithm = reference.Trainer(model=CANARY_MODEL, noise_multiplier=1e-9, steps=3)
    train = reference.OneRun(algorithm, DATA, canaries.dirac(2), views.spare_weights())
    for included in ([False, True], [True, True], [False, False]):
        scores = train(np.array(included), np.random.default_rng(0))
        assert np.allclose(scores, 3.0 * np.array(included), atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: canaries.dirac(0), "canaries must be a whole number >= 1, got 0"),
        (lambda: canaries.blank(CANARY_MODEL, START[:5]), r"start must have 18 weights, got shape \(5,\)"),
        (
            lambda: canaries.least_likely(CANARY_MODEL, START, np.zeros((2, 4))),
            r"features must be \(n, 3\), got shape \(2, 4\)",
        ),
        (
            lambda: canaries.mislabelled(CANARY_MODEL, START, DATA, 0),
            "most must be a whole number from 1 to 20, .* got 0",
        ),
        (
            lambda: canaries.clipbkd(CANARY_MODEL, START, canaries.dirac()),
            "records must hold at least one example, got none",
        ),
        (lambda: views.loss(canaries.dirac()), "A Dirac record has no loss; use views.spare_weights"),
    ],
)
def test_impossible_canaries_and_targets_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# --- builtin trainings and their configs: wrong trainings are refuted, and differ from their controls as stated


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
