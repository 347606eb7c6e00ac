"""The claim of DP-SGD, computed from its parameters, and that of a single batch in loaders of Opacus."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dpaudit import GaussianDP, parse_claim, training
from dpaudit.training import opacus, reference

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
        dataset=range(records),
        sampler=sampler,
        drop_last=drop_last,
        batch_sampler=SimpleNamespace(drop_last=drop_last),
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
