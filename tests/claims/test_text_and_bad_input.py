"""Claims are read from text; messages for invalid claims state the value and the allowed range."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from dpaudit.claims import (
    CLAIMS,
    OPERATIONS,
    ApproxDP,
    GaussianDP,
    LaplaceDP,
    PrivacyLoss,
    PureDP,
    RenyiDP,
    TabulatedTradeoff,
    ZeroConcentratedDP,
    compose,
    parse_claim,
)
from dpaudit.claims.subsample import MAX_NESTED

TEXTS = [
    "pure(epsilon=1)",
    "approximate(epsilon=1, delta=1e-05)",
    "gaussian(mu=0.1)",
    "gaussian(mu=0.30000000000000004)",
    "laplace(epsilon=2.5)",
    "zcdp(rho=0.125)",
    "renyi(order=4, epsilon=0.5)",
    "renyi(order=(2, 4, 8), epsilon=(0.1, 0.2, 0.5))",
    "tabulated(alpha=(0, 0.25, 1), beta=(1, 0.25, 0))",
    "privacy_loss(epsilon=(0.5, 1), delta=(0.01, 1e-05))",
    "compose(gaussian(mu=1), laplace(epsilon=0.5))",
    "repeated(subsampled(gaussian(mu=1), rate=0.01, relation=add_remove), n=1000)",
    "subsampled(repeated(laplace(epsilon=1), n=3), rate=0.5, relation=unspecified)",
    "group(pure(epsilon=1), k=3)",
    "compose(gaussian(mu=1), approximate(epsilon=0, delta=0.1))",
    "symmetrized(repeated(tabulated(alpha=(0, 0.2, 1), beta=(0.9, 0.5, 0)), n=2))",
]


@pytest.mark.parametrize("text", TEXTS)
def test_canonical_text_is_read_and_written_unchanged(text: str) -> None:
    assert str(parse_claim(text)) == text


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("gaussian(1)", GaussianDP(1.0)),
        ("  pure( epsilon = 2 )\n", PureDP(2.0)),
        ("subsampled(gaussian(1), 0.5, relation='add_remove')", GaussianDP(1.0).subsampled(0.5, relation="add_remove")),
        ("repeated(gaussian(1), n=4)", GaussianDP(2.0)),
        ("group(laplace(1), 2)", LaplaceDP(2.0)),
        ("inverse(pure(1))", PureDP(1.0)),
        ("tabulated(alpha=[0, 1/4, 1], beta=[1, 2/4, 0])", TabulatedTradeoff(alpha=[0, 0.25, 1], beta=[1, 0.5, 0])),
        ("subsampled(gaussian(1), rate=sqrt(1/4))", GaussianDP(1.0).subsampled(0.5)),
        ("eps=1", PureDP(1.0)),
        ("epsilon = log(3)", PureDP(math.log(3))),
        ("ε=1/3", PureDP(1 / 3)),
        ("pure(ε=ln(2) + 1)", PureDP(math.log(2) + 1)),
        ("pure(eps=1)", PureDP(1.0)),
        ("1, 2**-20", ApproxDP(epsilon=1.0, delta=2.0**-20)),
        ("eps=1, delta=1e-5", ApproxDP(epsilon=1.0, delta=1e-5)),
        ("mu=1", GaussianDP(1.0)),
        ("µ=1", GaussianDP(1.0)),
        ("rho=0.5", ZeroConcentratedDP(0.5)),
    ],
)
def test_other_ways_of_writing_are_read(text: str, claim: object) -> None:
    assert parse_claim(text) == claim


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "claim must be one of pure, approximate, gaussian"),
        ("gauss(mu=1)", "unknown claim 'gauss'; did you mean gaussian?  Write gaussian(mu=...)"),
        ("gaussian", "'gaussian' has no parameters; write gaussian(mu=...)"),
        ("gaussian(mu=1", "claim 'gaussian(mu=1' lacks a )"),
        ("gaussian(mu=True)", "'True' is not a number"),
        ("gaussian(sigma=1)", "gaussian has no parameter sigma; a claim states the promise, not the noise"),
        ("gaussian(mu=-1)", "mu must be finite and >= 0, got -1.0"),
        ("approximate(epsilon=1)", "claim must have the form approximate(epsilon=..., delta=...)"),
        ("repeated(gaussian(mu=1))", "claim must have the form repeated(CLAIM, n=...)"),
        ("repeated(1, n=2)", "claim"),
        ("repeated(gaussian(mu=1), n=0)", "n must be a whole number >= 1, got 0.0"),
        ("subsampled(gaussian(1), rate=0.1, relation='both')", "relation must be one of unspecified, add_remove"),
        ("compose()", "compose needs at least one claim, got none"),
        ("gaussian(mu=1))", "has a superfluous )"),
        ("gdp(1)", "did you mean gaussian?"),
        ("pure(eps=1, epsilon=2)", "pure has the parameter epsilon twice"),
        ("gaussian(mu=1, **{'a': 1})", "claim must have the form gaussian(mu=...)"),
        ("1", "'1' is not a claim; did you mean pure(epsilon=1)?"),
        ("1,5", "claim must be one of pure"),
        ("epsilon: 1", "did you mean pure(epsilon=1)?"),
        ("gaussian(mu=1) + pure(epsilon=1)", "did you mean compose(gaussian(mu=1), pure(epsilon=1))?"),
        ("pure(epsilon=10^-5)", "'10 ^ -5' is not a number; a power is written 10**-5"),
        ("pure(epsilon=9**9**9**9)", "a number that is too large"),
        ("subsampled(gaussian(1), 0.1, relation=add_remov)", "got 'add_remov'; did you mean add_remove?"),
    ],
)
def test_what_is_not_a_claim_is_refused_with_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_claim(text)


@pytest.mark.parametrize(
    "text",
    [f"gaussian(mu={'9' * 400})", "1" + "+1" * 100_000, "[" * 5_000, "pure(epsilon=\ud800)"],
    ids=lambda text: text[:12],
)
def test_claims_that_are_too_large_or_too_deep_are_refused_in_a_short_message(text: str) -> None:
    """A plain parser raises OverflowError, MemoryError or RecursionError for these texts."""
    with pytest.raises(ValueError, match="claim") as refused:
        parse_claim(text)
    assert len(str(refused.value)) < 500


def test_every_claim_and_operation_can_be_written() -> None:
    names = {text.split("(")[0] for text in TEXTS} | {"inverse"}
    assert names >= set(CLAIMS) | set(OPERATIONS)


TABLE = TabulatedTradeoff(alpha=[0, 0.2, 1], beta=[0.9, 0.5, 0])


@pytest.mark.parametrize("bad", [-1e-300, math.nan, math.inf, "1"])
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("epsilon", PureDP),
        ("mu", GaussianDP),
        ("epsilon", LaplaceDP),
        ("rho", ZeroConcentratedDP),
        ("epsilon", lambda x: ApproxDP(epsilon=x, delta=0.1)),
        ("delta", lambda x: ApproxDP(epsilon=1.0, delta=x)),
        ("rate", lambda x: GaussianDP(1.0).subsampled(x)),
        ("n", lambda x: GaussianDP(1.0).repeated(x)),
        ("k", lambda x: TABLE.group(x)),
    ],
)
def test_parameters_out_of_range_are_named_with_value_and_range(
    name: str, make: Callable[[object], object], bad: object
) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must (lie in|be finite|be a whole number).*, got "):
        make(bad)


@pytest.mark.parametrize(
    ("order", "epsilon", "message"),
    [
        (1.0, 0.1, "order must be finite and > 1, got 1"),
        (math.inf, 0.1, "order must be finite"),
        (2.0, -0.1, "epsilon must be finite and >= 0, got -0.1"),
        ([2.0, 2.0], [0.1, 0.1], "order must be increasing"),
        ([2.0, 3.0], 0.1, "same length"),
        ("2", 0.1, "order must be"),
    ],
)
def test_renyi_orders_are_checked(order: object, epsilon: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RenyiDP(order=order, epsilon=epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("alpha", "beta", "message"),
    [
        ([0, 1], [1, 0, 0], "same length >= 2, got 2 and 3"),
        ([0.1, 1], [0.9, 0], "alpha must run from 0 to 1, got 0.1"),
        ([0, 0.5, 0.5, 1], [1, 0.5, 0.4, 0], "alpha must be strictly increasing, got 0.5 before 0.5"),
        ([0, 0.5, 1], [0.5, 0.5000001, 0], "beta must be nonincreasing, got 0.5 before 0.50000"),
        ([0, 0.5, 1], [1, 0.6, 0], r"beta must lie in \[0, 1 - alpha\], got 0.59999999999999998 at alpha = 0.5"),
        ([0, 0.5, 1], [0.9, 0.48, 0], r"beta must be convex in alpha, got 0.47999999999999998 at alpha = 0.5"),
        ([0, 0.5, 1], [1, -0.1, 0], r"beta must lie in \[0, 1\], got -0.1"),
        ([0, 0.5, 1], [1, math.nan, 0], r"beta must lie in \[0, 1\], got nan"),
    ],
)
def test_tables_are_checked(alpha: object, beta: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TabulatedTradeoff(alpha=alpha, beta=beta)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        ([], [], "same length >= 1, got 0 and 0"),
        ([-1], [0.1], r"epsilon must be finite and >= 0, got -1"),
        ([1], [1.1], r"delta must lie in \[0, 1\], got 1.1"),
        ([1, 1], [0.1, 0.1], "epsilon must be strictly increasing, got 1 before 1"),
        ([1, 2], [0.1, 0.2], "delta must be nonincreasing, got 0.1"),
    ],
)
def test_lists_of_guarantees_are_checked(epsilon: list[float], delta: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrivacyLoss(epsilon=epsilon, delta=delta)


def test_what_cannot_be_composed_is_refused() -> None:
    with pytest.raises(ValueError, match="compose takes claims such as GaussianDP"):
        compose(GaussianDP(1.0), 1.0)  # type: ignore[arg-type]
    one, other = (GaussianDP(1.0).subsampled(0.1, relation=r) for r in ("add_remove", "replace_one"))
    with pytest.raises(ValueError, match="different relations cannot be composed, got add_remove and replace_one"):
        compose(one, other)
    with pytest.raises(ValueError, match="pld must be a PrivacyLossDistribution of dp-accounting, got str"):
        PrivacyLoss.from_pld("pld")


def test_an_optimistic_distribution_is_refused() -> None:
    from dp_accounting.pld import privacy_loss_distribution as pld

    with pytest.raises(ValueError, match="pessimistic"):
        PrivacyLoss.from_pld(
            pld.from_laplace_mechanism(1.0, pessimistic_estimate=False, value_discretization_interval=0.1)
        )


def test_claims_are_keys_and_values() -> None:
    kinds = [parse_claim(text) for text in TEXTS]
    assert len({*kinds, *(parse_claim(text) for text in TEXTS)}) == len(TEXTS)
    with pytest.raises(AttributeError):
        PureDP(1.0)._epsilon = 2.0  # type: ignore[misc]
    assert repr(ApproxDP(epsilon=1, delta=0.1)) == "ApproxDP(epsilon=1.0, delta=0.1)"
    table = TabulatedTradeoff(alpha=np.linspace(0, 1, 50), beta=1 - np.linspace(0, 1, 50))
    assert table.label == "tabulated(alpha=<50 values>, beta=<50 values>)"


@pytest.mark.parametrize("inside", ["{}", "repeated({}, n=2)"])
def test_nested_subsampling_is_limited(inside: str) -> None:
    """Each level made the curve several times slower, so that a file of 2 kB never ended."""
    text = "gaussian(mu=1)"
    for _ in range(MAX_NESTED):
        text = f"subsampled({inside.format(text)}, rate=0.5)"
    claim = parse_claim(text)
    with pytest.raises(ValueError, match="more than 3 subsamplings are nested"):
        claim.subsampled(0.5)
    with pytest.raises(ValueError, match="one subsampling with the product of the rates gives the same curve"):
        parse_claim(f"subsampled({inside.format(text)}, rate=0.5)")


def test_one_subsampling_replaces_nested_ones() -> None:
    """The advice of the refusal is correct: Balle, Barthe & Gaboardi 2018, Thm 8, applied twice."""
    alpha = np.linspace(0, 1, 21)
    nested = LaplaceDP(1.0).subsampled(0.5).subsampled(0.6)
    assert np.allclose(nested.beta(alpha), LaplaceDP(1.0).subsampled(0.3).beta(alpha), atol=1e-9)


def test_a_composition_of_very_many_claims_is_read() -> None:
    """A result holds such a text if Python composed the claims, and reading it must not have a limit of its own."""
    for claims in (
        [PureDP(1 + i / 1000) for i in range(600)],
        [GaussianDP(1 + i / 1000).subsampled(0.01) for i in range(61)],
    ):
        claim = compose(*claims)
        assert str(parse_claim(str(claim))) == str(claim)
