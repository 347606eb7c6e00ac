"""Subjects of PyDP, of dp-accounting's events, and of numpy functions with a stated sensitivity."""

import importlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, LaplaceDP, Pair, PureDP, Verdict
from dpaudit.libraries import Subject, accounting, audit_subject, pydp, smartnoise_sql
from dpaudit.libraries import numpy as functions
from dpaudit.libraries.subject import UnknownSubject

from ..unseeded import CONFIDENCE

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def cases() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(str(BENCHMARKS))
        yield lambda library: importlib.import_module("subject_cases").LIBRARIES[library][1]()


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> Any:
    pld = importlib.import_module("dp_accounting.pld")
    monkeypatch.setattr(pld, "PLDAccountant", partial(pld.PLDAccountant, value_discretization_interval=1e-2))
    return importlib.import_module("dp_accounting")


@pytest.mark.chance
def test_every_algorithm_of_pydp_is_a_subject(cases: Any) -> None:
    found = cases("pydp")
    assert len(found) == 9
    for make in found.values():
        subject = make()
        assert subject.claim == PureDP(1.0)
        assert all(len(pair.d1) == len(pair.d0) + 1 for pair in subject.pairs)
        assert len(subject.mechanism.sample(subject.pairs[0].d1, 2, np.random.default_rng(0))) == 2


def test_an_algorithm_that_estimates_its_bounds_needs_pairs() -> None:
    laplacian = importlib.import_module("pydp.algorithms.laplacian")
    with pytest.raises(UnknownSubject, match="BoundedSum without lower_bound and upper_bound estimates its bounds"):
        pydp.subject(laplacian.BoundedSum, epsilon=1.0)
    large = [Pair([1] * 3000, [1] * 3001)]
    assert pydp.subject(laplacian.BoundedSum, epsilon=1.0, pairs=large).claim == PureDP(1.0)


def test_a_gaussian_event_has_the_claim_of_gaussian_noise() -> None:
    """Noise multiplier 2 is mu = 1/2; the accountant rounds delta up, by less than 0.001."""
    da = importlib.import_module("dp_accounting")
    claim = accounting.subject(da.GaussianDpEvent(2.0)).claim
    for epsilon in (0.0, 0.5, 1.0):
        assert 0 <= claim.delta(epsilon) - GaussianDP(0.5).delta(epsilon) < 1e-3


def test_an_accountant_that_states_too_much_noise_is_refuted(coarse: Any) -> None:
    """The accountant is told four times the noise of the simulation.  Seeded, so the test fails never or always."""
    right, wrong = accounting.subject(coarse.GaussianDpEvent(1.0)), accounting.subject(coarse.GaussianDpEvent(4.0))
    mixed = Subject(
        mechanism=right.mechanism, claim=wrong.claim, pairs=right.pairs, name="mixed", source="four times the noise"
    )
    assert audit_subject(mixed, trials=1_000, seed=0, confirm="never", attacks="logistic").violated
    assert audit_subject(right, trials=100, seed=0, attacks="logistic").verdict is Verdict.NO_VIOLATION


@pytest.mark.usefixtures("coarse")
def test_events_are_simulated_with_all_their_outputs(cases: Any) -> None:
    rng = np.random.default_rng(0)
    columns = {name: np.shape(make().mechanism.sample([1.0], 5, rng)) for name, make in cases("accounting").items()}
    assert columns.pop("DiscreteLaplaceDpEvent", (5, 1)) == (5, 1)  # dp-accounting 0.4.3 has no such event
    assert columns == {
        "GaussianDpEvent": (5, 1),
        "LaplaceDpEvent": (5, 1),
        "ComposedDpEvent": (5, 2),
        "SelfComposedDpEvent": (5, 4),
        "PoissonSampledDpEvent": (5, 4),
    }


