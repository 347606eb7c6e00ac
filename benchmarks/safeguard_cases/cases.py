"""The mechanisms that `benchmarks/safeguards.py` audits, and the routes by which they reach the audit.

A mechanism without a claim of its own claims epsilon 1 for the records [0] and [1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit import Pair, PureDP, TradeoffFunction, compose, parse_claim

_RAISES = "import warnings\nnp.seterr(all='raise')\nwarnings.simplefilter('error')"
_SEEDS = "np.random.seed(0)\nrandom.seed(0)"
_SLOW = "import time\ntime.sleep(3.0)"
_SAYS_GOODBYE = """import atexit
@atexit.register
def goodbye():
    print("The last release was made.")
    Path("done.txt").write_text("done")
"""
ROUTES = {
    "f": "function",  # the imported object
    "a": "address",  # a `PythonMechanism`
    "n": "notebook",  # an object of `__main__`, which has no file
    "w": "workers",  # a `PythonMechanism` with two worker processes
    "c": "command",  # a `CommandMechanism`
}


def _bit() -> Pair:
    return Pair([0], [1])


def _of_terms() -> TradeoffFunction:
    return compose(*[PureDP(1).subsampled(0.1)] * 61)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """A mechanism that is right, and wrong if its module has less noise; or one that keeps noise."""

    what: str
    address: str  # module:object
    routes: str = "fa"  # letters of ROUTES
    claim: Callable[[], TradeoffFunction] = field(default=lambda: PureDP(1))
    pair: Callable[[], Pair] = _bit
    broken: float = 0.5  # noise of the broken version, as a share of what the claim needs
    trials: int | None = None  # maximum number of runs on each dataset, if fewer than given
    ending: str = ""  # statements at the end of the module
    allowed: Sequence[str] = ()  # verdicts that are correct for a mechanism that keeps noise; () for other mechanisms


def case(what: str, address: str, routes: str = "fa", **more: Any) -> Mechanism:
    return Mechanism(what=what, address=address, routes=routes, **more)


def _pair(d0: Any, d1: Any) -> Callable[[], Pair]:
    return lambda: Pair(d0, d1)


def _large() -> Pair:
    """Two arrays of 200 MB."""
    d0 = np.zeros(25_000_000)
    d1 = d0.copy()
    d1[-1] = 1.0
    return Pair(d0, d1, label="200 MB, one record")


_COUNTS = _pair([0, 1, 2, 3, 3, 7], [0, 1, 2, 3, 3, 7, 5])
_POINTS = _pair([(0.1, 0), (0.4, 1), (0.7, 0)], [(0.1, 0), (0.4, 1), (0.7, 0), (0.9, 1)])
_LABELS = _pair([(1.0, 0)] * 2 + [(1.0, 1)] * 3, [(1.0, 0)] + [(1.0, 1)] * 4)

HONEST = [
    case("two values", "releases:two_values", "fanwc"),
    case("three values", "releases:three_values", "fac"),
    case("Decimal", "releases:decimal"),
    case("Fraction", "releases:fraction"),
    case("dates and NaT", "releases:date_or_missing"),
    case("a masked array", "releases:masked"),
    case("numpy.matrix", "releases:matrix"),
    case("a pandas Series", "releases:series"),
    case("a pandas DataFrame", "releases:frame", "faw"),
    case("a dict", "releases:named_parts", "fac"),
    case("a dataclass", "releases:report", "fan"),
    case("bytes", "releases:as_bytes"),
    case("long text", "releases:long_text", "fac"),
    case("a sum", "releases:noisy_sum", "fanwc"),
    case("a clamped sum", "releases:clamped_sum"),
    case("a clipped mean", "releases:clipped_mean", pair=_pair([0.2, 0.5, 0.0], [0.2, 0.5, 3.0])),
    case("Gaussian noise", "releases:gaussian_sum", "faw", claim=lambda: parse_claim("gaussian(mu=1)")),
    case("geometric noise", "releases:geometric_count", "fac"),
    case("a histogram", "releases:histogram", "faw", pair=_COUNTS),
    case("a median", "releases:median", pair=_pair([0, 7], [0, 7, 7]), broken=0.1),
    case("report noisy max", "releases:noisy_max", "fac", pair=_pair([0, 0], [1, 0])),
    case("sparse vector", "releases:sparse_vector", "fac", pair=_pair([0, 0, 1], [1, 1, 0]), broken=0.1),
    case("61 subsampled responses", "releases:responses", "fac", claim=_of_terms, broken=0.3),
    case("functools.partial", "releases:partial"),
    case("a dataclass with __call__", "releases:data_class"),
    case("batched", "releases:many_sums", "faw"),
    case("batched histograms", "releases:many_histograms", pair=_COUNTS),
    case("an object with sample", "releases:sampler", pair=_pair(np.array([0.0]), np.array([1.0]))),
    case("a dataset of 200 MB", "releases:sampler", pair=_large, trials=1000),
    case("a decision tree", "learners:tree", "faw", pair=_POINTS),
    case("a linear classifier", "learners:classifier", "fa", pair=_LABELS, broken=0.1),
    case("k-means", "learners:clusters", "fan", pair=_pair([0.1, 0.3, 0.9], [0.1, 0.3, 0.9, 1.0]), broken=0.3),
    case("a helper process", "states:helper_process", "fanw"),
    case("a pool of processes", "states:process_pool", "faw"),
    case("threads", "states:thread_pool", "fanw"),
    case("a lock", "states:lock", "fan"),
    case("a log file", "states:log_file", "fanw"),
    case("an open database in memory", "states:database_in_memory", "fan"),
    case("an open database on disk", "states:database_on_disk", "fanw"),
    case("a database of the records", "states:database_of_records", "fan"),
    case("a temporary file", "states:temporary_file", "fa"),
    case("a compiled function in use", "states:compiled", "fan"),
    case("a compiled function", "states:compiled_itself", "fan"),
    case("lru_cache of public data", "states:cached", "fawc"),
    case("a relative path", "states:relative_file", "fa"),
    case("an open file", "states:open_file", "faw"),
    case("environment variables", "states:environment", "fa"),
    case("a seeded generator of the module", "states:seeded_module_generator", "fanwc"),
    case("a generator of the module", "states:module_generator", "fanwc"),
    case("SystemRandom", "states:system_noise", "fac"),
    case("secrets", "states:secret_bit", "fac"),
    case("a generator of the object", "states:own_generator", "fanw"),
    case("a counter and a history", "states:recorder", "fanw"),
    case("noise drawn in advance", "states:buffered", "fanw"),
    case("a solver that starts warm", "states:warm_start", "fa", pair=_pair([0.2, 0.5, 0.0], [0.2, 0.5, 1.0])),
    case("a generator function", "states:generator_function", "fan"),
    case("a cell of a notebook", "notebook:cell", "n"),
    case("a closure over an array", "notebook:closure", "fan"),
    case("an object of a notebook", "notebook:release", "fan"),
    case("numpy raises, warnings are errors", "states:strict", "faw", ending=_RAISES),
    case("numpy.random.seed(0)", "states:legacy", "fanw", ending=_SEEDS),
    case("random.seed(0)", "states:seeded", "fanw", ending=_SEEDS),
    case("slow to start", "states:plain", "fac", ending=_SLOW),
    case("prints", "states:prints", "fa", ending=_SAYS_GOODBYE),
    case("megabytes of stderr", "states:megabytes_of_stderr", "fac", ending=_SAYS_GOODBYE),
    case("warnings", "states:warns", "fa", ending=_SAYS_GOODBYE),
]


def kept(
    what: str, name: str, routes: str = "fan", allowed: Sequence[str] = ("INCONCLUSIVE", "NO_VIOLATION")
) -> Mechanism:
    return case(what, f"keeps_noise:{name}", routes, allowed=allowed)


KEPT = [
    kept("noisy answers in a dict", "dictionary", "fanwc"),
    kept("the same, jitter 1e-6", "jitter", "fanc"),
    kept("the same, jitter 0.1", "wide_jitter"),
    kept("the same, in 80 % of runs", "mostly", "fanc"),
    kept("the same, 3 answers", "three_answers"),
    kept("the same, 1,000 answers", "thousand_answers"),
    kept("noisy answers in lru_cache", "cached", "fanw"),
    kept("noisy answers in a partial", "looked_up"),
    kept("noise drawn at import", "drawn_at_import", "fanwc"),
    kept("the same, jitter 0.01", "drawn_at_import_jitter"),
    kept("a pool of 3 numbers", "small_pool", "fanwc"),
    kept("a pool of 1,000 numbers", "large_pool", "fanc"),
    kept("noisy answers on disk", "on_disk", "fawc"),
    kept("the same, jitter 0.001", "on_disk_jitter", "fac"),
    kept("a fixed seed in each run", "fixed_seed", "fanc", allowed=("VIOLATION",)),
    kept("a generator seeded at import", "seeded_at_import"),
    kept("noise around a random walk", "random_walk"),
    kept("noise around a steady drift", "steady_drift"),
]
CASES = [*HONEST, *KEPT]
