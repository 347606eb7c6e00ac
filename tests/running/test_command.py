"""Programs as mechanisms: valid answers, messages about other answers, and the examples of the documentation."""

import math
import pickle
import re
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from dpaudit import MechanismError, Pair, PureDP, Verdict, audit, parse_claim
from dpaudit.running import CommandMechanism, IsolatedMechanism, processes
from dpaudit.running.sampler import Sampler

from .programs import needs_registry, script

SEEDED = """\
import random
random.seed(request["seed"])
print(json.dumps({"outputs": [sum(request["dataset"]) + random.gauss(0, 1) for _ in range(n)]}))
"""

ANSWERS_ONCE = """\
if request["dataset"] == 1:
    os.system("sleep 600")
print("waiting", file=sys.stderr, flush=True)
print(json.dumps({"outputs": [0] * n}))
"""


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_program_stays_alive_and_gets_dataset_count_and_seed(tmp_path: Path) -> None:
    mechanism = script(tmp_path, 'print(json.dumps({"outputs": [[os.getpid(), request]] * n}))')
    first, second = mechanism.sample([1, 2.5, "a"], 2, rng()), mechanism.sample([], 1, np.random.default_rng(1))
    assert first[0][0] == second[0][0]
    assert first[0][1] | {"seed": 0} == {"dataset": [1, 2.5, "a"], "n": 2, "seed": 0}
    seeds = first[0][1]["seed"], second[0][1]["seed"]
    assert min(seeds) >= 0
    assert max(seeds) < 2**53
    assert seeds[0] != seeds[1]


def test_the_same_randomness_gives_the_same_outputs_in_any_process(tmp_path: Path) -> None:
    mechanism = script(tmp_path, SEEDED)
    pairs = [Pair([0], [1])]
    here = Sampler(mechanism, pairs, seed=3, jobs=1).block(0, 0, 10_500)  # the block makes two calls
    parallel = Sampler(pickle.loads(pickle.dumps(mechanism)), pairs, seed=3, jobs=2)
    parallel.seconds_per_run = 1.0
    there = parallel.block(0, 0, 10_500)
    assert [list(outcome.outputs) for outcome in here] == [list(outcome.outputs) for outcome in there]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"$float": "inf"}', math.inf),
        ("-Infinity", -math.inf),
        ("5e-324", 5e-324),
        (str(2**200), 2**200),
        ('{"$bytes": "AP8="}', b"\x00\xff"),
        ('[1, [true, null], {"a": "\\u00e9"}]', [1, [True, None], {"a": "é"}]),
    ],
)
def test_every_kind_of_output_has_a_text(tmp_path: Path, text: str, value: object) -> None:
    answer = f'{{"outputs": [{text}]}}'
    (output,) = script(tmp_path, f"print({answer!r})").sample(0, 1, rng())
    assert output == value
    assert type(output) is type(value)


def test_nan_and_bytes_go_both_ways_and_negative_zero_keeps_its_sign(tmp_path: Path) -> None:
    mechanism = script(tmp_path, 'print(json.dumps({"outputs": [request["dataset"]]}))')
    dataset = [math.nan, math.inf, -0.0, b"\x00\xff", np.float64(0.1), np.arange(2), (True, None)]
    ((nan, inf, zero, data, tenth, array, pair),) = mechanism.sample(dataset, 1, rng())
    assert math.isnan(nan)
    assert math.copysign(1, zero) == -1
    assert (inf, data, tenth, array, pair) == (math.inf, b"\x00\xff", 0.1, [0, 1], [True, None])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("print('tell them', file=sys.stderr); sys.exit(3)", "ended with exit status 3 .*stderr: tell them"),
        ("os.kill(os.getpid(), 9)", "was killed by SIGKILL .*its stderr is empty"),
        ("print('hello')", "answered with a line that is not JSON .*: 'hello"),
        ("print('[1, 2]')", r"must answer .* or .*, got '\[1, 2\]"),
        ("""print('{"outputs": [1, 2, 3]}')""", "returned 3 outputs instead of 2"),
        ("""print('{"error": "no such column"}')""", "reported: no such column"),
        ("""print('{"outputs": [1', end='', flush=True); sys.exit()""", 'the answer began with \'{"outputs": '),
    ],
)
def test_a_wrong_answer_is_reported_with_program_and_output(tmp_path: Path, answer: str, message: str) -> None:
    mechanism = script(tmp_path, answer)
    with pytest.raises(MechanismError, match=message) as error:
        mechanism.sample(0, 2, rng())
    assert "program.py" in str(error.value)


