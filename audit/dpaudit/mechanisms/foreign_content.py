"""Reads the content of data frames, tensors and sparse arrays without importing their libraries."""

from __future__ import annotations

from collections.abc import Callable

from dpaudit.mechanisms.digests import Unknowable, digest
from dpaudit.values import Foreign

Many = Callable[[str, list[object], str], bytes]
"""A function that returns the digest of several values: (kind, values, description of their place) -> digest."""


def foreign_content(value: object, where: str, many: Many) -> bytes | None:
    """Return the digest of a value of pandas, polars, torch or scipy, or None for any other type."""
    reader = _LIBRARIES.get(type(value).__module__.split(".")[0])
    return None if reader is None else reader(value, where, many)


def _of_pandas(value: Foreign, where: str, many: Many) -> bytes | None:
    kind = type(value).__name__
    if kind in ("NAType", "NaTType"):
        return digest(kind)
    if kind == "DataFrame":
        columns = [value.iloc[:, place] for place in range(value.shape[1])]
        return many("DataFrame", [value.columns, value.index, value.attrs, columns], where)
    if kind not in ("Series", "MultiIndex") and not kind.endswith("Index"):
        return None
    parts: list[object] = [str(value.dtype), value.to_numpy()]
    if kind == "Series":
        parts += [value.name, value.index, value.attrs]
    else:
        parts += [list(value.names)]
    if hasattr(value.dtype, "categories"):
        parts += [value.dtype.categories, value.dtype.ordered]
    return many(kind, parts, where)


def _of_polars(value: Foreign, where: str, many: Many) -> bytes | None:
    match type(value).__name__:
        case "DataFrame":
            return many("polars", [value.get_column(name) for name in value.columns], where)
        case "Series":
            return many("polars series", [value.name, str(value.dtype), value.to_list()], where)
    return None


def _of_torch(value: Foreign, where: str, many: Many) -> bytes | None:
    if not hasattr(value, "detach"):
        return digest("torch", str(value).encode()) if type(value).__name__ in ("dtype", "device") else None
    try:
        content = value.detach().cpu().numpy()
    except (TypeError, RuntimeError) as error:
        raise Unknowable(f"{where} holds a tensor whose content cannot be compared: {error}") from None
    return many("tensor", [str(value.dtype), str(value.device), content], where)


def _of_scipy(value: Foreign, where: str, many: Many) -> bytes | None:
    if not hasattr(value, "tocoo"):
        return None
    found = value.tocoo()
    return many("sparse", [type(value).__name__, value.shape, found.coords, found.data], where)


_LIBRARIES: dict[str, Callable[[object, str, Many], bytes | None]] = {
    "pandas": _of_pandas,
    "polars": _of_polars,
    "torch": _of_torch,
    "scipy": _of_scipy,
}
