"""Mechanisms that run in another Python, and the names of their modules there."""

import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError, Pair, audit
from dpaudit.running import wire
from dpaudit.running.mechanisms import PythonMechanism, answer_of
from dpaudit.running.processes import Child
from dpaudit.running.sampler import Sampler
from dpaudit.running.wire import HEADER

from ..other_hashes import output_with_other_hashes
from .programs import FLOATS, OTHERS, bits, isolated


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- the worker -------------------------------------------------------------------------------------------------------


def test_floats_arrive_exactly_from_the_other_python(tmp_path: Path) -> None:
    mechanism = isolated(tmp_path, "def release(dataset, rng): return dataset")
    (floats, others) = mechanism.sample([FLOATS, OTHERS], 1, rng())[0]
    assert list(map(bits, floats)) == list(map(bits, FLOATS))
    assert others == OTHERS


def test_an_array_dataset_becomes_lists_without_numpy(tmp_path: Path) -> None:
    mechanism = isolated(tmp_path, "def release(dataset, rng): return repr(dataset)")
    datasets = [np.arange(4.0).reshape(2, 2), np.zeros((0, 3)), np.float32(0.5), np.array([True]), np.array(7)]
    assert mechanism.sample(datasets, 1, rng()) == ["[[[0.0, 1.0], [2.0, 3.0]], [], 0.5, [True], 7]"]


@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_a_mechanism_runs_in_old_and_new_versions_of_python(tmp_path: Path, version: str) -> None:
    code = "import sys, random\ndef release(dataset, rng): return sys.version_info[:2], isinstance(rng, random.Random)"
    mechanism = isolated(tmp_path, code, python_version=version)
    try:
        ((found, plain),) = mechanism.sample(0, 1, rng())
    except MechanismError as error:
        if str(error).startswith(f"no Python {version} was found"):
            pytest.skip(f"there is no Python {version} here")
        raise
    assert ".".join(map(str, found)) == version
    assert plain
    timed = mechanism.run([0], 0, rng())
    assert timed.output == (found, plain)
    assert timed.seconds > 0


def test_prints_do_not_disturb_answers_and_appear_in_the_error(tmp_path: Path) -> None:
    code = """
        import os
        def release(dataset, rng):
            print("python noise")
            os.system("echo shell noise")
            os.write(1, b"raw noise\\n")
            try: input()
            except EOFError: pass
            if dataset: os._exit(7)
            return 1
    """
    mechanism = isolated(tmp_path, code)
    assert mechanism.sample(0, 3, rng()) == [1, 1, 1]
    with pytest.raises(MechanismError, match="exit status 7") as error:
        mechanism.sample(1, 1, rng())
    for said in ("python noise", "raw noise"):
        assert said in str(error.value)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nowhere", r"mine.py:release \(with Python .*\) raised ModuleNotFoundError: No module named 'nowhere'"),
        ("import numpy", "raised ModuleNotFoundError: No module named 'numpy'"),
        ("def release(dataset, rng): raise KeyError('col')", r"raised KeyError: 'col'\n.*Traceback.*\n.*mine.py"),
        ("def release(dataset, rng): raise SystemExit(4)", "raised SystemExit: 4"),
        ("def release(dataset, rng):\n    import os; os.kill(os.getpid(), 11)", "was killed by SIGSEGV"),
        ("def release(dataset, rng): return object()", r"raised Unsendable: a builtins\.object cannot be sent[^\n]*\Z"),
        (
            "class M:\n    def sample(self, dataset, n, rng): return [0]\nrelease = M()",
            "returned 1 outputs instead of 2",
        ),
        ("release = 3", "must be a callable .* got int"),
        ("def releases(dataset, rng): return 1", r"has no object 'release'; did you mean releases\?"),
        ("def release(", "raised SyntaxError"),
    ],
)
def test_errors_in_the_environment_are_reported(tmp_path: Path, code: str, message: str) -> None:
    with pytest.raises(MechanismError, match=message):
        isolated(tmp_path, code).sample(0, 2, rng())


@pytest.mark.chance
def test_a_silent_mechanism_times_out(tmp_path: Path) -> None:
    """Its process has started before the short timeout begins."""
    code = "import time\ndef release(dataset, rng): time.sleep(dataset)"
    isolated(tmp_path, code).sample(0, 1, rng())
    with pytest.raises(MechanismError, match=r"did not answer within 0\.2 s"):
        isolated(tmp_path, code, timeout=0.2).sample(600, 1, rng())


def test_stray_bytes_on_the_wire_are_not_read_as_an_answer(tmp_path: Path) -> None:
    code = """
        import os
        def release(dataset, rng):
            for fd in range(3, 20):
                try: os.write(fd, (5).to_bytes(8, "little") + b"noise")
                except OSError: pass
            return 1
    """
    with pytest.raises(MechanismError, match="sent an answer that cannot be read"):
        isolated(tmp_path, code).sample(0, 1, rng())


