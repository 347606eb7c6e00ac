"""`dpaudit init` and `dpaudit schema`: a starting config, and the JSON Schema of configs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.ending import refuse
from dpaudit.cli.terminal import say, show


def init(
    file: Annotated[Path, typer.Argument(help="The config to write.")] = Path("audit.yaml"),
) -> None:
    """Write a commented config to start from."""
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(_STARTING_CONFIG)
    except FileExistsError:
        refuse(f"{file} exists already; name another file")
    except OSError as error:
        refuse(f"{file}: {error.strerror}")
    say(f"wrote {file}; run it with: dpaudit run {file}")


def schema() -> None:
    """Print the JSON Schema of configs, for editors."""
    from dpaudit.config import schema as config_schema

    show(json.dumps(config_schema(), indent=2))


_STARTING_CONFIG = """\
# An audit of one mechanism.  Run it with: dpaudit run audit.yaml
name: my-audit
source: where the claim is made, e.g. a URL          # printed in the report

# What is promised about every pair of neighbouring datasets: `dpaudit list claims`
claim: gaussian(mu=1)

mechanism:
  builtin: gaussian               # `dpaudit list mechanisms`; or your own code:
  params: {sigma: 1.0}
  # python: my_module.py:release  # a function (dataset, rng) -> output, in a file beside this one
  # batched: true                 # if it takes (dataset, n, rng) and returns n outputs

# Two datasets that count as neighbours.  The audit tries to tell the outputs on d0 from those on d1.
pairs:
  - {d0: [0, 0, 1], d1: [0, 1, 1], relation: replace_one}

trials: 100000      # most runs on each dataset; it stops earlier once the claim is refuted
confidence: 0.999   # a true claim is called violated with probability at most 1 - confidence
expect: no violation
"""
