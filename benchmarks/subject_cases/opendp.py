"""Measurements of OpenDP: constructors with types, and chains as users build them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from dpaudit.libraries import Subject, opendp


def cases() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each measurement.

    Raises:
        ImportError: If OpenDP is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # opendp.prelude warns about optional packages
        import opendp.prelude as dp
    dp.enable_features("contrib", "honest-but-curious")
    made = [*_noise(dp), *_vectors(dp), *_selection(dp), *_responses(dp), *_counts(dp), *_records(dp), *_converted(dp)]
    return {name: functools.partial(_subject, make, settings) for name, make, settings in made}


Made = tuple[str, Callable[[], Any], dict[str, Any]]


def _subject(make: Callable[[], Any], settings: dict[str, Any]) -> Subject:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated constructors
        return opendp.subject(make(), **settings)


def _atom(dp: Any, kind: str) -> Any:
    return dp.atom_domain(T=kind, nan=False) if kind.startswith("f") else dp.atom_domain(T=kind)


def _noise(dp: Any) -> Iterator[Made]:
    """Yield noise on one number."""
    for kind in ("i32", "i64", "u32", "u64", "f32", "f64"):
        space = _atom(dp, kind), dp.absolute_distance(T=kind)
        yield f"make_laplace, {kind}", functools.partial(dp.m.make_laplace, *space, 2.0), {}
        yield f"make_gaussian, {kind}", functools.partial(dp.m.make_gaussian, *space, 2.0), {}
    for kind in ("i32", "u32", "i64"):
        space = _atom(dp, kind), dp.absolute_distance(T=kind)
        yield f"make_geometric, {kind}", functools.partial(dp.m.make_geometric, *space, 2.0), {}
    space = _atom(dp, "i32"), dp.absolute_distance(T="i32")
    yield "make_geometric, i32, bounds", functools.partial(dp.m.make_geometric, *space, 2.0, bounds=(0, 10)), {}
    space = _atom(dp, "f64"), dp.absolute_distance(T="f64")
    yield "make_canonical_noise, f64", functools.partial(dp.m.make_canonical_noise, *space, 1.0, (1.0, 1e-6)), {}
    space = _atom(dp, "i32"), dp.absolute_distance(T="i32")
    for words, measure in (("pure", dp.max_divergence()), ("zCDP", dp.zero_concentrated_divergence())):
        yield f"make_noise, i32, {words}", functools.partial(dp.m.make_noise, *space, measure, 2.0), {}


def _vectors(dp: Any) -> Iterator[Made]:
    """Yield noise on vectors of numbers."""
    for kind in ("i32", "f32", "f64"):
        domain = dp.vector_domain(_atom(dp, kind))
        sized = dp.vector_domain(_atom(dp, kind), size=4)
        yield (
            f"make_laplace, vector of {kind}",
            functools.partial(dp.m.make_laplace, domain, dp.l1_distance(T=kind), 2.0),
            {},
        )
        yield (
            f"make_gaussian, 4 of {kind}",
            functools.partial(dp.m.make_gaussian, sized, dp.l2_distance(T=kind), 2.0),
            {},
        )
    domain = dp.vector_domain(_atom(dp, "i32"))
    yield (
        "make_geometric, vector of i32",
        functools.partial(dp.m.make_geometric, domain, dp.l1_distance(T="i32"), 2.0),
        {},
    )


def _selection(dp: Any) -> Iterator[Made]:
    """Yield noisy maxima, top-k selection and quantiles."""
    measures = {"pure": dp.max_divergence(), "zCDP": dp.zero_concentrated_divergence()}
    for kind in ("i32", "f64"):
        scores = dp.vector_domain(_atom(dp, kind))
        for words, measure in measures.items():
            for monotonic in (False, True):
                space = scores, dp.linf_distance(T=kind, monotonic=monotonic)
                label = f"vector of {kind}, {words}{', monotonic' if monotonic else ''}"
                yield f"make_noisy_max, {label}", functools.partial(dp.m.make_noisy_max, *space, measure, 2.0), {}
                yield (
                    f"make_noisy_top_k, {label}",
                    functools.partial(dp.m.make_noisy_top_k, *space, measure, 2, 2.0),
                    {},
                )
    numbers = dp.vector_domain(_atom(dp, "i32")), dp.symmetric_distance()
    yield (
        "make_private_quantile, i32",
        functools.partial(dp.m.make_private_quantile, *numbers, dp.max_divergence(), [0, 5, 10], 0.5, 2.0),
        {},
    )
    floats = dp.vector_domain(_atom(dp, "f64"), size=20), dp.symmetric_distance()
    yield (
        "make_private_quantile, 20 of f64",
        functools.partial(dp.m.make_private_quantile, *floats, dp.max_divergence(), [0.0, 5.0, 10.0], 0.5, 2.0),
        {"d_in": 2},
    )


def _responses(dp: Any) -> Iterator[Made]:
    """Yield randomised responses."""
    yield "make_randomized_response_bool", functools.partial(dp.m.make_randomized_response_bool, 0.75), {}
    yield "make_randomized_response, String", functools.partial(dp.m.make_randomized_response, ["a", "b", "c"], 0.6), {}
    bits = dp.bitvector_domain(max_weight=2), dp.discrete_distance()
    yield "make_randomized_response_bitvec", functools.partial(dp.m.make_randomized_response_bitvec, *bits, f=0.5), {}
    yield "make_randomized_response, i32", functools.partial(dp.m.make_randomized_response, [1, 2, 3], 0.6), {}


def _counts(dp: Any) -> Iterator[Made]:
    """Yield noise with a threshold on mappings from keys to counts."""
    for key, kind in (("String", "i32"), ("i32", "f64")):
        domain = dp.map_domain(_atom(dp, key), _atom(dp, kind))
        inner = dp.absolute_distance(T=kind)
        threshold = 10.0 if kind == "f64" else 10
        yield (
            f"make_laplace_threshold, {key} to {kind}",
            functools.partial(dp.m.make_laplace_threshold, domain, dp.l01inf_distance(inner), 2.0, threshold=threshold),
            {},
        )
        yield (
            f"make_gaussian_threshold, {key} to {kind}",
            functools.partial(
                dp.m.make_gaussian_threshold, domain, dp.l02inf_distance(inner), 2.0, threshold=threshold
            ),
            {},
        )
    domain = dp.map_domain(_atom(dp, "String"), _atom(dp, "u32"))
    yield (
        "make_alp_queryable, String to u32",
        functools.partial(
            dp.m.make_alp_queryable, domain, dp.l01inf_distance(dp.absolute_distance(T="u32")), 1.0, 24, 24
        ),
        {"release": _asked},
    )


def _asked(queryable: Any) -> list[float]:
    """Return the noisy counts of two keys."""
    return [queryable("a"), queryable("b")]


def _records(dp: Any) -> Iterator[Made]:
    """Yield counts, sums, means and histograms of records."""
    whole = dp.vector_domain(_atom(dp, "i32")), dp.symmetric_distance()
    bounded = dp.vector_domain(dp.atom_domain(bounds=(0.0, 10.0), nan=False), size=5), dp.symmetric_distance()
    words = dp.vector_domain(_atom(dp, "String")), dp.symmetric_distance()
    laplace = dp.m.then_laplace
    yield "count, i32", lambda: whole >> dp.t.then_count() >> laplace(2.0), {}
    yield "distinct count, i32", lambda: whole >> dp.t.then_count_distinct() >> laplace(2.0), {}
    yield "clamped sum, i32", lambda: whole >> dp.t.then_clamp((0, 5)) >> dp.t.then_sum() >> laplace(5.0), {}
    yield "sum of 5, f64", lambda: bounded >> dp.t.then_sum() >> laplace(20.0), {"d_in": 2}
    yield "mean of 5, f64", lambda: bounded >> dp.t.then_mean() >> laplace(4.0), {"d_in": 2}
    yield "variance of 5, f64", lambda: bounded >> dp.t.then_variance() >> laplace(20.0), {"d_in": 2}
    yield (
        "histogram by categories, String",
        lambda: words >> dp.t.then_count_by_categories(["a", "b"], null_category=True) >> laplace(2.0),
        {},
    )


def _converted(dp: Any) -> Iterator[Made]:
    """Yield compositions, and measurements whose claim was converted to another measure."""
    space = dp.atom_domain(T="i32"), dp.absolute_distance(T="i32")

    def laplace() -> Any:
        return dp.m.make_laplace(*space, 2.0)

    def gaussian() -> Any:
        return dp.m.make_gaussian(*space, 2.0)

    yield "make_composition of 2", lambda: dp.c.make_composition([laplace(), laplace()]), {}
    yield "make_pureDP_to_zCDP", lambda: dp.c.make_pureDP_to_zCDP(laplace()), {}
    yield "make_zCDP_to_approxDP", lambda: dp.c.make_zCDP_to_approxDP(gaussian()), {}
    yield "make_fix_delta", lambda: dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian()), 1e-6), {}
    yield "make_approximate", lambda: dp.c.make_approximate(gaussian()), {}
