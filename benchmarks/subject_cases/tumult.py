"""Measurements of Tumult Core: noise, conversions and quantiles.  Data frames of Spark take seconds for each run."""

from __future__ import annotations

import functools
from collections.abc import Callable

from dpaudit.libraries import Subject, tumult


def cases() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each measurement.

    Raises:
        ImportError: If Tumult Core is not installed.
    """
    from tmlt.core.domains.numpy_domains import NumpyFloatDomain, NumpyIntegerDomain
    from tmlt.core.domains.pandas_domains import PandasSeriesDomain
    from tmlt.core.measurements.converters import PureDPToApproxDP, PureDPToRhoZCDP
    from tmlt.core.measurements.noise_mechanisms import (
        AddDiscreteGaussianNoise,
        AddGaussianNoise,
        AddGeometricNoise,
        AddLaplaceNoise,
    )
    from tmlt.core.measurements.pandas_measurements.series import NoisyQuantile
    from tmlt.core.measures import PureDP

    numbers, median = PandasSeriesDomain(NumpyIntegerDomain()), {"quantile": 0.5, "lower": 0, "upper": 10}
    made = {
        "AddGeometricNoise": AddGeometricNoise(alpha=2),
        "AddLaplaceNoise": AddLaplaceNoise(NumpyFloatDomain(), 2),
        "AddDiscreteGaussianNoise": AddDiscreteGaussianNoise(4),
        "AddGaussianNoise": AddGaussianNoise(NumpyFloatDomain(), 4),
        "PureDPToRhoZCDP": PureDPToRhoZCDP(AddGeometricNoise(alpha=2)),
        "PureDPToApproxDP": PureDPToApproxDP(AddGeometricNoise(alpha=2)),
        "NoisyQuantile": NoisyQuantile(numbers, PureDP(), epsilon=1, **median),
    }
    return {name: functools.partial(tumult.subject, measurement) for name, measurement in made.items()}
