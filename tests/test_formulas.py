"""The formulas of docs/words.md are those of `dpaudit.claims`."""

import math
import re
from pathlib import Path
from statistics import NormalDist

import numpy as np

from dpaudit import ApproxDP, GaussianDP, LaplaceDP, PureDP, ZeroConcentratedDP, compose
from dpaudit.catalogue.responses import Spinner, SpinnerAndCoin


def test_the_formulas_of_the_field_agree_with_the_claims() -> None:
    """Each entry of `near` is a row of the table, in its order: the claim's number, and that of the formula.

    The answers of the survey are seeded.
    """
    E, Phi, Q = math.exp, NormalDist().cdf, NormalDist().inv_cdf
    alpha, slopes = np.linspace(0, 1, 200_001), np.linspace(-9, 9, 9001)
    e, d, a, mu, k, r = 0.8, 1e-3, 0.2, 1.3, 3, 0.1
    both, bell, lap = ApproxDP(epsilon=e, delta=d), GaussianDP(mu), LaplaceDP(e)
    kl = e / 10 * math.tanh(e / 20)
    rng = np.random.default_rng(1)
    answers = np.concatenate([Spinner(0.75).sample([i < 3], 100_000, rng) for i in range(10)])
    near = [
        (Spinner(E(e) / (1 + E(e))).claim.epsilon(0), e),
        (SpinnerAndCoin((E(e) - 1) / (E(e) + 1)).claim.epsilon(0), e),
        ((answers.mean() - 0.25) / (2 * 0.75 - 1), 0.3),
        (both.beta(a), max(0, 1 - d - E(e) * a, E(-e) * (1 - d - a))),
        (bell.beta(a), Phi(Q(1 - a) - mu)),
        (PureDP(e).beta(1 / (1 + E(e))), 1 / (1 + E(e))),
        (bell.delta(e), np.max(1 - bell.beta(alpha) - E(e) * alpha)),
        (bell.beta(a), np.max(1 - bell.delta(slopes) - np.exp(slopes) * a)),
        (np.min(alpha + bell.beta(alpha)), 1 - bell.delta(0)),
        (PureDP(e).delta(0.3), (E(e) - E(0.3)) / (1 + E(e))),
        (lap.epsilon(0), e),
        (lap.delta(e / 2), 1 - E(-e / 4)),
        (NormalDist(mu**2 / 2, mu).cdf(0), 1 - Phi(mu / 2)),
        (bell.delta(e), Phi(mu / 2 - e / mu) - E(e) * Phi(-mu / 2 - e / mu)),
        (Phi(1 / (2 * 4.379) - 4.379), 1e-5),
        (math.sqrt(2 * math.log(1.25e5)), 4.8448),
        (compose(PureDP(0.3), PureDP(0.5)).epsilon(0), 0.8),
        (compose(GaussianDP(0.3), GaussianDP(0.4)).mu(), 0.5),
        (
            PureDP(e / 10).repeated(400).beta(0.3),
            GaussianDP(800 * kl / math.sqrt(400 * ((e / 10) ** 2 - kl**2))).beta(0.3),
        ),
        (PureDP(e).group(k).epsilon(0) + GaussianDP(mu).group(k).mu(), k * e + k * mu),
        (both.group(k).delta(k * e), d * (E(k * e) - 1) / (E(e) - 1)),
        (PureDP(e / 200).group(200).beta(0.3), lap.beta(0.3)),
        (PureDP(e).subsampled(r).epsilon(0), math.log(1 + r * (E(e) - 1))),
        (ZeroConcentratedDP(mu**2 / 2).beta(a) <= bell.beta(a), True),
        (ZeroConcentratedDP(0.5).epsilon(1e-5) <= 0.5 + 2 * math.sqrt(0.5 * math.log(1e5)), True),
    ]
    for claimed, formula in near:
        assert abs(claimed - formula) <= 0.005 * abs(formula)
    text = (Path(__file__).parent.parent / "docs" / "words.md").read_text(encoding="utf-8")
    assert len(near) == len(re.findall(r"^\| .* \|$", text.split("| what | formula |")[1], flags=re.M))
