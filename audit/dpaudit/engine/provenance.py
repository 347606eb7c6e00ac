"""Records where and with which versions an audit ran, and the training that it audited."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from dpaudit.engine.collector import Collector
from dpaudit.inference.grid import CENTRES
from dpaudit.pairs.pair import Pair
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance, SourceFile, TrainingRecord, histograms
from dpaudit.running.identity import Identity, public
from dpaudit.running.sources import Source
from dpaudit.text import __version__

_FOR_DATA = ("numpy", "scipy", "pandas", "polars")  # packages that most mechanisms use, and that are rarely audited
_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")


def provenance_of(
    *, seed: int, mechanism: str, source: Source | None = None, identity: Identity | None = None
) -> Provenance:
    """Return versions, machine, seed and date of an audit that begins now, and the identity of its code and data."""
    source = source or Source()
    return Provenance(
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seed=seed,
        mechanism=mechanism,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        packages={"dpaudit": __version__} | {name: found for name in _PACKAGES if (found := _version(name))},
        mechanism_packages=_used_first(source) or None,
        mechanism_hashes=dict(source.hashes) or None,
        mechanism_file=None if source.file is None else SourceFile(path=str(source.file), sha256=source.sha256),
        mechanism_modules=dict(source.modules) or None,
        identity=None if identity is None else public(identity),
    )


def _used_first(source: Source) -> dict[str, str]:
    """Return the versions of packages: those that the mechanism names, then those for data, then dependencies."""
    from packaging.utils import canonicalize_name

    def rank(package: tuple[str, str]) -> tuple[bool, bool]:
        name = canonicalize_name(package[0])
        return name not in source.used, name in _FOR_DATA

    return dict(sorted(source.packages.items(), key=rank))


def with_costs(provenance: Provenance, collector: Collector, *, second_stage_trials: int) -> Provenance:
    """Add the costs of a finished audit and the fingerprints of its outputs."""
    seconds: dict[str, float] = {}
    for learner in collector.learners:
        for index, spent in learner.seconds.items():
            name = learner.attacks[index].name
            seconds[name] = round(seconds.get(name, 0.0) + spent, 3)
    return replace(
        provenance,
        outputs=str(collector.outputs_fingerprint),
        first_outputs=tuple(collector.beginning.fingerprints()),
        attack_seconds=seconds,
        runs_after_evidence=collector.observed or None,
        running_times=collector.sampler.clock or None,
        second_stage_trials=second_stage_trials or None,
    )


@cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def training_words(mechanism: object) -> str:
    """Return how a mechanism describes its training in its optional attribute `training_words`; "" if it has none."""
    words: Any = getattr(mechanism, "training_words", "")
    return words if isinstance(words, str) else ""


def with_training(result: AuditResult, mechanism: object, pairs: Sequence[Pair]) -> AuditResult:
    """Add a record of the training that a mechanism describes, and the warnings of its optional method `doubts`.

    The histograms show the scores on the pair with the most counted outputs.
    """
    words = training_words(mechanism)
    if not words:
        return result
    counted = result.evidence.histograms
    most = int(np.argmax([counts.sum() for counts in counted])) if counted else 0
    edges, out, into = histograms(*(np.repeat(CENTRES, side) for side in counted[most])) if counted else ((), (), ())
    record = TrainingRecord(
        design="sequential" if result.evidence.kind.anytime else "fixed",
        training=words,
        canary=result.pairs[most].label if most < len(result.pairs) else "",
        edges=edges,
        out=out,
        into=into,
    )
    ask: Any = getattr(mechanism, "doubts", None)
    found = [f"{words} (pair {pair})" for pair in pairs for words in ask(pair.d0, pair.d1)] if callable(ask) else []
    return replace(result, training=record, warnings=(*found, *result.warnings))
