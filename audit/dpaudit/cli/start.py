"""`dpaudit init` writes an example config, and `dpaudit schema` prints the JSON Schema of configs."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.options import check_writable, choice_option
from dpaudit.cli.terminal import refuse, say, show

_CONFIG = """\
# {title}  Run it with: dpaudit run {file}
name: my-audit
source: where the claim is made, e.g. a URL   # shown in the report

# The claim about every pair of neighbouring datasets; `dpaudit list claims` shows all kinds.
claim: {claim}

{mechanism}
{pairs}\
trials: {trials}      # maximum number of runs per dataset; the audit stops earlier if the claim is refuted
confidence: 0.999   # a true claim is reported as violated with probability at most 1 - confidence
expect: no violation   # optional; the results table shows whether the verdict is the expected one
"""

_PAIRS = """\
# Two neighbouring datasets.  The audit tries to tell outputs on d0 from outputs on d1.
# relation: replace_one if one record is replaced, add_remove if one is added or removed; use that of the claim.
# See https://github.com/dpaudit/dpaudit/blob/main/docs/choosing.md#which-relation
pairs:
  - {d0: [0, 0, 1], d1: [0, 1, 1], relation: replace_one}

"""

_FUNCTION = '''\
"""A mechanism: a function of a dataset and a random generator that returns one output."""


def release(dataset, rng):
    # Replace this line by a call of your code.  Without rounding, the last bits of a float may reveal the sum: see
    # https://github.com/dpaudit/dpaudit/blob/main/docs/mechanisms.md#the-last-bits-of-a-float
    return round(sum(dataset) + rng.normal(scale=1.0), 6)
'''

_TABLE_FUNCTION = (
    _FUNCTION.replace("(dataset, rng):", '(rows, rng):\n    ages = [min(max(row["age"], 0), 100) for row in rows]')
    .replace("sum(dataset)", "sum(ages)")
    .replace("rng.normal(scale=1.0)", "rng.laplace(scale=100.0)")
)

_PROGRAM = '''\
#!/usr/bin/env python3
"""A program in any language: each line of stdin is a request, and each line of stdout is an answer."""
import json
import random
import sys

for line in sys.stdin:
    request = json.loads(line)
    rng = random.Random(request["seed"])
    # Without rounding, the last bits of a float may reveal the sum: see
    # https://github.com/dpaudit/dpaudit/blob/main/docs/mechanisms.md#the-last-bits-of-a-float
    outputs = [round(sum(request["dataset"]) + rng.gauss(0, 1), 6) for _ in range(request["n"])]
    print(json.dumps({"outputs": outputs}), flush=True)
'''

_CLIENT_CONFIG = """\
# {title}
# Run it with: {build}dpaudit run {file}
audits:
  - name: release
    source: where the claim is made, e.g. a URL   # shown in the report
    claim: {claim}
    mechanism: {{command: [{mechanism}]}}
    pairs: &pairs
      - {{d0: [0, 0, 1], d1: [0, 1, 1], relation: replace_one}}
    trials: {trials}
    confidence: 0.999   # a true claim is reported as violated with probability at most 1 - confidence
    expect: no violation
  - name: planted-fault   # half of the noise: delete this audit once you have seen that it finds a violation
    claim: {claim}
    mechanism: {{command: [{mechanism}, planted]}}
    pairs: *pairs
    trials: {trials}
    confidence: 0.999
    expect: violation
"""

_README = """\
## Privacy test

    python -m pip install "dpaudit @ git+https://github.com/dpaudit/dpaudit"
    {build}dpaudit run {file} --only release

