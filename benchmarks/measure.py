"""Repeat a measurement over seeds, keep what is finished, count outcomes, and print Markdown tables.

    python benchmarks/NAME.py [--seeds N | --minutes M] [--only TEXT ...] [--jobs 2] [--store FILE] [--list] [--write]

A benchmark is a function that returns its tables, and a table has cases and columns.  Every finished repetition is
stored under digests of the code of dpaudit and of the benchmark.  So an interrupted command is resumed by the same
command, and outcomes of different code are never counted together.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binom, binomtest

import dpaudit
import dpaudit_attacks

BENCHMARKS = Path(__file__).resolve().parent
ROOT = BENCHMARKS.parent
PACKAGES = [Path(package.__path__[0]).resolve() for package in (dpaudit, dpaudit_attacks)]
LIBRARIES = ("numpy", "scipy", "scikit-learn")  # their versions may change the outcome of an audit with a seed
BEGAN = time.time()
SECONDS = "seconds"  # the processor time of a repetition, with its finished child processes
BEYOND = 0.00135  # probability that a normal variable is more than three standard deviations above its mean
_REPETITIONS = 5  # of each case, however few minutes there are

Outcome = dict[str, Any]
"""What one repetition measured, as plain values."""

Outcomes = Sequence[Outcome]
Column = Callable[[Any, Outcomes], str]
"""The text of a cell, from a case and its outcomes."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A row of a table: a measurement that is repeated with one seed after another.

    `measure` must be a function of a module, or a `partial` of one, so that other processes can import it.
    """

    cells: tuple[str, ...]  # the setting in words
    measure: Callable[[int], Outcome]  # from a seed
    seeds: int = 1  # number of repetitions without --seeds
    first: int = 0  # the first seed
    stored_as: str = ""  # the same for cases that count events of the same repetitions

    def passed(self, outcomes: Outcomes) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class Expected(Case):
    """A case whose outcomes can be wrong."""

    right: Callable[[Outcomes], bool]

    def passed(self, outcomes: Outcomes) -> bool:
        return self.right(outcomes)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cases, and the columns of their rows."""

    headings: tuple[str, ...]  # of the cells that state the setting
    columns: Mapping[str, Column]
    cases: Sequence[Any]
    name: str = ""
    asked: bool = False  # whether the table is left out unless --only names it
    written: bool = True  # whether --write needs an outcome of each case
    threads: bool = False  # whether repetitions start processes themselves, or share an object

    def label(self, case: Case) -> str:
        return ": ".join(filter(None, (self.name, ", ".join(case.cells))))

    def row(self, case: Case, outcomes: Outcomes) -> list[str]:
        return [*case.cells, *(column(case, outcomes) for column in self.columns.values())]


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (headings, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(headings), *lines[1:]])


def all_have(name: str, value: object, outcomes: Outcomes) -> bool:
    """Return whether a value of all outcomes is the right one."""
    return all(outcome[name] == value for outcome in outcomes)


# --- Columns


def of(name: str, text: Callable[[Any], str]) -> Column:
    return lambda _, outcomes: text(np.array([outcome[name] for outcome in outcomes]))


def texts(name: str) -> Column:
    return of(name, lambda values: ", ".join(dict.fromkeys(map(str, values))))


def count(name: str) -> Column:
    return of(name, lambda values: f"{values.sum():.0f} of {len(values)}")


def rate(name: str) -> Column:
    def text(values: Any) -> str:
        interval = binomtest(int(values.sum()), len(values)).proportion_ci(0.95, "exact")
        return f"{values.sum():.0f} of {len(values)} ({100 * interval.low:.1f} to {100 * interval.high:.1f} %)"

    return of(name, text)


def median(name: str, style: str = ",.0f") -> Column:
    return of(name, lambda values: format(float(np.median(values)), style))


def mean(name: str, style: str = ",.1f") -> Column:
    return of(name, lambda values: format(float(np.mean(values)), style))


def spread(name: str, style: str = ",.0f") -> Column:
    return of(name, lambda values: f"{np.median(values):{style}} ({min(values):{style}} to {max(values):{style}})")


# --- Stated probabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The stated probability of an event, and how often the event may occur in a number of repetitions."""

    rate: float
    least: bool = False  # whether the event has at least this probability, or else at most

    def allowed(self, number: int) -> int:
        """Return the least, or the largest, count; one is beyond it with probability at most `BEYOND`."""
        if self.least:
            return number - int(binom.isf(BEYOND, number, 1 - self.rate))
        return int(binom.isf(BEYOND, number, self.rate))

    def broken(self, number: int, counted: int) -> bool:
        return counted < self.allowed(number) if self.least else counted > self.allowed(number)

    def words(self, number: int) -> str:
        return f"{'at least' if self.least else 'at most'} {self.allowed(number):,}"


