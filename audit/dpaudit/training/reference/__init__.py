"""A trainer with DP-GD and DP-SGD in numpy, vectorised over models, for audits and tests without a framework.

Its modules import only `claims`, `numerics` and `values` of the lower packages, as builtin mechanisms use them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.comparison import violates
from dpaudit.numerics import Array, Flags
from dpaudit.training.claims import claim
from dpaudit.training.reference.correlated import CorrelatedTrainer
from dpaudit.training.reference.model import Model, Records, records_of, unshared
from dpaudit.training.reference.trainer import NOBODY, Full, Poisson, Run, Shuffled, Trainer, fitted, keys_of
from dpaudit.training.views import View, along
from dpaudit.values import Dataset

__all__ = [
    "CorrelatedTrainer",
    "Full",
    "Model",
    "OneRun",
    "Poisson",
    "Records",
    "Run",
    "Shuffled",
    "StepByStep",
    "Trainer",
    "Training",
    "fitted",
]

BLOCK_ACTIVATIONS = 2**15  # of a layer that are computed at once: 0.25 MB, which stays in the processor's cache

_SMALL_EFFECT = 0.1  # a canary's effect is small below this share of the clipping norm


@dataclass(frozen=True, eq=False)
class Training:
    """A mechanism that trains models on the dataset, and returns an attacker's view of each model.

    Args:
        trainer: The algorithm.
        view: The part of a model that the attacker sees, such as `views.loss(target)`.
    """

    trainer: Trainer
    view: View

    @property
    def claim(self) -> TradeoffFunction:
        """The claim of the trainer."""
        return self.trainer.claim

    @property
    def training_words(self) -> str:
        """The training and the view in words, for reports."""
        score = f"; score: {self.view.name}" if self.view.name else ""
        return f"{self.trainer.training_words}{score}"

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        """Train n models independently; return their outputs, (n,) or (n, d)."""
        records, keys = records_of(dataset), keys_of(rng, n)
        size = max(1, BLOCK_ACTIVATIONS // max(1, len(records) * max(self.trainer.model.sizes[1:])))
        blocks = []
        for at in range(0, n, size):
            run, seen = Run(self.trainer, records, keys[at : at + size]), []
            for _ in range(self.trainer.steps):
                run.step()
                if self.view.steps is not None:
                    seen.append(self.view.steps(run))
            with np.errstate(over="ignore", invalid="ignore"):  # models that diverged overflow
                blocks.append(self.view.output(run, seen))
        return np.concatenate(blocks)

    def doubts(self, d0: Dataset, d1: Dataset) -> tuple[str, ...]:
        """Return warnings if two datasets are not neighbours, or if their difference may hardly affect the weights."""
        first, second = records_of(d0), records_of(d1)
        run = Run(self.trainer, second, keys_of(np.random.default_rng(0), 1))  # `Run` checks the records
        moved = self.trainer.clipped(second, run.start) - self.trainer.clipped(first, run.start)
        gradient = _no_gradient(self.trainer, float(np.linalg.norm(moved)))
        only0, only1 = unshared(first, second)
        words = f"{_difference(only0, only1)}, but neighbours differ by one record, and claims are about neighbours"
        return (*([words] if max(only0, only1) > 1 else []), *gradient, *_not_sampled(self.trainer))

    def check_neighbours(self, d0: Dataset, d1: Dataset, claim: TradeoffFunction) -> None:
        """Raise ValueError if the trainer's claim does not cover two datasets, and `claim` is at least as strong.

        It covers two datasets if one dataset is the other dataset plus one record.
        """
        try:
            own = self.claim
        except ValueError:  # shuffled batches have no claim
            return
        only0, only1 = unshared(records_of(d0), records_of(d1))
        if {only0, only1} == {0, 1}:
            return
        try:
            if claim != own and violates(claim, own):
                return
        except ImportError:  # the composition of the trainer's claim needs the extra `accounting`
            return
        stronger = "" if claim == own else f"{claim.label} is at least as strong as the trainer's claim, and "
        raise ValueError(
            f"{stronger}the trainer's claim is about a record that is added or removed, but "
            f"{_difference(only0, only1)}.  One dataset must be the other plus one record.  For a pair that "
            'replaces a record, use relation="replace_one" in training.claim'
        )


@dataclass(frozen=True, eq=False)
class OneRun:
    """A function `(included, rng) -> scores` that trains one model on records and on the included canaries.

    Args:
        trainer: The algorithm.
        records: The records that are in every training.
        canaries: The canaries.
        view: The score of each canary, such as `views.spare_weights` or `views.loss(canaries)`.
    """

    trainer: Trainer
    records: Records
    canaries: Records
    view: View

    @property
    def training_words(self) -> str:
        """The training and the view in words, for reports."""
        return Training(self.trainer, self.view).training_words

    def __call__(self, included: Flags, rng: np.random.Generator) -> Array:
        """Train one model with the included canaries; return the score of each canary, (m,)."""
        dataset = self.records.joined(self.canaries.chosen(included))
        return np.ravel(Training(self.trainer, self.view).sample(dataset, 1, rng)[0])

    def doubts(self) -> tuple[str, ...]:
        """Return warnings if the canaries may hardly affect the weights."""
        run = Run(self.trainer, self.canaries, keys_of(np.random.default_rng(0), 1))
        everything = np.ones((1, len(self.canaries)), dtype=np.bool_)
        norms = self.trainer.gradients(run.start, self.canaries, everything).norms()
        norms = np.where(np.isfinite(norms), norms, 0.0)  # the trainer replaces infinite gradients by 0
        typical = float(np.median(np.minimum(norms, self.trainer.clip)))
        return (*_no_gradient(self.trainer, typical), *_not_sampled(self.trainer))


@dataclass(frozen=True, eq=False)
class StepByStep:
    """A function `coin -> score` that makes the next step of one model; the canary is in the batch if the coin is 1.

    The score is the inner product of the step's release with the direction of the canary's gradient.  The coin alone
    decides whether the canary is in the batch.  Hence the claim about a step is that of a full batch, for any sampling
    of the other records.

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
        """The claim of a full batch for each step, because the coin decides whether the canary is in the batch."""
        return claim(noise_multiplier=self.trainer.noise_multiplier, steps=1, sampling="full")

    @property
    def training_words(self) -> str:
        """One step of the training in words, for reports."""
        return self.trainer.step_words

    def __call__(self, coin: int) -> float:
        """Make a step, with the canary if the coin is 1; return the score."""
        self.run.step(self.canary if coin else NOBODY)
        return float(along(self.run, self.canary)[0])

    def doubts(self) -> tuple[str, ...]:
        """Return a warning if the canary may hardly affect the weights."""
        return _no_gradient(self.trainer, float(np.linalg.norm(self.trainer.clipped(self.canary, self.run.before))))


def _difference(only0: int, only1: int) -> str:
    return f"d0 has {only0} records that d1 lacks, and d1 has {only1} that d0 lacks"


def _no_gradient(trainer: Trainer, norm: float) -> tuple[str, ...]:
    """Return a warning if a canary moves the sum of clipped gradients by much less than the clipping norm."""
    if norm >= _SMALL_EFFECT * trainer.clip:
        return ()
    return (
        f"the canary moves the sum of clipped gradients by {norm:.2g}, and the clipping norm is {trainer.clip:g}: the "
        "canary's gradient is too small, or clipping removes it.  Use a canary with a gradient of the clipping norm",
    )


def _not_sampled(trainer: Trainer) -> tuple[str, ...]:
    """Return a warning if a record is more likely in no batch than in any."""
    rate = trainer.sampling.rate
    if rate is None or trainer.sampling.name != "poisson" or (never := (1 - rate) ** trainer.steps) <= 0.5:
        return ()
    return (
        f"a record is in none of the {trainer.steps:,} batches with probability {never:.2f}, because the sampling rate "
        f"is {rate:g}: such runs do not show the canary.  Use more steps or a higher rate",
    )
