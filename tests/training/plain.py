"""A second implementation of DP-SGD: one model and one example at a time, with gradients by finite differences."""

import math

import numpy as np

from dpaudit.numerics import Array
from dpaudit.training import reference


def loss(model: reference.Model, weights: Array, x: Array, label: int) -> float:
    signal, at = x, 0
    for depth, (into, out) in enumerate(zip(model.sizes[:-1], model.sizes[1:], strict=True)):
        signal = np.array([math.tanh(value) for value in signal]) if depth else signal
        signal = np.append(signal, 1.0) if model.bias else signal
        size = out * (into + model.bias)
        signal = weights[at : at + size].reshape(out, -1) @ signal
        at += size
    return math.log(sum(math.exp(value) for value in signal)) - float(signal[label])


def gradient(model: reference.Model, weights: Array, x: Array, label: int, step: float = 1e-5) -> Array:
    found = np.zeros(len(weights))
    for i in range(len(weights)):
        moved = np.zeros(len(weights))
        moved[i] = step
        found[i] = (loss(model, weights + moved, x, label) - loss(model, weights - moved, x, label)) / (2 * step)
    return found


def gradients(model: reference.Model, weights: Array, records: reference.Records) -> list[Array]:
    found = [gradient(model, weights, x, int(label)) for x, label in zip(records.features, records.labels, strict=True)]
    for place, size in zip(records.diracs, records.sizes, strict=True):
        one = np.zeros(len(weights))
        one[len(weights) - model.spare + place] = size
        found.append(one)
    return found


def clipped_sum(model: reference.Model, weights: Array, records: reference.Records, clip: float) -> Array:
    total = np.zeros(len(weights))
    for one in gradients(model, weights, records):
        norm = math.sqrt(float(one @ one))
        total += one * min(1.0, clip / norm)
    return total
