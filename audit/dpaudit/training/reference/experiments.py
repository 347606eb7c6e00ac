"""The reference trainer as the three designs of `dpaudit.training` call it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics.arrays import Array, Flags
from dpaudit.training.claims import claim, exceeds
from dpaudit.training.reference.records import Records, records_of, unshared
from dpaudit.training.reference.run import NOBODY, Run
from dpaudit.training.reference.state import keys_of
from dpaudit.training.reference.trainer import Trainer
from dpaudit.training.views import View, along
from dpaudit.values import Dataset

MAX_BLOCK_ACTIVATIONS = 2**15
"""Activations of one layer that are computed at once: a quarter of a megabyte, which stays in the processor's cache."""

_SMALL_EFFECT = 0.1  # share of the clipping norm below which a canary's effect is called small
_RARELY_SAMPLED = 0.5  # probability of being in no batch above which a canary is called rarely sampled


@dataclass(frozen=True, eq=False)
class Training:
    """A mechanism: train models on the dataset, and return what an attacker sees of each.

    Args:
        trainer: The algorithm.
        view: What is seen, such as `views.loss(target)`.
    """

    trainer: Trainer
    view: View

    @property
    def claim(self) -> TradeoffFunction:
        """The claim of the trainer."""
        return self.trainer.claim

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        """Train n models independently; return their outputs, (n,) or (n, d)."""
        records, keys = records_of(dataset), keys_of(rng, n)
        size = max(1, MAX_BLOCK_ACTIVATIONS // max(1, len(records) * max(self.trainer.model.sizes[1:])))
        return np.concatenate([self._block(records, keys[at : at + size]) for at in range(0, n, size)])

    def doubts(self, d0: Dataset, d1: Dataset) -> tuple[str, ...]:
        """Return why two datasets are not neighbours, or why their difference may hardly reach the weights."""
        first, second = records_of(d0), records_of(d1)
        run = Run(self.trainer, second, keys_of(np.random.default_rng(0), 1))  # which checks the records
        moved = self.trainer.clipped(second, run.start) - self.trainer.clipped(first, run.start)
        gradient = _no_gradient(self.trainer, float(np.linalg.norm(moved)))
        return (*_far_apart(first, second), *gradient, *_not_sampled(self.trainer))

    def check_neighbours(self, d0: Dataset, d1: Dataset, claim: TradeoffFunction) -> None:
        """Raise ValueError if neither dataset is the other plus a record, and `claim` is as strong as the trainer's."""
        try:
            own = self.claim
        except ValueError:  # shuffled batches have none
            return
        only0, only1 = unshared(records_of(d0), records_of(d1))
        if {only0, only1} != {0, 1} and _as_strong(claim, own):
            stronger = "" if claim == own else f"{claim.label} is at least as strong as the trainer's claim, and "
            raise ValueError(
                f"{stronger}the trainer's claim is about a record that is added or removed, but "
                f"{_difference(only0, only1)}; one dataset must be the other plus one "
                'record; for a pair that replaces a record, use relation="replace_one" in training.claim'
            )

    def _block(self, records: Records, keys: np.ndarray[tuple[int, int], np.dtype[np.uint64]]) -> Array:
        run = Run(self.trainer, records, keys)
        seen = []
        for _ in range(self.trainer.steps):
            run.step()
            if self.view.steps is not None:
                seen.append(self.view.steps(run))
        with np.errstate(over="ignore", invalid="ignore"):  # of a model that diverged
            return self.view.output(run, seen)


@dataclass(frozen=True, eq=False)
class OneRun:
    """One model, trained on records and on the canaries that the coins include: `(included, rng) -> scores`.

    Args:
        trainer: The algorithm.
        records: The records that are always used.
        canaries: The canaries.
        view: The score of each canary, such as `views.spare_weights` or `views.loss(canaries)`.
    """

    trainer: Trainer
    records: Records
    canaries: Records
    view: View

    def __call__(self, included: Flags, rng: np.random.Generator) -> Array:
        """Train one model with the included canaries; return the score of each canary, (m,)."""
        dataset = self.records.joined(self.canaries.chosen(included))
        return np.ravel(Training(self.trainer, self.view).sample(dataset, 1, rng)[0])

    def doubts(self) -> tuple[str, ...]:
        """Return why the canaries may hardly reach the weights."""
        run = Run(self.trainer, self.canaries, keys_of(np.random.default_rng(0), 1))
        everything = np.ones((1, len(self.canaries)), dtype=np.bool_)
        norms = self.trainer.gradients(run.start, self.canaries, everything).norms()
        norms = np.where(np.isfinite(norms), norms, 0.0)  # such gradients are not used
        typical = float(np.median(np.minimum(norms, self.trainer.clip)))
        return (*_no_gradient(self.trainer, typical), *_not_sampled(self.trainer))


@dataclass(frozen=True, eq=False)
class StepByStep:
    """One model whose batch the canary joins in the steps that the coins choose: `coin -> score` of the next step.

    The score is the inner product of the step's release with the direction of the canary's gradient.  The coin alone
    decides whether the canary is in the batch, so the claim about a step is that of a full batch, whatever the
    sampling of the other records is.

    Args:
        trainer: The algorithm; its number of steps is not used.
        records: The other records.
        canary: The canary, one record.
        seed: Seed of the training.
    """

    trainer: Trainer
    records: Records
    canary: Records
    seed: int = 0
    run: Run = field(init=False)

    def __post_init__(self) -> None:
        if len(self.canary) != 1:
            raise ValueError(f"the canary must be one record, got {len(self.canary)}")
        keys = keys_of(np.random.default_rng(self.seed), 1)
        object.__setattr__(self, "run", Run(self.trainer, self.records, keys))

    @property
    def claim(self) -> TradeoffFunction:
        """The claim about each step: that of a full batch, because the coin decides whether the canary is in it."""
        return claim(noise_multiplier=self.trainer.noise_multiplier, steps=1, sampling="full")

    def __call__(self, coin: int) -> float:
        """Make a step, with the canary if the coin is 1; return the score."""
        self.run.step(self.canary if coin else NOBODY)
        return float(along(self.run, self.canary)[0])

    def doubts(self) -> tuple[str, ...]:
        """Return why the canary may hardly reach the weights."""
        return _no_gradient(self.trainer, float(np.linalg.norm(self.trainer.clipped(self.canary, self.run.before))))


def _as_strong(claim: TradeoffFunction, own: TradeoffFunction) -> bool:
    """Whether a claim is at least as strong as the trainer's own."""
    try:
        return claim == own or not exceeds(own, claim)
    except ImportError:  # the trainer's claim is composed by the extra `accounting`
        return False


def _difference(only0: int, only1: int) -> str:
    return f"d0 has {only0} records that d1 lacks, and d1 has {only1} that d0 lacks"


def _far_apart(first: Records, second: Records) -> tuple[str, ...]:
    """Return a warning if two datasets differ by more than one record that is added, removed or replaced."""
    only0, only1 = unshared(first, second)
    if max(only0, only1) <= 1:
        return ()
    return (f"{_difference(only0, only1)}: neighbours differ by one record, and claims are about neighbours",)


def _no_gradient(trainer: Trainer, norm: float) -> tuple[str, ...]:
    """Return a warning if a canary moves the sum of clipped gradients by much less than the clipping norm."""
    if norm >= _SMALL_EFFECT * trainer.clip:
        return ()
    return (
        f"the canary moves the sum of clipped gradients by {norm:.2g}, and the clipping norm is {trainer.clip:g}: its "
        "gradient is too small to be seen, or clipping removes it; use a canary with a gradient of the clipping norm",
    )


def _not_sampled(trainer: Trainer) -> tuple[str, ...]:
    """Return a warning if a record is in no batch with a large probability."""
    rate = trainer.sampling.rate
    if rate is None or trainer.sampling.name != "poisson":
        return ()
    never = (1 - rate) ** trainer.steps
    if never <= _RARELY_SAMPLED:
        return ()
    return (
        f"a record is in none of the {trainer.steps:,} batches with probability {never:.2f}, since its sampling rate "
        f"is {rate:g}: such runs show nothing of the canary; use more steps or a higher rate",
    )
