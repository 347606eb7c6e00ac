"""Claims and pairs are read from OpenDP's measurements.  Only the facts are read inside the library's environment."""

import importlib
import math
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import ApproxDP, Pair, PrivacyLoss, PureDP, RenyiDP, Verdict, ZeroConcentratedDP
from dpaudit.libraries import audit_subject, neighbours, opendp
from dpaudit.libraries.cells import cells_of, parsed
from dpaudit.libraries.inside import opendp as inside
from dpaudit.libraries.subject import UnknownSubject
from dpaudit.values import key

from ..unseeded import CONFIDENCE

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
TWO = {
    "make_private_quantile, 20 of f64",
    "sum of 5, f64",
    "mean of 5, f64",
    "variance of 5, f64",
}  # measurements on vectors of a fixed size, with d_in = 2
EVENTS = np.linspace(0.001, 0.999, 37)


@pytest.fixture(scope="module")
def dp() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prelude = importlib.import_module("opendp.prelude")
    prelude.enable_features("contrib", "honest-but-curious")
    return prelude


@pytest.fixture(scope="module")
def cases() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("subject_cases.opendp").cases()


def facts(domain: str, metric: str = "SymmetricDistance()", d_in: Any = 1, **more: Any) -> dict[str, Any]:
    return {"domain": domain, "metric": metric, "d_in": d_in, "hints": [], **more}


def loss(measure: str, d_out: Any) -> Any:
    return opendp.claim_of({"measure": measure, "d_out": d_out, "d_in": 1})


def test_a_subject_of_every_measurement_has_a_claim_and_pairs_of_neighbours(cases: Any) -> None:
    """At least 40 constructors with types; the distance of each pair is computed without the generator."""
    made = {name: make() for name, make in cases.items()}
    assert len(made) >= 40
    for name, subject in made.items():
        assert 0 < subject.claim.beta(0.01) < 1, name
        assert 1 <= len(subject.pairs) <= 10, name
        measurement = subject.mechanism.made
        metric = parsed(repr(measurement.input_metric)).name
        for pair in subject.pairs:
            assert key(pair.d0) != key(pair.d1), name
            if metric in neighbours.DISTANCES:
                assert neighbours.within(metric, pair.d0, pair.d1, 2 if name in TWO else 1), name
            assert measurement.input_domain.member(pair.d0), name
            assert measurement.input_domain.member(pair.d1), name


@pytest.mark.chance
@pytest.mark.parametrize(
    "name", ["make_laplace, f64", pytest.param("make_alp_queryable, String to u32", marks=pytest.mark.slow)]
)
def test_three_lines_lead_from_a_measurement_to_a_verdict(cases: Any, name: str) -> None:
    """So few runs may be too few to see any violation.  Fails by chance < 1 in 10**6, by the confidence."""
    result = audit_subject(cases[name](), trials=100, confidence=CONFIDENCE)
    assert result.trials_used == 100
    assert result.verdict is Verdict.NO_VIOLATION or "too few to see any violation" in result.warnings[0]
    assert result.provenance.mechanism == "Measured"


@pytest.mark.slow
@pytest.mark.chance
def test_no_measurement_is_refuted_but_the_one_that_is_known_to_be_wrong(cases: Any) -> None:
    """The length of a bit vector shows: OpenDP issue 2930.  Fails by chance < 1 in 10**5, by the confidence."""
    results = {
        name: audit_subject(make(), trials=300, confidence=CONFIDENCE, confirm="never") for name, make in cases.items()
    }
    assert {name for name, result in results.items() if result.violated} <= {"make_randomized_response_bitvec"}
    assert all(result.verdict is not Verdict.INCONCLUSIVE for result in results.values())