def test_a_program_that_closes_its_stdout_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PATIENCE", 0.01)
    with pytest.raises(MechanismError, match=r"program\.py.* closed its stdout"):
        script(tmp_path, "os.close(1); time.sleep(60)").sample(0, 2, rng())


@pytest.mark.chance
def test_a_silent_program_times_out_and_is_killed_with_its_children(tmp_path: Path) -> None:
    """The program has started and has written to stderr before the short timeout begins."""
    patient = script(tmp_path, ANSWERS_ONCE)
    patient.sample(0, 1, rng())
    impatient = CommandMechanism(patient.command, cwd=patient.cwd, timeout=0.2)  # the same running program
    began = time.monotonic()
    with pytest.raises(MechanismError, match=r"answer within 0.2 s .*flush stdout after each answer.*stderr: waiting"):
        impatient.sample(1, 1, rng())
    assert time.monotonic() - began < 120  # less than the ten minutes of its child


def test_more_than_one_line_is_not_taken_for_the_next_answer(tmp_path: Path) -> None:
    mechanism = script(tmp_path, """print('{"outputs": [1]}\\nnoise')""")
    assert list(mechanism.sample(0, 1, rng())) == [1]
    with pytest.raises(MechanismError, match="printed more than its answer on stdout: 'noise"):
        mechanism.sample(0, 1, rng())


def test_large_requests_answers_and_talk_on_stderr_do_not_block_each_other(tmp_path: Path) -> None:
    answer = """\
sys.stderr.write("x" * 3_000_000)
print(json.dumps({"outputs": [len(request["dataset"])] * n}))
"""
    outputs = script(tmp_path, answer, timeout=300).sample(list(range(300_000)), 300_000, rng())
    assert list(outputs) == [300_000] * 300_000


@pytest.mark.parametrize("command", ["./prog arg", []])
def test_a_command_is_a_list_of_words(command: object) -> None:
    with pytest.raises(ValueError, match="command must be a list of the program and its arguments"):
        CommandMechanism(command)  # type: ignore[arg-type]


def test_a_dataset_without_a_form_in_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MechanismError, match=r"dataset cannot be sent to .*: a set has no JSON form"):
        script(tmp_path, "pass").sample({1, 2}, 1, rng())


def test_no_shell_reads_the_words(tmp_path: Path) -> None:
    mechanism = script(tmp_path, 'print(json.dumps({"outputs": [sys.argv[1:]]}))')
    words = ["$HOME/x", "a b", "; rm x", "*"]
    found = CommandMechanism([*mechanism.command, *words], cwd=tmp_path).sample(0, 1, rng())
    assert found[0] == words


def test_a_word_may_name_a_variable_whose_value_no_file_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*script(tmp_path, 'print(json.dumps({"outputs": [sys.argv[1:]]}))').command, "$KEY", "--login=$KEY"]
    with pytest.raises(MechanismError, match="needs the environment variable KEY, which is not set"):
        CommandMechanism(command, cwd=tmp_path).start()
    monkeypatch.setenv("KEY", "hunter2")
    with CommandMechanism(command, cwd=tmp_path) as mechanism:
        assert mechanism.sample(0, 1, rng())[0] == ["hunter2", "--login=hunter2"]
        assert "hunter2" not in mechanism.address


def test_the_program_gets_the_variables_besides_the_inherited_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INHERITED", "1")
    answer = 'print(json.dumps({"outputs": [[os.environ["INHERITED"], os.environ["OWN"]]]}))'
    assert script(tmp_path, answer, env={"OWN": "2"}).sample(0, 1, rng())[0] == ["1", "2"]


