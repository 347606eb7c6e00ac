"""Writes builtin mechanisms that add noise as functions of numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpaudit.catalogue import BUILTIN
from dpaudit.reproduce.literals import literal
from dpaudit.values import Foreign, Parameters

_SUM = "np.sum(dataset)"
_ABSOLUTE = "np.clip(np.nan_to_num(dataset), {low}, 1.0).sum()"
_FORMS = {
    "gaussian": f"{_SUM} + rng.normal(0.0, {{sigma}})",
    "laplace": f"{_SUM} + rng.laplace(0.0, {{scale}})",
    "geometric": f"{_SUM} + float(rng.geometric(-np.expm1(-1 / {{scale}})) - rng.geometric(-np.expm1(-1 / {{scale}})))",
    "laplace_parallel": "np.ravel(dataset)[0] + rng.laplace(0.0, {times} / {epsilon}, {times})",
    "noisy_sum": f"{_ABSOLUTE.format(low='0.0')} + rng.laplace(0.0, 1 / {{epsilon}})",
    "nan_survives": "np.clip(dataset, 0.0, 1.0).sum() + rng.laplace(0.0, 1 / {epsilon})",
    "sensitivity_off": f"{_ABSOLUTE.format(low='-1.0')} + rng.laplace(0.0, 1 / {{epsilon}})",
    "fixed_seed": f"{_SUM} + np.random.default_rng({{seed}}).laplace(0.0, 1 / {{epsilon}})",
    "spinner": "int(np.ravel(dataset)[0]) ^ int(rng.random() >= {truth})",
}


def _lines(name: str) -> Callable[[Parameters], list[str]]:
    def written(params: Parameters) -> list[str]:
        made: Foreign = BUILTIN[name](**params)
        fields = {field: literal(getattr(made, field)) for field in made.__dataclass_fields__}
        return ["def release(dataset):", f"    return {_FORMS[name].format(**fields)}"]

    return written


BUILTIN_LINES: Mapping[str, Callable[[Parameters], list[str]]] = {name: _lines(name) for name in _FORMS}
"""For each builtin mechanism that a script can write out: a function from its parameters to lines of Python."""
