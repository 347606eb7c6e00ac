"""Audits of sessions: the theorem of what is reported, by enumeration; calibration, power, and bad input."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import (
    AuditResult,
    MechanismError,
    Pair,
    PrivacyViolation,
    Refused,
    audit,
    audit_interactive,
    parse_claim,
    replay,
)
from dpaudit.claims import PureDP, Reported
from dpaudit.engine.interactive import Again
from dpaudit.inference.grid import bin_of
from dpaudit.inference.sequential.strategy import measuring_strategy
from dpaudit.learning import Learner
from dpaudit.reproduce.literals import Unwritable
from dpaudit.reproduce.script import script_of
from dpaudit.running.sessions import ERASED, Sessions, Step, Visit
from dpaudit.running.streams import trial_streams
from dpaudit.testing import assert_audit
from dpaudit_attacks.sessions import ReportedLaw, SessionLaw, session_ratio
from dpaudit_reports.sections.advice import commands_of

TRUTH = 0.75  # probability of a true answer, which has the privacy loss log 3
LOSS = math.log(TRUTH / (1 - TRUTH))
PAIR = Pair([0], [1])


class Answers:
    """Right: answers twice whether there is a 1, with randomised responses, and reports both."""

    queries: Sequence[Any] = ("one?",)

    def __init__(self, dataset: Sequence[int], rng: np.random.Generator) -> None:
        self.data, self.rng, self.spent = dataset[0], rng, 0.0

    def ask(self, query: str) -> int:
        if self.spent > 1.5 * LOSS:
            raise Refused("spent")
        self.spent += LOSS
        return self.data if self.rng.random() < TRUTH else 1 - self.data


class FreeOnes(Answers):
    """Wrong: a 1 is free."""

    def ask(self, query: str) -> int:
        before = self.spent
        answer = super().ask(query)
        self.spent = before if answer and self.queries == ("one?",) else self.spent
        return answer


class OnceMore:
    """Asks again only after a 0, at most twice."""

    name = "once more after a 0"

    def next(self, history: Sequence[Step], rng: np.random.Generator) -> str | None:
        return None if len(history) == 2 or (history and history[0].value) else "one?"


class ScriptedDraws:
    """Uniform numbers of a script, in place of a generator."""

    def __init__(self, script: Sequence[float]) -> None:
        self.script = list(script)

    def random(self) -> float:
        return self.script.pop(0)

    def integers(self, most: int, size: tuple[int, ...]) -> Any:
        return np.ones(size, dtype=int)


def law(session: type[Answers], dataset: Sequence[int], *, thinned: bool) -> dict[Any, float]:
    """Return the exact law of transcripts of `Sessions`, by enumeration of all responses and the survival."""
    found: dict[Any, float] = defaultdict(float)
    cells = 4_000  # of the survival; the probability of each transcript has an error of at most 1 / cells
    for truths in itertools.product((True, False), repeat=2):
        chance = math.prod(TRUTH if true else 1 - TRUTH for true in truths)

        def opened(dataset: Any, _: Any, truths: tuple[bool, ...] = truths) -> Answers:
            return session(dataset, cast(Any, ScriptedDraws([0.0 if true else 0.99 for true in truths])))

        mechanism = Sessions(opened, tuple(session.queries), (OnceMore(),), True)
        for cell in range(cells):
            survival = cast(Any, ScriptedDraws([(cell + 0.5) / cells]))
            run = mechanism(Visit(dataset, OnceMore.name, thinned), survival)
            found[run] += chance / cells
            if not thinned:
                found[run] += chance * (cells - 1) / cells
                break
    return found


@pytest.mark.parametrize(("d0", "d1"), [([0], [1]), ([1], [0])])
def test_what_survives_on_one_dataset_is_no_likelier_than_on_the_other(d0: list[int], d1: list[int]) -> None:
    """The theorem of `engine.interactive`, and its bound for every event that contains what was erased."""
    survived, other = law(Answers, d0, thinned=True), law(Answers, d1, thinned=False)
    plain = law(Answers, d0, thinned=False)
    for transcript, chance in plain.items():
        expected = chance * math.exp(-transcript[-1][3])
        assert survived[transcript] == pytest.approx(expected, abs=1 / 4_000)
        assert expected <= other[transcript] + 1e-12
    kept = sorted(plain, key=repr)
    for size, s in itertools.product(range(len(kept) + 1), (-2.0, -0.3, 0.0, 0.7)):
        for event in itertools.combinations(kept, size):
            q = sum(other[transcript] for transcript in event)
            p = 1 - sum(plain[one] * math.exp(-one[-1][3]) for one in kept if one not in event)
            assert q <= math.exp(s) * p + Reported().delta(s) + 1e-12


def test_free_answers_survive_too_often() -> None:
    survived, other = law(FreeOnes, [1], thinned=True), law(FreeOnes, [0], thinned=False)
    assert max(survived[one] - other[one] for one in other) > 0.4


def test_what_was_erased_has_the_largest_score_whatever_was_learned() -> None:
    rng = np.random.default_rng(1)

    def transcript(shift: float) -> tuple[Any, ...]:
        steps = [(0, "answer", float(shift + rng.laplace()), 0.3 * (k + 1)) for k in range(rng.integers(0, 4))]
        return tuple(steps) if rng.random() < 0.7 else (*steps, (0, "refused", "no", 0.9))

    strange: list[Any] = [(), ((0, "answer", "text", 0.0),), ((7, "answer", math.nan, math.inf),)]
    strange += [((0, "answer", 1e300, 9.0),), ((0, "Error", "x", None),), (("concludes", -50.0),), "raised"]
    for conclusions in (False, True):
        for rounds in range(6):
            sides = [[transcript(side) for _ in range(10 + 15 * rounds)] for side in (0.0, 1.0)]
            if conclusions:
                sides = [[(*one, ("concludes", float(rng.integers(-2, 2)))) for one in side] for side in sides]
            sides[0] = [ERASED if rng.random() < 0.3 else one for one in sides[0]]
            learner = Learner([ReportedLaw()], seed=rounds, pair=0)
            learner.learn(*learner.read(*sides))
            seen = [transcript(0.0) for _ in range(50)] + strange
            scores = learner.score(learner.read([ERASED, *seen], [ERASED])[0])
            assert scores[0] >= max(scores[1:])
            assert bin_of(scores)[0] == bin_of(scores).max()


def test_the_prices_are_those_of_epsilon_zero() -> None:
    """`Reported` has the curve of epsilon = 0, so a plain product of payoffs by its prices is the wealth."""
    settings: dict[str, Any] = {"sessions": 60, "seed": 1, "confirm": "never", "measure": True}  # no late bets
    evidence: Any = audit_interactive(Answers, "reported", PAIR, analysts=[OnceMore()], **settings).evidence
    bets = measuring_strategy(Reported())
    deltas = [[PureDP(0.0).delta(float(slope)) for slope in row] for row in bets.slopes]
    costs = bets.fixed_costs + (bets.stakes * deltas).sum(axis=1)
    won = []
    for counts in evidence.counts:
        payoffs = counts[0] @ bets.log_payoffs0.T + counts[1] @ bets.log_payoffs1.T
        won.append(payoffs - counts[0].sum() * 2 * np.log(costs / 2))
    wealth = np.exp(bets.log_weights) @ (np.exp(sum(won)) + np.mean(np.exp(won), axis=0)) / 2
    assert evidence.final_log_e(Reported()) == pytest.approx(math.log(wealth), abs=1e-6)


@pytest.mark.parametrize("claim", ["reported", f"pure(epsilon={2 * LOSS})"])
def test_right_sessions_are_rarely_refuted(claim: str) -> None:  # fails by chance < 1 in 10**6
    again = Again("again", ("one?",), 3)
    settings: dict[str, Any] = {"analysts": [again, OnceMore()], "sessions": 60, "confidence": 0.9, "confirm": "never"}
    refuted = [audit_interactive(Answers, claim, PAIR, seed=seed, **settings).violated for seed in range(15)]
    assert sum(refuted) <= binom.ppf(1 - 1e-6, 15, 0.1)


@pytest.mark.parametrize("claim", ["reported", "pure(epsilon=1.5)"])
def test_a_wrong_session_is_refuted_and_the_mended_one_is_not(claim: str) -> None:
    settings: dict[str, Any] = {"sessions": 150, "seed": 1, "confirm": "never"}
    assert audit_interactive(FreeOnes, claim, PAIR, **settings).violated
    claim = claim.replace("1.5", str(2 * LOSS))
    assert not audit_interactive(Answers, claim, PAIR, confidence=1 - 1e-7, **settings).violated  # fails < 1e-6


def test_no_bound_is_shown_for_what_sessions_report(tmp_path: Path) -> None:
    for session in (FreeOnes, Answers):
        result = audit_interactive(session, "reported", PAIR, sessions=120, seed=1, confirm="never")
        assert result.violated == (session is FreeOnes)
        assert not result.bounded
        assert math.isnan(result.mu_lower)
        assert math.isnan(result.epsilon_lower(1e-6))
        assert math.isnan(result.epsilon_lower(0.0, assuming="gaussian"))
        result.to_json(tmp_path / "result.json")
        result.to_html(tmp_path / "page.html")
        again = AuditResult.from_json(tmp_path / "result.json")
        assert (again.claim, again.p_value, again.verdict) == (Reported(), result.p_value, result.verdict)
        for shown in (str(result), result.to_markdown(), (tmp_path / "page.html").read_text(encoding="utf-8")):
            bounds = ("no violation of any size", "epsilon >=", "mu >=", "ε ≥", "μ ≥", "gaussian(", "Certified")
            assert not any(words in shown for words in bounds)


def test_claims_are_read_and_refused_elsewhere() -> None:
    assert parse_claim("reported") == parse_claim("reported()") == Reported()
    assert str(Reported()) == "reported()"
    with pytest.raises(ValueError, match="audit_interactive tests what sessions report"):
        audit(lambda dataset, rng: 0, "reported", PAIR, seed=1)


@pytest.mark.dpaudit
def test_an_assertion_in_a_test_suite() -> None:
    how: dict[str, Any] = {"pairs": PAIR, "sessions": 150, "confirm": "never"}
    with pytest.raises(PrivacyViolation, match="what the session reports"):
        assert_audit("reported", lambda **given: audit_interactive(FreeOnes, **how, **given))


class Children(Answers):
    """Each of two children says once how many records its half of the ages has: log 3 in all, by parallel parts."""

    queries = ("how many?",)
    shared = False

    def __init__(self, dataset: Sequence[int], rng: np.random.Generator) -> None:
        self.ages, self.seeds = dataset, rng.integers(2**31, size=2)
        self.opened = 0

    def child(self) -> Children:
        child = Children([age for age in self.ages if age // 50 == self.opened], np.random.default_rng(1))
        child.rng = np.random.default_rng(self.seeds[0 if self.shared else self.opened])
        self.opened += 1
        return child

    def ask(self, query: str) -> int:
        if not hasattr(self, "rng"):
            raise Refused("ask a child")
        answer = len(self.ages) + int(np.subtract(*self.rng.geometric(1 - math.exp(-LOSS), 2)))
        del self.rng
        return answer


class SharedSeed(Children):
    """Wrong: both children have the same noise, so the difference of their answers is exact."""

    shared = True


def test_children_are_asked_at_the_same_time() -> None:
    """The right one fails by chance < 1 in 10**6.  Neither reports."""
    settings: dict[str, Any] = {"pairs": Pair([20, 60], [20, 60, 70]), "seed": 1, "confirm": "never"}
    claim = PureDP(LOSS)
    assert audit_interactive(SharedSeed, claim, sessions=60, **settings).violated
    assert not audit_interactive(Children, claim, sessions=60, confidence=1 - 1e-7, **settings).violated


class Strange(Answers):
    """Answers with objects, dicts and errors, reports less than before, and never ends."""

    queries = ({"sum": 1}, [1, 2], "raise")

    def ask(self, query: Any) -> Any:
        self.spent = 1.0 if self.spent == 0.0 else 0.0
        if query == "raise":
            raise ZeroDivisionError(f"{self.data} / 0" if self.rng.random() < 0.2 else "x / 0")
        return (
            {"noise": self.rng.laplace(), "label": None} if isinstance(query, dict) else np.array([self.rng.normal()])
        )


@pytest.mark.parametrize("claim", ["reported", "pure(epsilon=5)"])
def test_strange_answers_are_outcomes(claim: str) -> None:
    result = audit_interactive(Strange, claim, PAIR, sessions=40, seed=1, confirm="never")
    assert result.trials_used > 0
    assert not any("dropped" in warning for warning in result.warnings)


def test_a_session_that_never_ends_is_ended() -> None:
    class Endless:
        name = "endless"

        def next(self, history: Sequence[Step], rng: np.random.Generator) -> str:
            return "one?"

    class Free(Answers):
        def ask(self, query: str) -> int:
            return int(self.rng.integers(2))

    mechanism = Sessions(Free, ("one?",), (Endless(),))
    assert len(mechanism(Visit([0], "endless"), np.random.default_rng(1))) == 1_000


def without_spent(value: object) -> Callable[..., Answers]:
    class Other(Answers):
        def ask(self, query: str) -> int:
            self.spent = 0.0
            answer = super().ask(query)
            self.spent = cast(Any, value)
            return answer

    return Other


@pytest.mark.parametrize("value", [None, "0.5", {"rho": 1}, math.nan, -0.1, True])
def test_a_report_that_is_no_epsilon_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="spent must be the epsilon spent so far, a number >= 0"):
        audit_interactive(without_spent(value), "reported", PAIR, sessions=20, seed=1)


def test_a_report_of_infinity_promises_nothing() -> None:
    result = audit_interactive(without_spent(math.inf), "reported", PAIR, sessions=60, seed=1, confirm="never")
    assert not result.violated


class Broken(Answers):
    def __init__(self, dataset: Sequence[int], rng: np.random.Generator) -> None:
        raise OSError("no connection")


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"queries": []}, ValueError, "queries"),
        ({"analysts": "all"}, ValueError, 'analysts must be "auto" or a list'),
        ({"analysts": [Again("a", ("one?",)), Again("a", (), 2)]}, ValueError, "different names"),
        ({"attacks": "auto"}, ValueError, "one attack"),
        ({"open_session": Broken}, MechanismError, "OSError: no connection"),
        ({"open_session": lambda dataset, rng: object()}, ValueError, "no attribute `queries`"),
        ({"pairs": []}, ValueError, "at least one Pair"),
        ({"sessions": 0}, ValueError, "at least 1"),
    ],
)
def test_mistakes_are_said(given: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments = {"open_session": Answers, "claim": "reported", "pairs": PAIR, "seed": 1, **given}
    with pytest.raises(error, match=words):
        audit_interactive(**arguments)


def test_pooled_answers_teach_the_law_of_one() -> None:
    """Ratios of randomised responses are log 3; 300 answers give them an error below 0.7 (fails < 1 in 10**6)."""
    rng = np.random.default_rng(1)
    mechanism = Sessions(Answers, ("one?",), (Again("again", ("one?",), 2),))
    sides = [[mechanism(Visit(data, "again"), rng) for _ in range(150)] for data in ([0], [1])]
    ratio = session_ratio(sides[0], sides[1], rng)
    assert ratio.of_step(0, "", "answer", 1) == pytest.approx(LOSS, abs=0.7)
    assert ratio([sides[0][0]])[0] == pytest.approx(
        sum(ratio.of_step(0, before, *step[1:3]) for before, step in zip(("", "answer"), sides[0][0], strict=True))
    )
    assert SessionLaw().suits(*sides)
    assert not SessionLaw().suits([1.0], [2.0])


SESSION_FILE = """
import math
from dpaudit import Refused

