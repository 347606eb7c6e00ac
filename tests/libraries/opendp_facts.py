"""Facts about OpenDP's measurements, as they are read in an environment of the library."""

from __future__ import annotations

from typing import Any


def facts(domain: str, metric: str = "SymmetricDistance()", d_in: Any = 1, **more: Any) -> dict[str, Any]:
    """Return the facts about a measurement with this input domain and metric."""
    return {"domain": domain, "metric": metric, "d_in": d_in, "hints": [], **more}