# --- What is finished


class Store:
    """A file of finished repetitions with one JSON object on each line.

    If the last line is incomplete because the command was killed while it wrote, the line is removed from the file.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.done: dict[str, Outcome] = {}
        if path and path.exists():
            content = path.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if whole != content:
                path.write_bytes(whole)
            for line in whole.decode("utf-8").splitlines():
                outcome = json.loads(line)
                self.done[outcome.pop("key")] = outcome

    def add(self, key: str, outcome: Outcome) -> None:
        self.done[key] = outcome
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, **outcome}, default=lambda value: value.item()) + "\n")


class CodeChangedError(RuntimeError):
    """The source code changed while the repetitions were made."""


class Repetitions:
    """The repetitions in a store that were made with the present code and with the same settings."""

    def __init__(self, store: Store, settings: Mapping[str, Any], tables: Sequence[Table]) -> None:
        labels = {id(case): table.label(case) for table in tables for case in table.cases}
        if len(set(labels.values())) < len(labels):
            raise AssertionError("two cases have the same label, so one would be counted as the other")
        self.store, self.labels, self.versions, self.checked = store, labels, versions(), BEGAN
        self.settings = settings
        self.sources = {files_of(case): digest(files_of(case)) for table in tables for case in table.cases}

    def key(self, case: Case, seed: int) -> str:
        name = case.stored_as or self.labels[id(case)]
        return " ".join(
            [*self.versions.values(), self.sources[files_of(case)], json.dumps(self.settings), name, str(seed)]
        )

    def of(self, case: Case) -> list[Outcome]:
        """Return the outcomes from the first seed to the first seed that is missing."""
        outcomes, seed = [], case.first
        while (outcome := self.store.done.get(self.key(case, seed))) is not None:
            outcomes.append(outcome)
            seed += 1
        return outcomes

    def make(self, case: Case, number: int, jobs: int = 1, *, threads: bool = False) -> None:
        """Make those of the first repetitions that are not in the store; raise CodeChangedError if the code changes."""
        seeds = range(case.first, case.first + number)
        missing = [seed for seed in seeds if self.key(case, seed) not in self.store.done]
        if jobs == 1:
            made: Iterable[tuple[int, Outcome]] = (timed(case.measure, seed) for seed in missing)
        else:
            made = Parallel(n_jobs=jobs, prefer="threads" if threads else "processes", return_as="generator_unordered")(
                delayed(timed)(case.measure, seed) for seed in missing
            )
        for seed, outcome in made:
            self._check_code()
            self.store.add(self.key(case, seed), outcome)

    def _check_code(self) -> None:
        if (changed := newest()) > self.checked:
            if versions() != self.versions or any(digest(files) != code for files, code in self.sources.items()):
                raise CodeChangedError("the source code changed during the command; run it again")
            self.checked = changed


def timed(measure: Callable[[int], Outcome], seed: int) -> tuple[int, Outcome]:
    began = sum(os.times()[:4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = measure(seed)
    return seed, {SECONDS: round(sum(os.times()[:4]) - began, 3), **outcome}


def versions() -> dict[str, str]:
    return {
        "dpaudit": metadata.version("dpaudit"),
        "code": digest(file for folder in PACKAGES for file in folder.rglob("*.py")),
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: metadata.version(name) for name in LIBRARIES},
    }


def files_of(case: Case) -> tuple[Path, ...]:
    """Return the files that determine the outcomes: the benchmark's, and all those of its package of cases."""
    function: Any = case.measure
    while isinstance(function, partial):
        function = function.func
    file = Path(str(sys.modules[function.__module__].__file__)).resolve()
    cases = BENCHMARKS / f"{file.stem.removesuffix('s')}_cases" if file.parent == BENCHMARKS else file.parent
    return (file, *sorted(cases.rglob("*.py")))


def digest(files: Iterable[Path]) -> str:
    """Return a digest of Python files that comments, docstrings and format do not affect."""
    total = hashlib.sha256()
    for file in sorted(files):
        tree = ast.parse(file.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
        total.update(f"{file.parent.name}/{file.name}\n{ast.dump(tree)}\n".encode())
    return total.hexdigest()[:12]


def newest() -> float:
    return max(file.stat().st_mtime for folder in (*PACKAGES, BENCHMARKS) for file in folder.rglob("*.py"))


# --- The command


def between(begin: str, end: str, text: str, page: str) -> str:
    """Return the page with this text between its two marks."""
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"the page must contain {begin!r} and {end!r} once each")
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"