class Free:
    queries = ["one?"]
    spent = 0.0

    def __init__(self, dataset, rng):
        self.data, self.rng = dataset[0], rng

    def ask(self, query):
        return self.data if self.rng.random() < 0.75 else 1 - self.data
"""


def test_a_config_audits_sessions(tmp_path: Path, command: Callable[..., Any]) -> None:
    (tmp_path / "own.py").write_text(SESSION_FILE, encoding="utf-8")
    text = (
        "name: free\nclaim: reported\ninteractive: true\nmechanism: {python: own.py:Free}\n"
        "pairs: [{d0: [0], d1: [1]}]\ntrials: 300\nseed: 1\n"
    )
    (tmp_path / "free.yaml").write_text(text, encoding="utf-8")
    result = command("run", str(tmp_path / "free.yaml"), "-o", str(tmp_path / "out"))
    assert result.exit_code == 1, result.output
    assert AuditResult.from_json(tmp_path / "out" / "free.json").violated
    for wrong, words in (("interactive: true\n", "interactive: true"), ("{python: own.py:Free}", "mechanism.python")):
        (tmp_path / "wrong.yaml").write_text(
            text.replace(wrong, "" if "inter" in wrong else "{builtin: laplace}"), encoding="utf-8"
        )
        result = command("run", str(tmp_path / "wrong.yaml"))
        assert result.exit_code == 2
        assert words in result.output + result.stderr


class AppendsWhenOpened:
    """Reports 1 for each answer, which is right; changes the dataset that it is given."""

    def __init__(self, dataset: list[float], rng: np.random.Generator) -> None:
        dataset.append(3.0)
        self.dataset, self.rng, self.spent, self.queries = dataset, rng, 0.0, ["sum"]

    def ask(self, query: str) -> float:
        self.spent += 1.0
        return sum(self.dataset) + self.rng.laplace(0, 1)


class Withholds(Answers):
    """Wrong: a 0 is withheld as NaN or None, and free."""

    def ask(self, query: str) -> Any:
        before = self.spent
        if super().ask(query):
            return 1.0
        self.spent = before
        return None if self.rng.random() < 0.5 else math.nan


class Counting:
    """Asks in its first two sessions only, if it keeps anything between sessions."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def next(self, history: Sequence[Step], rng: np.random.Generator) -> str | None:
        self.asked.append("one?")
        return "one?" if len(self.asked) <= 2 else None


