"""Claims and pairs of diffprivlib's objects follow from the facts; the library itself is audited by a benchmark."""

import functools
import math
import sys
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpaudit import ApproxDP, PureDP
from dpaudit.libraries import diffprivlib
from dpaudit.libraries.inside import diffprivlib as inside
from dpaudit.libraries.neighbours import DISTANCES
from dpaudit.libraries.subject import UnknownSubject


def facts(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "name": name, "epsilon": 1.0, "delta": 0.0, "version": "0.6.6", **more}


def test_claims_are_the_epsilon_and_the_delta() -> None:
    assert diffprivlib.claim_of(facts("mechanism", "Laplace")) == PureDP(1.0)
    gaussian = diffprivlib.claim_of(facts("mechanism", "Gaussian", delta=1e-5))
    assert gaussian == ApproxDP(epsilon=1.0, delta=1e-5)
    with pytest.raises(UnknownSubject, match="no claim that could be refuted"):
        diffprivlib.claim_of(facts("mechanism", "Laplace", epsilon=math.inf))


@pytest.mark.parametrize("name", ["Laplace", "Geometric", "LaplaceTruncated"])
def test_inputs_of_noise_differ_by_at_most_the_sensitivity(name: str) -> None:
    bounds = {"lower": 0, "upper": 10} if name == "LaplaceTruncated" else {}
    pairs = diffprivlib.pairs_of(facts("mechanism", name, sensitivity=1, **bounds))
    assert len(pairs) >= 3
    assert all(abs(Fraction(pair.d0) - Fraction(pair.d1)) <= 1 for pair in pairs)
    if bounds:
        assert all(0 <= value <= 10 for pair in pairs for value in (pair.d0, pair.d1))


def test_utilities_move_in_one_direction_if_they_are_monotonic() -> None:
    given = {"sensitivity": 1.0, "utility": [0.0, 1.0, 2.0]}
    both = diffprivlib.pairs_of(facts("mechanism", "Exponential", **given, monotonic=False))
    one = diffprivlib.pairs_of(facts("mechanism", "Exponential", **given, monotonic=True))
    directions = [{a < b for a, b in zip(pair.d0, pair.d1, strict=True) if a != b} for pair in both]
    assert {True, False} in directions
    assert all(len({a < b for a, b in zip(p.d0, p.d1, strict=True) if a != b}) == 1 for p in one)


@pytest.mark.parametrize(
    ("name", "more", "distance"),
    [
        ("Laplace", {"sensitivity": 1e13}, 1e13),
        ("Exponential", {"sensitivity": 1e13, "utility": [0.0, 1.0], "monotonic": False}, 1e13),
        ("LaplaceTruncated", {"sensitivity": 100, "lower": 0, "upper": 10}, 10),
        ("GeometricTruncated", {"sensitivity": 100, "lower": 0.5, "upper": 9.5}, 8),
        ("LaplaceTruncated", {"sensitivity": 1, "lower": -math.inf, "upper": 10}, 1),
    ],
)
def test_some_inputs_differ_by_the_whole_sensitivity(name: str, more: dict[str, Any], distance: float) -> None:
    pairs = diffprivlib.pairs_of(facts("mechanism", name, **more))
    changes = [
        DISTANCES["LInfDistance"](*(side if "utility" in more else [side] for side in (pair.d0, pair.d1)))
        for pair in pairs
    ]
    assert max(changes) == distance
    limits = more.get("lower", -math.inf), more.get("upper", math.inf)
    assert "utility" in more or all(limits[0] <= x <= limits[1] for pair in pairs for x in (pair.d0, pair.d1))


@pytest.mark.parametrize("more", [{"sensitivity": 0}, {"sensitivity": 1, "lower": 2.0, "upper": 2.0}])
def test_a_sensitivity_that_no_inputs_reach_is_refused(more: dict[str, Any]) -> None:
    given = facts("mechanism", "Laplace", **more)
    with pytest.raises(UnknownSubject, match="finds no inputs of Laplace that differ by about"):
        diffprivlib.pairs_of(given)


@pytest.mark.parametrize(
    ("kind", "name", "given", "missing"),
    [
        ("model", "LinearRegression", {"bounds_X": (0.0, 1.0)}, "bounds_y"),
        ("model", "LinearRegression", {}, "bounds_X and bounds_y"),
        ("model", "PCA", {"bounds": (0.0, 1.0), "centered": True}, "data_norm"),
        ("tool", "nanstd", {}, "bounds"),
        ("tool", "histogram", {"bins": 3}, "range"),
        ("tool", "histogramdd", {"bins": [2, 3]}, "range"),
    ],
)
def test_arguments_that_come_from_the_data_are_refused(
    kind: str, name: str, given: dict[str, Any], missing: str
) -> None:
    """diffprivlib warns of a privacy leak in these cases, so that its epsilon is no claim."""
    with pytest.raises(UnknownSubject, match=f"{name} computes {missing} from the data.*pass {missing}, or"):
        diffprivlib.claim_of(facts(kind, name, **given))


def test_arguments_that_the_object_does_not_need_may_be_missing() -> None:
    for given in (
        facts("tool", "histogram", bins=[0.0, 0.5, 1.0]),
        facts("tool", "histogramdd", bins=[[0.0, 1.0], [0.0, 1.0]]),
        facts("tool", "count_nonzero"),
        facts("model", "PCA", data_norm=2.0, centered=True),
    ):
        assert diffprivlib.claim_of(given) == PureDP(1.0)


