"""Programs that make one run and end: their input, output, exit status and seed, and how they are recognised."""

import math
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from dpaudit import MechanismError, Pair, PureDP, Raised, Verdict, audit
from dpaudit.running import CommandMechanism, processes
from dpaudit.running.command import read_output
from dpaudit.running.foreign import Status
from dpaudit.running.runs import ExecutionSettings
from dpaudit.running.sampler import Sampler

PAGE = (Path(__file__).parents[2] / "docs" / "programs.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```\w+\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))
"""The files of the page, whose first line names them."""


def shell(script: str, *words: str, **options: object) -> CommandMechanism:
    return CommandMechanism(["sh", "-c", script, "sh", *words], one_shot=True, **options)  # type: ignore[arg-type]


def once(mechanism: CommandMechanism, dataset: object = 0, seed: int = 0) -> object:
    (output,) = mechanism.sample(dataset, 1, np.random.default_rng(seed))
    return output


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.25\n", 0.25),
        (".5", 0.5),
        ("-inf\n", -math.inf),
        ('{"$float": "0x1.8p+1"}', 3.0),
        ('{"a": [1,\n 2]}\n', {"a": [1, 2]}),
        ("red\n", "red"),
        ("1\n2.5\n\n3\n", [1, 2.5, 3]),
        ("1 2, 3\n4 5 6\n", [[1, 2, 3], [4, 5, 6]]),
        ("Welcome to Noise 2.0!\nsum = 3.5\n", [["Welcome", "to", "Noise", "2.0!"], ["sum", "=", 3.5]]),
        ("[1, 2\n", "[1, 2"),
        ("", None),
        (" \n", None),
    ],
)
def test_what_a_program_prints_is_json_or_lines_of_numbers_and_words(text: str, value: object) -> None:
    assert read_output(text) == value