@pytest.mark.chance
def test_a_measurement_whose_map_promises_too_much_is_refuted(dp: Any) -> None:
    """The noise has epsilon 2, and the map says 0.1.

    Fails by chance < 1 in 10**6: a fifth of the outputs differ from the others, and 2,000 runs give 16 nats many times.
    """
    records = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
    noise = dp.m.make_laplace(dp.atom_domain(T="i32"), dp.absolute_distance(T="i32"), 0.5)
    leak = dp.m.make_user_measurement(
        *records, dp.max_divergence(), lambda dataset: noise(len(dataset)), lambda d_in: 0.1, TO="i32"
    )
    assert audit_subject(
        opendp.subject(leak, pairs=[Pair([1], [1, 2])]),
        trials=2_000,
        confidence=CONFIDENCE,
        confirm="never",
        attacks="logistic",
    ).violated


def test_claims_are_the_privacy_map_in_terms_of_the_measure() -> None:
    assert loss("MaxDivergence", 0.5) == PureDP(0.5)
    assert loss("MaxDivergence(f64)", 0.5) == PureDP(0.5)
    assert loss("ZeroConcentratedDivergence", 0.125) == ZeroConcentratedDP(0.125)
    assert loss("Approximate(MaxDivergence)", [0.5, 1e-6]) == ApproxDP(epsilon=0.5, delta=1e-6)
    assert loss("FixedSmoothedMaxDivergence(f64)", [0.5, 1e-6]) == ApproxDP(epsilon=0.5, delta=1e-6)
    assert loss("SmoothedMaxDivergence", [[0.0, 0.3], [1.0, 0.1]]) == PrivacyLoss(epsilon=[0, 1], delta=[0.3, 0.1])
    assert loss("SmoothedMaxDivergence(f64)", [0.5, 1e-6]) == ApproxDP(epsilon=0.5, delta=1e-6)
    assert loss("RenyiDivergence", [[2.0, 0.5], [4.0, 1.0], [8.0, math.inf]]) == RenyiDP(order=[2, 4], epsilon=[0.5, 1])
    assert loss("Approximate(ZeroConcentratedDivergence)", [0.125, 0.0]) == ZeroConcentratedDP(0.125)


def test_approximate_zcdp_scales_the_curve_of_zcdp() -> None:
    """The curve is (1 - delta) f(alpha / (1 - delta)), here with delta = 0.1."""
    found, exact = loss("Approximate(ZeroConcentratedDivergence)", [0.125, 0.1]), ZeroConcentratedDP(0.125)
    expected = np.where(EVENTS < 0.9, 0.9 * exact.beta(np.minimum(EVENTS / 0.9, 1.0)), 0.0)
    np.testing.assert_allclose(found.beta(EVENTS), expected, atol=1e-12)


def test_a_curve_of_renyi_divergences_becomes_a_claim_for_some_orders(dp: Any) -> None:
    """A Gaussian measurement with mu = 1 has the Renyi curve a / 2, so the claim lies below zCDP with rho = 1/2."""
    one = dp.atom_domain(T=bool), dp.discrete_distance()
    made = dp.m.make_user_measurement(*one, dp.renyi_divergence(), bool, lambda d_in: lambda order: order / 2, TO=bool)
    claim = opendp.subject(made).claim
    assert np.all(claim.beta(EVENTS) <= ZeroConcentratedDP(0.5).beta(EVENTS) + 1e-4)  # both curves are approximated
    assert np.max(ZeroConcentratedDP(0.5).beta(EVENTS) - claim.beta(EVENTS)) < 0.02


@pytest.mark.parametrize(
    ("measure", "d_out", "words"),
    [
        ("UserDivergence(mine)", 1.0, "pass the claim"),
        ("MaxDivergence", math.inf, "no claim that could be refuted"),
        ("Approximate(MaxDivergence)", [1.0, 1.0], "no claim that could be refuted"),
    ],
)
def test_a_loss_that_is_no_claim_is_refused(measure: str, d_out: Any, words: str) -> None:
    with pytest.raises(UnknownSubject, match=f"(?i){words}"):
        loss(measure, d_out)


