"""Reads and runs measurements of OpenDP."""

from __future__ import annotations

import re
from importlib import import_module, metadata
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dpaudit.values import Dataset, JsonObject, Output, Record

MODULE = "opendp"  # the top-level module of the library

_HOMES = ("measurements", "domains", "metrics", "measures", "transformations", "combinators", "meas", "trans", "comb")
# Other public functions of OpenDP free memory or read objects, and a config may not call them.
CONSTRUCTOR = re.compile(r"make_(?!user_)\w+|(?!user_)[a-z]\w*_(domain|distance|divergence)|approximate|with_margin")
CHAIN = "chain"  # a call of a config that chains transformations and a measurement; see `called`

TUPLES = ("bounds", "d_in", "d_out")  # arguments that OpenDP accepts as tuples only
_PROFILE = [i / 16 for i in range(161)]  # epsilons at which a privacy profile is read
_ORDERS = [1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256]  # orders at which a Renyi curve is read


def enable() -> None:
    """Allow all constructors of OpenDP, as users of the library do."""
    features = ("contrib", "honest-but-curious", "floating-point")
    import_module("opendp.mod").GLOBAL_FEATURES.update(features)


def called(call: str, arguments: Any) -> Any:
    enable()
    if call == CHAIN:
        return _chained(arguments)
    make = _constructor(call)
    if make is None:
        raise LookupError(f"opendp {metadata.version('opendp')} has no constructor {call}")
    if isinstance(arguments, list):
        return make(*map(_built, arguments))
    return make(
        **{
            name: tuple(map(_built, value)) if name in TUPLES and isinstance(value, list) else _built(value)
            for name, value in (arguments or {}).items()
        }
    )


def _chained(arguments: Any) -> Any:
    """Chain the steps of a list: input domain, input metric, and at least one step {"make_NAME": named arguments}."""
    if not isinstance(arguments, list) or len(arguments) < 3:
        raise TypeError("chain takes a list: an input domain, an input metric, and steps such as {make_count: {}}")
    domain, metric = map(_built, arguments[:2])
    made: Any = None
    for step in arguments[2:]:
        name = next(iter(step)) if isinstance(step, dict) and len(step) == 1 else ""
        if not str(name).startswith("make_") or not isinstance(step[name] or {}, dict):
            raise TypeError(f"a step of chain must be a constructor with named arguments, got {step!r:.100}")
        if made is not None:
            if type(made).__name__ == "Measurement":
                raise TypeError(f"a measurement must be the last step of chain, but {name} follows it")
            domain, metric = made.output_domain, made.output_metric
        following = called(name, dict(step[name] or {}, input_domain=domain, input_metric=metric))
        if made is None:
            made = following
        else:
            kind = "mt" if type(following).__name__ == "Measurement" else "tt"
            made = called(f"make_chain_{kind}", [following, made])
    return made


def _constructor(name: str) -> Callable[..., Any] | None:
    if not isinstance(name, str) or not CONSTRUCTOR.fullmatch(name):
        return None
    for home in _HOMES:
        try:
            module = import_module("opendp." + home)
        except ImportError:  # releases name their modules differently
            continue
        found = getattr(module, name, None)
        if name in getattr(module, "__all__", ()) and callable(found):
            return found  # type: ignore[no-any-return]
    return None


def _built(value: Any) -> Any:
    if isinstance(value, list):
        return [_built(part) for part in value]
    if isinstance(value, dict) and len(value) == 1:
        ((name, arguments),) = value.items()
        if name == CHAIN or _constructor(name) is not None:
            return called(name, arguments)
    return value


def facts(measurement: Any, d_in: Any) -> JsonObject:
    if not hasattr(measurement, "input_metric"):
        return {**_facts_from_types(measurement, d_in), "name": _name(measurement)}
    metric = _text(measurement.input_metric, "metric")
    measure = _text(measurement.output_measure, "measure")
    d_in = _distance(measurement, metric, d_in)
    d_out = measurement.map(d_in)
    found = {
        "domain": _text(measurement.input_domain, "domain"),
        "metric": metric,
        "measure": measure,
        "d_in": d_in if isinstance(d_in, (int, float, str)) else list(d_in) if isinstance(d_in, tuple) else repr(d_in),
        "d_out": _loss(d_out),
        "hints": _hints(measurement),
        "name": _name(measurement),
        "of_population": _contains(measurement, "make_population_amplification"),
        "version": metadata.version("opendp"),
    }
    if hasattr(measurement.input_domain, "get_series_domain"):
        found.update(_frame(measurement.input_domain))
    return found


def _text(described: Any, kind: str) -> str:
    """Return the debug text of a domain, a metric or a measure; releases before 0.8 have it only as a function."""
    text = repr(described)
    return getattr(import_module(f"opendp.{kind}s"), f"{kind}_debug")(described) if text.startswith("<") else text


def _distance(measurement: Any, metric: str, d_in: Any) -> Any:
    """Convert a distance to the type of the metric; 1 stands for (1, 1, 1) if the distance has three parts."""
    if not isinstance(d_in, (int, float)):
        return tuple(d_in) if isinstance(d_in, list) and "Inf" in metric else d_in
    floats = "f32" in metric or "f64" in metric
    if "01Inf" in metric or "02Inf" in metric:
        inner = float if floats else int
        return int(d_in), inner(d_in), inner(d_in)
    return float(d_in) if floats else d_in


