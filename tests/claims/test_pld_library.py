"""Other libraries: dp-accounting is read as it is or refused, and other systems compute the same points of curves."""

import itertools
import json
import math
import sys
import tomllib
from collections.abc import Callable
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from dp_accounting.pld import pld_pmf as library
from dp_accounting.pld import privacy_loss_distribution
from packaging.requirements import Requirement
from scipy.stats import binom, norm

from dpaudit import plan, plan_scores
from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PrivacyLoss, PureDP, TradeoffFunction, compose, parse_claim
from dpaudit.claims.accounting import KNOWN_VERSIONS, pld_pmf
from dpaudit.claims.comparison import violates
from dpaudit.claims.tabulated import TabulatedTradeoff
from dpaudit.cli.lookup import convert
from dpaudit.engine import plan as planning
from dpaudit.engine import score_design as planning_scores
from dpaudit.engine.arguments import planned_of

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


# --- `plan`, `plan_scores`, `detect` and `convert` agree on which mechanisms violate a claim.  No test uses chance


Array = npt.NDArray[np.float64]
EPSILONS = np.concatenate([np.linspace(0, 3, 1501), np.linspace(3, 30, 2701)[1:]])


# --- Privacy profiles of both directions together at EPSILONS, from textbook formulas.


def gaussian(mu: float, s: Array = EPSILONS) -> Array:
    upper, lower = norm.logcdf(mu / 2 - s / mu), norm.logcdf(-mu / 2 - s / mu)
    return np.asarray(np.exp(upper) * -np.expm1(np.minimum(s + lower - upper, 0)))


def pure(epsilon: float, s: Array = EPSILONS) -> Array:
    return -np.expm1(np.minimum(s - epsilon, 0)) / (1 + math.exp(-epsilon))


def laplace(epsilon: float, s: Array = EPSILONS) -> Array:
    return -np.expm1(np.minimum(s - epsilon, 0) / 2)


def repeated_pure(epsilon: float, n: int) -> Array:
    k, lie = np.arange(n + 1)[:, None], 1 / (1 + math.exp(epsilon))
    losses = epsilon * (n - 2 * k) - EPSILONS
    losses[np.abs(losses) < 1e-12] = 0  # a rounding error
    return np.asarray((binom.pmf(k, n, lie) * -np.expm1(-np.maximum(losses, 0))).sum(axis=0))


def sampled(profile: Callable[[Array], Array], rate: float) -> Array:
    return rate * profile(np.log1p(np.expm1(EPSILONS) / rate))


def corners(*points: tuple[float, float]) -> Array:
    """Return the profile of the polygon through given corners (alpha, beta) and, mirrored, (beta, alpha)."""
    each = [1 - beta - np.exp(EPSILONS) * alpha for a, b in points for alpha, beta in ((a, b), (b, a))]
    profile = np.max(each, axis=0)
    return np.where(profile > 1e-15, profile, 0.0)  # the difference of two numbers near 1


def hull(*guarantees: tuple[float, float]) -> Array:
    """Return the profile implied by (epsilon, delta) guarantees: linear in e^epsilon between them."""
    epsilon, delta = np.array(guarantees).T
    return np.asarray(np.interp(np.exp(EPSILONS), np.exp(epsilon), delta))


def grouped_pure(epsilon: float) -> Array:
    """Return the profile of 1 - (1 - f)^{o 2}, whose corners are where alpha or 1 - f(alpha) is the corner of f."""
    corner, e = 1 / (1 + math.exp(epsilon)), math.exp(-epsilon)
    return corners((e * corner, 1 - (1 - corner)), (corner, e * corner), (e * corner, corner))


def renyi(divergences: Callable[[Array], Array], orders: Array) -> Array:
    """Return the profile of the best tests for which the Renyi divergence of each order is at most its bound."""
    a, log_x = orders[:, None], np.linspace(-90, math.log(0.5), 900)[None, :]
    x = np.exp(log_x)
    low, high = np.broadcast_to(log_x, (len(a), x.size)), np.zeros((len(a), x.size))  # logarithms of the power
    for _ in range(45):
        log_w = (low + high) / 2
        log_lie = np.log(-np.expm1(log_w))
        moment = np.logaddexp(a * log_w + (1 - a) * log_x, a * log_lie + (1 - a) * np.log1p(-x))
        inside = moment <= (a - 1) * divergences(a)
        low, high = np.where(inside, log_w, low), np.where(inside, high, log_w)
    power = np.exp(low).min(axis=0)[:, None]
    half = power <= 1 - x.T  # on the other half of the curve, epsilon < 0
    profile = np.max(np.where(half, power - np.exp(EPSILONS) * x.T, 0.0), axis=0)
    return np.where(profile > 1e-24, profile, np.nan)  # beyond the grid of alpha