def test_an_unknown_domain_is_refused_with_a_list_of_known_domains(dp: Any) -> None:
    mine = dp.user_domain("mine", lambda value: True), dp.user_distance("my metric")
    made = dp.m.make_user_measurement(*mine, dp.max_divergence(), lambda value: 0, lambda d_in: 1.0, TO="i32")
    with pytest.raises(UnknownSubject, match=r"mine .*my metric.*It knows AtomDomain.*pairs=\[Pair"):
        opendp.subject(made)
    assert opendp.subject(made, pairs=[Pair(0, 1)]).pairs == [Pair(0, 1)]


def test_a_claim_about_populations_is_no_claim_about_two_datasets(dp: Any) -> None:
    """Amplification by sampling that the measurement does not do: 0.5-DP for two datasets, 0.28 for populations."""
    sized = dp.vector_domain(dp.atom_domain(bounds=(0, 10)), size=5), dp.symmetric_distance()
    amplified = dp.c.make_population_amplification(sized >> dp.t.then_sum() >> dp.m.then_laplace(20.0), 10)
    for made in (amplified, dp.c.make_composition([amplified, amplified]), amplified >> (lambda total: -total)):
        with pytest.raises(UnknownSubject, match=r"does not sample: .*Audit the measurement that it amplifies"):
            opendp.subject(made, d_in=2)
    assert opendp.subject(amplified, d_in=2, claim=PureDP(0.5)).claim == PureDP(0.5)
    early = facts("AtomDomain(T=i32)", measure="MaxDivergence", d_out=0.1, config="make_population_amplification")
    with pytest.raises(UnknownSubject, match="does not sample"):
        opendp.claim_of(early)


def test_a_domain_of_one_size_needs_a_distance_of_two() -> None:
    sized = "VectorDomain(AtomDomain(bounds=[0, 10], T=i32), size=5)"
    with pytest.raises(UnknownSubject, match="pass d_in=2"):
        opendp.pairs_of(facts(sized))
    assert {len(pair.d0) for pair in opendp.pairs_of(facts(sized, d_in=2))} == {5}


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_a_pair_that_a_rounding_error_moves_too_far_apart_is_left_out(kind: str) -> None:
    """2^40 + 0.1 is rounded to a number at a distance above 0.1."""
    found = facts(f"AtomDomain(T={kind})", f"AbsoluteDistance({kind})", 0.1)
    generated = list(neighbours.numbers(cells_of(parsed(found["domain"])), 0.1))
    assert not all(neighbours.within("AbsoluteDistance", d0, d1, 0.1) for d0, d1, _ in generated)
    assert all(neighbours.within("AbsoluteDistance", pair.d0, pair.d1, 0.1) for pair in opendp.pairs_of(found))


def test_a_monotonic_distance_moves_all_numbers_in_one_direction() -> None:
    for kind, directions in (("", {True, False}), ("monotonic, ", set())):
        found = facts("VectorDomain(AtomDomain(T=i32))", f"LInfDistance({kind}T=i32)")
        moves = [{a < b for a, b in zip(p.d0, p.d1, strict=True) if a != b} for p in opendp.pairs_of(found)]
        assert {frozenset(move) for move in moves if len(move) > 1} == (
            {frozenset(directions)} if directions else set()
        )


@pytest.mark.parametrize(
    ("domain", "records"),
    [
        ("VectorDomain(AtomDomain(nan=true, T=f64))", ["nan", "inf", "5e-324", "1.7976931348623157e+308"]),
        ("VectorDomain(OptionDomain(AtomDomain(T=String)))", ["None", "''", "'zz'"]),
        ("VectorDomain(AtomDomain(T=u32))", ["4294967295", "0"]),
        ("VectorDomain(AllDomain(i32))", ["2147483647", "-2147483648"]),
    ],
)
def test_records_reach_the_limits_of_the_domain(domain: str, records: list[str]) -> None:
    seen = {repr(record) for pair in opendp.pairs_of(facts(domain)) for record in pair.d1}
    assert set(records) <= seen


