"""One native thread while attacks are fitted and asked.

OpenMP threads spin while they wait for each other.  Beside other busy processes a fit of milliseconds takes seconds
then.  One thread also makes results independent of the number of cores.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

_BRINGS_THREADS = ("scipy.linalg", "sklearn", "sklearn.ensemble", "torch", "xgboost", "lightgbm", "jaxlib", "faiss")
_known: dict[tuple[bool, ...], ThreadpoolController] = {}  # by which of these are loaded: a look takes milliseconds


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the native thread pools (BLAS, OpenMP) that are loaded to one thread."""
    loaded = tuple(name in sys.modules for name in _BRINGS_THREADS)
    controller = _known.get(loaded)
    if controller is None:
        _known.clear()
        controller = _known[loaded] = ThreadpoolController()
    if all(pool.get_num_threads() == 1 for pool in controller.lib_controllers):  # to limit them again takes longer
        yield
        return
    with controller.limit(limits=1):
        yield
