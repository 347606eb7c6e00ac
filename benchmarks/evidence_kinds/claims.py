"""Claims of every kind and operations on claims: their trade-off functions, and an audit of each claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from dpaudit import (
    ApproxDP,
    GaussianDP,
    LaplaceDP,
    PrivacyLoss,
    PureDP,
    RenyiDP,
    TabulatedTradeoff,
    TradeoffFunction,
    ZeroConcentratedDP,
    audit,
    compose,
    parse_claim,
)
from evidence_kinds import PAIR, Found, family, noisy_sums

_ALPHA = np.concatenate([[0.0, 1e-12, 1e-6], np.linspace(0.001, 0.999, 60), [1.0]])
_EPSILON = np.concatenate([[-np.inf, -3.0], np.linspace(-1, 4, 41), [20.0, np.inf]])
_DELTA = np.array([0.0, 1e-12, 1e-5, 0.01, 0.3, 1.0])


def _steps() -> TabulatedTradeoff:
    """Return a trade-off function that is not its own inverse."""
    return TabulatedTradeoff(alpha=[0, 0.1, 0.5, 1], beta=[1, 0.6, 0.2, 0])


CLAIMS: Mapping[str, Callable[[], TradeoffFunction]] = {
    "pure": lambda: PureDP(0.5),
    "approximate": lambda: ApproxDP(epsilon=0.4, delta=0.01),
    "gaussian": lambda: GaussianDP(0.5),
    "laplace": lambda: LaplaceDP(0.5),
    "zcdp": lambda: ZeroConcentratedDP(0.05),
    "renyi, one order": lambda: RenyiDP(order=4, epsilon=0.3),
    "renyi, several orders": lambda: RenyiDP(order=(2, 4, 16), epsilon=(0.1, 0.2, 0.9)),
    "tabulated": _steps,
    "tabulated, inverse": lambda: _steps().inverse(),
    "tabulated, symmetrised": lambda: _steps().symmetrized(),
    "privacy loss": lambda: PrivacyLoss(epsilon=[0.0, 0.5, 1.0], delta=[0.2, 0.05, 0.001]),
    "composed, closed form": lambda: compose(GaussianDP(0.3), GaussianDP(0.4)),
    "composed, of two kinds": lambda: compose(PureDP(0.2), GaussianDP(0.3)),
    "composed, with a delta": lambda: compose(LaplaceDP(0.2), ApproxDP(epsilon=0.2, delta=1e-3)),
    "repeated, gaussian": lambda: GaussianDP(0.1).repeated(16),
    "repeated, pure": lambda: PureDP(0.1).repeated(6),
    "repeated, zcdp": lambda: ZeroConcentratedDP(0.01).repeated(5),
    "group, gaussian": lambda: GaussianDP(0.2).group(3),
    "group, approximate": lambda: ApproxDP(epsilon=0.2, delta=1e-3).group(2),
    "group, laplace": lambda: LaplaceDP(0.2).group(2),
    "subsampled": lambda: GaussianDP(1.0).subsampled(0.3),
    "subsampled, add_remove": lambda: GaussianDP(1.0).subsampled(0.3, relation="add_remove"),
    "subsampled, replace_one": lambda: PureDP(1.0).subsampled(0.3, relation="replace_one"),
    "subsampled and repeated": lambda: GaussianDP(1.0).subsampled(0.1, relation="add_remove").repeated(8),
}
_ALSO_FIXED = {"approximate", "laplace", "renyi, several orders", "tabulated", "privacy loss", "subsampled, add_remove"}
_MISTAKES = (
    "1",
    "(1, 1e-5)",
    "eps=1, delta=1e-5",
    "gausian(mu=1)",
    "gaussian(sigma=1)",
    "gaussian(mu=-1)",
    "pure(epsilon=log(3))",
    "pure(epsilon=1",
    "approximate(epsilon=1, delta=2)",
    "repeated(pure(epsilon=1), n=0.5)",
    "tabulated(alpha=(0, 1), beta=(0, 1))",
)


def _curves(claim: TradeoffFunction) -> list[object]:
    both = claim.symmetrized()
    return [
        claim.beta(_ALPHA),
        claim.delta(_EPSILON),
        claim.epsilon(_DELTA),
        claim.mu(),
        claim.inverse().beta(_ALPHA),
        [both.beta(_ALPHA), both.delta(_EPSILON), both.epsilon(_DELTA), both.mu()],
    ]


def _claimed(name: str, _: Path) -> Found:
    claim = CLAIMS[name]()
    audited = partial(audit, noisy_sums, claim, PAIR, trials=300, attacks="threshold", seed=61, name="claim")
    fixed = {"fixed": audited(method="fixed")} if name in _ALSO_FIXED else {}
    return {
        "curves": _curves(claim),
        "text": [str(claim), claim.label, str(parse_claim(str(claim))), str(claim.symmetrized())],
        "sequential": audited(method="sequential"),
        **fixed,
    }


def _mistakes(_: Path) -> Found:
    says = {}
    for text in _MISTAKES:
        try:
            says[text] = str(parse_claim(text))
        except ValueError as error:
            says[text] = str(error)
    return says


FAMILIES = [
    *family("claim", {name: partial(_claimed, name) for name in CLAIMS}),
    *family("claim", {"mistakes in a text": _mistakes}),
]
