"""Serves a mechanism to an audit as a program: `python serve.py MODULE NAME`."""

import importlib
import json
import sys
from typing import Any

import numpy as np


def main(module: str, name: str) -> None:
    mechanism: Any = getattr(importlib.import_module(module), name)
    for line in sys.stdin:
        asked = json.loads(line)
        rng = np.random.default_rng(asked["seed"])
        outputs = [mechanism(asked["dataset"], rng) for _ in range(asked["n"])]
        print(json.dumps({"outputs": outputs}, default=lambda value: value.tolist()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