ORDERS = 1 + np.geomspace(1e-3, 200, 50)
FAMILIES: dict[str, Callable[[], Array]] = {
    "gaussian(mu=1)": lambda: gaussian(1.0),
    "gaussian(mu=1.00001)": lambda: gaussian(1.00001),
    "pure(epsilon=1)": lambda: pure(1.0),
    "laplace(epsilon=1)": lambda: laplace(1.0),
    "approximate(epsilon=1, delta=1e-5)": lambda: 1e-5 + (1 - 1e-5) * pure(1.0),
    "zcdp(rho=0.5)": lambda: renyi(lambda a: 0.5 * a, ORDERS),
    "renyi(order=3, epsilon=1)": lambda: renyi(np.ones_like, np.array([3.0])),
    "repeated(pure(epsilon=0.1), n=10)": lambda: repeated_pure(0.1, 10),
    "repeated(gaussian(mu=0.5), n=4)": lambda: gaussian(1.0),
    "group(pure(epsilon=0.5), k=2)": lambda: grouped_pure(0.5),
    "subsampled(pure(epsilon=2), rate=0.2)": lambda: sampled(lambda s: pure(2.0, s), 0.2),
    "subsampled(gaussian(mu=1), rate=0.3)": lambda: sampled(lambda s: gaussian(1.0, s), 0.3),
    "tabulated(alpha=(0, 0.25, 0.5, 1), beta=(1, 0.5, 0.25, 0))": lambda: corners((0.25, 0.5)),
    "tabulated(alpha=(0, 0.02, 1), beta=(0.9, 0.7, 0))": lambda: corners((0.02, 0.98), (5 / 12, 5 / 12)),
    "privacy_loss(epsilon=(0, 1), delta=(0.5, 0.01))": lambda: hull((0.0, 0.5), (1.0, 0.01)),
}


def test_200_pairs_of_claims_are_compared_as_their_textbook_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference is the largest ratio of two profiles.  `plan` runs as if no number could be computed."""
    monkeypatch.setattr(planning, "_for_law", lambda *_: planning._NEVER)
    monkeypatch.setattr(planning_scores, "_fewest", lambda _: 4)
    profiles = {text: profile() + 0.0 for text, profile in FAMILIES.items()}  # 0.0, not -0.0
    claims = {text: parse_claim(text) for text in FAMILIES}
    checked = 0
    for truth, claim in itertools.product(FAMILIES, repeat=2):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratios = np.where(profiles[truth] > 1e-280, profiles[truth] / profiles[claim], 0.0)
        if truth != claim and abs(np.nanmax(ratios) - 1) < 1e-9:
            continue  # the two claims are equal up to rounding errors
        assert_all_agree(claims[truth], claims[claim], violated=bool(np.nanmax(ratios) > 1 + 1e-9))
        checked += 1
    assert checked >= 200


def assert_all_agree(truth: TradeoffFunction, claim: TradeoffFunction, *, violated: bool) -> None:
    """Assert that each part of dpaudit states whether a truth violates a claim as given."""
    pair = f"{truth.label} against {claim.label}"
    assert violates(truth, claim) is violated, pair
    stated = str(plan(claim, truth))
    assert (" violates " in stated) is violated, pair
    assert ("nothing to find" in stated) is not violated, pair
    assert (plan_scores(claim, truth, independence="runs") is not None) is violated, pair
    with nullcontext() if violated else pytest.raises(ValueError, match="detect must be a violation"):
        planned_of([truth], claim, 0.99)
    if isinstance(claim, ApproxDP):  # `dpaudit convert` prints this epsilon
        epsilon = truth.symmetrized().epsilon(claim.delta(math.inf))
        assert (epsilon > claim.max_privacy_loss() * (1 + 1e-9)) is violated, pair


def test_convert_states_an_asymmetric_claim_for_both_directions(capsys: pytest.CaptureFixture[str]) -> None:
    """In one direction the claim allows a delta of 0.1 at every epsilon, in the other an epsilon of log 1.4."""
    convert(["tabulated(alpha=(0, 0.02, 1), beta=(0.9, 0.7, 0))"], delta=0.0)
    assert float(capsys.readouterr().out) == pytest.approx(math.log(1.4), abs=1e-9)


@pytest.mark.parametrize("mu", [2.0641, 2.1])
def test_a_violation_too_small_to_be_planned_is_not_called_nothing(mu: float) -> None:
    """The best bet's growth of 1e-11 nats per run was taken for 0, so the plan stated that the claim is satisfied."""
    found = plan("approximate(epsilon=10, delta=1e-5)", GaussianDP(mu))
    assert "violates" in str(found)
    assert "satisfies" not in str(found) + repr(found) + found._repr_html_()
    assert math.isinf(found.limit_mean)


@pytest.mark.parametrize(
    ("truth", "claim"),
    [
        ("gaussian(mu=0.01)", "laplace(epsilon=1)"),  # the delta of the violation underflows
        ("gaussian(mu=2)", "pure(epsilon=600)"),
        ("approximate(epsilon=1, delta=1e-18)", "approximate(epsilon=1, delta=1e-20)"),
        ("pure(epsilon=50)", "gaussian(mu=19)"),  # only the type II errors near the diagonal differ
        ("gaussian(mu=1)", "zcdp(rho=0.49)"),  # only far tails differ
    ],
)
def test_violations_of_negligible_probability_are_violations(truth: str, claim: str) -> None:
    assert violates(parse_claim(truth), parse_claim(claim))
    assert not violates(parse_claim(claim), parse_claim(claim))


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 1.0, 50.0])
def test_rounding_errors_are_no_violation(epsilon: float) -> None:
    """The same curve as a claim with closed form, and as a table."""
    for one, other in itertools.permutations((PureDP(epsilon), k_ary_response(epsilon=epsilon, k=2))):
        assert not violates(one, other)