def test_a_replaced_row_of_k_means_stays_in_its_cluster() -> None:
    with pytest.raises(UnknownSubject, match="pairs for KMeans with n_clusters=1 only"):
        diffprivlib.pairs_of(facts("model", "KMeans", bounds=(0.0, 1.0), n_clusters=2))
    assert diffprivlib.pairs_of(facts("model", "KMeans", bounds=(0.0, 1.0), n_clusters=1))


@pytest.mark.parametrize(
    ("kind", "name", "given"),
    [
        ("tool", "mean", {"bounds": [[0, 0], [1, 1]], "axis": 0}),
        ("model", "LinearRegression", {"bounds_X": [0.0, 1.0], "bounds_y": [[0.0, 0.0], [1.0, 1.0]]}),
    ],
)
def test_bounds_of_several_columns_need_pairs(kind: str, name: str, given: dict[str, Any]) -> None:
    with pytest.raises(UnknownSubject, match=r"bounds of a tool or of a target must be two numbers\.  Pass the pairs"):
        diffprivlib.pairs_of(facts(kind, name, **given))


def test_tools_replace_a_record_and_histograms_add_one() -> None:
    mean = diffprivlib.pairs_of(facts("tool", "mean", bounds=(0.0, 1.0)))
    assert all(len(pair.d0) == len(pair.d1) and pair.relation == "replace_one" for pair in mean)
    assert any(max(pair.d1) > 1 for pair in mean)
    count = diffprivlib.pairs_of(facts("tool", "count_nonzero"))
    assert all(pair.relation == "replace_one" and set(pair.d1) <= {0.0, 1.0} for pair in count)
    histogram = diffprivlib.pairs_of(facts("tool", "histogram", range=(0.0, 1.0)))
    assert all(len(pair.d1) == len(pair.d0) + 1 and pair.relation == "add_remove" for pair in histogram)


def test_only_tools_that_skip_nans_get_a_nan() -> None:
    def has_nan(name: str) -> bool:
        pairs = diffprivlib.pairs_of(facts("tool", name, bounds=(0.0, 1.0)))
        return any(value != value for pair in pairs for value in pair.d1)

    assert has_nan("nanmean")
    assert not has_nan("mean")


def test_rows_of_a_model_end_with_a_target() -> None:
    pairs = diffprivlib.pairs_of(facts("model", "LinearRegression", bounds_X=(0.0, 1.0), bounds_y=(-1.0, 2.0)))
    rows = [row for pair in pairs for row in pair.d1]
    assert {len(row) for row in rows} == {3}
    assert {row[-1] for row in rows} == {-1.0, 2.0}
    listed = diffprivlib.pairs_of(facts("model", "LinearRegression", bounds_X=(0.0, 1.0), bounds_y=[[-1.0], [2.0]]))
    assert listed == pairs


@pytest.mark.parametrize(
    ("name", "more"), [("GaussianNB", {"bounds": (0.0, 1.0)}), ("LogisticRegression", {"data_norm": 2.0})]
)
def test_both_classes_occur_in_every_dataset_of_a_classifier(name: str, more: dict[str, Any]) -> None:
    pairs = diffprivlib.pairs_of(facts("model", name, **more))
    assert all({row[-1] for row in side} == {0.0, 1.0} for pair in pairs for side in (pair.d0, pair.d1))
    changed = [(old[-1], new[-1]) for pair in pairs for old, new in zip(pair.d0, pair.d1, strict=True) if old != new]
    assert len(changed) == len(pairs)
    assert any(old != new for old, new in changed) == (name == "LogisticRegression")


def test_an_object_without_known_inputs_is_refused() -> None:
    with pytest.raises(UnknownSubject, match=r"does not know how to make pairs.*pairs=\[Pair"):
        diffprivlib.pairs_of(facts("mechanism", "Bingham", sensitivity=1.0))


def test_an_empty_dataset_of_a_two_dimensional_histogram_has_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is replaced by a function with the same arguments, because its pins conflict with our newest."""
    seen = []

    def histogram2d(x: Any, y: Any, range: Any, accountant: Any) -> tuple[int, list[float]]:
        seen.append((len(x), len(y)))
        return 0, []

    accountants = SimpleNamespace(BudgetAccountant=object)
    monkeypatch.setitem(sys.modules, "diffprivlib.accountant", accountants)
    tool = functools.partial(histogram2d, range=[(0, 1), (0, 1)])
    assert inside.sample(tool, [], 2) == [0, 0]
    assert inside.sample(tool, [[0.1, 0.2]] * 3, 1) == [0]
    assert seen == [(0, 0), (0, 0), (3, 3)]


@pytest.mark.parametrize("norm", [0.5, 2.0])
def test_second_moments_differ_by_one_record_of_the_largest_norm(norm: float) -> None:
    pairs = diffprivlib.pairs_of(facts("mechanism", "Wishart", sensitivity=norm))
    assert len(pairs) == 3
    for pair in pairs:
        change = np.array(pair.d1) - np.array(pair.d0)
        assert np.linalg.matrix_rank(change) == 1
        assert np.trace(change) == norm**2  # x x^T has the trace |x|^2
        assert np.all(np.linalg.eigvalsh(np.array(pair.d0)) >= 0)
