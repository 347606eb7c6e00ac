"""Configs: their meaning, and the messages about invalid configs."""

# ruff: noqa: E501  (one row a line)

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.catalogue import Gaussian
from dpaudit.claims import GaussianDP, PureDP
from dpaudit.config.files import read_configs
from dpaudit.config.planned import ConfigError
from dpaudit.config.versions import side_by_side, with_requirements
from dpaudit.running import CommandMechanism

GOOD = """\
name: sum
claim: gaussian(mu=1)
mechanism:
  builtin: gaussian
  params: {sigma: 1.0}
pairs:
  - {d0: [0], d1: [1], relation: replace_one}
"""


def problem(tmp_path: Path, text: str) -> str:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_configs([file])
    return str(error.value).replace(f"{tmp_path}/", "")


def test_a_good_config_is_read(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(GOOD)
    (audit,) = read_configs([tmp_path])
    mechanism, claim = audit.load()
    assert isinstance(mechanism, Gaussian)
    assert claim == GaussianDP(1.0)
    assert audit.pairs[0].relation == "replace_one"
    assert audit.config.trials == 100_000
    assert audit.line == 1


def test_a_builtin_mechanism_may_state_the_claim(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(GOOD.replace("gaussian(mu=1)", "from mechanism").replace("1.0", "0.5"))
    assert read_configs([tmp_path])[0].load()[1] == GaussianDP(2.0)


def test_a_file_may_hold_many(tmp_path: Path) -> None:
    body = GOOD.replace("\n", "\n    ").rstrip()
    (tmp_path / "c.yaml").write_text(f"audits:\n  - {body}\n  - {body.replace('name: sum', 'name: other')}\n")
    audits = read_configs([tmp_path / "c.yaml"])
    assert [(audit.config.name, audit.line) for audit in audits] == [("sum", 2), ("other", 9)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("claim: gaussian(mu=1)\n", ""), "c.yaml:1: claim is missing"),
        (("mu=1", "mu=-1"), "c.yaml:2: claim: mu must be finite and >= 0, got -1.0"),
        (("sigma: 1.0", "sigma: -1"), "c.yaml:3: mechanism: params do not fit builtin gaussian: sigma must be > 0, got -1"),
        (("builtin: gaussian", "python: 7"), "c.yaml:4: mechanism.python must be text, got 7"),
        (("  builtin: gaussian\n", ""), "c.yaml:3: mechanism: must have exactly one of the keys python, command, builtin, library, http"),
        (("builtin: gaussian", "command: [./p]"), "c.yaml:3: mechanism: params and batched are not allowed with command"),
        (
            ("  params: {", "  requires: [numpy]\n  params: {"),
            "c.yaml:3: mechanism: requires, python_version and interpreter are allowed with python",
        ),
        (("  params: {", "  python_version: '3.7'\n  params: {"), "c.yaml:5: mechanism.python_version: python_version must be 3.8"),
        (
            (GOOD[GOOD.index("gaussian(mu=1)") : GOOD.index("pairs:")], "from mechanism\nmechanism:\n  command: [p]\n"),
            'c.yaml:1: the audit: claim: "from mechanism" is not allowed with mechanism.command; state the claim here',
        ),
        (("pairs:", "timeout: 0\npairs:"), "c.yaml:6: timeout must be greater than 0, got 0"),
        (("pairs:", "memory: 2 G\npairs:"), 'c.yaml:6: memory: must be text such as "2 GB" or "512 MB", or a whole numb'),
        (("pairs:", "memory: 1 GB\npairs:"), "c.yaml:1: the audit: memory is allowed with mechanism.python and mechanism."),
        (("d1: [1],", ""), "c.yaml:7: pairs[0]: must have d0 and d1, or search; d1 is missing"),
        (("name: sum", "name: ../sum"), "c.yaml:1: name: must be a file name"),
        (("pairs:", "trials: 0\npairs:"), "c.yaml:6: trials must be at least 1, got 0"),
        (("pairs:", "confidence: 1\npairs:"), "c.yaml:6: confidence must be less than 1, got 1"),
        (("pairs:", "name: twice\npairs:"), "c.yaml:6: key name is given twice"),
        (("pairs:", "pairs: ["), "c.yaml:7: is not valid YAML"),
        ((GOOD, ""), "c.yaml:1: is empty"),
        ((GOOD, "- 1"), "c.yaml:1: must hold an audit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_bad_config_is_refused_with_file_line_key_and_reason(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    assert message in problem(tmp_path, GOOD.replace(*change))


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("mu=1", "mu=-1").replace("name: sum", "nam: sum")
    assert len(problem(tmp_path, text).splitlines()) == 3  # unknown key, missing key, bad claim


def test_two_audits_of_one_name_would_overwrite_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(GOOD)
    with pytest.raises(ConfigError, match=r"b.yaml:1: name must be unique, but 'sum' is also used at .*a.yaml:1"):
        read_configs([tmp_path])


def from_python(tmp_path: Path, code: str, reference: str, **keys: Any) -> Any:
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / "c.yaml").write_text(
        GOOD.replace(
            "  builtin: gaussian\n  params: {sigma: 1.0}\n", f"  python: {reference}\n  {json.dumps(keys)[1:-1]}\n"
        )
    )
    (audit,) = read_configs([tmp_path / "c.yaml"])
    return audit


def test_the_claim_may_come_from_the_mechanism(tmp_path: Path) -> None:
    code = (
        "from dpaudit import PureDP\n"
        "class M:\n    claim = PureDP(2.0)\n    def sample(self, d, n, rng): return [0] * n\n"
        "m = M()\n"
    )
    audit = from_python(tmp_path, code, "mine.py:m")
    text = (tmp_path / "c.yaml").read_text().replace("gaussian(mu=1)", "from mechanism")
    (tmp_path / "c.yaml").write_text(text)
    (audit,) = read_configs([tmp_path / "c.yaml"])
    assert audit.load()[1] == PureDP(2.0)
    (tmp_path / "mine.py").write_text(code.replace("PureDP(2.0)", "2.0"))
    (tmp_path / "c.yaml").rename(tmp_path / "d.yaml")
    (tmp_path / "mine.py").rename(tmp_path / "mine2.py")
    (tmp_path / "d.yaml").write_text(text.replace("mine.py", "mine2.py"))
    (audit,) = read_configs([tmp_path / "d.yaml"])
    with pytest.raises(ValueError, match=r"attribute claim is 2\.0, not a claim"):
        audit.load()


WITH_COMMAND = GOOD.replace("  builtin: gaussian\n  params: {sigma: 1.0}\n", "  command: [sh, noise.sh]\ntimeout: 5\n")


def test_a_command_runs_in_the_folder_of_its_config(tmp_path: Path) -> None:
    (tmp_path / "noise.sh").write_text('while read -r line; do echo "{\\"outputs\\": [1]}"; done\n')
    (tmp_path / "c.yaml").write_text(WITH_COMMAND)
    (audit,) = read_configs([tmp_path])
    mechanism, _ = audit.load()
    assert isinstance(mechanism, CommandMechanism)
    assert mechanism.timeout == 5
    assert list(mechanism.sample([0], 1, np.random.default_rng(0))) == [1]
    mechanism.close()


def test_pairs_may_be_searched_for(tmp_path: Path) -> None:
    searched = GOOD.replace(
        "{d0: [0], d1: [1], relation: replace_one}", "search: {relation: add_remove, size: 3, most: 4}"
    )
    (tmp_path / "c.yaml").write_text(searched)
    [planned] = read_configs([tmp_path / "c.yaml"])
    assert len(planned.pairs) == 4
    assert {pair.relation for pair in planned.pairs} == {"add_remove"}
    assert "search must be the only key of its entry" in problem(
        tmp_path, searched.replace("search:", "d0: [1]\n    search:")
    )
    assert "relation must be" in problem(tmp_path, searched.replace("add_remove", "nearby"))


ISOLATED = """\
audits:
  - name: one
    claim: from mechanism
    mechanism: &m {python: "mine.py:m", requires: [Some_Thing==1, numpy], python_version: "3.11"}
    pairs: &p [{d0: 0, d1: 1}]
  - name: two
    claim: pure(epsilon=1)
    mechanism: {<<: *m, requires: []}
    pairs: *p
"""


def test_another_version_takes_the_place_of_the_one_required(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(ISOLATED)
    audits = read_configs([tmp_path])
    one, two = with_requirements(audits, ["some.thing==2"])
    assert one.config.mechanism.requires == ["some.thing==2", "numpy"]
    assert two is audits[1]
    assert audits[0].config.mechanism.requires == ["Some_Thing==1", "numpy"]
    (tmp_path / "c.yaml").write_text(ISOLATED.replace("Some_Thing==1", "'Some_Thing[b,a]==1'"))
    one, _ = with_requirements(read_configs([tmp_path]), ["some.thing==2"])
    assert one.config.mechanism.requires == ["some.thing[a,b]==2", "numpy"], "a version replaces a version only"
    one, _ = with_requirements(read_configs([tmp_path]), ["some.thing[c]==2"])
    assert one.config.mechanism.requires == ["some.thing[c]==2", "numpy"]
    for wrong, message in [
        (["other==1"], "--with other==1: no audit requires other; the audits require numpy, some-thing"),
        (["-r x"], "--with: a requirement must read like"),
        (["numpy==1", "numpy==2"], "--with: numpy is given twice"),
    ]:
        with pytest.raises(ConfigError, match=message):
            with_requirements(audits, wrong)


def test_versions_side_by_side_are_named_after_what_they_run(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        ISOLATED.replace("one", "sum-Some_Thing-1").replace(
            "pairs: *p",
            "pairs: *p\n  - {name: sum-Some_Thing-2, claim: from mechanism, pairs: *p, mechanism: "
            "{<<: *m, requires: [Some_Thing==2, numpy]}}\n  - {name: other, claim: from mechanism, pairs: *p, "
            "seed: 1, mechanism: *m}",
        )
    )
    audits = read_configs([tmp_path])
    assert len(audits) == 4
    beside = side_by_side(audits, ["some-thing==2", "some-thing==3"])
    assert {key: audit.config.name for key, audit in beside.items()} == {
        ("sum-Some_Thing", "some-thing==2"): "sum-Some_Thing-2",
        ("sum-Some_Thing", "some-thing==3"): "sum-Some_Thing-3",
        ("other", "some-thing==2"): "other-some-thing-2",
        ("other", "some-thing==3"): "other-some-thing-3",
    }
    assert all(key[1] in (audit.config.mechanism.requires or ()) for key, audit in beside.items())
    for wrong, message in [
        ("nowhere==1", "no audit requires nowhere"),
        ("some-thing>=2", "must have the form package==number"),
        ("some-thing==2.*", "must have the form package==number"),
        ("-r x", "must have the form package==number"),
        (" ", "must have the form package==number"),
        ("some-thing==2 numpy", "must have the form package==number"),
        ("some-thing==2 some_thing==3", "some-thing is given twice"),
        ("nowhere==1 elsewhere==2", "no audit requires nowhere or elsewhere"),
    ]:
        with pytest.raises(ConfigError, match=message):
            side_by_side(audits, [wrong])


def test_audits_of_one_comparison_never_share_a_name(tmp_path: Path) -> None:
    """Two audits with one name had one result, so that a violation was shown as no violation found."""
    made = enumerate([("a", "Lib"), ("a-Lib", "Lib"), ("A-lib-2", "Lib"), ("a-LIB-1", "LIB==1")])
    more = [
        f"  - {{name: {name}, claim: from mechanism, pairs: *p, seed: {seed}, "
        f"mechanism: {{<<: *m, requires: [{requirement}]}}}}"
        for seed, (name, requirement) in made
    ]
    text = ISOLATED.replace("one", "a-Lib-1").replace("Some_Thing==1", "Lib==1")
    (tmp_path / "c.yaml").write_text(text.replace("pairs: *p", "\n".join(["pairs: *p", *more])))
    audits = [audit for audit in read_configs([tmp_path]) if audit.config.mechanism.requires]
    assert len(audits) == 5
    beside = side_by_side(audits, ["lib==2", "lib==3"])
    assert len(beside) == 2 * len(audits)
    assert len({audit.config.name.casefold() for audit in beside.values()}) == len(beside)
    for again in ("LIB==2", "lib==2.0", "lib == 2"):
        with pytest.raises(ConfigError, match="the version is given twice"):
            side_by_side(audits, ["lib==2", again])
    with pytest.raises(ConfigError, match="the version is given twice"):
        side_by_side(audits, ["lib==2 numpy==1.26", "numpy==1.26 lib==2"])


def test_a_version_may_name_several_packages(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(ISOLATED)
    beside = side_by_side(read_configs([tmp_path]), ["some-thing == 2  scipy==1.17.1", "numpy==2.1 some-thing==2"])
    assert {key: (audit.config.name, audit.config.mechanism.requires) for key, audit in beside.items()} == {
        ("one", "some-thing==2 scipy==1.17.1"): (
            "one-some-thing-2-scipy-1.17.1",
            ["some-thing==2", "numpy", "scipy==1.17.1"],
        ),
        ("one", "numpy==2.1 some-thing==2"): ("one-numpy-2.1-some-thing-2", ["some-thing==2", "numpy==2.1"]),
    }


def test_requires_makes_an_environment_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(ISOLATED)
    one, two = (audit.changed(timeout=70.0).mechanism() for audit in read_configs([tmp_path]))
    assert (one.requires, one.python_version, one.folder, one.timeout) == (
        ("Some_Thing==1", "numpy"),
        "3.11",
        tmp_path,
        70,
    )
    assert (two.requires, two.python_version) == ((), "3.11")


def test_the_claim_of_an_isolated_mechanism_is_text(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class M:\n    claim = 'pure(epsilon=2)'\n    def __call__(self, d, rng): return d\nm = M()"
    )
    (tmp_path / "c.yaml").write_text(
        ISOLATED.replace("Some_Thing==1, numpy", "").replace(', python_version: "3.11"', "")
    )
    mechanism, claim = read_configs([tmp_path])[0].load()
    assert claim == PureDP(2.0)
    mechanism.close()
