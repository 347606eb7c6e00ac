"""Imports dp-accounting (the extra `accounting`) and checks the private attributes that dpaudit reads.

Any release of dp-accounting may rename private attributes or change their meaning.  A claim computed from misread
numbers could cause a false verdict.  Therefore a small distribution is built and composed first, and its attributes are
compared with known values.  If they differ, an ImportError names the installed version of dp-accounting.
"""

from __future__ import annotations

from importlib import metadata

import numpy as np

from dpaudit.values import Foreign

KNOWN_VERSIONS = ">=0.4.3,<0.7"  # supported versions of dp-accounting, as in the extra `accounting` of pyproject.toml
_INSTALL = 'pip install "dpaudit[accounting]"'
_STEP, _START, _MASS = 0.5, -1, np.array([0.25, 0.5, 0.25])


def pld_pmf() -> Foreign:
    """Import `dp_accounting.pld.pld_pmf` and check that its distributions have the expected attributes."""
    try:
        import dp_accounting  # noqa: F401  # imported first, so that an error names the missing module
        from dp_accounting.pld import pld_pmf
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "dp_accounting":
            words = f"composing these claims needs dp-accounting, which is not installed: {_INSTALL}"
            raise ImportError(words) from None
        if (error.name or "").split(".")[0] == "dp_accounting":
            raise unknown_release(str(error)) from error
        raise ImportError(f"dp-accounting cannot be imported: {error}; {_INSTALL}") from error
    if difference := _difference(pld_pmf):
        raise unknown_release(difference)
    return pld_pmf


def unknown_release(difference: str) -> ImportError:
    """Return the error for an installed release of dp-accounting that dpaudit cannot read."""
    try:
        version = metadata.version("dp-accounting")
    except metadata.PackageNotFoundError:
        version = "of an unknown version"
    return ImportError(
        f"dp-accounting {version} is not a release that dpaudit can read: {difference}; "
        f"install a release {KNOWN_VERSIONS}: {_INSTALL}"
    )


def _difference(library: Foreign) -> str:
    """Return the first difference between the attributes of a small distribution and their known values; "" if none."""
    try:
        one = library.DensePLDPmf(_STEP, _START, _MASS, 0.0, True)
        return (
            _misread(one, 1)
            or _misread(one.to_dense_pmf(), 1)
            or _misread(one.self_compose(2, 1e-15), 2)
            or _misread(one.compose(one, 1e-15).compose(one, 1e-15), 3)
        )
    except Exception as error:  # later releases of dp-accounting may raise exceptions of any type
        return f"{type(error).__name__}: {error}"


def _misread(pmf: Foreign, count: int) -> str:
    mass = _MASS
    for _ in range(count - 1):
        mass = np.convolve(mass, _MASS)
    expected = {"_discretization": _STEP, "_lower_loss": count * _START, "_pessimistic_estimate": True}
    for name, value in expected.items():
        if getattr(pmf, name) != value:
            return f"{name} is {getattr(pmf, name)!r}, expected {value!r}"
    # the negated comparison is also true for NaN
    if len(pmf._probs) != len(mass) or not np.abs(pmf._probs - mass).max() <= 1e-9:
        return "_probs is not the mass of each loss"
    return "" if abs(pmf._infinity_mass) <= 1e-9 else "_infinity_mass is not the mass of an infinite loss"
