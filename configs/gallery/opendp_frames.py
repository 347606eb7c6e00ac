"""Queries of OpenDP on data frames of polars.  The library uses the operating system's randomness."""

import warnings

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")
warnings.filterwarnings("ignore", category=FutureWarning, module="opendp|opendp_frames|__main__")


class UsersInGroups:
    """The noisy number of rows of group 0, after each user's rows were truncated to one in each group.

    A dataset lists users, each of whom has one row in each of `groups` groups.  If `merged`, the query then sets the
    group of every row to 0.  The claim is the privacy map for one user.
    """

    def __init__(self, groups, scale, merged):
        self._groups = groups
        rows = pl.LazyFrame(schema={"user": pl.Int64, "group": pl.Int64})
        rows = rows.filter(pl.int_range(pl.len()).over("user", "group") < 1)
        rows = rows.filter(pl.struct("group").rank("dense").over("user") < groups + 1)
        if merged:
            rows = rows.with_columns(group=pl.lit(0, dtype=pl.Int64))
        counts = rows.group_by("group").agg(dp.len(scale=1.0))
        self._measurement = dp.m.make_private_lazyframe(
            dp.lazyframe_domain([dp.series_domain(name, dp.atom_domain(T="i64")) for name in ("user", "group")]),
            dp.symmetric_id_distance(identifier=pl.col("user")),
            dp.zero_concentrated_divergence(),
            pl.LazyFrame({"group": [0]}).join(counts, on="group", how="left"),
            global_scale=scale,
        )
        self.claim = f"zcdp(rho={self._measurement.map(1)!r})"

    def __call__(self, dataset, rng):
        users = [user for user in dataset for _ in range(self._groups)]
        rows = pl.LazyFrame({"user": users, "group": list(range(self._groups)) * len(dataset)})
        return self._measurement(rows).collect()["len"].item()


class SumOfCodes:
    """The noisy sum of 0 for each value up to 1 and 1 for each larger value.

    The codes are those of `cut` ("physical"), or those of a comparison.  The claim is the privacy map for one row.
    """

    def __init__(self, codes, scale, length):
        value = pl.col("value")
        code = value.cut([1.0]).to_physical() if codes == "physical" else (value > 1.0).cast(pl.UInt32)
        domain = dp.lazyframe_domain([dp.series_domain("value", dp.atom_domain(T=float, nan=False))])
        self._measurement = dp.m.make_private_lazyframe(
            dp.with_margin(domain, dp.polars.Margin(max_length=length)),
            dp.frame_distance(dp.symmetric_distance()),
            dp.max_divergence(),
            pl.LazyFrame(schema={"value": pl.Float64}).select(code.dp.sum((0, 1), scale=scale)),
        )
        self.claim = f"pure(epsilon={self._measurement.map([dp.polars.Bound(per_group=1)])!r})"

    def __call__(self, dataset, rng):
        return self._measurement(pl.LazyFrame({"value": dataset})).collect().item()


class SumWithoutNulls:
    """The noisy sum of values between 0 and 1, with `filler` in place of nulls; the text "nan" stands for NaN.

    In a dataset, None is a null.  The claim is the privacy map for one row.
    """

    def __init__(self, filler, scale, length):
        numbers = pl.col("value").fill_null(float(filler)).clip(0.0, 1.0)
        domain = dp.lazyframe_domain([dp.series_domain("value", dp.option_domain(dp.atom_domain(T=float, nan=False)))])
        self._measurement = dp.m.make_private_lazyframe(
            dp.with_margin(domain, dp.polars.Margin(max_length=length)),
            dp.frame_distance(dp.symmetric_distance()),
            dp.max_divergence(),
            pl.LazyFrame(schema={"value": pl.Float64}).select(numbers.sum().dp.noise(scale=scale)),
        )
        self.claim = f"pure(epsilon={self._measurement.map([dp.polars.Bound(per_group=1)])!r})"

    def __call__(self, dataset, rng):
        values = pl.Series("value", dataset, dtype=pl.Float64)
        return self._measurement(values.to_frame().lazy()).collect().item()


class CountAfterCast:
    """The noisy number of values that remain after a cast to whole numbers, which turns NaN into null.

    The number of rows is public, so that the count of a column without nulls costs nothing.  If `filled`, NaN becomes 0
    before the cast.  In a dataset, the text "nan" stands for NaN.  The claim is the privacy map for a replaced row.
    """

    def __init__(self, filled, scale, length):
        value = pl.col("value").fill_null(0.0)
        counted = (value.fill_nan(0.0) if filled else value).cast(pl.Int64, strict=False).count()
        domain = dp.lazyframe_domain([dp.series_domain("value", dp.option_domain(dp.atom_domain(T=float)))])
        self._measurement = dp.m.make_private_lazyframe(
            dp.with_margin(domain, dp.polars.Margin(max_length=length, invariant="lengths")),
            dp.frame_distance(dp.symmetric_distance()),
            dp.max_divergence(),
            pl.LazyFrame(schema={"value": pl.Float64}).select(counted.dp.noise(scale=scale)),
        )
        self.claim = f"pure(epsilon={self._measurement.map([dp.polars.Bound(per_group=2)])!r})"

    def __call__(self, dataset, rng):
        values = pl.Series("value", [float(value) for value in dataset], dtype=pl.Float64)
        return self._measurement(values.to_frame().lazy()).collect().item()
