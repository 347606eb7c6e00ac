"""Check that seeded audits of every kind give the same evidence as before a refactoring.

    python benchmarks/same_evidence.py --check              against benchmarks/same_evidence.json
    python benchmarks/same_evidence.py --write              a new benchmarks/same_evidence.json
    python benchmarks/same_evidence.py --check FILE --only builtin
    python benchmarks/same_evidence.py --dump DIR           what is digested, one text file for each kind, for `diff -r`
    python benchmarks/same_evidence.py --list

If an audit differs from the reference, `--check` prints a line with the parts that differ, and the exit code is 1.  The
package `evidence_kinds` contains the audits, and `evidence_kinds.digests` selects the compared parts of a result.  The
check took 110 seconds of processor time on two busy cores.

A reference is valid only for the processor and the versions of Python and packages that it names.  With other versions
or processors, the last digits of floats may differ.  In this case, first write a reference with dpaudit from the old
commit and the audits from the new commit:

    git worktree add ../old COMMIT
    PYTHONPATH=../old/audit:../old/attacks:../old/reports python benchmarks/same_evidence.py --write before.json
    python benchmarks/same_evidence.py --check before.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import dpaudit
from evidence_kinds import Family, afterwards, audits, builtins, data
from evidence_kinds.digests import Digests, digests, headline, parts

REFERENCE = Path(__file__).with_suffix(".json")
FAMILIES: list[Family] = [found for module in (builtins, data, audits, afterwards) for found in module.FAMILIES]
# packages whose versions may change the last digits of floats
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "dp-accounting")
_RAISED = "raised"  # name of the part that holds the exception of a failed audit


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The compared evidence of one kind of audit."""

    headline: str  # one line that summarises the result for readers
    texts: Mapping[str, str]  # maps the name of each part to the text from which its digest is computed

    @property
    def digests(self) -> Digests:
        return digests(self.texts)


def kinds(only: str = "") -> list[str]:
    """Return the names of all kinds of audits whose names contain the given text."""
    return [name for one in FAMILIES for name in one.names if only in name]


def collect(only: str = "") -> Iterator[tuple[str, Evidence]]:
    """Run the audits of all kinds whose names contain the given text."""
    for one in FAMILIES:
        if not (names := [name for name in one.names if only in name]):
            continue
        with tempfile.TemporaryDirectory(prefix="evidence-") as place:
            folder = Path(place).resolve()
            try:
                found = one.run(names, folder)
            except Exception as error:  # after a failure, the other kinds of audits are still compared
                found = {name: {_RAISED: f"{type(error).__name__}: {error}"} for name in names}
            for name in names:
                texts = parts(found[name], left_out=(Path(place), folder))
                yield name, Evidence(headline=headline(found[name]), texts=texts)


def holds_for() -> dict[str, str]:
    """Return the versions and the processor features for which a reference is valid."""
    simd = np.show_config(mode="dicts")["SIMD Extensions"]  # type: ignore[index, call-overload, unused-ignore]
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: _version(name) for name in _PACKAGES},
        "processor": f"{platform.system()} {platform.machine()} {' '.join(simd.get('found', []))}".strip(),
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def write(file: Path, only: str = "") -> int:
    """Write a reference with one line for each kind of audit.

    If an audit raises an exception, no file is written.
    """
    found = dict(collect(only))
    if failed := {name: one.texts[_RAISED] for name, one in found.items() if _RAISED in one.texts}:
        print(*(f"{name}: {words}" for name, words in failed.items()), sep="\n", file=sys.stderr)
        return 2
    lines = [f"  {json.dumps(name)}: {json.dumps([one.headline, one.digests])}" for name, one in found.items()]
    head, body = json.dumps(holds_for()), ",\n".join(lines)
    file.write_text(f'{{\n "holds for": {head},\n "kinds": {{\n{body}\n }}\n}}\n', encoding="utf-8")
    print(f"{len(found)} kinds of the dpaudit in {_place()} are in {file}")
    return 0


def check(file: Path, only: str = "") -> int:
    """Print the differences between the current evidence and a reference.

    The exit code is 0 without differences, 1 with differences, and 2 if the reference is not valid on this machine.
    """
    reference = json.loads(file.read_text(encoding="utf-8"))
    if other := _other_versions(reference["holds for"]):
        print(
            f"{file} holds for {', '.join(other)}.  Floats may differ, so that nothing is compared.  Write a reference "
            f"from the old commit first: python {sys.argv[0]} --help",
            file=sys.stderr,
        )
        return 2
    before = {name: entry for name, entry in reference["kinds"].items() if only in name}
    lines = [f"{name}: is gone" for name in before.keys() - set(kinds(only))]
    for name, now in collect(only):
        lines += [f"{name}: {words}"] if (words := differences(before.get(name), now)) else []
    print(*sorted(lines), f"{len(lines)} of {len(before)} kinds differ in the dpaudit in {_place()}", sep="\n")
    return 1 if lines else 0


def differences(before: Any, now: Evidence) -> str:
    """Describe how the evidence of one kind of audit differs from its entry in a reference; "" without differences."""
    if before is None:
        return "is new"
    said, known = before
    found = now.digests
    parts_that_differ = [part for part in {**known, **found} if known.get(part) != found.get(part)]
    if not parts_that_differ:
        return ""
    words = f"{', '.join(part or 'all' for part in parts_that_differ)} differ{'s' * (len(parts_that_differ) == 1)}"
    if said != now.headline:
        words += f" (was: {said}; is: {now.headline})"
    return words if _RAISED not in now.texts else f"{words}: {now.texts[_RAISED]}"


def dump(folder: Path, only: str = "") -> int:
    """Write the texts that digests are computed from: one file for each kind of audit, one line for each part."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, one in collect(only):
        text = "".join(f"{part}: {content}\n" for part, content in one.texts.items())
        (folder / f"{name.replace('/', ' - ')}.txt").write_text(f"{one.headline}\n{text}", encoding="utf-8")
    return 0


def _other_versions(said: Mapping[str, str]) -> list[str]:
    now = holds_for()
    return [f"{name} {said.get(name)} (here: {now[name]})" for name in now if said.get(name) != now[name]]


def _place() -> Path:
    return Path(str(dpaudit.__file__)).parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    for name, words in (("--write", "write a reference"), ("--check", "compare with a reference")):
        what.add_argument(name, metavar="FILE", type=Path, nargs="?", const=REFERENCE, help=words)
    what.add_argument("--dump", metavar="DIR", type=Path, help="write what is digested, for `diff -r`")
    what.add_argument("--list", action="store_true", help="print the names of all kinds")
    parser.add_argument("--only", metavar="TEXT", default="", help="only kinds whose names contain this")
    given = parser.parse_args(arguments)
    if given.write is not None:
        return write(given.write, given.only)
    if given.check is not None:
        return check(given.check, given.only)
    if given.dump is not None:
        return dump(given.dump, given.only)
    print(*kinds(given.only), sep="\n")
    return 0


if __name__ == "__main__":
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if os.environ | one_thread != os.environ:  # numpy reads these variables when it is imported
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | one_thread)
    sys.exit(main())
