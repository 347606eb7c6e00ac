"""Random mutations of valid configs and of result files: every one is read, or refused in words.

    python benchmarks/fuzz.py [--mutations 100000] [--seed 0]

A mutation changes the text (bytes cut, doubled, swapped, replaced by what breaks parsers) or the values (other types,
extremes, keys removed, doubled, moved).  Anything but `ConfigError` for a config and `ValueError` for a result is a
failure, and so are a reader that takes longer than two seconds and code that runs: no mechanism is loaded here, and the
names that mutations insert would leave a file behind if they were.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import yaml

from dpaudit import AuditResult, Pair, audit
from dpaudit.catalogue import Gaussian
from dpaudit.config import ConfigError, read_configs
from dpaudit.engine.replay import contradictions

_SECONDS = 2.0
_ROOT = Path(__file__).parents[1]
_SCRAPS = [
    "{",
    "}",
    "[",
    "]",
    ":",
    "- ",
    "&a ",
    "*a",
    "!!python/object/apply:os.system [touch RAN]",
    "\t",
    "\x00",
    "é",
    "\n",
]
_SCRAPS += [
    '"',
    "'",
    "|",
    ">",
    "%",
    "@",
    "`",
    "~",
    "? ",
    "<<: *a",
    "---\n",
    "...",
    ".nan",
    "-.inf",
    "1e999",
    "0x",
    "2001-99-99",
]
_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1,
    2**63,
    -(2**70),
    10**9,
    1e308,
    -1e-320,
    math.nan,
    math.inf,
    "",
    "a" * 5000,
    [],
    {},
]
_VALUES += [
    "__import__('os').system('touch RAN')",
    "os:system",
    "../../etc/passwd",
    "gaussian(mu=",
    "pure(epsilon=1)" * 50,
]
_VALUES += ["repeated(gaussian(mu=1), n=1000000000)", "\ud800", {"a": {"b": [1, [2]]}}, [[[]]], "RAN.py:f", "-inf"]


class _TooSlow(BaseException):
    pass


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key in value:
            found += _places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 8)):
            found += _places(value[index], (*path, index))
    return found


def of_values(values: Any, rng: np.random.Generator) -> Any:
    """A copy in which one to three places are changed."""
    changed = copy.deepcopy(values)
    for _ in range(int(rng.integers(1, 4))):
        places = _places(changed)
        if not places:
            return changed
        *above, last = places[rng.integers(len(places))]
        parent = changed
        for step in above:
            parent = parent[step]
        kind = rng.integers(4)
        if kind == 0:
            parent[last] = copy.deepcopy(_VALUES[rng.integers(len(_VALUES))])
        elif kind == 1:
            del parent[last]
        elif kind == 2 and isinstance(parent, dict):
            parent[f"{last}{'x' * int(rng.integers(1, 3))}"] = parent[last]
        elif isinstance(parent[last], int | float) and not isinstance(parent[last], bool):
            parent[last] = parent[last] * float(rng.choice([-1, 0, 1e-9, 1e9, 1.5]))
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        else:
            parent[last] = [parent[last]]
    return changed


def of_text(text: str, rng: np.random.Generator) -> str:
    """Text that is cut, doubled, swapped or salted in one to three places."""
    for _ in range(int(rng.integers(1, 4))):
        a, b = sorted(int(x) for x in rng.integers(0, len(text) + 1, 2))
        b = min(b, a + int(rng.integers(1, 40)))
        kind = rng.integers(5)
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            text = text[:b] + text[a:]
        elif kind == 2:
            text = text[:a] + str(_SCRAPS[rng.integers(len(_SCRAPS))]) + text[a:]
        elif kind == 3:
            text = text[:a] + chr(int(rng.integers(1, 0x2FFF))) + text[a + 1 :]
        else:
            text = text[:a] + text[a:b][::-1] + text[b:]
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    configs = [
        (file.read_text(), yaml.safe_load(file.read_text())) for file in sorted((_ROOT / "configs").rglob("*.y*ml"))
    ]
    results = [
        audit(
            Gaussian(1.0),
            "gaussian(mu=0.5)",
            [Pair([0], [1]), Pair([0], [0])],
            trials=300,
            method=method,
            seed=0,
            confidence=0.95,
        ).to_dict()
        for method in ("sequential", "fixed")
    ]
    readers: list[tuple[str, type[Exception], Callable[[Path], Any], list[tuple[str, Any]], Callable[[Any], str]]] = [
        ("config", ConfigError, lambda file: read_configs([file]), configs, lambda v: yaml.dump(v, allow_unicode=True)),
        ("result", ValueError, _read_result, [(json.dumps(v), v) for v in results], json.dumps),
    ]
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    failures = 0

    def too_slow(_: int, __: FrameType | None) -> None:
        raise _TooSlow

    signal.signal(signal.SIGALRM, too_slow)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.mutations):
            rng = np.random.default_rng([options.seed, number])
            kind, refusal, read, samples, written = readers[number % len(readers)]
            text, values = samples[rng.integers(len(samples))]
            changed = of_text(text, rng) if rng.random() < 0.5 else written(of_values(values, rng))
            file = Path(folder, f"{kind}.yaml")
            file.write_bytes(changed.encode("utf-8", "surrogatepass"))
            signal.setitimer(signal.ITIMER_REAL, _SECONDS)
            began = time.perf_counter()
            try:
                read(file)
                outcomes[f"{kind} read"] += 1
            except refusal:
                outcomes[f"{kind} refused"] += 1
            except (Exception, _TooSlow) as error:
                signal.setitimer(signal.ITIMER_REAL, 0)
                failures += 1
                if failures <= 20:
                    print(f"--- mutation {number} of a {kind}: {type(error).__name__}", file=sys.stderr)
                    traceback.print_exc(limit=-4)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            slowest = max(slowest, time.perf_counter() - began)
        ran = list(Path(folder).glob("RAN*")) + list(Path().glob("RAN*"))
    print(f"{options.mutations} mutations: {', '.join(f'{n} {what}' for what, n in sorted(outcomes.items()))}")
    print(f"failures: {failures}; slowest {slowest:.2f} s; code that ran: {len(ran)}")
    raise SystemExit(1 if failures or ran else 0)


def _read_result(file: Path) -> None:
    result = AuditResult.from_json(file)
    str(result)
    contradictions(result)


if __name__ == "__main__":
    main()
