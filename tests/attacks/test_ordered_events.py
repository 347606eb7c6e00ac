"""Averages over all ways to cut ordered cells, and the leaks of sequences that they show."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import betaln

from dpaudit_attacks import ordered_events
from dpaudit_attacks.ordered_events import OrderedEvents, averaged_ratios


def slow(counts0: np.ndarray, counts1: np.ndarray) -> np.ndarray:
    """Compute the same average by a loop over all ways of cutting."""
    k = len(counts0)
    cut = min(0.5, ordered_events._CUTS / (k - 1))
    total, mean = 0.0, np.zeros(k)
    for prior in ordered_events._PRIORS:
        for cuts in itertools.product([False, True], repeat=k - 1):
            edges = [0, *(i + 1 for i, here in enumerate(cuts) if here), k]
            weight = cut ** sum(cuts) * (1 - cut) ** (k - 1 - sum(cuts))
            ratio = np.zeros(k)
            for a, b in itertools.pairwise(edges):
                n0, n1 = counts0[a:b].sum(), counts1[a:b].sum()
                weight *= np.exp(betaln(n0 + prior, n1 + prior) - betaln(prior, prior))
                ratio[a:b] = np.log((n1 + prior) / (n0 + prior))
            total, mean = total + weight, mean + weight * ratio
    return mean / total


def test_the_average_is_that_over_all_ways_of_cutting() -> None:
    counts0, counts1 = np.array([5, 9, 2, 0, 4, 1]), np.array([1, 8, 7, 3, 0, 1])
    assert np.allclose(averaged_ratios(counts0, counts1), slow(counts0, counts1), rtol=1e-9)


def first_above(low: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Sequences of 0 up to the first 1, then -1; the first 1 is among the last five of ten with probability `low`."""
    place = np.where(rng.random(n) < low, rng.integers(5, 10, n), rng.integers(0, 5, n))
    return np.where(np.arange(10) < place[:, None], 0.0, np.where(np.arange(10) == place[:, None], 1.0, -1.0))


def test_the_place_of_the_first_answer_is_seen_in_pieces() -> None:
    """The ratios are log(.2/.4) and log(.8/.6), each to 0.1: six standard errors, fails by chance < 1 in 10**6."""
    rng = np.random.default_rng(0)
    scorer = OrderedEvents().fit(first_above(0.4, 20_000, rng), first_above(0.2, 20_000, rng), rng)
    fresh = first_above(0.5, 500, rng)
    late = fresh[:, :5].max(axis=1) < 1
    assert np.all(np.abs(scorer(fresh[late]) - np.log(0.5)) < 0.1)
    assert np.all(np.abs(scorer(fresh[~late]) - np.log(0.8 / 0.6)) < 0.1)
