"""Views: the part of a training that an attacker observes, such as a loss, a margin or all weights.

Views with targets, which are records, output scores, (m,) for one target and (m, k) for k in m models: a higher score
means that the data more likely contain the target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.numerics import Array

if TYPE_CHECKING:
    from dpaudit.training.reference.model import Records
    from dpaudit.training.reference.trainer import Run


@dataclass(frozen=True, eq=False)
class View:
    """The part of each trained model, and of its training, that an attacker observes.

    Args:
        output: Function of the run after its last step and the list of values of `steps`, which returns the outputs of
            the m models, (m,) or (m, d).
        steps: Function of the run after each step, which returns the observed part, (m, ...).  None: no steps are
            observed.
        name: Name of the view in reports.
    """

    output: Callable[[Run, list[Array]], Array]
    steps: Callable[[Run], Array] | None = None
    name: str = ""


def loss(targets: Records) -> View:
    """Return a view that outputs the negative loss of each target after the last step, as a score."""
    _check(targets)
    return View(lambda run, seen: _squeezed(-_losses(run, run.weights, targets)), name="loss")


def loss_gain(targets: Records) -> View:
    """Return a view that outputs, as a score, the loss of each target before training minus its loss after training."""
    _check(targets)
    return View(
        lambda run, seen: _squeezed(_losses(run, run.start, targets) - _losses(run, run.weights, targets)),
        name="loss gain",
    )


def margin(targets: Records) -> View:
    """Return a view that outputs, as a score, the logit of each target's label minus the largest other logit."""
    _check(targets)

    def output(run: Run, seen: list[Array]) -> Array:
        logits = run.trainer.model.forward(run.weights, targets.features)[1]
        examples = np.arange(len(targets.labels))
        own = logits[:, targets.labels, examples]
        logits[:, targets.labels, examples] = -np.inf
        return _squeezed(own - logits.max(axis=1))

    return View(output, name="margin")


def weights() -> View:
    """Return a view that outputs all P weights of each of the m models after the last step; shape (m, P)."""
    return View(lambda run, seen: run.weights, name="weights")


def releases() -> View:
    """Return a view that outputs the noisy gradients of all steps, (m, steps * P), which the claim of DP-SGD covers."""
    return View(
        lambda run, seen: np.concatenate(seen, axis=1), steps=lambda run: run.released.copy(), name="all releases"
    )


def spare_weights() -> View:
    """Return a view that outputs the summed noisy gradient at each spare weight, its canary's score, (m, spare)."""

    def output(run: Run, seen: list[Array]) -> Array:
        spare = run.trainer.model.spare
        return np.asarray((run.start - run.weights)[:, run.weights.shape[1] - spare :] / run.trainer.learning_rate)

    return View(output, name="spare weights")


def gradient_sum(target: Records) -> View:
    """Return a view that outputs, as a score, a sum over all steps; shape (m,)."""

    return View(lambda run, seen: np.sum(seen, axis=0), steps=lambda run: along(run, target), name="every step")


def along(run: Run, target: Records) -> Array:
    """Return the inner product of the latest noisy gradient with the direction of the target's gradient; shape (m,)."""
    direction = run.trainer.clipped(target, run.before)
    norms = np.linalg.norm(direction, axis=1)
    return np.asarray(np.einsum("mp,mp->m", run.released, direction) / np.where(norms > 0, norms, 1.0))


def _check(targets: Records) -> None:
    """Raise ValueError unless the loss is defined for all targets."""
    if len(targets.diracs) or not len(targets.labels):
        raise ValueError(
            f"targets must be labelled examples, got {targets!r}.  A Dirac record has no loss; use "
            "views.spare_weights() or views.gradient_sum(target)"
        )


def _losses(run: Run, at: Array, targets: Records) -> Array:
    return run.trainer.model.losses(at, targets.features, targets.labels)


def _squeezed(scores: Array) -> Array:
    return scores[:, 0] if scores.shape[1] == 1 else scores
