"""Sequential and fixed audits of every builtin mechanism, correct or faulty, from configs on the command line.

The sequential audit tests the usual claim about each mechanism.  The fixed audit tests a stricter claim, which most
mechanisms violate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dpaudit import AuditResult
from dpaudit.catalogue import BUILTIN
from dpaudit.pairs.search import SearchPairs
from evidence_kinds import Family, dpaudit

_QUERIES = {"relation": "all_values", "size": 5}
_RECORDS = {"relation": "add_remove", "size": 5}
_UNIT = {"relation": "add_remove", "size": 5, "bounds": [0.0, 1.0]}
_NAMES = {"relation": "add_remove", "size": 6, "whole": True, "bounds": [0, 4], "out_of_domain": False}
_ANSWER = {"relation": "one_value", "size": 1}
_BIT = {"relation": "one_value", "size": 1, "bounds": [0, 1], "whole": True, "out_of_domain": False}
_SIGNED = {"size": 8, "bounds": [-1.0, 1.0]}
_TINY = {
    "relation": "add_remove",
    "tiny": True,
    "schema": {"city": ["Bonn", "Jena", "Ulm"], "sex": ["f", "m"], "age": [0, 100]},
}
_SAMPLED = "subsampled(gaussian(mu={}), rate=0.25, relation=add_remove)"
_ONE = {"epsilon": 1.0}

_TRAINED = {
    "dp_gd_momentum_before_noise": "gaussian(mu=0.1)",
    "dp_sgd": _SAMPLED.format(0.5),
    "dp_sgd_reused_seed": _SAMPLED.format(0.5),
    "dp_sgd_shuffled_as_poisson": _SAMPLED.format(1),
}  # maps each training to a stricter claim

MECHANISMS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    # maps the name of a mechanism to its claim, a stricter claim, its parameters and the search for pairs
    "gaussian": ("gaussian(mu=1)", "gaussian(mu=0.5)", {"sigma": 1.0}, _RECORDS),
    "laplace": ("laplace(epsilon=1)", "laplace(epsilon=0.5)", {"scale": 1.0}, _RECORDS),
    "geometric": ("pure(epsilon=1)", "pure(epsilon=0.5)", {"scale": 1.0}, {**_RECORDS, "whole": True}),
    "discrete_gaussian": ("zcdp(rho=0.5)", "zcdp(rho=0.05)", {"sigma": 1.0}, {**_RECORDS, "whole": True}),
    "snapping": ("pure(epsilon=1)", "pure(epsilon=0.5)", _ONE, _ANSWER),
    "truncated_geometric": ("pure(epsilon=1.2)", "pure(epsilon=0.4)", _ONE, {**_BIT, "bounds": [0, 5], "step": 1}),
    "laplace_parallel": ("pure(epsilon=1)", "pure(epsilon=0.1)", _ONE, _ANSWER),
    "spinner": ("pure(epsilon=1.0986123)", "pure(epsilon=0.5)", {}, _BIT),
    "spinner_and_coin": ("pure(epsilon=1.0986123)", "pure(epsilon=0.5)", {}, _BIT),
    "kary_response": ("pure(epsilon=1)", "pure(epsilon=0.5)", {}, {**_BIT, "bounds": [0, 3]}),
    "rappor": ("pure(epsilon=0.4000834)", "pure(epsilon=0.1)", {}, {**_BIT, "bounds": [-10, 10]}),
    "one_time_rappor": ("pure(epsilon=0.8006677)", "pure(epsilon=0.1)", {}, {**_BIT, "bounds": [-10, 10]}),
    "exponential": ("pure(epsilon=1)", "pure(epsilon=0.2)", _ONE, _QUERIES),
    "noisy_max_1": ("pure(epsilon=1)", "pure(epsilon=0.2)", _ONE, _QUERIES),
    "noisy_max_2": ("pure(epsilon=1)", "pure(epsilon=0.2)", _ONE, _QUERIES),
    "noisy_max_3": ("pure(epsilon=1)", "pure(epsilon=0.2)", _ONE, _QUERIES),
    "noisy_max_4": ("pure(epsilon=1)", "pure(epsilon=0.2)", _ONE, _QUERIES),
    "svt_1": ("pure(epsilon=1)", "pure(epsilon=0.2)", _ONE, _QUERIES),
    "svt_2": ("pure(epsilon=1)", "pure(epsilon=0.2)", {**_ONE, "most": 2}, _QUERIES),
    "svt_3": ("pure(epsilon=1)", "pure(epsilon=0.2)", _ONE, _QUERIES),
    "svt_4": ("pure(epsilon=1)", "pure(epsilon=0.2)", {**_ONE, "most": 2}, _QUERIES),
    "svt_5": ("pure(epsilon=1)", "pure(epsilon=0.2)", _ONE, _QUERIES),
    "svt_6": ("pure(epsilon=1)", "pure(epsilon=0.2)", _ONE, _QUERIES),
    "svt_34_parallel": ("pure(epsilon=2)", "pure(epsilon=0.4)", _ONE, _QUERIES),
    "numerical_svt": ("pure(epsilon=1)", "pure(epsilon=0.2)", _ONE, _QUERIES),
    "noisy_histogram_1": ("pure(epsilon=1)", "pure(epsilon=0.5)", _ONE, {**_ANSWER, "size": 5}),
    "noisy_histogram_2": ("pure(epsilon=0.5)", "pure(epsilon=0.1)", {"epsilon": 0.5}, {**_ANSWER, "size": 5}),
    "prefix_sum": ("pure(epsilon=1)", "pure(epsilon=0.2)", _ONE, _QUERIES),
    "missing_cells": ("pure(epsilon=1)", "approximate(epsilon=1, delta=0.01)", _ONE, _NAMES),
    "threshold_release": ("pure(epsilon=1)", "approximate(epsilon=1, delta=0.01)", {"threshold": 2.0}, _NAMES),
    "noisy_sum": ("pure(epsilon=1)", "pure(epsilon=0.5)", _ONE, _UNIT),
    "subsampled_gaussian": (_SAMPLED.format(1), _SAMPLED.format(0.1), {}, {"relation": "add_remove", **_SIGNED}),
    "subsampled_wrongly": (_SAMPLED.format(1), _SAMPLED.format(0.5), {}, {"relation": "replace_one", **_SIGNED}),
    "variance_for_deviation": ("gaussian(mu=0.5)", "gaussian(mu=0.2)", {"sigma": 2.0}, _RECORDS),
    "sensitivity_off": ("pure(epsilon=1)", "pure(epsilon=0.5)", _ONE, {"relation": "replace_one", **_SIGNED}),
    "bounds_from_data": ("pure(epsilon=1)", "approximate(epsilon=1, delta=0.01)", _ONE, _RECORDS),
    "fixed_seed": ("pure(epsilon=1)", "pure(epsilon=0.5)", _ONE, _RECORDS),
    "reused_noise": ("pure(epsilon=1)", "approximate(epsilon=1, delta=0.01)", _ONE, _RECORDS),
    "mean_of_true_count": ("pure(epsilon=1)", "gaussian(mu=1)", _ONE, _UNIT),
    "nan_survives": ("pure(epsilon=1)", "approximate(epsilon=1, delta=0.01)", _ONE, {**_UNIT, "most": 6}),
    "laplace_inverse_cdf": ("pure(epsilon=1)", "pure(epsilon=0.5)", _ONE, _ANSWER),
    "gaussian_box_muller": ("gaussian(mu=1)", "gaussian(mu=0.5)", {"sigma": 1.0}, _ANSWER),
    **{
        name: (str(BUILTIN[name]().claim), _TRAINED.get(name, "gaussian(mu=0.5)"), {}, {})
        for name in BUILTIN
        if name.startswith("dp_")
    },
    **{
        name: (str(BUILTIN[name]().claim), "gaussian(mu=0.5)", {}, _TINY)
        for name in BUILTIN
        if name.startswith("synthetic_")
    },
    "geometric_by_trials": ("pure(epsilon=1)", "pure(epsilon=0.5)", {"most": 10}, {**_BIT, "bounds": [0, 10]}),
}
_FAST = ["threshold", "histogram", "events", "logistic"]  # cheap attacks, for audits that always make all trials
_TRIALS = {"sequential": 180, "fixed": 300}
_SEED = 11


def _config(name: str) -> dict[str, Any]:
    """Return the config of the kind of audit with a name such as "builtin/svt_1/fixed"."""
    _, mechanism, method = name.split("/")
    claim, stricter, params, search = MECHANISMS[mechanism]
    return {
        "name": f"{mechanism}-{method}",
        "claim": claim if method == "sequential" else stricter,
        "mechanism": {"builtin": mechanism, "params": params},
        "pairs": _pairs(mechanism, {"most": 2 if method == "sequential" else 1, **search}),
        "attacks": "auto" if method == "sequential" and not BUILTIN[mechanism]().private else _FAST,
        "trials": _TRIALS[method],
        "method": method,
        "seed": _SEED,
    }


def _pairs(mechanism: str, search: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pairs of datasets that a search finds; for a training, return its own pairs."""
    if not mechanism.startswith("dp_"):
        return [{"search": search}]
    return [
        {"d0": pair.d0, "d1": pair.d1, "relation": pair.relation, "label": pair.label}
        for pair in SearchPairs(**BUILTIN[mechanism]().inputs)
    ]


def _run(names: Sequence[str], folder: Path) -> Mapping[str, AuditResult]:
    configs = {name: _config(name) for name in names}
    file = folder / "builtins.yaml"
    file.write_text(yaml.safe_dump({"audits": list(configs.values())}), encoding="utf-8")
    dpaudit("run", file, "-o", folder / "found", "--no-pdf", "--quiet", "--each")
    return {
        name: AuditResult.from_json(folder / "found" / f"{config['name']}.json") for name, config in configs.items()
    }


FAMILIES = [
    Family(
        names=tuple(f"builtin/{name}/{method}" for name in MECHANISMS for method in ("sequential", "fixed")), run=_run
    )
]
