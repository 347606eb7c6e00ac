"""Audits of training scripts that use Opacus.

The classes attach to the model and the optimizer that `PrivacyEngine.make_private` returned, and do not change the
training.  Canaries are a pair of tensors: the inputs and the targets of m records.  The scores of the canaries serve
all three designs of `dpaudit.training`:

    from dpaudit import Pair, training
    from dpaudit.training import opacus

    def train(included, rng):                                        # the script, as a function of the canaries in it
        torch.manual_seed(int(rng.integers(2**63)))
        loader = DataLoader(opacus.joined(records, canaries, included), batch_size=64)
        model, optimizer, loader = PrivacyEngine().make_private(...)
        scores = opacus.Scores(model, optimizer, cross_entropy, canaries)
        ...                                                          # the loop of the script
        return scores.total

    training.one_run(train, m, claim, independence="canaries")       # one run with many canaries
    training.many_runs(train, Pair([], [0], "add_remove"), claim)    # many runs with one canary

For the design "step by step", the loop of the script becomes a function of a batch:

    step = opacus.StepByStep(opacus.Scores(model, optimizer, cross_entropy, canary), loader, update)
    training.step_by_step(step, step.claim)

`claim(engine, loader)` is the claim of a training, from the history of Opacus's accountant.  Only the functions of this
module that need torch and Opacus import them (extra `opacus`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction, compose
from dpaudit.numerics import Array
from dpaudit.training import claims
from dpaudit.training.claims import Relation, Sampling

Canaries = tuple[Any, Any]  # the inputs and the targets of m records: two tensors with m rows

_SMALL_EFFECT = 0.1  # a canary's effect is small below this share of the clipping norm


class Scores:
    """Scores of canaries: inner products of each noisy sum of gradients with the direction of the canary's gradient.

    A step hook of the optimizer reads the noisy gradient before the weights change; an earlier hook, such as that of
    the accountant, is still called.  Scores are multiplied by the expected batch size, by which Opacus has divided the
    sum, and which depends on the number of records.  Each step computes one gradient for each canary.

    Args:
        model: The model that `make_private` returned.
        optimizer: The optimizer that `make_private` returned.
        loss: A function of predictions and targets that returns the mean loss, such as
            `torch.nn.functional.cross_entropy`; with ghost clipping, too, and not the criterion of `make_private`.
        canaries: The inputs and the targets of the m canaries.

    Attributes:
        steps: Number of steps so far.
        noise: Noise multiplier of the latest step.
        latest: Scores of the latest step, (m,).
        total: Sum of the scores of all steps, (m,).

    Raises:
        ValueError: If there are no canaries, or the numbers of inputs and targets differ.
        TypeError: If `model` or `optimizer` does not come from `make_private`.
    """

    def __init__(self, model: Any, optimizer: Any, loss: Callable[..., Any], canaries: Canaries) -> None:
        for name, given, needed in (
            ("model", model, ("disable_hooks", "enable_hooks", "forward")),
            ("optimizer", optimizer, ("attach_step_hook", "max_grad_norm", "noise_multiplier")),
        ):
            if not all(hasattr(given, member) for member in needed):
                raise TypeError(f"{name} must be the {name} that make_private returned, got a {type(given).__name__}")
        inputs, targets = canaries
        if len(inputs) != len(targets) or not len(inputs):
            raise ValueError(f"canaries must be n inputs and n targets, got {len(inputs)} and {len(targets)}")
        self.canaries = canaries
        self.optimizer = optimizer
        self._model, self._loss = model, loss
        self._earlier = optimizer.step_hook
        self.steps, self.noise = 0, float(optimizer.noise_multiplier)
        self.latest: Array = np.zeros(len(inputs))
        self.total: Array = np.zeros(len(inputs))
        optimizer.attach_step_hook(self._see)

    def gradient(self, canary: int) -> Any:
        """Return the gradient of a canary at the current weights, before clipping, as a vector (P,)."""
        import torch

        inputs, targets = (part[canary : canary + 1] for part in self.canaries)
        self._model.disable_hooks()  # otherwise Opacus counts the canary as a record of the batch
        try:
            with torch.enable_grad():
                loss = self._loss(self._model(inputs), targets)
            found = torch.autograd.grad(loss, self._weights(), allow_unused=True, materialize_grads=True)
        finally:
            self._model.enable_hooks()
        return torch.cat([part.reshape(-1) for part in found])

    def _weights(self) -> list[Any]:
        return [weight for weight in self.optimizer.params if weight.requires_grad]

    def _see(self, optimizer: Any) -> None:
        """Score a step; the optimizer calls this method after it has clipped the gradients and added the noise."""
        import torch

        if self._earlier is not None:
            self._earlier(optimizer)
        noisy = torch.cat([weight.grad.reshape(-1) for weight in self._weights()])
        if optimizer.loss_reduction == "mean":  # Opacus has divided the noisy sum
            noisy = noisy * float(optimizer.expected_batch_size * optimizer.accumulated_iterations)
        gradients = map(self.gradient, range(len(self.latest)))
        self.latest = np.array([float(noisy @ g) / norm if (norm := float(g.norm())) > 0 else 0.0 for g in gradients])
        self.total = self.total + self.latest
        self.steps, self.noise = self.steps + 1, float(optimizer.noise_multiplier)


class StepByStep:
    """A function `coin -> score` for `training.step_by_step`: the next step, with the canary if the coin is 1.

    The batches of the loader are repeated until the audit ends.

    Args:
        scores: The scores of one canary.
        loader: The loader that `make_private` returned.  A batch is the inputs and the targets of its records.
        update: A function of inputs and targets that makes one step of the optimizer: the body of the training loop.

    Raises:
        ValueError: If `scores` has more than one canary.
    """

    def __init__(self, scores: Scores, loader: Any, update: Callable[[Any, Any], object]) -> None:
        if len(scores.latest) != 1:
            raise ValueError(f"the scores must be of one canary, got {len(scores.latest)}")
        self._scores, self._update, self._batches = scores, update, chain.from_iterable(repeat(loader))
        self._least_noise = float(scores.optimizer.noise_multiplier)
        norm = float(scores.gradient(0).norm())  # before the first step
        clip = float(np.linalg.norm(np.atleast_1d(scores.optimizer.max_grad_norm)))  # parameters may have own norms
        self._effect = min(norm / clip, 1.0)

    @property
    def claim(self) -> TradeoffFunction:
        """The claim of a full batch for each step, as the coin decides; with the smallest noise so far."""
        least = min(self._least_noise, float(self._scores.optimizer.noise_multiplier))
        return claims.claim(noise_multiplier=least, steps=1, sampling="full")

    def __call__(self, coin: int) -> float:
        """Make a step, with the canary if the coin is 1; return the score.

        RuntimeError if `update` did not make exactly one step, or the noise falls, which makes an earlier `claim`
        false.
        """
        import torch

        batch, before = next(self._batches), self._scores.steps
        if coin:
            batch = [torch.cat([part, canary]) for part, canary in zip(batch, self._scores.canaries, strict=True)]
        self._update(*batch)
        if self._scores.steps != before + 1:
            raise RuntimeError(f"update must make one step of the optimizer, but made {self._scores.steps - before}")
        if (noise := self._scores.noise) < self._least_noise:
            raise RuntimeError(
                f"the noise multiplier fell from {self._least_noise:g} to {noise:g} during the audit, so the claim "
                "that was stated before is false: set the schedule's smallest noise multiplier before StepByStep(...)"
            )
        return float(self._scores.latest[0])

    def doubts(self) -> tuple[str, ...]:
        """Return a warning if the gradient of the canary was small before the first step."""
        if self._effect >= _SMALL_EFFECT:
            return ()
        return (
            f"the norm of the canary's gradient was {self._effect:.2g} times the clipping norm before the first step, "
            "so the canary hardly affects the weights.  Use a canary with a gradient of the clipping norm",
        )


def joined(records: Any, canaries: Canaries, included: npt.ArrayLike) -> Any:
    """Return a dataset with all records and the included canaries, for the loader that `make_private` receives.

    Args:
        records: A dataset of torch.  Its records are pairs of tensors, like the canaries.
        canaries: The inputs and the targets of the m canaries.
        included: Indices of the included canaries, or m booleans.
    """
    from torch.utils.data import ConcatDataset, TensorDataset

    given = np.asarray(included)
    places = np.flatnonzero(given) if given.dtype == np.bool_ else given.astype(np.int64)
    return ConcatDataset([records, TensorDataset(*(part[places.tolist()] for part in canaries))])


def claim(
    engine: Any, loader: Any, *, relation: Relation = "add_remove", claimed_as: Literal["poisson"] | None = None
) -> TradeoffFunction:
    """Return the claim about all steps that the accountant of a privacy engine has counted.

    The claim is the exact composition of the accountant's history, whatever epsilon it computes itself.

    Args:
        relation: Neighbouring relation, as for `training.claim`.
        claimed_as: "poisson" for the claim of Poisson sampling, even if the loader samples in another way.

    Raises:
        ValueError: If the accountant has counted no step, or if the loader does not sample Poisson batches and
            `claimed_as` is omitted.  One batch without Poisson sampling is allowed if it always holds all records.
    """
    history = engine.accountant.history
    if not history:
        raise ValueError("the accountant has counted no step; state the claim after a first training")
    sampling: Sampling = "poisson" if _samples_poisson(loader) else "shuffled"
    if sampling == "shuffled" and claimed_as is None and any(rate == 1 for _, rate, _ in history):
        _check_full(loader)
    parts = [
        claims.claim(
            noise_multiplier=float(noise),
            steps=steps,
            sampling_rate=float(rate),
            relation=relation,
            sampling="full" if rate == 1 else sampling,
            claimed_as=claimed_as if sampling == "shuffled" and rate != 1 else None,
        )
        for noise, rate, steps in history
    ]
    return compose(*parts)


def _samples_poisson(loader: Any) -> bool:
    """Whether each record is in a batch of a loader independently of the other records."""
    from opacus.utils.uniform_sampler import DistributedUniformWithReplacementSampler, UniformWithReplacementSampler

    return isinstance(loader.batch_sampler, UniformWithReplacementSampler | DistributedUniformWithReplacementSampler)


def _check_full(loader: Any) -> None:
    """Raise ValueError unless the only batch of a loader holds all records, whatever their number is."""
    dropping = any(getattr(part, "drop_last", False) for part in (loader, loader.batch_sampler))
    sampler = loader.sampler
    if dropping:
        words = "drop_last=True, so one record more than a batch leaves some record out.  Set drop_last=False"
    elif len(sampler) != len(loader.dataset) or getattr(sampler, "replacement", False):
        words = f"a sampler ({type(sampler).__name__}) that does not put each record into its batch exactly once"
    else:
        return
    raise ValueError(
        f"the loader has one batch and {words}: the claim of a full batch holds only if the batch holds all records.  "
        'Or, to audit the Poisson claim of this loader, pass claimed_as="poisson"'
    )
