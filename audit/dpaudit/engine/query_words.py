"""Describes the query of synthetic tables that tells the two datasets apart best, with its answers on both datasets.

For example: "rows with city = Ulm: 0 without the record, 1 to 4 with it".
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from dpaudit.learning import Score
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Outputs, PartsEncoding, Queries
from dpaudit.outputs.named import Parts
from dpaudit.result.values import OUTCOME
from dpaudit.text.printable import one_line, shortened

_LEAST_AGREEMENT = 0.6  # minimum mean of the shares of both datasets that a cut of the answers identifies
CHANCE = 0.05  # maximum probability that any query is stated if the table does not depend on the dataset
_INNER = (0.1, 0.9)  # quantiles of the answers that are stated if the answers on both datasets overlap


def query_names(queries: Queries) -> list[str]:
    """Return the names of the queries as they occur in the description of a region."""
    return [f"number of {name}" if name.startswith("rows ") else name for name in queries.names]


def query_words(score: Score, threshold: float, examples: Outputs | None) -> str:
    """Describe the query whose answers tell the datasets apart best.

    Returns:
        The description; "" if outputs are no tables, if no output is in the region, or if chance explains the
        agreement of every query.
    """
    encoding = score.encoding
    if examples is None or not isinstance(encoding, PartsEncoding) or encoding.table_queries is None:
        return ""
    answers, half = np.asarray(examples.view(encoding, "queries")), len(examples) // 2
    inside = score(examples) > threshold
    if not half or not answers.shape[1] or not inside.any():
        return ""
    agreement = [_agreement(column[:half], column[half:]) for column in answers.T]
    best = int(np.argmax(agreement))
    name = encoding.table_queries.table_of(best)
    present = np.array([name in parts.tables for parts in examples.parts()], dtype=np.float64)
    telling = _agreement(present[:half], present[half:])  # whether there is a table at all
    on0, on1 = _sides(encoding.table_queries)
    if telling >= max(agreement[best], _LEAST_AGREEMENT, agreement_by_chance(half, 1)):
        outcomes = [_outcome(parts, name) for parts in examples.parts()]
        return f"{OUTCOME}{_usual(outcomes[:half])} {on0}, {_usual(outcomes[half:])} {on1}"
    if agreement[best] < max(_LEAST_AGREEMENT, agreement_by_chance(half, 1 + encoding.table_queries.tried)):
        return ""
    first, second = stated(answers[:half, best], answers[half:, best])
    words = shortened(one_line(encoding.table_queries.names[best]))
    return f"{words}: {first} {on0}, {second} {on1}"


def _outcome(parts: Parts, table: str) -> str:
    """Describe an output by whether it contains the table, or else by its type, such as "raised ValueError"."""
    if table in parts.tables:
        return "a table"
    kind, message = parts.labels.get("type of output", "unknown"), parts.labels.get("message of output", "")
    return shortened(one_line(f"{kind}: {message}" if message else kind))


def _usual(outcomes: list[str]) -> str:
    ((outcome, times),) = Counter(outcomes).most_common(1)
    return outcome if times == len(outcomes) else f"mostly {outcome}"


def _sides(queries: Queries) -> tuple[str, str]:
    row0, row1 = queries.targets
    if row0 is None and row1 is not None:
        return "without the record", "with it"
    if row0 is not None and row1 is None:
        return "with the record", "without it"
    return "on d0", "on d1"


def _agreement(first: Array, second: Array) -> float:
    """Return the mean share of answers on either dataset that the best cut identifies; NaN counts as the largest."""
    values = np.concatenate([first, second])
    order = np.argsort(values, kind="stable")
    ranked = np.nan_to_num(values[order], nan=np.inf)
    of_first = np.repeat([True, False], [len(first), len(second)])[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], False))
    if not len(ends):
        return 0.5
    gain = np.cumsum(of_first)[ends] / len(first) - np.cumsum(~of_first)[ends] / len(second)
    return float(0.5 + np.abs(gain).max() / 2)


def agreement_by_chance(n: int, tried: int) -> float:
    """Return an agreement that the best of several queries rarely reaches by chance.

    The agreement is (1 + D) / 2 with the two-sample Kolmogorov-Smirnov distance D.  If both samples of size n have one
    law, then P(D >= d) <= e exp(-n d^2) (Wei & Dudley 2012, Thm 1).  A union bound covers all queries.  The conditions
    of queries are proposed by the outputs of both datasets together.  Given these outputs, their division between the
    datasets is uniformly random, so the bound also holds for queries that were chosen by the same outputs.
    """
    return 0.5 + 0.5 * float(np.sqrt(np.log(np.e * tried / CHANCE) / n))


def stated(first: Array, second: Array) -> tuple[str, str]:
    """State the answers on both datasets: all answers if those on the two datasets do not overlap."""
    known = [side[~np.isnan(side)] for side in (first, second)]
    if not all(len(side) for side in known):
        return _range(known[0], ""), _range(known[1], "")
    apart = known[0].max() < known[1].min() or known[1].max() < known[0].min()
    if apart:
        return _range(known[0], ""), _range(known[1], "")
    inner = [np.quantile(side, _INNER, method="nearest") for side in known]
    return _range(inner[0], "mostly "), _range(inner[1], "mostly ")


def _range(answers: Array, before: str) -> str:
    if not len(answers):
        return "no rows"
    low, high = f"{answers.min():.4g}", f"{answers.max():.4g}"
    return before + (low if low == high else f"{low} to {high}")
