"""What an attacker sees of a training: the last weights through a loss or a margin, all weights, or every step.

A view is made for one or several targets, the records whose presence is in question.  Its outputs are scores where it
says so: higher means more like a model that was trained on the target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.training.reference.records import Records

if TYPE_CHECKING:
    from dpaudit.training.reference.run import Run


@dataclass(frozen=True, eq=False)
class View:
    """What is seen of each model.

    Args:
        output: Function from the run after its last step, and from what `steps` returned, to outputs, (m,) or (m, d).
        steps: Function from the run after each step to what is seen of the step, (m, ...); None if nothing is seen.
        name: For reports.
    """

    output: Callable[[Run, list[Array]], Array]
    steps: Callable[[Run], Array] | None = None
    name: str = ""


def loss(targets: Records) -> View:
    """See minus the loss of each target after the last step: a score, (m,) for one target or (m, k)."""
    _check(targets)
    return View(lambda run, seen: _one(-_losses(run, run.weights, targets)), name="loss")


def loss_gain(targets: Records) -> View:
    """See by how much training lowered the loss of each target: a score, (m,) for one target or (m, k)."""
    _check(targets)
    return View(
        lambda run, seen: _one(_losses(run, run.start, targets) - _losses(run, run.weights, targets)), name="loss gain"
    )


def margin(targets: Records) -> View:
    """See the logit of each target's label minus the largest other logit: a score, (m,) for one target or (m, k)."""
    _check(targets)

    def output(run: Run, seen: list[Array]) -> Array:
        logits = run.trainer.model.forward(run.weights, targets.features)[1]
        examples = np.arange(len(targets.labels))
        own = logits[:, targets.labels, examples]
        logits[:, targets.labels, examples] = -np.inf
        return _one(own - logits.max(axis=1))

    return View(output, name="margin")


def weights() -> View:
    """See all weights after the last step, (m, P)."""
    return View(lambda run, seen: run.weights, name="weights")


def releases() -> View:
    """See the release of every step, (m, steps * P): all that DP-SGD is said to protect."""
    return View(
        lambda run, seen: np.concatenate(seen, axis=1), steps=lambda run: run.released.copy(), name="all releases"
    )


def spare_weights() -> View:
    """See the sum of all steps' releases at each spare weight: the scores of Dirac canaries, (m, spare)."""

    def output(run: Run, seen: list[Array]) -> Array:
        spare = run.trainer.model.spare
        return np.asarray((run.start - run.weights)[:, run.weights.shape[1] - spare :] / run.trainer.learning_rate)

    return View(output, name="spare weights")


def gradient_sum(target: Records) -> View:
    """See the sum over all steps of the release's inner product with the target's gradient: a score, (m,)."""

    return View(lambda run, seen: np.sum(seen, axis=0), steps=lambda run: along(run, target), name="every step")


def along(run: Run, target: Records) -> Array:
    """Return the inner product of the latest release with the direction of the target's gradient, (m,); 0 without."""
    direction = run.trainer.clipped(target, run.before)
    norms = np.linalg.norm(direction, axis=1)
    return np.asarray(np.einsum("mp,mp->m", run.released, direction) / np.where(norms > 0, norms, 1.0))


def _check(targets: Records) -> None:
    """Raise ValueError unless all targets have a loss."""
    if len(targets.diracs) or not len(targets.labels):
        raise ValueError(
            f"targets must be labelled examples, got {targets!r}: a Dirac record has no loss; see it by "
            "views.spare_weights() or views.gradient_sum(target)"
        )


def _losses(run: Run, at: Array, targets: Records) -> Array:
    return run.trainer.model.losses(at, targets.features, targets.labels)


def _one(scores: Array) -> Array:
    return scores[:, 0] if scores.shape[1] == 1 else scores
