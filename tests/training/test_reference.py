"""The reference trainer, compared with a slow second implementation, and its sampling and randomness."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, kstest

from dpaudit.training import reference, views
from dpaudit.training.reference.model import records_of
from dpaudit.training.reference.trainer import State, keys_of, streams

from .plain import clipped_sum, gradients

RNG = np.random.default_rng(0)
LOGISTIC = reference.Model((3, 4), spare=2)
NETWORK = reference.Model((3, 5, 4), spare=2)
BARE = reference.Model((3, 2), bias=False)
MODELS = [LOGISTIC, NETWORK, BARE]
KEYS = keys_of(np.random.default_rng(0), 1)
RECORDS = reference.Records(RNG.normal(size=(6, 3)), [0, 1, 1, 0, 1, 0], [1, 0, 1], [1e6, -0.3, -2.0])


def state_of(rng: np.random.Generator, models: int) -> State:
    keys = keys_of(rng, models)
    return State(keys, streams(keys))


def trainer(model: reference.Model = LOGISTIC, **changed: Any) -> reference.Trainer:
    return reference.Trainer(**{"model": model, "noise_multiplier": 1.0, "steps": 2, **changed})


def records(model: reference.Model) -> reference.Records:
    return RECORDS if model.spare else RECORDS.chosen(range(6))


def some_weights(model: reference.Model, m: int = 3) -> Any:
    return np.random.default_rng(1).normal(size=(m, model.parameters))


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("share", [1.0, 0.2])
def test_gradients_norms_and_sums_are_those_of_the_plain_version(model: reference.Model, share: float) -> None:
    """Full batches, and batches so small that examples are selected."""
    weights, data = some_weights(model), records(model)
    taken = np.random.default_rng(2).random((3, len(data))) < share
    found = trainer(model).gradients(weights, data, taken)
    summed = trainer(model, clip=0.7).summed(found)
    for m in range(3):
        each = np.array(gradients(model, weights[m], data))
        chosen = each[taken[m]]
        norms = np.sort(np.linalg.norm(chosen, axis=1))
        assert np.allclose(np.sort(found.norms()[m][found.taken[m] > 0]), norms, rtol=1e-6, atol=1e-9)
        assert np.allclose(found.explicit()[m].sum(axis=0), chosen.sum(axis=0), rtol=1e-6, atol=1e-6)
        plain = clipped_sum(model, weights[m], data.chosen(taken[m]), 0.7)
        assert np.allclose(summed[m], plain, atol=1e-7)


def test_a_record_changes_the_sum_by_the_clipping_norm_at_most() -> None:
    weights = some_weights(NETWORK)
    for clip in (0.01, 1.0, 30.0):
        algorithm = trainer(NETWORK, clip=clip)
        whole = algorithm.clipped(RECORDS, weights)
        for i in range(len(RECORDS)):
            rest = algorithm.clipped(RECORDS.chosen([j for j in range(len(RECORDS)) if j != i]), weights)
            assert np.all(np.linalg.norm(whole - rest, axis=1) <= clip * (1 + 1e-9))


@pytest.mark.parametrize("model", [LOGISTIC, NETWORK], ids=str)
@pytest.mark.parametrize("large", [1e-320, 1e100, 1e201, 1.7e308])
def test_no_record_changes_the_sum_by_more_however_large_it_is(model: reference.Model, large: float) -> None:
    """Squares of these features underflow or overflow; so do logits and products with signals."""
    signs = np.array([[1.0, -1.0, 0.5], [-1.0, 0.0, 1.0]])
    data = reference.Records(large * signs, [0, 1], [0], [large])
    weights = np.concatenate([some_weights(model), 1e-170 * some_weights(model), np.zeros((1, model.parameters))])
    for clip in (1e-30, 1.0, 1e30):
        algorithm = trainer(model, clip=clip)
        rest = algorithm.clipped(RECORDS, weights)
        for i in range(3):
            alone = np.linalg.norm(algorithm.clipped(data.chosen([i]), weights) / clip, axis=1)
            assert np.all(alone <= 1 + 1e-9)
        whole = algorithm.clipped(RECORDS.joined(data), weights)
        assert np.all(np.linalg.norm((whole - rest) / clip, axis=1) <= 3 * (1 + 1e-9) + 1e-9 * len(RECORDS))


def test_large_and_small_gradients_are_clipped_to_the_norm() -> None:
    """A signal of 1/2 in each of two outputs, whatever the features are; beyond 10^8 a record adds nothing."""
    bare = reference.Model((2, 2), bias=False)
    for large, clip, norm in (
        *((1e7, 1.0, 1.0), (9.9e7, 3.0, 3.0), (1e-170, 1e-190, 1e-190)),
        *((large, 1.0, 0.0) for large in (1.01e8, 1e155, 1e199, 1e308)),
    ):
        record = reference.Records([[large, 0.0]], [0])
        clipped = trainer(bare, clip=clip).clipped(record, np.zeros((1, 4)))[0]
        assert np.linalg.norm(clipped / clip) == pytest.approx(norm / clip)
    sure = np.array([[460.0 / 1e308, 0.0, 0.0, 0.0]])  # signal e^-460: scaled, it would round up
    tiny = trainer(bare, clip=3.5e-16).clipped(reference.Records([[1e308, 0.0]], [0]), sure)
    assert np.linalg.norm(tiny) <= 3.5e-16 * (1 + 1e-9)
    run = reference.Run(trainer(noise_multiplier=1e-9), RECORDS.joined(reference.Records([[1e308] * 3], [0])), KEYS)
    run.step()
    assert np.all(np.isfinite(run.released))


def test_rounding_in_large_products_does_not_depend_on_other_records() -> None:
    """The logits of a record that is orthogonal to the weights are differences of large products."""
    model = reference.Model((64, 8, 3))
    weights = model.initial()[None]
    first = model.layers(weights)[0][0, :, :64]
    rng = np.random.default_rng(0)
    ordinary = reference.Records([rng.normal(size=64)], [0])
    for features in rng.normal(size=(5, 64)):
        features -= first.T @ np.linalg.solve(first @ first.T, first @ features)
        for scale, times in itertools.product((1e6, 1e15, 1e17, 1e200, 1e308 / 64), (1.0, 1e100)):
            algorithm = trainer(model)
            record = reference.Records([features * scale / times], [1])
            started = weights.copy()
            model.layers(started)[0][..., :64] *= times  # all but the bias
            alone, both = (algorithm.clipped(data, started) for data in (record, record.joined(ordinary)))
            assert np.linalg.norm(both - alone) <= 1 + 1e-9
    hidden = weights.copy()
    model.layers(hidden)[1][...] *= 1e9
    assert not np.any(trainer(model).clipped(ordinary, hidden))


def test_losses_are_those_of_the_plain_version() -> None:
    from .plain import loss

    weights = some_weights(NETWORK)
    found = NETWORK.losses(weights, RECORDS.features, RECORDS.labels)
    for m in range(3):
        for i in range(6):
            plain = loss(NETWORK, weights[m], RECORDS.features[i], int(RECORDS.labels[i]))
            assert found[m, i] == pytest.approx(plain)


def test_without_noise_training_is_gradient_descent() -> None:
    algorithm = trainer(noise_multiplier=1e-12, learning_rate=0.1, clip=0.5)
    run = reference.Run(algorithm, RECORDS, keys_of(np.random.default_rng(0), 1))
    weights = np.zeros(LOGISTIC.parameters)
    for _ in range(2):
        run.step()
        weights = weights - 0.1 * clipped_sum(LOGISTIC, weights, RECORDS, 0.5)
    assert np.allclose(run.weights[0], weights, atol=1e-7)


def test_the_noise_is_gaussian_with_the_claimed_deviation() -> None:
    """Kolmogorov-Smirnov.  Fails by chance < 1 in 10**7."""
    algorithm = trainer(reference.Model((30, 20)), noise_multiplier=1.5, clip=2.0)
    noise = algorithm.noise(state_of(np.random.default_rng(3), 50))
    assert kstest(noise.ravel() / 3.0, "norm").pvalue > 1e-7
    assert len(np.unique(noise)) == noise.size


def test_a_model_does_not_depend_on_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    train = reference.Training(trainer(NETWORK, sampling=reference.Poisson(0.2)), views.weights())
    together = train.sample(RECORDS, 5, np.random.default_rng(7))
    monkeypatch.setattr(reference, "BLOCK_ACTIVATIONS", 1)
    assert np.allclose(train.sample(RECORDS, 5, np.random.default_rng(7)), together, rtol=1e-12)
    assert np.allclose(train.sample(RECORDS, 3, np.random.default_rng(7)), together[:3], rtol=1e-12)
    assert len(np.unique(together[:, 0])) == 5


def test_poisson_batches_take_each_record_independently() -> None:
    """Counts of a record and of two records together.  Fails by chance < 1 in 10**7."""
    rngs = state_of(np.random.default_rng(0), 4).rngs
    batches = reference.Poisson(0.3).batches(10, rngs)
    taken = np.concatenate([next(batches) for _ in range(1000)])
    for share, count in ((0.3, int(taken[:, 3].sum())), (0.09, int((taken[:, 0] & taken[:, 9]).sum()))):
        assert binom.ppf(2e-8, len(taken), share) <= count <= binom.isf(2e-8, len(taken), share)


def test_shuffled_batches_take_each_record_once_an_epoch() -> None:
    batches = reference.Shuffled(3).batches(7, state_of(np.random.default_rng(0), 2).rngs)
    first = [next(batches) for _ in range(3)]
    second = [next(batches) for _ in range(3)]
    for epoch in (first, second):
        assert np.all(np.sum(epoch, axis=0) == 1)
        assert {int(n) for batch in epoch for n in batch.sum(axis=1)} == {2, 3}
    assert not np.array_equal(first, second)
    assert not np.array_equal(first[0][0], first[0][1])


def test_guests_join_one_batch_only() -> None:
    algorithm = trainer(noise_multiplier=1e-9)
    run = reference.Run(algorithm, RECORDS.chosen(range(6)), keys_of(np.random.default_rng(0), 1))
    spare = []
    for guests in (reference.Records(diracs=[0]), reference.Records(), RECORDS.chosen([0, 6])):
        run.step(guests)
        spare.append(run.released[0, -2:])
    assert np.allclose(spare, [[1, 0], [0, 0], [0, 1]], atol=1e-6)
    assert np.array_equal(run.taken, np.full((1, 6), 3))


def test_fitted_weights_are_a_minimum() -> None:
    start = reference.fitted(LOGISTIC, RECORDS.chosen(range(6)), penalty=0.1)
    total = sum(gradients(LOGISTIC, start, RECORDS.chosen(range(6)))) + 0.1 * start
    assert np.allclose(total, 0, atol=1e-3)
    with pytest.raises(ValueError, match="penalty must be > 0"):
        reference.fitted(LOGISTIC, RECORDS, penalty=0.0)


def test_datasets_from_configs() -> None:
    found = records_of({"features": [[1, 2, 3]], "labels": [1], "diracs": [0]})
    assert repr(found) == "Records(1 x 3, 1 diracs)"
    assert len(found.joined(RECORDS)) == 11
    with pytest.raises(ValueError, match="must be one of features, labels, diracs, sizes; got 'label'"):
        records_of({"label": [1]})
    with pytest.raises(TypeError, match="must be Records, or a mapping"):
        records_of([1, 2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: reference.Records([[1.0, np.nan]], [0]), "every model diverge"),
        (lambda: reference.Records([[1.0]], [0.5]), "labels must be whole numbers >= 0, got 0.5"),
        (lambda: reference.Records(diracs=[0], sizes=[1.0, 2.0]), "of equal length, got 1 and 2"),
        (lambda: reference.Records(["a"], [0]), "features must be an array of numbers, got "),
        (lambda: reference.Records([[10**400]], [0]), "features must be numbers that a float can hold"),
        (lambda: reference.Model(8), r"sizes must be a tuple of whole numbers such as \(64, 10\), got 8"),  # type: ignore[arg-type]
        (lambda: reference.Model((8, 3), spare=0.5), "spare must be a whole number >= 0, got 0.5"),  # type: ignore[arg-type]
        (
            lambda: trainer(sampling="poisson"),
            r"sampling must be Full\(\), Poisson\(p\) or Shuffled\(parts\), got 'poisson'",
        ),
        (lambda: trainer(steps=1.5), "steps must be a whole number >= 1, got 1.5"),
        (lambda: reference.Poisson("0.5"), r"must lie in \(0, 1\], got '0.5'"),  # type: ignore[arg-type]
        (lambda: reference.Model((3, 1)), "at least two classes"),
        (lambda: trainer(steps=0), "steps must be a whole number >= 1, got 0"),
        (lambda: trainer(start=np.zeros(3)), "start must have 18 weights"),
        (lambda: reference.Poisson(0.0), r"must lie in \(0, 1\]"),
        (lambda: run_of(BARE, RECORDS), "model has 0 spare weights; use Model"),
        (lambda: run_of(reference.Model((2, 2)), RECORDS), "takes 2 features, but the records have 3"),
        (lambda: run_of(LOGISTIC, reference.Records(np.zeros((1, 3)), [4])), "has 4 classes, but a record has the"),
    ],
)
def test_impossible_input_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def run_of(model: reference.Model, data: reference.Records) -> reference.Run:
    return reference.Run(replace(trainer(), model=model), data, keys_of(np.random.default_rng(0), 1))