@pytest.mark.skipif(shutil.which("awk") is None, reason="needs awk")
def test_a_shell_script_with_awk_is_a_mechanism(tmp_path: Path) -> None:
    """The script starts one awk for each request, because some awks read ahead.

    Fails by chance < 1 in 10**6 (mean of 1000 normals).
    """
    (tmp_path / "noise.sh").write_text(
        """\
while read -r line; do echo "$line" | awk '{
    match($0, /"n": [0-9]+/); n = substr($0, RSTART + 5, RLENGTH - 5) + 0
    match($0, /"seed": [0-9]+/); srand(substr($0, RSTART + 8, RLENGTH - 8) % 2147483647)
    match($0, /\\[[-0-9.]*\\]/); x = substr($0, RSTART + 1, RLENGTH - 2) + 0
    printf "{\\"outputs\\": ["
    for (i = 0; i < n; i++)
        printf "%s%.17g", (i ? ", " : ""), x + sqrt(-2 * log(1 - rand())) * cos(6.283185307179586 * rand())
    print "]}"
}'; done
"""
    )
    with CommandMechanism(["sh", "noise.sh"], cwd=tmp_path, timeout=300) as mechanism:
        outputs = np.array(mechanism.sample([10], 1000, rng()))
        again = np.array(mechanism.sample([10], 1000, rng()))
    assert abs(outputs.mean() - 10) < 5 / math.sqrt(1000)
    assert (outputs == again).all()


@pytest.mark.chance
def test_outputs_before_a_program_dies_are_kept(tmp_path: Path) -> None:
    answer = """\
open("answers", "a").write("x")
if os.path.getsize("answers") > 12: sys.exit("tired")
print(json.dumps({"outputs": [time.time_ns() % 7 for _ in range(n)]}))
"""
    result = audit(script(tmp_path, answer), PureDP(5.0), Pair(0, 1), trials=10**9, seed=0, confidence=0.95)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.trials_used > 0
    assert "tired" in " ".join(result.warnings)


ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
ADAPTERS = re.findall(r"```python\n# requires: ([^\n]*)\n(.*?)```", TEXT, re.DOTALL)
ADAPTERS += re.findall(r"# requires: ([^\n]*)\n(.*)", (ROOT / "examples" / "pipelinedp.py").read_text(), re.DOTALL)
PEOPLE = [["ann", "Mo"], ["bob", "Mo"], ["eve", "Tu"]]
DATASETS = {"pipeline-dp": PEOPLE}


@needs_registry
@pytest.mark.slow
@pytest.mark.parametrize(("requires", "code"), ADAPTERS, ids=[requires.split(",")[0] for requires, _ in ADAPTERS])
def test_an_adapter_runs(requires: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test installs from a package registry into the user's cache."""
    monkeypatch.delenv("DPAUDIT_CACHE")
    (tmp_path / "adapter.py").write_text(code)
    mechanism = IsolatedMechanism(address="adapter.py:mechanism", requires=requires.split(", "), folder=tmp_path)
    dataset = DATASETS.get(re.split("[=<]", requires)[0], [0.0, 1.0, 1.0])
    outputs = np.array(mechanism.sample(dataset, 20, np.random.default_rng(0)), dtype=float)
    assert outputs.shape[0] == 20
    assert len(np.unique(outputs)) > 1
    assert mechanism.claim is not None
    parse_claim(mechanism.claim)


def test_the_first_example_runs() -> None:
    code = TEXT.split("```python\n", 1)[1].split("```", 1)[0]
    space: dict[str, object] = {}
    exec(code, space)
    release, many = space["release"], space["Release"]
    assert callable(release)
    assert callable(many)
    assert isinstance(release([1], np.random.default_rng(0)), float)
    assert len(many().sample([1], 5, np.random.default_rng(0))) == 5


def test_the_answer_with_a_running_time_is_understood(tmp_path: Path) -> None:
    (answer,) = re.findall(r'^    (\{"outputs".*"seconds".*)$', TEXT, re.MULTILINE)
    found = script(tmp_path, f"print({answer!r})").run([[0, 1]], 0, np.random.default_rng(0))
    assert (found.output, found.seconds, found.clock) == (0.25, 0.0013, "reported by the program")