def run(
    doc: str | None,
    tables_of: Callable[[argparse.Namespace], Sequence[Table]],
    arguments: Sequence[str] | None = None,
    *,
    write: Callable[[Sequence[Table], Repetitions], None] | None = None,
    **settings: Any,
) -> int:
    """Parse the command line, make the repetitions of the chosen cases, print their rows, and return the exit code.

    It is 1 if outcomes are wrong or a repetition failed, 2 if nothing could be written or the code changed meanwhile,
    and 130 if the command was interrupted.  `settings` are further options with their defaults, and `write` is called
    with all tables for --write.
    """
    options = _options(doc, settings, arguments, writes=write is not None)
    tables = tables_of(options)
    try:
        repetitions = Repetitions(Store(options.store), {name: getattr(options, name) for name in settings}, tables)
        chosen = [
            (table, [case for case in table.cases if any(text in table.label(case) for text in options.only or [""])])
            for table in tables
            if not table.asked or any(text in table.name or table.name in text for text in options.only)
        ]
        if options.list:
            print(
                *(f"{table.label(case)} ({case.seeds:,} seeds)" for table, cases in chosen for case in cases), sep="\n"
            )
            return 0
        share = 60 * options.minutes / max(1, sum(len(cases) for _, cases in chosen)) if options.minutes else None
        right = [_shown(table, cases, repetitions, options, share) for table, cases in chosen if cases]
        if not right:
            print(f"--only: no case contains {options.only}; --list shows them", file=sys.stderr)
            return 2
    except CodeChangedError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command resumes with the finished repetitions", file=sys.stderr)
        return 130
    if write is not None and options.write:
        needed = [(table, case) for table in tables if table.written for case in table.cases]
        if missing := [table.label(case) for table, case in needed if not repetitions.of(case)]:
            words = f"nothing is written, because {len(missing)} rows have no outcome of the present code:"
            print(words, *missing, sep="\n", file=sys.stderr)
            return 2
        write(tables, repetitions)
    return int(not all(right))


def _options(
    doc: str | None, settings: Mapping[str, Any], arguments: Sequence[str] | None, *, writes: bool
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--seeds", type=int, help="repetitions of each case, instead of its own number")
    size.add_argument("--minutes", type=float, help="processor time of all chosen cases together, about")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="cases whose label contains a text")
    parser.add_argument("--jobs", type=int, default=2, help="repetitions at once (%(default)s)")
    store = ROOT / "build" / f"{Path(sys.argv[0]).stem}.jsonl"
    parser.add_argument("--store", type=Path, default=store, help="file of finished repetitions (%(default)s)")
    parser.add_argument("--list", action="store_true", help="list the cases, and measure nothing")
    if writes:
        parser.add_argument("--write", action="store_true", help="write the tables into the documentation")
    for name, default in settings.items():
        kind: dict[str, Any] = {"action": "store_true"} if default is False else {"type": type(default)}
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, help=f"({default})", **kind)
    return parser.parse_args(arguments)


def _shown(
    table: Table, cases: Sequence[Case], repetitions: Repetitions, options: argparse.Namespace, share: float | None
) -> bool:
    """Print the rows of these cases; return whether all are as they should be."""
    head = markdown((*table.headings, *table.columns), [])
    print(f"{table.name}\n\n{head}" if table.name else head, flush=True)
    right = True
    for case in cases:
        make = partial(repetitions.make, case, jobs=options.jobs, threads=table.threads)
        try:
            if share is None:
                make(case.seeds if options.seeds is None else options.seeds)
            else:
                make(2)
                cost = max(min(outcome[SECONDS] for outcome in repetitions.of(case)[:2]), 1e-3)
                make(min(case.seeds, max(_REPETITIONS, int(share / cost))))
        except CodeChangedError:
            raise
        except Exception:  # the other cases are still measured
            traceback.print_exc()
            print(f"{table.label(case)}: A REPETITION FAILED", flush=True)
            right = False
            continue
        if outcomes := repetitions.of(case):
            print(f"| {' | '.join(table.row(case, outcomes))} |", flush=True)
            if not case.passed(outcomes):
                print(f"{table.label(case)}: NOT AS EXPECTED", flush=True)
                right = False
    print()
    return right
