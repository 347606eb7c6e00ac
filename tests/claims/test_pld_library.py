"""Other libraries: dp-accounting is read as it is or refused, and other systems compute the same points of curves."""

from __future__ import annotations

import json
import math
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf as library
from dp_accounting.pld import privacy_loss_distribution
from packaging.requirements import Requirement

from dpaudit.claims import GaussianDP, LaplaceDP, PrivacyLoss, compose, parse_claim
from dpaudit.claims.accounting import KNOWN_VERSIONS, pld_pmf
from dpaudit.claims.tabulated import TabulatedTradeoff

ROOT = Path(__file__).parents[2]
REFUSED = (
    rf"dp-accounting {metadata.version('dp-accounting')} is not a release that dpaudit can read: .*{{}}.*; "
    r"install a release >=0\.4\.3,<0\.7: pip install \"dpaudit\[accounting\]\""
)


def _composed() -> float:
    return float(compose(GaussianDP(0.123), LaplaceDP(0.5)).beta(0.5))


def _without(name: str) -> type:
    """Return a class of mass functions that lacks the attribute `name`."""

    def get(self: Any, wanted: str) -> Any:
        if wanted == name:
            raise AttributeError(f"'DensePLDPmf' object has no attribute {name!r}")
        return object.__getattribute__(self, wanted)

    return type("DensePLDPmf", (library.DensePLDPmf,), {"__getattribute__": get})


def test_the_bounds_in_the_message_are_those_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (requirement,) = map(Requirement, project["optional-dependencies"]["accounting"])
    assert requirement.specifier == Requirement(f"dp-accounting{KNOWN_VERSIONS}").specifier
    assert metadata.version("dp-accounting") in requirement.specifier


@pytest.mark.parametrize("name", ["_probs", "_pessimistic_estimate"])
def test_a_missing_attribute_names_version_and_remedy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "DensePLDPmf", _without(name))
    with pytest.raises(ImportError, match=REFUSED.format(name)):
        _composed()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("_probs", np.cumsum),
        ("_probs", lambda mass: mass[::-1] ** 2),
        ("_lower_loss", lambda start: start + 1),
        ("_discretization", lambda step: 2 * step),
        ("_infinity_mass", lambda mass: 1 - mass),
        ("_pessimistic_estimate", lambda reported: not reported),
    ],
)
def test_an_attribute_with_another_meaning_is_noticed(name: str, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The class applies `change` whenever the attribute is set."""

    def put(self: Any, wanted: str, value: Any) -> None:
        object.__setattr__(self, wanted, change(value) if wanted == name else value)

    monkeypatch.setattr(library, "DensePLDPmf", type("Other", (library.DensePLDPmf,), {"__setattr__": put}))
    with pytest.raises(ImportError, match=REFUSED.format(name)):
        _composed()


@pytest.mark.parametrize("name", ["_pmf_remove", "_symmetric"])
def test_a_distribution_without_its_attributes_is_not_called_another_type(name: str) -> None:
    pld = privacy_loss_distribution.from_gaussian_mechanism(1.0, value_discretization_interval=0.1)
    delattr(pld, name)
    with pytest.raises(ImportError, match=REFUSED.format(name)):
        PrivacyLoss.from_pld(pld)


def test_a_mass_function_is_no_distribution() -> None:
    pmf = library.DensePLDPmf(0.5, 0, np.array([1.0]), 0.0, True)
    with pytest.raises(ValueError, match="pld must be a PrivacyLossDistribution of dp-accounting, got DensePLDPmf"):
        PrivacyLoss.from_pld(pmf)


@pytest.mark.parametrize("gone", ["pld_pmf", "dp_accounting.pld"])
def test_a_module_that_was_renamed_is_not_called_a_missing_dp_accounting(
    gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if gone == "pld_pmf":
        monkeypatch.delattr("dp_accounting.pld.pld_pmf")
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.pld_pmf" if gone == "pld_pmf" else gone, None)
    with pytest.raises(ImportError, match=REFUSED.format(gone)):
        pld_pmf()


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


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the least standard deviation of Gaussian noise that is (epsilon, delta)-DP.

    Balle & Wang 2018, "Improving the Gaussian mechanism for differential privacy", Thm 8: the condition
    Phi(S/(2 sigma) - epsilon sigma/S) - e^epsilon Phi(-S/(2 sigma) - epsilon sigma/S) <= delta is necessary and
    sufficient.  Bisection computes sigma, rounded up.

    Args:
        epsilon: Nats, >= 0.
        delta: Probability in (0, 1).
        sensitivity: > 0, in the units of sigma.
    """
    low, high = 0.0, 1.0  # bracket of mu = S / sigma
    while GaussianDP(high).delta(epsilon) <= delta:
        low, high = high, 2 * high
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if GaussianDP(middle).delta(epsilon) <= delta else (low, middle)
    return sensitivity / low if low else math.inf


def k_ary_response(*, epsilon: float, k: int) -> TabulatedTradeoff:
    """Return the exact promise of k-ary randomised response.

    Of k >= 2 answers, the true one has odds e^epsilon against each other answer.

    Source: Kairouz, Oh & Viswanath 2016, section 3.  With q = 1/(e^epsilon + k - 1) and p = e^epsilon q, the corners
    are (0, 1), (q, 1 - p), ((k - 1) q, q), (1, 0).  For k = 2, it is PureDP(epsilon); for larger k, it is stronger.
    """
    q = math.exp(-epsilon) / (1 + (k - 1) * math.exp(-epsilon))
    rest = (k - 1) * q  # 1 - p
    corners = {0.0: 1.0, q: rest, rest: q, 1.0: 0.0} if q > 0 else {0.0: 0.0, 1.0: 0.0}
    return TabulatedTradeoff(alpha=sorted(corners), beta=[corners[a] for a in sorted(corners)])
