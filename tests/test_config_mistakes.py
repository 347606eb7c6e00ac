"""Messages about mistakes in configs and in Python, and the ways in which a config may write numbers and claims."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from dpaudit import ApproxDP, AuditResult, GaussianDP, MechanismError, Pair, audit, plan
from dpaudit.config.files import read_configs
from dpaudit.text import WarningCode, has_code

Command = Callable[..., Result]

CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism:
  builtin: gaussian
  params: {sigma: 1.0}
pairs: [{d0: [0], d1: [1]}]
trials: 60
seed: 0
confidence: 0.95
"""
BUILTIN = "  builtin: gaussian\n  params: {sigma: 1.0}\n"


def python(code: str) -> tuple[str, str]:
    return BUILTIN, f"  python: mine.py:{code}\n"


MINE = """\
import sys
def short(d): return d[0]
def long(d, n, rng): return [d[0]] * n
def good(d, rng): return d[0] + rng.normal()
def fails(d, rng):
    return helper(d)
def helper(d):
    return d[5]
class Release:
    def __call__(self, d, rng): return d[0] + rng.normal()
class Factory:
    def __init__(self, a):
        self.a = 1 / a
three = 3
"""

# ruff: noqa: E501  (one mistake a line)
CONFIG_MISTAKES: dict[str, tuple[tuple[str, str], int, str]] = {
    "misspelt claim": (("gaussian(mu", "gausian(mu"), 2, "c.yaml:2: claim: unknown claim 'gausian'; did you mean gauss"),
    "missing bracket": (("gaussian(mu=1)", "gaussian(mu=1"), 2, "claim 'gaussian(mu=1' lacks a )"),
    "misspelt parameter": (("gaussian(mu=1)", "pure(epsilom=1)"), 2, "pure has no parameter epsilom; did you mean epsilon?"),
    "parameter twice": (("gaussian(mu=1)", "gaussian(mu=1, mu=2)"), 2, "gaussian has the parameter mu twice"),
    "number as claim": (("gaussian(mu=1)", "1"), 2, 'claim must be text, got 1; did you mean "pure(epsilon=1)"?'),
    "mapping as claim": (("gaussian(mu=1)", "{eps: 1, delta: 1e-5}"), 2, 'mean "approximate(epsilon=1, delta=1e-05)"?'),
    "empty claim": (("gaussian(mu=1)", ""), 2, 'claim must be text, got None; a claim is text such as "pure(epsilon=1)"'),
    "misspelt claim from mechanism": (("gaussian(mu=1)", "from mechansm"), 2, "did you mean from mechanism?"),
    "sum of two claims": (("gaussian(mu=1)", "pure(1) + pure(2)"), 2, "did you mean compose(pure(1), pure(2))?"),
    "rdp": (("gaussian(mu=1)", "rdp(order=2, epsilon=1)"), 2, "did you mean renyi?  Write renyi(order=..., epsilon="),
    "delta forgotten": (("gaussian(mu=1)", "approximate(epsilon=1)"), 2, "must have the form approximate(epsilon=..., delta"),
    "noise in place of the promise": (("gaussian(mu=1)", "laplace(scale=0.8)"), 2, "not the noise; for Laplace noise, epsilon = sensitivity / scale"),
    "params of a plain function": (python("good\n  params: {sigma: 1.0}"), 2, "with params, the object must be a class, or a function that returns"),
    "misspelt key": (("trials:", "trails:"), 2, "c.yaml:7: trails is not a known key; did you mean trials?"),
    "misspelt builtin": (("builtin: gaussian", "builtin: gausian"), 2, "unknown builtin mechanism 'gausian'; did you"),
    "attacks in a row": (("trials: 60", "attacks: logistic, trees"), 2, "a list of attacks is written [logistic, trees]"),
    "misspelt parameter of a builtin": (("sigma", "sigm"), 2, "params: gaussian has no parameter sigm; did you mean sigma?"),
    "text as a number": (("sigma: 1.0", "sigma: one"), 2, "params: sigma must be a number such as 0.5, 1/3 or log(3), got"),
    "misspelt relation": (("d1: [1]", "d1: [1], relation: add_remov"), 2, "got 'add_remov'; did you mean add_remove?"),
    "search without keys": (("{d0: [0], d1: [1]}", "{search: add_remove}"), 2, "write {relation: add_remove}, for example"),
    "one pair without a list": (("[{d0: [0], d1: [1]}]", "{d0: [0], d1: [1]}"), 2, "put a dash before the pair, or write ["),
    "no pairs": (("[{d0: [0], d1: [1]}]", "[]"), 2, "c.yaml:6: pairs must have at least one entry, got []"),
    "misspelt method": (("trials: 60", "method: fixd"), 2, "must be 'sequential' or 'fixed', got 'fixd'; did you mean fixed?"),
    "name of a mechanism as mechanism": ((f"\n{BUILTIN}", " gaussian\n"), 2, "got 'gaussian'; write {builtin: gaussian}"),
    "address as mechanism": ((f"\n{BUILTIN}", " mine.py:f\n"), 2, "got 'mine.py:f'; write {python: mine.py:f}"),
    "command as text": ((BUILTIN, "  command: ./mine\n"), 2, "mechanism.command must be a list, got './mine'; write [./m"),
    "version as a number": (python("good\n  python_version: 3.11"), 2, 'got 3.11; write "3.11" with quotation marks'),
    "decimal comma": (("confidence: 0.95", "confidence: 0,95"), 2, "got '0,95'; write 0.95"),
    "slash in a name": (("name: noise", "name: a/b"), 2, "c.yaml:1: name: must be a file name of at most 100 letters"),
    "misspelt attack": (("trials: 60", "attacks: logistc"), 2, "unknown attack 'logistc'; did you mean logistic?"),
    "key of a mechanism": (("trials: 60", "requires: [opendp]"), 2, "c.yaml:7: requires is not a known key; it is a key of mechanism"),
    "percent": (("confidence: 0.95", "confidence: 95"), 2, "got 95; did you mean 0.95?"),
    "class without params": (python("Release"), 2, "c.yaml:4: audit noise: mechanism: mine.py:Release is a class, but "),
    "one argument": (python("short"), 2, "mine.py:short takes (d), but a mechanism is called with (dataset, rng)"),
    "batched forgotten": (python("long"), 2, "if it returns n outputs, set `batched: true` in the config"),
    "batched by mistake": (python("good\n  batched: true"), 2, "if it returns one output, remove `batched`"),
    "not callable": (python("three"), 2, "c.yaml:4: audit noise: mechanism: mine.py:three must be a callable"),
    "no such function": (python("nothing"), 2, "c.yaml:4: audit noise: mechanism: mine.py has no object 'nothing'"),
    "misspelt function": (python("goood"), 2, "mine.py has no object 'goood'; did you mean good?"),
    "module for a file": ((BUILTIN, "  python: mine:good\n"), 2, "did you mean the file mine.py?  Write mine.py:OBJECT"),
    "misspelt library": ((BUILTIN, "  python: nunpy.f:g\n"), 2, "No module named 'nunpy'; did you mean numpy?"),
    "no such file": ((BUILTIN, "  python: other.py:good\n"), 2, "the file other.py does not exist in"),
    "no object": ((BUILTIN, "  python: mine.py\n"), 2, "must read package.module:object or file.py:object, got 'mine.py'"),
    "factory that raises": (python("Factory\n  params: {a: 0}"), 2, "calling mine.py:Factory with params {'a': 0} raised ZeroDivisionError: division by zero, at mine.py:13, in __init__: self.a = 1 / a"),
    "file that raises": ((BUILTIN, "  python: raises.py:f\n"), 2, "KeyError: 2, at raises.py:2: y = x[2]"),
    "file with a syntax error": ((BUILTIN, "  python: open.py:f\n"), 2, "'(' was never closed (open.py, line 1)"),
    "function that raises": (python("fails"), 3, "on run 0 of d0, at mine.py:8, in helper: return d[5]"),
    "second document": (("\nseed: 0", "\n---\nseed: 0"), 2, "c.yaml:8: --- begins a second YAML document, but a file holds"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", CONFIG_MISTAKES)
def test_a_mistake_in_a_config_is_explained(mistake: str, tmp_path: Path, command: Command) -> None:
    (old, new), code, message = CONFIG_MISTAKES[mistake]
    assert old in CONFIG
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "raises.py").write_text("x = {}\ny = x[2]\n")
    (tmp_path / "open.py").write_text("f = (\n")
    (tmp_path / "c.yaml").write_text(CONFIG.replace(old, new))
    done = command("run", "c.yaml", "--no-pdf", "--quiet")
    assert done.exit_code == code
    assert message in done.stderr
    assert all(line.startswith("error: ") for line in done.stderr.splitlines())
    assert "Traceback" not in done.stderr
    assert len(done.stderr) < 600


@pytest.mark.parametrize(("written", "trials"), [("1e5", 100_000), ("1_000", 1_000), ('"100"', 100), ("10**4", 10_000)])
def test_trials_may_be_written_as_powers_of_ten(written: str, trials: int, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG.replace("trials: 60", f"trials: {written}"))
    (planned,) = read_configs([tmp_path / "c.yaml"])
    assert planned.config.trials == trials
    assert type(planned.config.trials) is int


@pytest.mark.parametrize(
    ("written", "claim"),
    [
        ("eps=1", "pure(epsilon=1)"),
        ("ε=log(3)", "pure(epsilon=1.0986122886681098)"),
        ("(1, 1e-5)", "approximate(epsilon=1, delta=1e-05)"),
        ("eps=1, delta=1e-5", "approximate(epsilon=1, delta=1e-05)"),
        ("gaussian(mu=1/4)", "gaussian(mu=0.25)"),
    ],
)
def test_a_claim_may_have_a_short_form(written: str, claim: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG.replace("gaussian(mu=1)", written))
    (planned,) = read_configs([tmp_path / "c.yaml"])
    assert str(planned.load()[1]) == claim


def test_numbers_may_be_text_or_expressions(tmp_path: Path) -> None:
    text = CONFIG.replace("sigma: 1.0", "sigma: 1/4").replace("confidence: 0.95", 'confidence: "0.9"\ntimeout: 60 * 60')
    (tmp_path / "c.yaml").write_text(text.replace("seed: 0", 'seed: "7"'))
    (planned,) = read_configs([tmp_path / "c.yaml"])
    config = planned.config
    assert (config.confidence, config.timeout, config.seed) == (0.9, 3600, 7)
    assert planned.load()[0].sigma == 0.25
    (tmp_path / "again.yaml").write_text(planned.text)
    assert read_configs([tmp_path / "again.yaml"])[0].load()[0].sigma == 0.25


def test_numbers_in_params_may_be_written_as_powers_of_ten_and_text_stays_text(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG.replace("[0], d1: [1]", "[1e-3, '1e5', 1e5x], d1: [0]"))
    (planned,) = read_configs([tmp_path / "c.yaml"])
    assert planned.pairs[0].d0 == [0.001, "1e5", "1e5x"]
    (tmp_path / "again.yaml").write_text(planned.text)
    assert read_configs([tmp_path / "again.yaml"])[0].pairs[0].d0 == [0.001, "1e5", "1e5x"]


def test_a_quiet_run_still_says_why_an_audit_is_inconclusive(tmp_path: Path, command: Command) -> None:
    config = CONFIG.replace("d1: [1]", "d1: [0]")
    assert config != CONFIG
    (tmp_path / "c.yaml").write_text(config)
    done = command("run", "-q", "c.yaml", "--no-pdf")
    assert done.exit_code == 3
    assert "d0 and d1 are equal" in done.stderr


def test_a_quiet_run_shows_the_warnings_that_concern_its_verdict(tmp_path: Path, command: Command) -> None:
    """No violation was found; the seed is fixed, so the test does not fail by chance."""
    (tmp_path / "mine.py").write_text("def appends(d, rng):\n    d.append(1)\n    return rng.normal()\n")
    config = CONFIG.replace(*python("appends"))
    (tmp_path / "c.yaml").write_text(config.replace("trials: 60", "trials: 600"))
    done = command("run", "-q", "c.yaml", "--no-pdf")
    assert done.exit_code == 0
    (warning,) = done.stderr.splitlines()
    assert "no attack predicted the dataset of new outputs clearly better than a guess" in warning
    result = AuditResult.from_json(tmp_path / "dpaudit-results" / "noise.json")
    (harmless,) = (words for words in result.warnings if has_code(words, WarningCode.HARMLESS))
    assert "changes its dataset in place" in harmless


def test_a_result_that_replaces_another_is_named(tmp_path: Path, command: Command) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    assert "replaced" not in command("run", "c.yaml", "--no-pdf").stderr
    assert "noise.json replaced the result of an earlier run" in command("run", "c.yaml", "--no-pdf").stderr


def noisy(dataset: Any, rng: np.random.Generator) -> float:
    return float(dataset[0] + rng.normal())


PAIR = Pair([0], [1])
PYTHON_MISTAKES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "claim is a number": (
        lambda: audit(noisy, 1.0, PAIR, seed=0),  # type: ignore[arg-type]
        TypeError,
        'claim must be a claim such as PureDP(1) or "pure(epsilon=1)", got 1.0',
    ),
    "claim is a pair of numbers": (
        lambda: audit(noisy, (1, 1e-5), PAIR, seed=0),  # type: ignore[arg-type]
        TypeError,
        "claim must be a claim such as ApproxDP(epsilon=1, delta=1e-05), got (1, 1e-05)",
    ),
    "claim is misspelt": (lambda: audit(noisy, "gausian(mu=1)", PAIR, seed=0), ValueError, "did you mean gaussian?"),
    "pair is a tuple of datasets": (
        lambda: audit(noisy, "pure(epsilon=1)", ([0], [1]), seed=0),  # type: ignore[arg-type]
        TypeError,
        "pairs[0] is [0]: write Pair([0], [1])",
    ),
    "claim of a plan is a number": (
        lambda: plan(1.0, GaussianDP(1)),  # type: ignore[arg-type]
        TypeError,
        'claim must be a claim such as PureDP(1) or "pure(epsilon=1)", got 1.0',
    ),
    "store is a number": (
        lambda: audit(noisy, "pure(epsilon=1)", PAIR, store=3, seed=0),  # type: ignore[arg-type]
        TypeError,
        'store must be the path of a file, such as "release.trials", got 3',
    ),
    "detect is a factor": (
        lambda: audit(noisy, "pure(epsilon=1)", PAIR, detect=1.2, seed=0),  # type: ignore[arg-type]
        TypeError,
        "factors such as 1.2 are for assert_private, got 1.2",
    ),
    "delta forgotten": (lambda: ApproxDP(1.0), TypeError, "write ApproxDP(epsilon=..., delta=...)"),  # type: ignore[call-arg]
    "one argument": (lambda: audit(lambda d: 1, "pure(epsilon=1)", PAIR, seed=0), MechanismError, "takes (d), but a mechanism is called with (dataset, rng)"),
    "@batched forgotten": (lambda: audit(lambda d, n, rng: [1] * n, "pure(epsilon=1)", PAIR, seed=0), MechanismError, "@batched in Python"),
    "class instead of an object": (lambda: audit(AuditResult, "pure(epsilon=1)", PAIR, seed=0), MechanismError, "is a class"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", PYTHON_MISTAKES)
def test_a_mistake_in_python_is_explained(mistake: str) -> None:
    made, kind, message = PYTHON_MISTAKES[mistake]
    with pytest.raises(kind) as raised:
        made()
    assert message in str(raised.value)
    assert len(str(raised.value)) < 400