def test_nothing_as_an_answer_is_an_outcome() -> None:
    settings: dict[str, Any] = {"sessions": 150, "seed": 1, "confirm": "never"}
    assert audit_interactive(Withholds, "reported", PAIR, **settings).violated


def test_an_analyst_keeps_nothing_between_sessions() -> None:
    mechanism = Sessions(Answers, ("one?",), (Counting(),))
    runs = [mechanism(Visit([0], "counting"), np.random.default_rng(seed)) for seed in range(3)]
    assert [len(run) for run in runs] == [2, 2, 2]


class Restarts(Answers):
    """Right, although it restarts its generator from its seed."""

    def __init__(self, dataset: Sequence[int], rng: np.random.Generator) -> None:
        seed: Any = rng.bit_generator.seed_seq
        super().__init__(dataset, np.random.Generator(np.random.Philox(seed)))


def test_sessions_that_restart_their_generator_are_independent() -> None:
    mechanism = Sessions(Restarts, ("one?",), (Again("again", ("one?",), 2),))
    runs = {mechanism(Visit([0], "again"), rng) for rng in trial_streams(1, start=0, stop=60)}  # fails < 1 in 10**6
    assert len(runs) > 1


def test_a_session_that_changes_its_dataset_changes_only_its_copy() -> None:
    """Fails by chance < 1 in 10**6, by the confidence.  Without the copy, the audit refuted a true report."""
    pair = Pair([1.0], [0.0])
    result = audit_interactive(AppendsWhenOpened, "reported", pair, sessions=150, confidence=1 - 1e-7, seed=1)
    assert (pair.d0, pair.d1) == ([1.0], [0.0])
    assert not result.violated


def test_what_sessions_report_has_no_bound_no_replay_and_no_script() -> None:
    """A replay with other attacks would not keep what was erased above all transcripts.  Seeded."""
    result = audit_interactive(FreeOnes, "reported", PAIR, sessions=120, seed=1, confirm="never")
    assert result.violated
    with pytest.raises(ValueError, match="audit again with another seed"):
        replay(result, FreeOnes, PAIR, seed=2)
    with pytest.raises(Unwritable, match="audit again with another seed"):
        script_of(result)
    with pytest.raises(ValueError, match="no bound follows"):
        result.assumed_bound(0.0, "gaussian")
    assert commands_of(result) == []
