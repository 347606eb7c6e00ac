"""Measurements of OpenDP: constructors with types, chains as users build them, and queries of data frames.

Queries of data frames need the release of polars that OpenDP names.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from dpaudit.libraries import Subject, opendp


def cases() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each measurement."""
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


def _made(
    name: str, make: Callable[..., Any], *arguments: Any, settings: dict[str, Any] | None = None, **named: Any
) -> Made:
    return name, functools.partial(make, *arguments, **named), settings or {}


def _atom(dp: Any, kind: str) -> Any:
    return dp.atom_domain(T=kind, nan=False) if kind.startswith("f") else dp.atom_domain(T=kind)


def _noise(dp: Any) -> Iterator[Made]:
    """Yield noise on one number."""
    for kind in ("i32", "i64", "u32", "u64", "f32", "f64"):
        space = _atom(dp, kind), dp.absolute_distance(T=kind)
        yield _made(f"make_laplace, {kind}", dp.m.make_laplace, *space, 2.0)
        yield _made(f"make_gaussian, {kind}", dp.m.make_gaussian, *space, 2.0)
    for kind in ("i32", "u32", "i64"):
        space = _atom(dp, kind), dp.absolute_distance(T=kind)
        yield _made(f"make_geometric, {kind}", dp.m.make_geometric, *space, 2.0)
    space = _atom(dp, "i32"), dp.absolute_distance(T="i32")
    yield _made("make_geometric, i32, bounds", dp.m.make_geometric, *space, 2.0, bounds=(0, 10))
    space = _atom(dp, "f64"), dp.absolute_distance(T="f64")
    yield _made("make_canonical_noise, f64", dp.m.make_canonical_noise, *space, 1.0, (1.0, 1e-6))
    space = _atom(dp, "i32"), dp.absolute_distance(T="i32")
    for words, measure in (("pure", dp.max_divergence()), ("zCDP", dp.zero_concentrated_divergence())):
        yield _made(f"make_noise, i32, {words}", dp.m.make_noise, *space, measure, 2.0)


def _vectors(dp: Any) -> Iterator[Made]:
    """Yield noise on vectors of numbers."""
    for kind in ("i32", "f32", "f64"):
        domain = dp.vector_domain(_atom(dp, kind))
        sized = dp.vector_domain(_atom(dp, kind), size=4)
        yield _made(f"make_laplace, vector of {kind}", dp.m.make_laplace, domain, dp.l1_distance(T=kind), 2.0)
        yield _made(f"make_gaussian, 4 of {kind}", dp.m.make_gaussian, sized, dp.l2_distance(T=kind), 2.0)
    domain = dp.vector_domain(_atom(dp, "i32"))
    yield _made("make_geometric, vector of i32", dp.m.make_geometric, domain, dp.l1_distance(T="i32"), 2.0)


def _selection(dp: Any) -> Iterator[Made]:
    """Yield noisy maxima, top-k selection and quantiles."""
    measures = {"pure": dp.max_divergence(), "zCDP": dp.zero_concentrated_divergence()}
    for kind in ("i32", "f64"):
        scores = dp.vector_domain(_atom(dp, kind))
        for words, measure in measures.items():
            for monotonic in (False, True):
                space = scores, dp.linf_distance(T=kind, monotonic=monotonic)
                label = f"vector of {kind}, {words}{', monotonic' if monotonic else ''}"
                yield _made(f"make_noisy_max, {label}", dp.m.make_noisy_max, *space, measure, 2.0)
                yield _made(f"make_noisy_top_k, {label}", dp.m.make_noisy_top_k, *space, measure, 2, 2.0)
    quantile, how = dp.m.make_private_quantile, (dp.symmetric_distance(), dp.max_divergence())
    numbers, floats = dp.vector_domain(_atom(dp, "i32")), dp.vector_domain(_atom(dp, "f64"), size=20)
    yield _made("make_private_quantile, i32", quantile, numbers, *how, [0, 5, 10], 0.5, 2.0)
    few, two = [0.0, 5.0, 10.0], {"d_in": 2}
    yield _made("make_private_quantile, 20 of f64", quantile, floats, *how, few, 0.5, 2.0, settings=two)


def _responses(dp: Any) -> Iterator[Made]:
    """Yield randomised responses."""
    yield _made("make_randomized_response_bool", dp.m.make_randomized_response_bool, 0.75)
    yield _made("make_randomized_response, String", dp.m.make_randomized_response, ["a", "b", "c"], 0.6)
    bits = dp.bitvector_domain(max_weight=2), dp.discrete_distance()
    yield _made("make_randomized_response_bitvec", dp.m.make_randomized_response_bitvec, *bits, f=0.5)
    yield _made("make_randomized_response, i32", dp.m.make_randomized_response, [1, 2, 3], 0.6)


