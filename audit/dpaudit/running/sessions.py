"""Sessions: mechanisms that answer query after query, each chosen by an analyst from the answers before."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpaudit.running.mechanisms import resolved
from dpaudit.values import Dataset, key

MAX_ASKS = 1_000
"""An analyst asks at most this many queries of a session, so that sessions which never refuse end, too."""

ERASED = ("erased",)
"""The output in place of a transcript that did not survive the thinning; see `dpaudit.engine.interactive`."""

Opens = Callable[[Dataset, np.random.Generator], Any]
"""Opens a session: `(dataset, rng) -> session`."""


class Refused(Exception):
    """A session refuses a query, for example because its budget is spent."""


class NotReported(ValueError):
    """A session does not report an epsilon, so what it reports cannot be tested."""


class Step(NamedTuple):
    """What an analyst knows about one query of a session."""

    query: Any
    outcome: str  # "answer", "nothing" if the answer is None or NaN, "refused", or the class of an exception
    value: Any  # the answer, or the message of the exception
    spent: float | None  # epsilon that the session reports after the query; None if it reports nothing


class OfChild(NamedTuple):
    """A query to one of several children of a session, which `session.child()` opens at the first query to each."""

    child: int
    query: Any


class Analyst(Protocol):
    """Chooses the queries of a session.  It is the same in all sessions of an audit: each session has its own copy.

    An analyst may have a method `begin()`, which returns the analyst of one session; this one may keep what it likes.
    It may also have a method `concludes(history) -> number`, whose result ends the transcript.
    """

    @property
    def name(self) -> str: ...

    def next(self, history: Sequence[Step], rng: np.random.Generator) -> Any | None:
        """Return the next query, given the steps of this session so far; None ends the session."""


@dataclass(frozen=True, slots=True)
class Visit:
    """What a run of `Sessions` gets in place of a dataset."""

    dataset: Dataset
    analyst: str  # name
    thinned: bool = False  # whether transcripts survive only with the probability e^-spent

    def __repr__(self) -> str:
        return repr(self.dataset)  # the label of a pair names the analyst


@dataclass(frozen=True, slots=True)
class Sessions:
    """The mechanism whose output is the transcript of one session with one analyst.

    A transcript is a tuple of steps (query, outcome, value, spent), with the number of the query in the schema in place
    of the query itself.  Refusals, errors and what is reported are parts of it, because the analyst sees them.  The
    conclusion of an analyst follows as ("concludes", number).

    Args:
        open_session: Opens a session, with `ask(query)`, which raises `Refused`, and optionally `spent` and `child()`,
            which opens a session within this one.
        queries: The schema: queries that analysts may ask.
        analysts: The analysts that visits name.
        reported: Whether the session must report what it has spent.
    """

    open_session: Opens
    queries: tuple[Any, ...]
    analysts: tuple[Analyst, ...]
    reported: bool = False

    def __call__(self, visit: Visit, rng: np.random.Generator) -> tuple[Any, ...]:
        # a session may do with its own generator what it likes, such as to restart it from its seed
        survival, seeds = rng.random(), rng.integers(2**63, size=(2, 4))
        own = np.random.default_rng(seeds[0])
        session = self.open(visit.dataset, np.random.default_rng(seeds[1]))
        analyst: Any = next(analyst for analyst in self.analysts if analyst.name == visit.analyst)
        shared = {id(query): query for query in self.queries}  # some cannot be copied
        analyst = analyst.begin() if hasattr(analyst, "begin") else copy.deepcopy(analyst, shared)
        history: list[Step] = []
        children: dict[int, Any] = {}
        while len(history) < MAX_ASKS and (query := analyst.next(tuple(history), own)) is not None:
            try:
                if not isinstance(query, OfChild):
                    outcome, value = "answer", session.ask(query)
                else:
                    if query.child not in children:
                        children[query.child] = session.child()
                    outcome, value = "answer", children[query.child].ask(query.query)
                if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
                    outcome = "nothing"
            except Refused as error:
                outcome, value = "refused", str(error)
            except Exception as error:  # the analyst sees it
                outcome, value = type(error).__name__, str(error)
            history.append(Step(query, outcome, value, self._spent(session)))
        if visit.thinned and survival >= math.exp(-(history[-1].spent or 0.0) if history else 0.0):
            return ERASED
        steps = tuple(step._replace(query=self.number(step.query)) for step in history)
        return (*steps, ("concludes", analyst.concludes(history))) if hasattr(analyst, "concludes") else steps

    def open(self, dataset: Dataset, rng: np.random.Generator) -> Any:
        """Open a session; a mechanism of a config is loaded first."""
        opens: Any = resolved(self.open_session)
        return opens(dataset, rng)

    def number(self, query: Any) -> int | str:
        """Return the number of a query in the schema, or its text if it is not in the schema."""
        for number, known in enumerate(self.queries):
            if known is query or key(known) == key(query):
                return number
        return repr(query)

    def _spent(self, session: Any) -> float | None:
        spent = getattr(session, "spent", None)
        spent = spent() if callable(spent) else spent
        if spent is None and not self.reported:
            return None
        if isinstance(spent, bool) or not isinstance(spent, int | float | np.number) or not float(spent) >= 0:
            raise NotReported(
                f"session.spent must be the epsilon spent so far, a number >= 0, got {spent!r}.  A session that "
                'reports nothing, or delta or rho, can be audited with a claim about the whole session, not "reported"'
            )
        return float(spent)