[dpaudit](https://github.com/dpaudit/dpaudit) runs `{program}` on two datasets that differ in one record.
The exit code is 1 if the outputs refute {claim}; a true claim is refuted in at most one of 1,000 runs of this command.
"""


@dataclass(frozen=True, kw_only=True)
class _Case:
    """A kind of audit; the files that its config names are written beside it."""

    title: str
    claim: str
    mechanism: str
    pairs: str = _PAIRS
    trials: str = "100000"
    files: dict[str, str] = field(default_factory=dict)
    build: str = ""
    config: str = _CONFIG
    readme: str = ""


def _client(language: str, program: str, command: str, build: str = "") -> _Case:
    """Return the case of a program of `clients/`, which has no dependencies, and its config, which plants a fault."""
    return _Case(
        title=f"Two audits of a program in {language}: one of the mechanism, and one with half of its noise.",
        claim="pure(epsilon=1)",
        mechanism=command,
        trials="20000",
        files={program: (Path(__file__).parent / "clients" / program).read_text(encoding="utf-8")},
        build=f"{build} && " if build else "",
        config=_CLIENT_CONFIG,
        readme=_README,
    )


CASES = {
    "builtin": _Case(
        title="An audit of one mechanism.",
        claim="gaussian(mu=1)",
        mechanism="""\
mechanism:
  builtin: gaussian               # `dpaudit list mechanisms` shows all; or name your own code:
  params: {sigma: 1.0}
  # python: my_module.py:release  # a function (dataset, rng) -> output in a file beside this config
  # batched: true                 # the function takes (dataset, n, rng) and returns n outputs
""",
    ),
    "python": _Case(
        title="An audit of a Python function.",
        claim="gaussian(mu=1)",
        mechanism="""\
mechanism:
  python: my_mechanism.py:release   # a function (dataset, rng) -> output in a file beside this config
  # params: {scale: 1.0}            # if given, the name is a class or a factory, which is called once with them
  # requires: [numpy==2.2.6]        # if given, the code runs in a separate environment with these packages
""",
        files={"my_mechanism.py": _FUNCTION},
    ),
    "search": _Case(
        title="An audit that searches for a revealing pair.",
        claim="gaussian(mu=1)",
        mechanism="""\
mechanism: {python: my_mechanism.py:release}   # a function (dataset, rng) -> output in a file beside this config
""",
        pairs="""\
# A dozen pairs that have exposed other mechanisms: extreme records, duplicates and empty datasets.
pairs:
  - search:
      relation: add_remove        # or replace_one, all_values
      size: 3                     # records in the larger dataset
      bounds: [0, 1]              # smallest and largest value of a record
      out_of_domain: false        # true: also values beyond the bounds, NaN and None

""",
        files={"my_mechanism.py": _FUNCTION},
    ),
    "files": _Case(
        title="An audit with a dataset in a file.",
        claim="pure(epsilon=1)",
        mechanism="""\
mechanism: {python: my_mechanism.py:release}   # a function (rows, rng) -> output in a file beside this config
""",
        pairs="""\
# The mechanism receives the rows of people.csv as dictionaries.  Records are counted from 0.
pairs:
  - {d0: people.csv, d1: {drop: 2}}
  - {d0: people.csv, d1: {replace: {2: {age: 0}}}}

""",
        files={"my_mechanism.py": _TABLE_FUNCTION, "people.csv": "name,age\nAda,36\nBo,7\nCy,100\n"},
    ),
    "library": _Case(
        title="An audit of a mechanism of OpenDP, which states its own claim: pip install opendp.",
        claim="from mechanism",
        mechanism="""\
mechanism:
  library: opendp                 # or diffprivlib, pydp, smartnoise_sql
  call: make_laplace
  arguments:
    input_domain: {atom_domain: {T: i32}}
    input_metric: {absolute_distance: {T: i32}}
    scale: 2.0
  d_in: 1                         # the largest distance between neighbours
  # requires: [opendp==0.14.2]    # if given, this version runs in a separate environment
""",
        pairs="pairs: [{from_library: true}]   # neighbours that fit the library's domain and metric\n\n",
    ),
    "command": _Case(
        title="An audit of a program in any language.",
        claim="gaussian(mu=1)",
        mechanism="""\
mechanism:
  command: [python3, my_program.py]   # a program that answers JSON requests, see the page about mechanisms
""",
        files={"my_program.py": _PROGRAM},
    ),
    "training": _Case(
        title="An audit of private training, with a trainer in numpy.",
        claim="from mechanism",
        mechanism="""\
mechanism:
  builtin: dp_gd                  # `dpaudit list mechanisms` shows other trainers, right and wrong
  params: {noise_multiplier: 3.0, steps: 9}
""",
        pairs="""\
# The target is a Dirac record, whose gradient uses one weight that no other record uses.
pairs:
  - d0: {features: [[0.5, 0.0], [-0.5, 0.5], [0.0, -1.0], [1.0, 0.5]], labels: [0, 1, 1, 0]}
    d1: {features: [[0.5, 0.0], [-0.5, 0.5], [0.0, -1.0], [1.0, 0.5]], labels: [0, 1, 1, 0], diracs: [0]}
    relation: add_remove

""",
        trials="500   ",
    ),
    "rust": _client("Rust", "release.rs", "./release", "rustc -O --edition 2021 release.rs"),
    "go": _client("Go", "release.go", "./release", "go build release.go"),
    "java": _client("Java 17", "Release.java", "java, Release", "javac Release.java"),
    "cpp": _client("C++17", "release.cpp", "./release", "g++ -std=c++17 -O2 -o release release.cpp"),
    "javascript": _client("JavaScript", "release.mjs", "node, release.mjs"),
    "r": _client("R", "release.R", "Rscript, release.R"),
}


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The config file to write.")] = Path("audit.yaml"),
    case: Annotated[
        str, choice_option("What is audited.  Files that the config names are written beside it.", CASES, "--for")
    ] = next(iter(CASES)),
) -> None:
    """Write an example config with comments, which runs unchanged.

    The cases are a builtin mechanism, a Python function, a search for pairs, a dataset in a file, a mechanism of a
    library, a program in any language, private training, and programs in six languages.  For these, lines for a README
    go to stdout.
    """
    check_writable("", file)
    chosen = CASES[case]
    names = {**vars(chosen), "file": shlex.quote(str(file)), "program": next(iter(chosen.files), "")}
    files = {file: chosen.config.format(**names)}
    files |= {file.parent / name: content for name, content in chosen.files.items()}
    for path in files:
        if os.path.lexists(path):
            refuse(f"{path} already exists; choose another file name or another folder")
    for path, content in files.items():
        try:
            with path.open("x", encoding="utf-8") as stream:
                stream.write(content)
        except OSError as error:
            refuse(f"{path}: {error.strerror}")
    say(f"wrote {' and '.join(map(str, files))}; run it with: {chosen.build}dpaudit run {shlex.quote(str(file))}")
    if chosen.readme:
        show(chosen.readme.format(**names))


def schema() -> None:
    """Print the JSON Schema of configs, which editors use for completion and checks."""
    from dpaudit.config.models import schema as config_schema

    show(json.dumps(config_schema(), indent=2))