def test_the_dataset_is_the_input_and_each_run_has_its_own_seed() -> None:
    assert once(shell("cat"), [0.5, math.inf, {"a": "b"}]) == [0.5, math.inf, {"a": "b"}]
    seeds = shell("echo $1", "seed={seed}").sample(0, 3, np.random.default_rng(0))
    assert len(set(seeds)) == 3
    assert list(seeds) == list(shell("echo $1", "seed={seed}").sample(0, 3, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("dataset", "table"),
    [
        ([1, 2.5, math.nan], "1\n2.5\nnan\n"),
        ([[1, "a,b"], [2, None]], '1,"a,b"\n2,\n'),
        ([{"age": 30, "sex": "f"}, {"age": 31, "sex": "m"}], "age,sex\n30,f\n31,m\n"),
        (pd.DataFrame({"age": [30, 31]}), "age\n30\n31\n"),
        (7, "7\n"),
        ([], ""),
    ],
)
def test_a_dataset_may_be_a_file_of_an_argument(dataset: object, table: str) -> None:
    quote = "import json, sys; print(json.dumps(sys.stdin.read() + open(sys.argv[1]).read()))"
    python = CommandMechanism([sys.executable, "-c", quote, "{dataset.csv}"], one_shot=True)
    assert once(python, dataset) == table
    if isinstance(dataset, list):
        assert str(once(shell("cat $1", "{dataset}"), dataset)) == str(dataset)


def test_an_exit_status_is_an_error_or_the_outcome() -> None:
    mechanism = shell("read x; echo first >&2; echo >&2; echo last >&2; exit $x")
    with pytest.raises(Status, match="exit status 3"):
        once(mechanism, 3)
    with pytest.raises(MechanismError, match=r"exit status 3 of sh .*; its stderr: first … last on run 0 of d1"):
        audit(mechanism, PureDP(1.0), Pair(0, 3), seed=0)
    outcomes = Sampler(mechanism, [Pair(4, 3)], 0, execution=ExecutionSettings(failures="outcome")).block(0, 0, 2)
    assert [list(side.outputs) for side in outcomes] == [[Raised("Status", f"exit status {x}")] * 2 for x in (4, 3)]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kill -9 $$", "was killed by signal 9"),
        ("sleep 600", "did not answer within 0.5 s"),
        ("exec >&-; sleep 600", "closed its stdout, but did not end"),
        ("yes", "printed more than 300,000 bytes"),
    ],
)
@pytest.mark.chance
def test_a_death_and_a_hanging_or_endless_program_are_no_outcomes(
    script: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MAX_FILE_BYTES", 300_000)
    with pytest.raises(MechanismError, match=message):
        audit(shell(script, timeout=0.5), PureDP(1.0), Pair(0, 1), failures="outcome", seed=0)


def test_a_program_that_prints_nothing_is_named() -> None:
    with pytest.raises(MechanismError, match=r"nothing \(None\) in all of its first runs"):
        audit(shell("true"), PureDP(1.0), Pair(0, 1), seed=0)


@pytest.mark.chance
def test_a_program_that_waits_for_the_end_of_its_input_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SILENCE", 0.2)
    waits = CommandMechanism(["sh", "-c", "cat > /dev/null; echo 1"])
    with pytest.raises(MechanismError, match=r"reads its input to the end .*one_shot: true"):
        waits.sample(0, 1, np.random.default_rng(0))
    slow = CommandMechanism(["sh", "-c", "while read -r x; do sleep 0.3; echo '{\"outputs\": [1]}'; done"])
    with slow:
        assert slow.sample(0, 1, np.random.default_rng(0)) == [1]


def test_a_program_that_starts_slowly_only_once_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its second process answers at once, as after a first start that fills a cache.  The outcome needs no clock."""
    monkeypatch.setattr("dpaudit.running.processes.SILENCE", 0.1)
    script = "mkdir warm 2> /dev/null && sleep 1; while read -r line; do echo '{\"outputs\": [1]}'; done"
    assert CommandMechanism(["sh", "-c", script], cwd=tmp_path).sample(0, 1, np.random.default_rng(0)) == [1]


def test_words_to_fill_in_need_one_shot() -> None:
    with pytest.raises(ValueError, match=r"\{seed\} in the command .* needs one_shot: true"):
        CommandMechanism(["./noise", "--seed={seed}"])


@pytest.mark.parametrize(("scale", "verdict"), [("0.5", Verdict.VIOLATION), ("1.0", Verdict.NO_VIOLATION)])
def test_the_awk_program_of_the_page_gets_the_right_verdict(scale: str, verdict: Verdict, tmp_path: Path) -> None:
    (tmp_path / "noise.awk").write_text(FILES["noise.awk"].replace("0.5 *", f"{scale} *"))
    awk = CommandMechanism(["awk", "-v", "seed={seed}", "-f", "noise.awk"], one_shot=True, cwd=tmp_path)
    settings = {"trials": 160, "seed": 1, "confirm": 20, "attacks": "median_clipped", "confidence": 0.9}
    assert audit(awk, PureDP(1.0), Pair([0, 0, 1], [0, 1, 1]), **settings).verdict is verdict  # type: ignore[arg-type]


def test_the_outputs_do_not_depend_on_the_number_of_workers() -> None:
    here = Sampler(shell("echo $1", "{seed}"), [Pair(0, 1)], 1).block(0, 0, 9)
    there = Sampler(shell("echo $1", "{seed}"), [Pair(0, 1)], 1, jobs=2)
    there.seconds_per_run = 1.0
    assert [list(side.outputs) for side in here] == [list(side.outputs) for side in there.block(0, 0, 9)]


def test_the_config_of_the_page_works_as_it_is_typed(tmp_path: Path, command: Callable[..., Result]) -> None:
    """The claim is false; with this seed it is refuted."""
    for name in ("noise.awk", "sum.yaml"):
        (tmp_path / name).write_text(FILES[name])
    done = command("run", "sum.yaml", "--no-pdf", "--seed", "1", "--confidence", "0.9", "--confirm", "never")
    assert done.exit_code == 1, done.output


def test_nothing_is_left_in_the_folder_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    once(shell("cat $1", "{dataset}"), [1])
    assert os.listdir(tmp_path) == []
