"""Computes the claim of DP-SGD from its noise multiplier, sampling rate, steps and neighbouring relation."""

from __future__ import annotations

import math
import numbers
from typing import Literal, TypeGuard, get_args

from dpaudit.claims import GaussianDP, TradeoffFunction
from dpaudit.claims.base import count

Relation = Literal["add_remove", "replace_one"]
Sampling = Literal["poisson", "full", "shuffled"]


def is_whole(value: object, *, least: int = 1) -> TypeGuard[int]:
    """Return whether a value is an integer that is at least `least`; return False for booleans and floats."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least


def is_positive(value: object) -> TypeGuard[float]:
    """Return whether a value is a positive number that is finite as a float; return False for booleans."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return 0 < float(value) < math.inf
    except OverflowError:
        return False


def claim(
    *,
    noise_multiplier: float,
    steps: int,
    sampling_rate: float | None = None,
    relation: Relation = "add_remove",
    sampling: Sampling = "poisson",
    claimed_as: Literal["poisson"] | None = None,
) -> TradeoffFunction:
    """Return the claim that DP-SGD satisfies if the noisy gradients of all steps are released.

    Each step clips the gradients of all records in the batch to norm C, and adds noise with the law N(0,
    (noise_multiplier * C)^2) to each component of their sum.  A step is mu-GDP with mu = 1 / noise_multiplier for an
    added or removed record, and 2 / noise_multiplier for a replaced record.  With Poisson sampling, its claim is the
    subsampled Gaussian claim, and the composition requires the extra `accounting`, with safe rounding
    (`claims.accounting`).

    Args:
        noise_multiplier: Standard deviation of the noise, divided by the clipping norm; positive.
        steps: Number of steps of the training, >= 1.
        sampling_rate: Probability that a given record is in a batch, in (0, 1].  For shuffled batches, the size of a
            batch divided by the number of records.  Omit this argument for full batches.
        relation: Neighbouring relation: "add_remove" or "replace_one".
        sampling: How batches are chosen: "poisson", each record independently of all others; "full", every record in
            every batch; or "shuffled", the records are randomly permuted and then divided into batches.
        claimed_as: "poisson" returns the claim of Poisson sampling for shuffled batches, to audit a training that
            shuffles its data but claims Poisson sampling.

    Raises:
        ValueError: If a parameter is out of range, or if batches are shuffled and `claimed_as` is omitted.
    """
    if not is_positive(noise_multiplier):
        raise ValueError(f"noise_multiplier must be a number > 0 and finite, got {noise_multiplier!r}")
    steps = count("steps", steps)
    for name, value, allowed in (("relation", relation, Relation), ("sampling", sampling, Sampling)):
        if value not in get_args(allowed):
            raise ValueError(f"{name} must be one of {', '.join(get_args(allowed))}, got {value!r}")
    if claimed_as is not None and (claimed_as != "poisson" or sampling != "shuffled"):
        raise ValueError(f'claimed_as="poisson" is for sampling="shuffled", got {claimed_as!r} and {sampling!r}')
    sensitivity = 1.0 if relation == "add_remove" else 2.0  # of the sum of clipped gradients, in units of C
    step = GaussianDP(sensitivity / noise_multiplier)
    if sampling == "full":
        if sampling_rate not in (None, 1, 1.0):
            raise ValueError(f'sampling="full" has no sampling rate, got {sampling_rate}; leave it out')
        return step.repeated(steps)
    if sampling == "shuffled" and claimed_as is None:
        raise ValueError(
            'sampling="shuffled" has no amplified claim: each record is in exactly one batch of an epoch, so batches '
            "depend on each other, and the claim of Poisson sampling is false (Annamalai et al. 2026, "
            'arXiv:2411.10614).  Claim an epoch without amplification: sampling="full", relation="replace_one", and '
            "one step for each epoch.  Or sample Poisson batches.  Or, to audit the Poisson claim of a shuffling "
            'loader, pass claimed_as="poisson" to training.claim'
        )
    if not is_positive(sampling_rate) or sampling_rate > 1:
        raise ValueError(
            f"sampling_rate must lie in (0, 1], got {sampling_rate!r}.  The sampling rate is the expected batch size "
            'divided by the number of records; for full batches use sampling="full"'
        )
    return step.subsampled(sampling_rate, relation=relation).repeated(steps)