def _counts(dp: Any) -> Iterator[Made]:
    """Yield noise with a threshold on mappings from keys to counts."""
    for key, kind in (("String", "i32"), ("i32", "f64")):
        domain = dp.map_domain(_atom(dp, key), _atom(dp, kind))
        inner, words = dp.absolute_distance(T=kind), f"{key} to {kind}"
        space1, space2 = (domain, dp.l01inf_distance(inner)), (domain, dp.l02inf_distance(inner))
        least = 10.0 if kind == "f64" else 10
        yield _made(f"make_laplace_threshold, {words}", dp.m.make_laplace_threshold, *space1, 2.0, threshold=least)
        yield _made(f"make_gaussian_threshold, {words}", dp.m.make_gaussian_threshold, *space2, 2.0, threshold=least)
    domain = dp.map_domain(_atom(dp, "String"), _atom(dp, "u32"))
    space1 = domain, dp.l01inf_distance(dp.absolute_distance(T="u32"))
    asked = {"release": _asked}
    yield _made("make_alp_queryable, String to u32", dp.m.make_alp_queryable, *space1, 1.0, 24, 24, settings=asked)


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


# --- Data frames


def frames() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each query."""
    made = _with_polars(_queries)
    return {name: functools.partial(opendp.subject, measurement) for name, measurement in made.items()}


def _with_polars(make: Callable[[Any, Any], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # opendp.prelude warns about optional packages
        import opendp.prelude as dp
        import polars as pl

        dp.enable_features("contrib", "honest-but-curious")
        try:
            return make(dp, pl)
        except dp.OpenDPException as error:
            raise ImportError(f"OpenDP does not accept polars {pl.__version__}: {error}") from None


def _queries(dp: Any, pl: Any) -> dict[str, Any]:
    columns = {"user": "i32", "region": "String", "amount": "f64"}
    domain = dp.lazyframe_domain([dp.series_domain(name, dp.atom_domain(T=kind)) for name, kind in columns.items()])
    empty = pl.LazyFrame(schema={"user": pl.Int32, "region": pl.String, "amount": pl.Float64})
    public = dp.with_margin(domain, dp.polars.Margin(by=["region"], invariant="keys"))
    few = dp.with_margin(domain, dp.polars.Margin(by=["region"], max_groups=10))
    short = dp.with_margin(domain, dp.polars.Margin(by=[], max_length=100))
    rows, users = dp.symmetric_distance(), dp.symmetric_id_distance(pl.col("user"))
    pure, zcdp = dp.max_divergence(), dp.zero_concentrated_divergence()
    count, grouped = dp.len(scale=2.0), empty.group_by("region")
    first_rows = empty.filter(pl.int_range(pl.len()).over("user") < 2)
    total = pl.col("amount").fill_nan(0.0).fill_null(0.0).dp.sum((0.0, 10.0), scale=10.0)
    make = dp.m.make_private_lazyframe
    return {
        "number of rows": make(domain, rows, pure, empty.select(count)),
        "number of rows of each public group": make(public, rows, pure, grouped.agg(count)),
        "number of rows of each group above 20": make(
            few, rows, dp.approximate(pure), grouped.agg(count), threshold=20
        ),
        "sum": make(short, rows, pure, empty.select(total)),
        "number of rows, two of each user": make(domain, users, zcdp, first_rows.select(count)),
    }


GROUPS = 100  # the query keeps one row of each user in each of at most this number of groups
SCALE = 10.0


def redefined_column(*, merged: bool) -> Subject:
    """Return a query that redefines the column by which it truncated the rows of each user, with generated pairs.

    The bounds of the truncation outlive the redefinition: https://github.com/opendp/opendp/issues/2949, reported by D.
    Desfontaines (TedTed).  The pairs come from the schema and from the largest number of groups.

    Args:
        merged: Whether the query redefines the column of groups.

    Raises:
        ImportError: If OpenDP or polars is not installed, or if OpenDP does not accept the release of polars.
    """
    return opendp.subject(_with_polars(functools.partial(_redefined, merged=merged)), groups=GROUPS)


def _redefined(dp: Any, pl: Any, *, merged: bool) -> Any:
    rows = pl.LazyFrame(schema={"user": pl.Int64, "group": pl.Int64})
    rows = rows.filter(pl.int_range(pl.len()).over("user", "group") < 1)
    rows = rows.filter(pl.struct("group").rank("dense").over("user") < GROUPS + 1)
    if merged:
        rows = rows.with_columns(group=pl.lit(0, dtype=pl.Int64))
    counts = rows.group_by("group").agg(dp.len(scale=1.0))
    return dp.m.make_private_lazyframe(
        dp.lazyframe_domain([dp.series_domain(name, dp.atom_domain(T="i64")) for name in ("user", "group")]),
        dp.symmetric_id_distance(identifier=pl.col("user")),
        dp.zero_concentrated_divergence(),
        pl.LazyFrame({"group": [0]}).join(counts, on="group", how="left"),
        global_scale=SCALE,
    )