def _loss(d_out: Any) -> Any:
    if isinstance(d_out, tuple):
        return [_loss(d_out[0]), d_out[1]]
    if hasattr(d_out, "delta"):
        return [[epsilon, d_out.delta(epsilon)] for epsilon in _PROFILE]
    if callable(d_out):
        return [[float(order), d_out(float(order))] for order in _ORDERS]
    return d_out


def _frame(domain: Any) -> JsonObject:
    """Return the columns of a data frame, and its margins, which state what is known about its groups."""
    series = {name: domain.get_series_domain(name) for name in domain.columns}
    columns = {name: [repr(one.element_domain), bool(one.nullable)] for name, one in series.items()}
    margins = []
    for text in re.findall(r"\{([^}]*)\}", repr(domain).partition("margins=")[2]):
        by = re.findall(r'"([^"]*)"', text)
        margin = domain.get_margin(by)
        invariant = getattr(margin, "invariant", None) or getattr(margin, "public_info", None)
        found = {"by": by, "public": invariant is not None, "fixed_lengths": invariant == "lengths"}
        for limit, former in (("max_length", "max_partition_length"), ("max_groups", "max_num_partitions")):
            new = getattr(margin, limit, None)
            found[limit] = getattr(margin, former, None) if new is None else new
        margins.append(found)
    return {"columns": columns, "margins": margins}


def _arguments(item: Any) -> Mapping[str, Any]:
    return (getattr(item, "__opendp_dict__", None) or {}).get("__kwargs__", {})  # type: ignore[no-any-return]


def _hints(item: Any, depth: int = 8) -> list[Record]:
    """Return the values that the measurement was built with, such as categories, candidates, bounds and thresholds."""
    found: list[Record] = []
    for name, value in _arguments(item).items():
        if name in ("categories", "candidates", "bounds", "edges", "threshold", "value"):
            found += list(value) if isinstance(value, (list, tuple)) else [value]
        elif depth and not isinstance(value, (int, float, str)):
            for part in value if isinstance(value, (list, tuple)) else [value]:
                found += _hints(part, depth - 1)
    return [value for value in found if isinstance(value, (int, float, str, bytes))]


def _contains(item: Any, function: str) -> bool:
    """Return whether the constructor `function` made the object or one of its arguments, at any depth."""
    made = getattr(item, "__opendp_dict__", None) or {}
    if made.get("__function__") == function:
        return True
    parts = item if isinstance(item, (list, tuple)) else _arguments(item).values()
    return any(_contains(part, function) for part in parts if not isinstance(part, (int, float, str, bytes)))


def _name(measurement: Any) -> str:
    made = (getattr(measurement, "__opendp_dict__", None) or {}).get("__function__", "")
    if not made.startswith("make_chain"):
        return str(made) or "measurement"
    inner = _arguments(measurement)
    order = ("transformation0", "transformation1", "measurement0", "measurement1", "postprocess1")
    names = [_name(inner[part]) for part in order if part in inner]
    return " >> ".join(name for name in names if name != "measurement") or "measurement"


def sample(made: Any, dataset: Dataset, n: int, release: Callable[..., Any] | None = None) -> list[Output]:
    if "LazyFrame" in str(made.input_carrier_type):
        polars = import_module("polars")
        columns = _frame(made.input_domain)["columns"]
        schema = {name: getattr(polars, _dtype(text)) for name, (text, _) in columns.items()}
        dataset = polars.LazyFrame(dataset, schema=schema)
    return [(release or _output)(made(dataset)) for _ in range(n)]


def _dtype(element: str) -> str:
    kind = element.partition("T=")[2].rstrip(")") or element
    if kind in ("String", "str"):
        return "String"
    names = {"i": "Int", "u": "UInt", "f": "Float"}
    return names[kind[0]] + kind[1:] if kind[0] in names and kind[1:].isdigit() else "Boolean"


def _output(release: Any) -> Output:
    if hasattr(release, "collect"):
        frame = release.collect()
        return {name: frame[name].to_list() for name in frame.columns}
    return release


def _facts_from_types(measurement: Any, d_in: Any) -> JsonObject:
    """Return the facts about a measurement on one bit by a release whose measurements have no domain and no metric."""
    types = (measurement.input_carrier_type, measurement.input_distance_type, measurement.output_distance_type)
    release = metadata.version("opendp")
    if tuple(map(str, types)) != ("bool", "u32", "f64"):
        raise LookupError(
            f"opendp {release} does not state domain and metric of its measurements, and dpaudit knows them for one "
            "bit only; write a class with the call, the claim and the pairs (see docs/mechanisms.md)"
        )
    low, high = 0.0, measurement.map(d_in) if hasattr(measurement, "map") else 1.0
    if not hasattr(measurement, "map"):  # it can only check a loss, so bisection finds the least loss that it accepts
        while not measurement.check(d_in, high):
            low, high = high, 2 * high
            if high > 1e6:
                raise LookupError(f"the measurement accepts no privacy loss up to {low:.0f} at distance {d_in}")
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if measurement.check(d_in, middle) else (middle, high)
    return {
        "domain": "AtomDomain(T=bool)",
        "metric": "DiscreteDistance()",
        "measure": "MaxDivergence",
        "d_in": d_in,
        "d_out": high,
        "hints": [],
        "of_population": False,
        "version": release,
    }
