"""Sessions: mechanisms that answer query after query, each chosen by an analyst from the answers before."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpaudit.values import Dataset

ASKS = 100
"""An analyst asks at most this many queries of a session, so that sessions which never refuse end, too."""

ERASED = ("erased",)
"""The outcome in place of a transcript that did not survive the thinning; see `dpaudit.engine.interactive`."""


class Refused(Exception):
    """A session refuses a query, for example because its budget is spent."""


class Step(NamedTuple):
    """What an analyst knows about one query of a session."""

    query: Any
    outcome: str  # "answer", "refused", or the class of an exception
    value: Any  # the answer, or the message of the exception
    spent: float | None  # epsilon that the session reports after the query; None if it reports nothing


class Analyst(Protocol):
    """Chooses the queries of a session.  It is the same in all sessions of an audit, and keeps nothing between them."""

    name: str

    def next(self, history: Sequence[Step], rng: np.random.Generator) -> Any | None:
        """Return the next query, given the steps of this session so far; None ends the session."""


class Visit(NamedTuple):
    """What a run of `Sessions` gets in place of a dataset."""

    dataset: Dataset
    analyst: Any
    thinned: bool = False  # whether transcripts survive only with the probability e^-spent


@dataclass(frozen=True, slots=True)
class Sessions:
    """The mechanism whose output is the transcript of one session with one analyst.

    A transcript is a tuple of steps (query, outcome, value, spent), with the number of the query in the schema in place
    of the query itself.  Refusals, errors and what is reported are parts of it, because the analyst sees them.

    Args:
        open_session: `(dataset, rng) -> session`, with `ask(query)`, which raises `Refused`, and optionally `spent`.
        queries: The schema: queries that analysts may ask.
        reported: Whether the session must report what it has spent.
    """

    open_session: Callable[[Dataset, np.random.Generator], Any]
    queries: tuple[Any, ...]
    reported: bool = False

    def __call__(self, visit: Visit, rng: np.random.Generator) -> tuple[Any, ...]:
        session = self.open_session(visit.dataset, rng)
        history: list[Step] = []
        while len(history) < ASKS and (query := visit.analyst.next(tuple(history), rng)) is not None:
            outcome, value = "answer", None
            try:
                value = session.ask(query)
            except Refused as error:
                outcome, value = "refused", str(error)
            except Exception as error:  # the analyst sees it
                outcome, value = type(error).__name__, str(error)
            history.append(Step(query, outcome, value, self._spent(session)))
        if visit.thinned and rng.random() >= math.exp(-(history[-1].spent or 0.0) if history else 0.0):
            return ERASED
        return tuple((self._number(step.query), *step[1:]) for step in history)

    def _spent(self, session: Any) -> float | None:
        spent = getattr(session, "spent", None)
        spent = spent() if callable(spent) else spent
        if spent is None and not self.reported:
            return None
        if isinstance(spent, bool) or not isinstance(spent, int | float | np.number) or not float(spent) >= 0:
            raise ValueError(
                f"session.spent must be the epsilon spent so far, a number >= 0, got {spent!r}.  A session that "
                'reports nothing, or delta or rho, can be audited with a claim about the whole session, not "reported"'
            )
        return float(spent)

    def _number(self, query: Any) -> int | str:
        found = next((number for number, known in enumerate(self.queries) if known is query or known == query), None)
        return repr(query) if found is None else found
