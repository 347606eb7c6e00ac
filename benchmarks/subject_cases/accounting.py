"""Events of dp-accounting."""

from __future__ import annotations

import functools
from collections.abc import Callable

from dpaudit.libraries import Subject, accounting


def cases() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each event.

    Raises:
        ImportError: If dp-accounting is not installed.
    """
    import dp_accounting as da

    gaussian, laplace = da.GaussianDpEvent(2.0), da.LaplaceDpEvent(2.0)
    events = {
        "GaussianDpEvent": gaussian,
        "LaplaceDpEvent": laplace,
        "ComposedDpEvent": da.ComposedDpEvent([gaussian, laplace]),
        "SelfComposedDpEvent": da.SelfComposedDpEvent(gaussian, 4),
        "PoissonSampledDpEvent": da.SelfComposedDpEvent(da.PoissonSampledDpEvent(0.5, gaussian), 4),
    }
    if hasattr(da.dp_event, "DiscreteLaplaceDpEvent"):  # dp-accounting 0.4.3 has none
        events["DiscreteLaplaceDpEvent"] = da.dp_event.DiscreteLaplaceDpEvent(0.5, 1)
    return {name: functools.partial(accounting.subject, event) for name, event in events.items()}
