"""Signs that runs depend on each other: then no guarantee of an audit holds.

The tests here ask: could the outputs of one dataset, in the order in which they were made, have come in any other
order as well?  Independent runs are exchangeable, whatever the mechanism does.  Each p-value is compared with a
tiny significance, so that an honest mechanism is never suspected in practice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import bdtrc, chdtrc, ndtr, ndtri

from dpaudit.claims import Array

SUSPICIOUS = 1e-9
"""P-value from which independence is called into question: over all audits of a lifetime, that happens to none."""

_LAGS = 20
_FEWEST = 30  # outputs below which nothing is said


@dataclass
class Memory:
    """Outputs of one dataset in the order of their runs: the first ones all, later ones more and more thinly."""

    first: list[Any] = field(default_factory=list)
    spread: list[Any] = field(default_factory=list)  # every `_every`-th of all
    _every: int = 1
    _seen: int = 0

    def add(self, outputs: Sequence[Any] | np.ndarray[Any, Any], bytes_each: float = 8.0) -> None:
        """The outputs of the next runs, and how large they are."""
        most = int(min(_KEPT, max(2 * _FEWEST, _KEPT_BYTES / bytes_each)))
        self.first.extend(outputs[: max(0, most - len(self.first))])
        self.spread.extend(outputs[-self._seen % self._every :: self._every])
        self._seen += len(outputs)
        while len(self.spread) > most:
            self.spread = self.spread[::2]
            self._every *= 2


_KEPT, _KEPT_BYTES = 4000, 2**27  # in each list: outputs, and bytes of large ones


def dependence(keys: Sequence[Hashable], values: Array) -> list[str]:
    """What speaks against independent runs on one dataset, in words; empty if nothing does.

    `keys`: outputs in the order of their runs, equal if and only if the outputs are; `values`: (n,), a score of each.
    """
    if len(values) < _FEWEST:
        return []
    return _suspicious([_repetition(keys), _correlation(values), *_drift(values)])


def drift(values: Array) -> list[str]:
    """Whether outputs change with time, in words; `values`: (n,), scores of outputs spread over the whole audit."""
    return _suspicious(_drift(values)) if len(values) >= _FEWEST else []


def coupling(values0: Array, values1: Array) -> list[str]:
    """Whether the runs on d0 and on d1 that were made side by side share their randomness, in words."""
    n = min(len(values0), len(values1))
    if n < _FEWEST:
        return []
    scores0, scores1 = _normal_scores(values0[:n]), _normal_scores(values1[:n])
    scale = math.sqrt(float(scores0 @ scores0) * float(scores1 @ scores1))
    if scale < _CONSTANT:
        return []
    correlation = float(scores0 @ scores1) / scale
    p_value = 2 * float(ndtr(-abs(correlation) * math.sqrt(n)))
    return _suspicious([(p_value, f"runs on d0 and d1 share their randomness (correlation {correlation:+.2f})")])


def key(output: Any) -> Hashable:
    """Equal for equal outputs."""
    match output:
        case np.ndarray() | np.generic():
            return output.tobytes()
        case str() | bytes() | int() | float() | None:
            return output
    return repr(output)


def _suspicious(found: Sequence[tuple[float, str]]) -> list[str]:
    return [words for p_value, words in found if p_value < SUSPICIOUS]


def _repetition(keys: Sequence[Hashable]) -> tuple[float, str]:
    """Whether outputs come again after a certain number of runs, more often than by chance.

    The number of runs is the most frequent distance between one output and the next that equals it.  For an
    exchangeable sequence with m_v outputs of value v, a given pair of places holds equal outputs with probability
    c = sum m_v (m_v - 1) / (n (n - 1)); at a distance d there are n - d pairs.  The binomial tail is an approximation,
    as pairs that share a place are correlated, which is why only a number far above the expected one counts; the
    p-value is multiplied by the number of distances.
    """
    n = len(keys)
    counts = Counter(keys)
    equal = sum(m * (m - 1) for m in counts.values()) / (n * (n - 1))
    if equal == 0 or len(counts) == 1:
        return 1.0, ""
    last: dict[Hashable, int] = {}
    distances: Counter[int] = Counter()
    for place, key in enumerate(keys):
        if key in last:
            distances[place - last[key]] += 1
        last[key] = place
    distance, _ = max(distances.items(), key=lambda item: item[1])
    matches = sum(a == b for a, b in zip(keys, keys[distance:], strict=False))
    p_value = min(1.0, n * float(bdtrc(matches - 1, n - distance, equal)))
    if matches < 2 * equal * (n - distance) + 5:
        return 1.0, ""
    return p_value, f"the output of {distance} runs before came again {matches} times in {n - distance}"


def _correlation(values: Array) -> tuple[float, str]:
    """Serial correlation at lags 1 to 20 of normal scores: Ljung & Box 1978, Biometrika 65, 297-303."""
    scores, n = _normal_scores(values), len(values)
    power = float(scores @ scores)
    if power < _CONSTANT:
        return 1.0, ""
    lags = np.array([float(scores[lag:] @ scores[:-lag]) / power for lag in range(1, _LAGS + 1)])
    statistic = n * (n + 2) * float(np.sum(lags**2 / (n - np.arange(1, _LAGS + 1))))
    worst = int(np.argmax(np.abs(lags))) + 1
    return float(chdtrc(_LAGS, statistic)), f"runs are correlated with those {worst} before ({lags[worst - 1]:+.2f})"


def _drift(values: Array) -> list[tuple[float, str]]:
    """A trend of normal scores with time, and a step between the halves."""
    scores, n = _normal_scores(values), len(values)
    power = float(scores @ scores)
    if power < _CONSTANT:
        return []
    time, half = np.arange(n) - (n - 1) / 2, n // 2
    trend = float(scores @ time) / math.sqrt(power * float(time @ time))
    step = float(scores[half:].mean() - scores[:half].mean()) / math.sqrt(power / n * (1 / half + 1 / (n - half)))
    return [
        (2 * float(ndtr(-abs(trend) * math.sqrt(n))), f"outputs drift with time (correlation {trend:+.2f})"),
        (2 * float(ndtr(-abs(step))), "outputs of the second half of the runs differ from those of the first"),
    ]


_CONSTANT = 1e-9


def _normal_scores(values: Array) -> Array:
    """Normal quantiles of the ranks, equal values sharing theirs, with mean 0."""
    finite = np.nan_to_num(values, nan=0.0, posinf=1e300, neginf=-1e300)
    _, places, counts = np.unique(finite, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    scores: Array = ndtri((ranks - 0.5) / len(values))
    scores -= scores.mean()
    return scores
