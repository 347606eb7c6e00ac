"""Which tests cost the most processor time?  Wall-clock durations say little when tests run beside each other.

    python benchmarks/costs_of_tests.py [--most 40] [PATH ...]

It runs the tests one after another and prints the processor seconds of the most expensive files and tests.  The time of
a child process is counted when it ends.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def processor_time() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


class Costs:
    """A pytest plugin that sums processor time by test."""

    def __init__(self) -> None:
        self.by_test: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began = processor_time()
        outcome = yield
        self.by_test[item.nodeid] += processor_time() - began  # type: ignore[assignment]
        return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=40, help="number of files and of tests to print")
    parser.add_argument("paths", nargs="*", default=["tests"], help="tests to run")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))  # for worker processes, as with `python -m pytest`
    costs = Costs()
    code = pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", *arguments.paths], plugins=[costs])
    by_file: Counter[str] = Counter()
    for test, seconds in costs.by_test.items():
        by_file[test.split("::")[0]] += seconds
    print(f"\n{processor_time():.0f} s of processor time, {sum(costs.by_test.values()):.0f} s of them in tests")
    for title, counted in (("files", by_file), ("tests", costs.by_test)):
        print(f"\nmost expensive {title}")
        for name, seconds in counted.most_common(arguments.most):
            print(f"{seconds:7.1f}  {name}")
    return int(code)


if __name__ == "__main__":
    raise SystemExit(main())
