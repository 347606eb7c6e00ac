"""All tests compute with one thread each: they run side by side, and their matrices are small."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> object:
    """Ended with the session."""
    return threadpool_limits(limits=1)
