"""Reads and runs measurements of Tumult Core."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from fractions import Fraction
from importlib import import_module, metadata
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpaudit.values import Dataset, JsonObject, Output, Record

MODULE = "tmlt"  # the top-level module of the library

_PACKAGE = "tmlt.core"
_HOMES = (
    "measurements.noise_mechanisms",
    "measurements.aggregations",
    "measurements.converters",
    "measurements.pandas_measurements.series",
    "measurements.spark_measurements",
    "domains.numpy_domains",
    "domains.pandas_domains",
    "domains.spark_domains",
    "metrics",
    "measures",
)
_CONSTRUCTOR = re.compile(
    r"create_\w+_measurement|[A-Z]\w*(Noise|Quantile|Selection|DP|Domain|Descriptor|Difference|Distance)"
    r"|PureDPToRhoZCDP|PureDPToApproxDP|RhoZCDPToApproxDP|IfGroupedBy|SumOf|RootSumOfSquared"
)
# Tumult Core evaluates texts in place of numbers as Python code.  Without brackets, such a text calls nothing.
_TEXT = re.compile(r"[\w .+/-]{0,100}", re.ASCII)
_HUGE = re.compile(r"[\d.][eE][+-]?\d{4}")  # in a text without the underscores of 1e1_000
_HINT = re.compile(r"_*(lower|upper|threshold)(_bound)?")


def called(call: str, arguments: Any) -> Any:
    make = _constructor(call)
    if make is None:
        raise LookupError(f"tmlt.core {metadata.version(_PACKAGE)} has no constructor {call}")
    if isinstance(arguments, list):
        return make(*map(_built, arguments))
    named = {_checked(name): _built(value) for name, value in (arguments or {}).items()}
    if isinstance(chosen := named.get("noise_mechanism"), str):  # it names a member of an enumeration
        named["noise_mechanism"] = import_module("tmlt.core.measurements.aggregations").NoiseMechanism[chosen]
    return make(**named)


def _checked(text: str) -> str:
    """Return a text from a config if it is a name or a number; refuse an expression."""
    if not _TEXT.fullmatch(text) or _HUGE.search(text.replace("_", "")):
        raise ValueError(
            f"the text {text[:60]!r} is not allowed, because Tumult Core may evaluate it: a text must be a name, or a "
            "number such as 0.5 or 1/3"
        )
    return text


def _constructor(name: str) -> Any:
    if not isinstance(name, str) or not _CONSTRUCTOR.fullmatch(name):
        return None
    for home in _HOMES:
        try:
            found = getattr(import_module(f"tmlt.core.{home}"), name, None)
        except ImportError:  # releases name their modules differently
            continue
        if callable(found):
            return found
    return None


def _built(value: Any) -> Any:
    if isinstance(value, list):
        return [_built(part) for part in value]
    if isinstance(value, dict):
        name = next(iter(value)) if len(value) == 1 else ""
        if _constructor(name) is not None:
            return called(name, value[name])
        return {name: _built(part) for name, part in value.items()}
    return _checked(value) if isinstance(value, str) else value


def facts(measurement: Any, d_in: Any = 1) -> JsonObject:
    if isinstance(d_in, str):
        _checked(d_in)
    metric = measurement.input_metric
    described: JsonObject = {"kind": type(metric).__name__, "text": repr(metric)[:500]}
    if described["kind"] == "IfGroupedBy":
        columns = list(getattr(metric, "columns", None) or [metric.column])
        described.update(columns=sorted(columns), inner=type(metric.inner_metric).__name__)
    return {
        "name": type(measurement).__name__,
        "measure": type(measurement.output_measure).__name__,
        "d_out": _loss(measurement.privacy_function(d_in)),
        "d_in": d_in if isinstance(d_in, (int, float)) else str(d_in),
        "domain": _domain(measurement.input_domain),
        "metric": described,
        "hints": sorted(_hints(measurement, set())),
        "version": metadata.version(_PACKAGE),
    }


def _loss(d_out: Any) -> Any:
    if isinstance(d_out, tuple):
        return [_loss(part) for part in d_out]
    return float(d_out.to_float(round_up=True)) if hasattr(d_out, "to_float") else float(d_out)


def _domain(domain: Any) -> JsonObject:
    """Return a domain or the descriptor of a column; `kind` is "" if it is unknown."""
    name = type(domain).__name__
    found: JsonObject = {"text": repr(domain)[:500], "kind": ""}
    for kind in ("Integer", "Float", "String"):
        if name in (f"Numpy{kind}Domain", f"Spark{kind}ColumnDescriptor"):
            flags = {flag: bool(getattr(domain, f"allow_{flag}", False)) for flag in ("nan", "inf", "null")}
            return {**found, "kind": kind.lower(), **flags}
    if name == "PandasSeriesDomain":
        return {**found, "kind": "series", "element": _domain(domain.element_domain)}
    if name == "SparkDataFrameDomain":
        columns = {column: _domain(described) for column, described in domain.schema.items()}
        return {**found, "kind": "frame", "columns": columns}
    return found


def _hints(item: Any, seen: set[int], depth: int = 8) -> set[float]:
    found: set[float] = set()
    if id(item) in seen or not depth:
        return found
    seen.add(id(item))
    for name, value in (getattr(item, "__dict__", None) or {}).items():
        if _HINT.fullmatch(name):
            try:
                found.add(float(Fraction(str(value))))
            except (ValueError, ZeroDivisionError):  # an expression such as sqrt(2)
                continue
        elif type(value).__module__.startswith(("tmlt.core.measurements", "tmlt.core.transformations")):
            found |= _hints(value, seen, depth - 1)
        elif isinstance(value, (list, tuple)):
            for part in value:
                found |= _hints(part, seen, depth - 1)
    return found


def sample(made: Any, dataset: Dataset, n: int) -> list[Output]:
    given = carried(dataset, made.input_domain)
    return [_output(made(given)) for _ in range(n)]


def carried(dataset: Dataset, domain: Any) -> Any:
    described = _domain(domain)
    if described["kind"] in ("integer", "float"):
        return domain.carrier_type(dataset)
    if described["kind"] == "series":
        kind = described["element"]["kind"]
        dtype = {"integer": "int64", "float": "float64"}.get(kind, "object")
        return import_module("pandas").Series(dataset, dtype=dtype)
    if described["kind"] == "frame":
        rows = list(zip(*(dataset[name] for name in described["columns"])))  # noqa: B905  (Python 3.8)
        return session().createDataFrame(rows, schema=domain.spark_schema)
    return dataset


def session() -> Any:
    """Return the Spark session of this process, and start one with a single core if there is none."""
    # Otherwise the workers of Spark would use another Python, which may lack the library.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = import_module("pyspark.sql").SparkSession
    active = spark.getActiveSession()
    if active is not None:
        return active
    folder = tempfile.mkdtemp(prefix="dpaudit-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": folder,
        "spark.local.dir": folder,
        "spark.log.level": "ERROR",
    }
    builder = spark.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        cause = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise RuntimeError(
            f"data frames of Tumult Core need Spark, which did not start: {cause}; "
            "install Java 8, 11 or 17, and set JAVA_HOME"
        ) from error


def _output(release: Any) -> Output:
    """Return a release as plain values.  The rows of a data frame are sorted, as their order is not published."""
    if hasattr(release, "toPandas"):
        rows = sorted((tuple(row) for row in release.collect()), key=lambda row: tuple(map(_order, row)))
        return {name: [row[place] for row in rows] for place, name in enumerate(release.columns)}
    return release.item() if hasattr(release, "item") else release


def _order(value: Record) -> tuple[bool, bool, str, float]:
    number = isinstance(value, (int, float)) and value == value
    return value is None, number, "" if number else str(value), float(value) if number else 0.0
