"""The claim of a single batch, for loaders of Opacus with `poisson_sampling=False`; this test needs no torch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dpaudit import training
from dpaudit.training import opacus

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
