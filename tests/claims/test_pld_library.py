"""A release of dp-accounting whose private attributes differ is refused, never misread."""

from __future__ import annotations

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

from dpaudit.claims import GaussianDP, LaplaceDP, PrivacyLoss, compose
from dpaudit.claims.operations.accounting import KNOWN_VERSIONS, pld_pmf

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


def test_the_installed_release_is_read() -> None:
    assert pld_pmf() is library
    assert 0 < _composed() < 0.5


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