def test_the_claim_comes_as_text(tmp_path: Path) -> None:
    code = "class M:\n    claim = 'pure(epsilon=1)'\n    def __call__(self, dataset, rng): return 0\nrelease = M()"
    assert isolated(tmp_path, code).claim == "pure(epsilon=1)"
    (tmp_path / "other").mkdir()
    assert isolated(tmp_path / "other", "def release(dataset, rng): return 0").claim is None


def test_a_module_beside_the_mechanism_can_be_imported_and_replaces_none_of_pythons(tmp_path: Path) -> None:
    (tmp_path / "helper_beside.py").write_text("value = 7\n")
    (tmp_path / "random.py").write_text("raise SystemExit('not this one')\n")
    code = "from helper_beside import value\nimport random\ndef release(dataset, rng): return value"
    assert list(isolated(tmp_path, code).sample([0], 2, rng())) == [7, 7]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class release: pass", "release is a class, but a mechanism is an instance: add `params: {}` in a config"),
        ("def release(dataset): return 1", "takes (dataset), but a mechanism is called with (dataset, rng)"),
        ("def release(dataset, n, rng): return [1] * n", "set `batched: true` in the config"),
    ],
)
def test_a_mechanism_that_cannot_be_called_is_refused_when_it_is_loaded(
    tmp_path: Path, code: str, message: str
) -> None:
    with pytest.raises(MechanismError, match=re.escape(message)):
        isolated(tmp_path, code).start()


def test_the_seed_decides_rng_and_global_randomness(tmp_path: Path) -> None:
    code = "import random\ndef release(dataset, n, rng): return [(rng.random(), random.random()) for _ in range(n)]"
    mechanism = isolated(tmp_path, code, batched=True)
    first = mechanism.sample(0, 3, rng(1))
    assert mechanism.sample(0, 3, rng(1)) == first
    assert mechanism.sample(0, 3, rng(2)) != first
    assert len({x for pair in first for x in pair}) == 6


def test_an_audit_has_the_same_result_in_other_processes(tmp_path: Path) -> None:
    mechanism = isolated(tmp_path, "def release(dataset, rng): return dataset + rng.gauss(0, 1)")
    here = Sampler(mechanism, [Pair(0, 1)], seed=3, jobs=1).block(0, 0, 20_000)  # the block makes two calls
    parallel = Sampler(pickle.loads(pickle.dumps(mechanism)), [Pair(0, 1)], seed=3, jobs=2)
    parallel.seconds_per_run = 1.0
    there = parallel.block(0, 0, 20_000)
    assert [list(outcome.outputs) for outcome in here] == [list(outcome.outputs) for outcome in there]


def test_few_workers_stay_alive(tmp_path: Path) -> None:
    """A gallery of audits must not start a process for each audit."""
    code = (
        "import os\nclass M:\n    def __init__(self, i): pass\n    def __call__(self, dataset, rng): return os.getpid()"
    )
    ids = [isolated(tmp_path, code, "M", params={"i": i}).sample(0, 1, rng())[0] for i in range(5)]
    alive = [pid for pid in ids if Path(f"/proc/{pid}").exists()] if Path("/proc").exists() else ids[:4]
    assert len(alive) <= 4


# --- shared state -----------------------------------------------------------------------------------------------------

SHARES = """
    kept = [0.0, 0.0]
    def release(dataset, rng):
        dataset.append(1)
        kept[:] = [float(len(dataset)), rng.random()]
        return kept
    def together(dataset, n, rng):
        return [kept] * n
    class Bad(Exception):
        def __str__(self): raise ValueError
    def fails(dataset, rng):
        raise Bad
"""


def test_runs_in_an_environment_share_no_dataset_and_no_output(tmp_path: Path) -> None:
    mechanism = isolated(tmp_path, SHARES)
    outputs = mechanism.sample([0], 20, rng())
    assert {size for size, _ in outputs} == {2.0}
    assert len({drawn for _, drawn in outputs}) == 20
    sampler = Sampler(mechanism, [Pair([0], [1])], seed=1)
    sampler.block(0, 0, 5)
    assert [side_effects.changed for side_effects in sampler.side_effects] == [
        "d0 of pair [0] | [1]",
        "d1 of pair [0] | [1]",
    ]
    with pytest.raises(MechanismError, match="returned the same list object for several runs"):
        isolated(tmp_path, SHARES, "together", batched=True).sample([0], 3, rng())
    with pytest.raises(MechanismError, match=r"Bad: .its message is unavailable"):
        isolated(tmp_path, SHARES, "fails").sample([0], 3, rng())


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("(i for i in [1])", "builtins.generator"),
        ("__import__('socket').socket()", "socket.socket"),
        ("__import__('functools').reduce(lambda inner, _: [inner], range(3000), 1)", "nested too deeply"),
    ],
)
@pytest.mark.parametrize("many", [False, True])
def test_an_output_without_content_is_refused_with_its_type(output: str, kind: str, many: bool, tmp_path: Path) -> None:
    """The descriptor of a socket was once read as the output, because sockets have a method `detach`, as tensors do."""
    one = f"def release(dataset, rng): return {output}"
    several = (
        f"class Several:\n def sample(self, dataset, n, rng): return [{output} for _ in range(n)]\nrelease = Several()"
    )
    with pytest.raises(MechanismError, match=rf"{re.escape(kind)}.*; use ") as error:
        isolated(tmp_path, several if many else one).sample([0], 2, rng())
    assert "pickle" not in str(error.value)