def test_bounds_and_missing_nans_are_respected() -> None:
    pairs = opendp.pairs_of(facts("VectorDomain(AtomDomain(bounds=[-1.5, 2.0], T=f64))"))
    assert {record for pair in pairs for record in pair.d1} <= {-1.5, 0.25, 2.0}


def test_arguments_of_the_measurement_show_where_outputs_change(dp: Any) -> None:
    """Candidates, categories and bounds of clamping are values of the pairs."""
    whole = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
    clamped = whole >> dp.t.then_clamp((3, 7)) >> dp.t.then_sum() >> dp.m.then_laplace(7.0)
    subject = opendp.subject(clamped)
    assert {3, 7} <= {record for pair in subject.pairs for record in pair.d1}
    assert subject.name.startswith("make_clamp >> make_sum >> make_laplace")
    assert "map(1) under MaxDivergence" in subject.source


def test_bit_vectors_differ_at_both_ends_and_in_length() -> None:
    pairs = opendp.pairs_of(facts("BitVectorDomain(weight=1)", "DiscreteDistance()"))
    found = {(pair.d0, pair.d1) for pair in pairs}
    assert {(b"\x01", b"\x80"), (b"\x01", b"\x01\x00")} <= found
    assert all(int.from_bytes(side, "big").bit_count() <= 1 for pair in found for side in pair)


def test_mappings_get_a_new_key_and_a_count_at_the_threshold() -> None:
    domain = "MapDomain { key_domain: AtomDomain(T=String), value_domain: AtomDomain(T=i32) }"
    found = facts(domain, "L01InfDistance(AbsoluteDistance(i32))", [1, 1, 1])
    pairs = opendp.pairs_of(found | {"hints": [20]})
    assert any(pair.d0 == {} and pair.d1 == {"a": 1} for pair in pairs)
    assert any(pair.d0.get("a") == 20 and pair.d1["a"] == 21 for pair in pairs)
    assert all(neighbours.map_distances(pair.d0, pair.d1) == (1, 1, 1, 1) for pair in pairs)


@pytest.mark.parametrize("metric", ["L01InfDistance", "L02InfDistance"])
def test_new_keys_of_a_mapping_share_the_norm(metric: str) -> None:
    """Three keys may differ by 2 in total and by 1 each, so that three new keys with a count of 1 are too many."""
    domain = "MapDomain { key_domain: AtomDomain(T=String), value_domain: AtomDomain(T=f64) }"
    pairs = opendp.pairs_of(facts(domain, f"{metric}(AbsoluteDistance(f64))", [3, 2.0, 1.0]))
    found = [neighbours.map_distances(pair.d0, pair.d1) for pair in pairs]
    assert max(keys for keys, *_ in found) == 3
    for keys, l1, l2, most in found:
        assert keys <= 3
        assert most <= 1
        assert l1 <= 2 if metric == "L01InfDistance" else l2 <= 4


def test_a_measurement_travels_to_other_processes(dp: Any) -> None:
    made = dp.m.make_laplace(dp.atom_domain(T="i32"), dp.absolute_distance(T="i32"), 2.0)
    copy = pickle.loads(pickle.dumps(opendp.subject(made).mechanism))
    assert copy.made.map(1) == 0.5
    assert len(copy.sample(5, 3, np.random.default_rng(0))) == 3


class OldMeasurement:
    """A measurement as in OpenDP 0.4, which had types, and could only check whether a privacy loss is sufficient."""

    input_carrier_type, input_distance_type, output_distance_type = "bool", "u32", "f64"

    def check(self, d_in: int, d_out: float) -> bool:
        return d_out >= d_in * math.log(3)


def test_one_bit_of_a_release_without_metrics_has_the_least_accepted_epsilon() -> None:
    found = inside.facts(OldMeasurement(), 1)
    assert math.log(3) <= found["d_out"] <= math.log(3) * (1 + 1e-11)
    claim, pairs = opendp.claim_of(found), opendp.pairs_of(found)
    assert claim == PureDP(found["d_out"])
    assert {(pair.d0, pair.d1) for pair in pairs} <= {(False, True), (True, False)}
