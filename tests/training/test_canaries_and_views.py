"""Canaries and views agree with their descriptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.training import canaries, reference, views

MODEL = reference.Model((3, 4), spare=2)
RNG = np.random.default_rng(4)
START = RNG.normal(size=MODEL.parameters)
DATA = reference.Records(RNG.normal(size=(20, 3)) * [3.0, 2.0, 0.1], RNG.integers(0, 4, 20))


def losses(records: reference.Records) -> Any:
    return MODEL.losses(START[None], records.features, records.labels)[0]


def test_labels_are_the_least_likely() -> None:
    for canary in (
        canaries.blank(MODEL, START),
        canaries.mislabelled(MODEL, START, DATA, 3),
        canaries.clipbkd(MODEL, START, DATA),
    ):
        every = [losses(reference.Records(canary.features, np.full(len(canary), c))) for c in range(4)]
        assert np.allclose(losses(canary), np.max(every, axis=0))
    assert not canaries.blank(MODEL, START).features.any()
    with pytest.raises(ValueError, match="no gradient in a model without bias"):
        canaries.blank(reference.Model((3, 4), bias=False), START[:12])


def test_mislabelled_canaries_have_the_largest_losses() -> None:
    found = canaries.mislabelled(MODEL, START, DATA, 3)
    worst = losses(canaries.least_likely(MODEL, START, DATA.features))
    assert np.allclose(np.sort(losses(found)), np.sort(worst)[-3:])


def test_clipbkd_is_where_the_data_vary_least() -> None:
    canary = canaries.clipbkd(MODEL, START, DATA)
    direction = canary.features[0] / np.linalg.norm(canary.features)
    spread = np.linalg.norm(DATA.features @ direction)
    assert spread == pytest.approx(np.linalg.svd(DATA.features)[1][-1])
    assert np.linalg.norm(canary.features) == pytest.approx(np.linalg.norm(DATA.features, axis=1).mean())


def trained(view: views.View, records: reference.Records, **changed: Any) -> Any:
    algorithm = reference.Trainer(
        **{"model": MODEL, "noise_multiplier": 1e-9, "steps": 3, "learning_rate": 0.1, "start": START, **changed}
    )
    return reference.Training(algorithm, view).sample(records, 2, np.random.default_rng(0))


def test_views_of_the_last_weights() -> None:
    target = canaries.blank(MODEL, START)
    weights = trained(views.weights(), DATA)
    now = MODEL.losses(weights, target.features, target.labels)[:, 0]
    assert np.allclose(trained(views.loss(target), DATA), -now)
    assert np.allclose(trained(views.loss_gain(target), DATA), losses(target) - now)
    logits = MODEL.forward(weights, target.features)[1][:, :, 0]
    label = int(target.labels[0])
    others = np.delete(logits, label, axis=1).max(axis=1)
    assert np.allclose(trained(views.margin(target), DATA), logits[:, label] - others)
    assert trained(views.loss(DATA), DATA).shape == (2, 20)


def test_scores_rise_when_the_target_is_in_the_data() -> None:
    """The noise is negligible."""
    target = canaries.blank(MODEL, START)
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
    algorithm = reference.Trainer(model=MODEL, noise_multiplier=1e-9, steps=3)
    train = reference.OneRun(algorithm, DATA, canaries.dirac(2), views.spare_weights())
    for included in ([False, True], [True, True], [False, False]):
        scores = train(np.array(included), np.random.default_rng(0))
        assert np.allclose(scores, 3.0 * np.array(included), atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: canaries.dirac(0), "canaries must be a whole number >= 1, got 0"),
        (lambda: canaries.blank(MODEL, START[:5]), r"start must have 18 weights, got shape \(5,\)"),
        (
            lambda: canaries.least_likely(MODEL, START, np.zeros((2, 4))),
            r"features must be \(n, 3\), got shape \(2, 4\)",
        ),
        (lambda: canaries.mislabelled(MODEL, START, DATA, 0), "most must be a whole number from 1 to 20, .* got 0"),
        (lambda: canaries.clipbkd(MODEL, START, canaries.dirac()), "records must hold at least one example, got none"),
        (lambda: views.loss(canaries.dirac()), "A Dirac record has no loss; use views.spare_weights"),
    ],
)
def test_impossible_canaries_and_targets_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