def test_the_accountant_of_the_caller_stays_new(coarse: Any) -> None:
    accountant, event = coarse.pld.PLDAccountant(), coarse.GaussianDpEvent(1.0)
    first, second = (accounting.subject(event, accountant=accountant).claim for _ in range(2))
    assert second == first
    accountant.compose(event)
    with pytest.raises(UnknownSubject, match=r"the PLDAccountant has composed Gaussian.*pass a new accountant"):
        accounting.subject(event, accountant=accountant)


def test_an_accountant_for_replaced_records_is_refused() -> None:
    da, pld = importlib.import_module("dp_accounting"), importlib.import_module("dp_accounting.pld")
    accountant = pld.PLDAccountant(da.NeighboringRelation.REPLACE_ONE)
    with pytest.raises(UnknownSubject, match="the relation of the PLDAccountant is REPLACE_ONE; pass PLDA"):
        accounting.subject(da.GaussianDpEvent(1.0), accountant=accountant)


def test_a_number_gets_the_curve_of_laplace_noise_and_a_vector_a_pure_claim() -> None:
    given: dict[str, Any] = {"sensitivity": 1.0, "epsilon": 0.5, "bounds": (0.0, 1.0)}
    assert functions.subject(np.sum, **given).claim == LaplaceDP(0.5)
    assert functions.subject(np.sort, **given).claim == PureDP(0.5)
    assert functions.subject(np.sort, sensitivity=1.0, mu=0.5).claim == GaussianDP(0.5)


def test_a_sensitivity_that_is_too_small_is_refuted_and_the_right_one_is_not() -> None:
    """The maximum of ten numbers changes by 1 and not by 1/10.  Seeded, so the test fails never or always."""
    wrong = functions.subject(np.max, sensitivity=0.1, epsilon=1.0, bounds=(0.0, 1.0))
    assert audit_subject(wrong, trials=500, seed=0, confirm="never", attacks="logistic").violated
    right = functions.subject(np.max, sensitivity=1.0, epsilon=1.0, bounds=(0.0, 1.0))
    assert audit_subject(right, trials=200, seed=0, attacks="logistic").verdict is Verdict.NO_VIOLATION


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sensitivity": 1.0}, "exactly one of epsilon"),
        ({"sensitivity": 1.0, "epsilon": 1.0, "mu": 1.0}, "exactly one of epsilon"),
        ({"sensitivity": 0.0, "epsilon": 1.0}, "sensitivity must be > 0 and finite, got 0.0"),
        ({"sensitivity": 1.0, "epsilon": 1.0, "relation": "one_value"}, "relation must be one of replace_one, add_rem"),
    ],
)
def test_wrong_numbers_and_relations_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UnknownSubject, match=words):
        functions.subject(np.sum, **arguments)


@pytest.mark.chance
def test_settings_of_audit_subject_reach_the_audit(cases: Any) -> None:
    """Only the settings are compared, and no verdict."""
    how: Any = {"trials": 20, "attacks": "logistic", "name": "mine", "confidence": CONFIDENCE}
    result = audit_subject(cases("numpy")["sum, Laplace noise"](), **how)
    assert (result.name, result.confidence) == ("mine", CONFIDENCE)


def sql_facts(**more: Any) -> dict[str, Any]:
    columns = {
        "user": {"type": "int", "private_id": True},
        "region": {"type": "string"},
        "amount": {"type": "float", "lower": 0.0, "upper": 10.0, "nullable": True},
    }
    return {
        "columns": columns,
        "user": "user",
        "censored": False,
        "sampled": True,
        "max_ids": 2,
        "clamped": True,
        "d_out": [1.0, 1e-5],
        "query": "SELECT SUM(amount) AS t FROM shop.sales",
        "version": "1",
        **more,
    }


def test_a_query_has_its_privacy_cost_as_claim() -> None:
    assert smartnoise_sql.claim_of(sql_facts()) == ApproxDP(epsilon=1.0, delta=1e-5)
    assert smartnoise_sql.claim_of(sql_facts(d_out=[1.0, 0.0])) == PureDP(1.0)


