"""Constructs canaries, which are records whose presence in the training data an audit tries to detect."""

from __future__ import annotations

import numpy as np

from dpaudit.numerics import Array
from dpaudit.training.claims import is_whole
from dpaudit.training.reference.model import Model, Records


def dirac(canaries: int = 1) -> Records:
    """Return Dirac canaries, number i of which uses the spare weight number i, from 0, of the model.

    The clipped gradient of a Dirac canary has the clipping norm in a single component, in which all other records'
    gradients are zero: the worst case of the analysis (Nasr et al. 2021, arXiv:2101.04535).  ValueError if `canaries`
    is not a positive integer.
    """
    if not is_whole(canaries):
        raise ValueError(f"canaries must be a whole number >= 1, got {canaries!r}")
    return Records(diracs=np.arange(canaries))


def blank(model: Model, start: Array) -> Records:
    """Return a record whose features are all zero, with the label that the model finds least likely.

    The model must have biases; otherwise the gradient is zero.  `start`: its weights, (P,).  Annamalai & De Cristofaro
    2024 (arXiv:2405.14106), section 4.
    """
    if not model.bias:
        raise ValueError("a blank record has no gradient in a model without bias; use another canary, or bias=True")
    return least_likely(model, start, np.zeros((1, model.sizes[0])))


def least_likely(model: Model, start: Array, features: Array) -> Records:
    """Return records with given features (n, d), each with the label that the model finds least likely.

    `start`: weights of the model, (P,).  ValueError if the weights or the features do not fit the model.
    """
    weights, inputs = model.checked(start), np.asarray(features, dtype=np.float64)
    if inputs.ndim != 2 or inputs.shape[1] != model.sizes[0]:
        raise ValueError(f"features must be (n, {model.sizes[0]}), got shape {inputs.shape}")
    return Records(inputs, np.argmin(model.forward(weights[None], inputs)[1][0], axis=0))


def mislabelled(model: Model, start: Array, records: Records, most: int = 1) -> Records:
    """Return the `most` records with the largest losses after relabelling with the label the model finds least likely.

    The training data need not contain them.  `start`: weights of the model, (P,).  ValueError if there are fewer than
    `most` examples, or the weights or the records do not fit the model.
    """
    examples = len(records.labels)
    if not is_whole(most) or most > examples:
        raise ValueError(f"most must be a whole number from 1 to {examples}, the number of examples, got {most!r}")
    wrong = least_likely(model, start, records.features)
    losses = model.losses(np.asarray(start)[None], wrong.features, wrong.labels)[0]
    return wrong.chosen(np.argsort(-losses, kind="stable")[:most])


def clipbkd(model: Model, start: Array, records: Records) -> Records:
    """Return the ClipBKD canary, whose features point in the direction of least variance of the training data.

    Its gradient interferes least with those of the training data.  The norm of the features is the examples' mean norm,
    and sign and label are those that the model finds least likely.  Algorithm 2 of Jagielski, Ullman & Oprea 2020
    (arXiv:2006.07709).  `start`: weights of the model, (P,); `records`: the training data.  ValueError if there are no
    examples, or the weights or the records do not fit the model.
    """
    if not len(records.labels):
        raise ValueError("records must hold at least one example, got none")
    direction = np.linalg.svd(records.features, full_matrices=True)[2][-1]
    size = float(np.linalg.norm(records.features, axis=1).mean())
    both = least_likely(model, start, size * np.stack([direction, -direction]))
    losses = model.losses(np.asarray(start)[None], both.features, both.labels)[0]
    return both.chosen([int(np.argmax(losses))])
