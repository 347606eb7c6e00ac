"""Constructs canaries, which are records whose presence in the training data an audit tries to detect."""

from __future__ import annotations

import numpy as np

from dpaudit.numerics import Array
from dpaudit.training.claims import is_whole
from dpaudit.training.reference.model import Model, Records


def dirac(canaries: int = 1) -> Records:
    """Return Dirac canaries.  Canary number i, counted from 0, uses the spare weight number i of the model.

    The norm of the clipped gradient of a Dirac canary equals the clipping norm.  Only one component of the gradient is
    nonzero, and the gradients of all other records are zero in this component.  Such a record is the worst case of the
    analysis (Nasr et al. 2021, arXiv:2101.04535).  The model needs one spare weight for each canary.

    Args:
        canaries: Number of canaries.  Must be a positive integer.

    Raises:
        ValueError: If `canaries` is not a positive integer.
    """
    if not is_whole(canaries):
        raise ValueError(f"canaries must be a whole number >= 1, got {canaries!r}")
    return Records(diracs=np.arange(canaries))


def blank(model: Model, start: Array) -> Records:
    """Return a record whose features are all zero, with the label that the model finds least likely.

    The model must have biases; otherwise the gradient of the record is zero.  The canary is described in section 4 of
    Annamalai & De Cristofaro 2024 (arXiv:2405.14106).

    Args:
        model: The model that is trained.
        start: Weights of the model; shape (P,).
    """
    if not model.bias:
        raise ValueError("a blank record has no gradient in a model without bias; use another canary, or bias=True")
    return least_likely(model, start, np.zeros((1, model.sizes[0])))


def least_likely(model: Model, start: Array, features: Array) -> Records:
    """Return records with given features, each with the label that the model finds least likely.

    Args:
        model: The model that is trained.
        start: Weights of the model; shape (P,).
        features: Features of the n records; shape (n, d).

    Raises:
        ValueError: If the weights or the features do not fit the model.
    """
    weights, inputs = model.checked(start), np.asarray(features, dtype=np.float64)
    if inputs.ndim != 2 or inputs.shape[1] != model.sizes[0]:
        raise ValueError(f"features must be (n, {model.sizes[0]}), got shape {inputs.shape}")
    return Records(inputs, np.argmin(model.forward(weights[None], inputs)[1][0], axis=0))


def mislabelled(model: Model, start: Array, records: Records, most: int = 1) -> Records:
    """Return the records with the largest losses after each label is replaced by the label that the model finds least
    likely.

    Args:
        model: The model that is trained.
        start: Weights of the model; shape (P,).
        records: Records from which the canaries are chosen.  The training data need not contain them.
        most: Number of canaries.  Must be at most the number of records that are examples.

    Raises:
        ValueError: If there are fewer than `most` examples, or the weights or the records do not fit the model.
    """
    examples = len(records.labels)
    if not is_whole(most) or most > examples:
        raise ValueError(f"most must be a whole number from 1 to {examples}, the number of examples, got {most!r}")
    wrong = least_likely(model, start, records.features)
    losses = model.losses(np.asarray(start)[None], wrong.features, wrong.labels)[0]
    return wrong.chosen(np.argsort(-losses, kind="stable")[:most])


def clipbkd(model: Model, start: Array, records: Records) -> Records:
    """Return the ClipBKD canary, whose features point in the direction of least variance of the training data.

    The gradient of this record interferes least with the gradients of the training data.  The norm of the features
    equals the mean norm of the features of the examples.  Of all signs of the features and all labels, the model finds
    the chosen sign and label least likely.  The canary is Algorithm 2 of Jagielski, Ullman & Oprea 2020
    (arXiv:2006.07709).

    Args:
        model: The model that is trained.
        start: Weights of the model; shape (P,).
        records: The training data.

    Raises:
        ValueError: If there are no examples, or the weights or the records do not fit the model.
    """
    if not len(records.labels):
        raise ValueError("records must hold at least one example, got none")
    direction = np.linalg.svd(records.features, full_matrices=True)[2][-1]
    size = float(np.linalg.norm(records.features, axis=1).mean())
    both = least_likely(model, start, size * np.stack([direction, -direction]))
    losses = model.losses(np.asarray(start)[None], both.features, both.labels)[0]
    return both.chosen([int(np.argmax(losses))])