def test_a_value_nested_too_deeply_is_no_answer() -> None:
    body = b"l\x01\0\0\0\0\0\0\0" * 50_000
    written = f"{HEADER.pack(len(body))!r} + {body[:9]!r} * 50_000"
    code = f"import sys; sys.stdin.buffer.read(9); sys.stdout.buffer.write({written})"
    child = Child([sys.executable, "-c", code], name="the worker")
    with pytest.raises(MechanismError, match="an answer that cannot be read"):
        answer_of(child, {"do": "nothing"}, 60.0, "an answer")


OWN_CLASS = """
import time
from dataclasses import dataclass
@dataclass
class Answer:
    value: float
def release(dataset, rng):
    time.sleep(0.002)
    return Answer(dataset[0] + rng.normal())
"""


def test_a_file_has_the_same_module_name_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN_CLASS)
    code = (
        "from pathlib import Path; from dpaudit.running.mechanisms import PythonMechanism; "
        f"print(PythonMechanism('mine.py:release', folder=Path({str(tmp_path)!r})).loaded.__module__)"
    )
    elsewhere = output_with_other_hashes(code)
    mechanism = PythonMechanism("mine.py:release", folder=tmp_path)
    assert elsewhere == f"{mechanism.loaded.__module__}\n"
    result = audit(mechanism, "gaussian(mu=1)", Pair([0], [1]), trials=60, seed=0, jobs=2)
    assert (result.trials_used, result.warnings) == (60, ())


# --- values survive encoding and decoding unchanged


@pytest.mark.parametrize("value", OTHERS, ids=[str(i) for i in range(len(OTHERS))])
def test_values_arrive_unchanged(value: Any) -> None:
    arrived = wire.unframe(wire.frame(value)[8:])
    assert arrived == value
    assert type(arrived) is type(value)
    assert [type(item) for item in arrived] == [type(item) for item in value] if isinstance(value, list) else True


@pytest.mark.parametrize("form", [list, tuple, np.array], ids=["list", "tuple", "array"])
def test_every_bit_of_a_float_arrives(form: Any) -> None:
    arrived = wire.unframe(wire.frame(form(FLOATS))[8:])
    assert list(map(bits, arrived)) == list(map(bits, FLOATS))
    assert list(map(bits, wire.unframe(wire.frame([[x] for x in FLOATS])[8:])[8])) == [bits(FLOATS[8])]


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "f8", "c16", "S3", "U2", ">f8", "M8[ns]", "m8[s]"])
def test_arrays_and_scalars_keep_their_type(dtype: str) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    whole = wire.unframe(wire.frame(array)[8:])
    assert whole.dtype == array.dtype
    assert (whole == array).all()
    scalar = wire.unframe(wire.frame(array[0, 1])[8:])
    assert type(scalar) is type(array[0, 1])
    rows = wire.unframe(wire.frame(list(array[0]))[8:])
    assert [type(item) for item in rows] == [type(item) for item in array[0]]


def test_a_value_without_encoding_is_refused() -> None:
    with pytest.raises(wire.Unsendable, match=r"a builtins\.object cannot be sent"):
        wire.frame([1, {object()}])


@pytest.mark.parametrize("body", [b"", b"?", b"d123", b"s" + b"\xff" * 8, b"l" + b"\x02" + b"\0" * 7 + b"N", b"NN"])
def test_invalid_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        wire.unframe(body)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Decimal", ["x"]),
        ("Fraction", [1, 0]),
        ("timedelta", [10**12]),
        ("date", ["x"]),
        ("set", [[]]),
        ("eval", ["1"]),
    ],
)
def test_impossible_values_of_the_standard_library_are_refused(name: str, parts: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        wire.unframe(b"v" + wire.frame(name)[8:] + wire.frame(parts)[8:])


def test_equal_sets_have_equal_bytes() -> None:
    """The order of a set depends on its history, and the order of texts differs from process to process."""
    first, second = set(range(0, 16, 8)), set(range(8, -1, -8))
    assert list(first) != list(second)
    assert wire.frame(first) == wire.frame(second)


@pytest.mark.parametrize(
    ("tag", "dtype", "shape", "content"),
    [
        (b"z", "f8,(", [1], bytes(8)),  # numpy raises SyntaxError
        (b"Z", "<U1", [1], b"\x00\x00\x11\x00"),  # no such character; numpy raises SystemError
        (b"Z", "<f8", [10**12, 0], b""),  # would become a list of 10**12 empty arrays
    ],
)
def test_arrays_that_numpy_cannot_hold_are_refused(tag: bytes, dtype: str, shape: list[int], content: bytes) -> None:
    array = b"a" + b"".join(wire.frame(part)[8:] for part in (dtype, tuple(shape), content))
    with pytest.raises(ValueError, match=r"not an encoded value|one dimension"):
        wire.unframe(tag + array)
