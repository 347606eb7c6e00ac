"""Reads and runs mechanisms, tools and models of diffprivlib."""

from __future__ import annotations

import functools
import inspect
import warnings
from importlib import import_module, metadata
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpaudit.values import Dataset, JsonObject, Output

MODULE = "diffprivlib"  # the top-level module of the library

_HOMES = ("mechanisms", "tools", "models")
_READ = (
    *("epsilon", "delta", "sensitivity", "lower", "upper", "utility", "monotonic", "bounds", "data_norm", "classes"),
    *("bounds_X", "bounds_y", "centered", "n_clusters"),
)
_RELEASED = {
    "GaussianNB": ("class_count_", "theta_", "var_"),
    "LogisticRegression": ("coef_", "intercept_"),
    "LinearRegression": ("coef_", "intercept_"),
    "KMeans": ("cluster_centers_",),
    "PCA": ("mean_", "components_", "singular_values_"),
    "StandardScaler": ("mean_", "var_"),
}
MODELS = tuple(_RELEASED)  # models whose released attributes are known

SUPERVISED = ("GaussianNB", "LogisticRegression", "LinearRegression")
"""Models that learn from records with a target, which is the last value of each record."""


def with_tuples(arguments: JsonObject) -> JsonObject:
    """Return named arguments with tuples where diffprivlib refuses lists."""
    tuples = ("bounds", "bounds_X", "bounds_y", "range")
    return {name: tuple(x) if name in tuples and isinstance(x, list) else x for name, x in arguments.items()}


def called(call: str, arguments: Any) -> Any:
    name = call.rpartition(".")[2]
    arguments = with_tuples(arguments or {})
    for home in _HOMES:
        found = getattr(import_module("diffprivlib." + home), name, None)
        if found is not None and not name.startswith("_"):
            return found(**arguments) if inspect.isclass(found) else functools.partial(found, **arguments)
    raise LookupError(f"diffprivlib {metadata.version('diffprivlib')} has no mechanism, tool or model {name}")


def facts(made: Any, d_in: Any = 1) -> JsonObject:
    found: JsonObject = {"version": metadata.version("diffprivlib")}
    if isinstance(made, functools.partial):
        epsilon = inspect.signature(made.func).parameters["epsilon"].default
        found.update(kind="tool", name=made.func.__name__, epsilon=epsilon, delta=0.0)
        return dict(found, **{name: _plain(value) for name, value in made.keywords.items()})
    found.update(name=type(made).__name__, kind="mechanism" if hasattr(made, "randomise") else "model", delta=0.0)
    found.update({name: _plain(getattr(made, name)) for name in _READ if hasattr(made, name)})
    if hasattr(made, "value0"):
        found["values"] = [made.value0, made.value1]
    elif hasattr(made, "_domain_values"):
        found["values"] = list(made._domain_values)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


def sample(made: Any, dataset: Dataset, n: int) -> list[Output]:
    """Run a mechanism, a tool or a model n times, with the user's random state and a new budget accountant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(made, functools.partial):
            return [_tool(made, dataset) for _ in range(n)]
        if not hasattr(made, "randomise"):
            return [_model(made, dataset) for _ in range(n)]
        if hasattr(made, "utility"):  # the dataset is the list of utilities, which the mechanism gets when it is made
            parameters = inspect.signature(type(made).__init__).parameters
            given = {name: getattr(made, name) for name in parameters if name not in ("self", "utility")}
            return [type(made)(utility=list(dataset), **given).randomise() for _ in range(n)]
        if isinstance(dataset, list):  # the rows of a matrix
            array = import_module("numpy").array
            return [made.randomise(array(dataset, dtype=float)) for _ in range(n)]
        return [made.randomise(dataset) for _ in range(n)]


def _tool(made: Any, dataset: Dataset) -> Output:
    numpy = import_module("numpy")
    accountant = import_module("diffprivlib.accountant").BudgetAccountant()
    records = numpy.array(dataset, dtype=float)
    if made.func.__name__ in ("histogram2d", "histogramdd"):  # an empty dataset has columns, too
        records = records.reshape(len(dataset), len(made.keywords.get("range") or made.keywords["bins"]))
    columns = list(records.T) if made.func.__name__ == "histogram2d" else [records]
    released = made(*columns, accountant=accountant)
    return released[0] if isinstance(released, tuple) else released


def _model(made: Any, dataset: Dataset) -> Output:
    numpy = import_module("numpy")
    model = import_module("sklearn.base").clone(made)
    model.accountant = import_module("diffprivlib.accountant").BudgetAccountant()
    records = numpy.array(dataset, dtype=float)
    name = type(made).__name__
    model.fit(*((records[:, :-1], records[:, -1]) if name in SUPERVISED else (records,)))
    return [numpy.asarray(getattr(model, part)) for part in _RELEASED[name] if hasattr(model, part)]
