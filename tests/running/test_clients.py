"""The programs that `dpaudit init --for LANGUAGE` writes answer as documented, and an audit tells right from wrong."""

import json
import math
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpaudit.cli.start import CASES

from ..conftest import Command
from ..unseeded import CONFIDENCE_OPTION

CLIENTS = {name: case for name, case in CASES.items() if case.readme}
RECORDS = [0, 1, {"$float": "nan"}, {"text": 'é😀"\\\n/', "b": [True, None, []]}, -2.5e3, 7]
REQUESTS = [{"dataset": RECORDS, "n": 50, "seed": 2**53 - 1}, {"dataset": [], "n": 1, "seed": 0}]


def uniforms(seed: int) -> Iterator[float]:
    """Yield the numbers of SplitMix64, a plain second version."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield ((z ^ z >> 31) >> 11) / 2**53


def expected(epsilon: float, request: dict[str, Any]) -> list[int]:
    """Return the number of positive records plus the difference of two geometric variables, n times."""
    random = uniforms(request["seed"])
    count = sum(isinstance(record, (int, float)) and record > 0 for record in request["dataset"])

    def geometric() -> int:
        return next(k for k, u in enumerate(random) if u >= math.exp(-epsilon))

    return [count + geometric() - geometric() for _ in range(request["n"])]


@pytest.mark.parametrize("case", CLIENTS)
def test_a_client_is_one_short_file(case: str) -> None:
    (text,) = CLIENTS[case].files.values()
    assert len(text.splitlines()) <= 90
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.slow
@pytest.mark.chance
@pytest.mark.parametrize("case", CLIENTS)
def test_a_client_finds_the_planted_fault_and_clears_the_right_mechanism(
    case: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law is exact up to 2**-50, and half of its noise is found in some hundred runs of 4,000.

    R has no integers of 64 bits, so only its numbers of outputs are compared.  Fails by chance < 1 in 10**6.
    """
    monkeypatch.chdir(tmp_path)
    assert command("init", "audit.yaml", "--for", case).exit_code == 0
    build = shlex.split(CLIENTS[case].build.removesuffix("&& "))
    audits = yaml.safe_load(Path("audit.yaml").read_text(encoding="utf-8"))["audits"]
    if missing := [
        word
        for word in [*build[:1], audits[0]["mechanism"]["command"][0]]
        if "/" not in word and not shutil.which(word)
    ]:
        pytest.skip(f"{missing[0]} is not installed")
    if build:
        subprocess.run(build, check=True, timeout=600)
    lines = "".join(f"{json.dumps(request)}\n" for request in [*REQUESTS, 3])
    for audit, epsilon in zip(audits, (1.0, 2.0), strict=True):
        done = subprocess.run(
            audit["mechanism"]["command"], input=lines, capture_output=True, text=True, timeout=60, check=True
        )
        *answers, failed = map(json.loads, done.stdout.splitlines())
        outputs = [answer["outputs"] for answer in answers]
        if case == "r":
            assert list(map(len, outputs)) == [50, 1]
        else:
            assert outputs == [expected(epsilon, request) for request in REQUESTS]
        assert "error" in failed
    ended = command("run", "audit.yaml", "--trials", "4000", "--no-pdf", "--format", "json", *CONFIDENCE_OPTION)
    assert [audit["verdict"] for audit in json.loads(ended.stdout)] == ["no violation found", "violation"]