def test_tables_of_a_query_differ_in_one_user_with_many_rows_or_in_one_row() -> None:
    for pair in smartnoise_sql.pairs_of(sql_facts()):
        assert len(set(pair.d1["user"]) - set(pair.d0["user"])) == 1
    assert max(len(pair.d1["user"]) - len(pair.d0["user"]) for pair in smartnoise_sql.pairs_of(sql_facts())) == 10
    rows = smartnoise_sql.pairs_of(sql_facts(user=None))
    assert {len(pair.d1["user"]) - len(pair.d0["user"]) for pair in rows} == {1}
    assert any("zz" in pair.d1["region"] for pair in rows)
    assert max(len(pair.d0["user"]) for pair in smartnoise_sql.pairs_of(sql_facts(censored=True))) == 24
    assert any(max(pair.d1["amount"]) > 10 for pair in rows)


GROUPED = "SELECT region, SUM(amount) AS t FROM shop.sales GROUP BY region"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (GROUPED, ("region",)),
        ("SELECT region, COUNT(*) AS n FROM shop.sales WHERE amount > 20 GROUP BY region", ("region", "amount")),
        ("SELECT amount > 5 AS big, COUNT(*) AS n FROM shop.sales GROUP BY big", ("region", "amount", "open")),
    ],
)
def test_public_groups_of_a_query_are_the_same_in_both_tables(query: str, names: tuple[str, ...]) -> None:
    """Without censoring, the metadata states that groups are public; a condition also decides which groups occur."""
    columns = {**sql_facts()["columns"], "open": {"type": "boolean"}}
    pairs = smartnoise_sql.pairs_of(sql_facts(query=query, columns=columns))
    assert pairs
    for pair in pairs:
        before, after = (set(zip(*(table[name] for name in names), strict=True)) for table in (pair.d0, pair.d1))
        assert before == after
    free = smartnoise_sql.pairs_of(sql_facts(query=query, columns=columns, censored=True, user=None))
    assert any("zz" in pair.d1["region"] for pair in free)


def test_a_value_beyond_the_bounds_is_tried_in_every_kind_of_table() -> None:
    for more in ({}, {"query": GROUPED}, {"censored": True}, {"user": None}, {"user": None, "censored": True}):
        assert any(max(pair.d1["amount"]) > 10 for pair in smartnoise_sql.pairs_of(sql_facts(**more))), more


@pytest.mark.parametrize(
    ("described", "clamped", "low", "high"),
    [
        ({"lower": 0.0, "upper": 10.0}, False, 0.0, 10.0),
        ({"sensitivity": 3.0}, False, 0.0, 3.0),
        ({"lower": -5.0, "upper": 10.0, "sensitivity": 3.0}, True, -3.0, 3.0),
        ({"lower": 0.0, "upper": 3.0, "sensitivity": 3.0}, True, 0.0, 3003.0),
    ],
)
def test_values_keep_bounds_and_sensitivities_that_the_library_does_not_enforce(
    described: dict[str, float], clamped: bool, low: float, high: float
) -> None:
    columns = {"amount": {"type": "float", "nullable": False, **described}}
    pairs = smartnoise_sql.pairs_of(sql_facts(columns=columns, user=None, clamped=clamped))
    found = [value for pair in pairs for value in pair.d1["amount"]]
    assert (min(found), max(found)) == (low, high)


def test_promises_that_leave_no_pair_are_refused() -> None:
    query = "SELECT region, COUNT(*) AS n FROM shop.sales WHERE user > 3 GROUP BY region"
    with pytest.raises(UnknownSubject, match="no generated pair has the same groups"):
        smartnoise_sql.pairs_of(sql_facts(query=query))
    columns = {"amount": {"type": "float", "lower": 100.0, "upper": 110.0, "sensitivity": 10.0}}
    with pytest.raises(UnknownSubject, match="column amount has no value within its bounds and its sensitivity"):
        smartnoise_sql.pairs_of(sql_facts(columns=columns, user=None))
