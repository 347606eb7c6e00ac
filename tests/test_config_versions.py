"""Environments of the audits of a config, and other versions of packages in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaudit import PureDP
from dpaudit.config import ConfigError, read_configs, side_by_side, with_requirements

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
    one, two = (audit.config.mechanism.mechanism(tmp_path, 7.0) for audit in read_configs([tmp_path]))
    assert (one.requires, one.python_version, one.folder, one.timeout) == (
        ("Some_Thing==1", "numpy"),
        "3.11",
        tmp_path,
        7,
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
