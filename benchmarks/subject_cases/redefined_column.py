"""A measurement of OpenDP whose query redefines the column by which it truncated the rows of each user.

The bounds of the truncation outlive the redefinition: https://github.com/opendp/opendp/issues/2949, reported by D.
Desfontaines (TedTed).
"""

from __future__ import annotations

import warnings
from typing import Any

from dpaudit.libraries import Subject, opendp

GROUPS = 100  # the query keeps one row of each user in each of at most this number of groups
SCALE = 10.0


def subject(*, merged: bool) -> Subject:
    """Return the query with pairs from its schema and from the largest number of groups.

    Args:
        merged: Whether the query redefines the column of groups.

    Raises:
        ImportError: If OpenDP or polars is not installed, or if OpenDP does not accept the release of polars.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # opendp.prelude warns about optional packages
        import opendp.prelude as dp
        import polars as pl

        dp.enable_features("contrib")
        try:
            made = _made(dp, pl, merged=merged)
        except dp.OpenDPException as error:
            raise ImportError(f"OpenDP does not accept polars {pl.__version__}: {error}") from None
    return opendp.subject(made, groups=GROUPS)


def _made(dp: Any, pl: Any, *, merged: bool) -> Any:
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
