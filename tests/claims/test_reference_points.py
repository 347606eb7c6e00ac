"""Claims agree with values of other systems.  The JSON file names system, function and source of each value."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from dpaudit.claims import GaussianDP, PrivacyLoss, parse_claim

from .textbook import gaussian_sigma, k_ary_response

POINTS = json.loads((Path(__file__).parent / "reference_points.json").read_text())


def response_epsilon(noise: float, k: int) -> float:
    """Return the epsilon of k-ary response that answers uniformly at random with probability `noise`."""
    return math.log((1 - noise + noise / k) / (noise / k))


def compute(function: str, given: dict[str, Any]) -> Any:
    match function:
        case "get_epsilon_gaussian":
            return GaussianDP(1 / given["sigma"]).epsilon(given["delta"])
        case "get_sigma_gaussian":
            return gaussian_sigma(**given)
        case "delta of claim":
            return parse_claim(given["claim"]).delta(given["epsilon"])
        case "beta of claim":
            return parse_claim(given["claim"]).beta(given["alpha"])
        case "trade-off of G_1: TPR=1-f(fpr)":
            claim = GaussianDP(given["mu"])  # using that the curve is its own inverse is more precise than 1 - beta
            low, high = 0.0, 1.0
            while (middle := (low + high) / 2) not in (low, high):
                low, high = (middle, high) if claim.beta(1 - middle) < given["fpr"] else (low, middle)
            return high
        case "randomized response TPR":
            response = k_ary_response(epsilon=response_epsilon(given["noise"], given["k"]), k=given["k"])
            return 1 - response.beta(given["fpr"])
        case "randomized response smallest mu":
            return k_ary_response(epsilon=response_epsilon(given["noise"], 2), k=2).mu()
        case "get_smallest_subsampled_gaussian_noise":
            low, high = 0.1, 10.0
            for _ in range(50):
                middle = (low + high) / 2
                enough = GaussianDP(1 / middle).subsampled(given["rate"]).delta(given["epsilon"]) <= given["delta"]
                low, high = (low, middle) if enough else (middle, high)
            return high
    raise AssertionError(function)


@pytest.mark.parametrize("point", POINTS, ids=lambda p: f"{p['function']} {p['input']}")
def test_other_systems_compute_the_same(point: dict[str, Any]) -> None:
    assert compute(point["function"], point["input"]) == pytest.approx(point["expected"], abs=point["tolerance"])


@pytest.mark.slow
def test_a_mixture_of_gaussians_is_read_from_its_distribution() -> None:
    """Source: test_mixture_of_gaussians_basic of dp-accounting, epsilon = 17.193115 at delta = 1e-6."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    if not hasattr(pld, "from_mixture_gaussian_mechanism"):
        pytest.skip("this release of dp-accounting lacks the mixture mechanism")
    first = pld.from_mixture_gaussian_mechanism(1, [0, 1, 2], [0.2, 0.6, 0.2], value_discretization_interval=1e-2)
    second = pld.from_mixture_gaussian_mechanism(2, [0, 2, 3], [0.33, 0.34, 0.33], value_discretization_interval=1e-2)
    claim = PrivacyLoss.from_pld(first.self_compose(3).compose(second.self_compose(2)))
    assert claim.epsilon(1e-6) == pytest.approx(17.193115, rel=1e-3)
    assert claim.epsilon(1e-6) >= 17.193115 - 1e-6
