"""`dpaudit scores`: files of scores on the command line."""

# ruff: noqa: E501  (one row a line)

import importlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dpaudit import AuditResult
from dpaudit.cli import score_files
from dpaudit.cli.app import app
from dpaudit.cli.score_files import BadScores, read_scores_file

from .scored import SURE

SURELY = ("--confidence", str(SURE))
RNG = np.random.default_rng(0)
INCLUDED = RNG.random(600) < 0.5
SCORES = RNG.normal(3.0 * INCLUDED)


def written(folder: Path, suffix: str) -> Path:
    file = folder / f"audit{suffix}"
    rows = list(zip(SCORES.tolist(), INCLUDED.tolist(), strict=True))
    match suffix:
        case ".csv":
            file.write_text("step,included,score\n" + "".join(f"7,{int(i)},{s!r}\n" for s, i in rows))
        case ".jsonl":
            file.write_text("".join(json.dumps({"score": s, "included": i}) + "\n" for s, i in rows))
        case ".npz":
            np.savez(file, score=SCORES, included=INCLUDED)
    return file


def parquet(file: Path, **columns: Any) -> Path:
    """Write a Parquet file in several row groups."""
    pyarrow = pytest.importorskip("pyarrow")
    importlib.import_module("pyarrow.parquet").write_table(pyarrow.table(columns), file, row_group_size=100)
    return file


@pytest.mark.parametrize("kind", [bool, int, float])
def test_parquet_gives_the_same_scores(kind: type, tmp_path: Path) -> None:
    file = parquet(tmp_path / "a.parquet", step=SCORES, score=SCORES, included=INCLUDED.astype(kind))
    scores0, scores1, _ = read_scores_file(file)
    assert np.array_equal(scores0, SCORES[~INCLUDED])
    assert np.array_equal(scores1, SCORES[INCLUDED])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"scores": [1.0], "included": [0]}, "is it 'scores'"),
        ({"score": [1.0, None, 2.0], "included": [0, 1, 1]}, "row 2: score is null"),
        ({"score": [1.0, 1.5, 2.0], "included": [0, 1, None]}, "row 3: included is null"),
        ({"score": [1, 2**53 + 1], "included": [0, 1]}, r"score\[1\] is 9007199254740993, an integer beyond"),
    ],
)
def test_parquet_files_that_hold_no_scores(columns: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(BadScores, match=words):
        read_scores_file(parquet(tmp_path / "a.parquet", **columns))


@pytest.mark.parametrize(
    "content",
    [
        "score;included\n1;0\n2;0\ninf;1\n-inf;1\n",
        "score\tincluded\n1\t0\n2\t0\ninf\t1\n-inf\t1\n",
        "score,included\n1,False\n2,f\ninf,True\n-Infinity,yes\n",
        'included,score\n"0","1"\n"0","2"\n"1","inf"\n"1","-inf"\n',
    ],
    ids=["semicolons", "tabs", "booleans", "quotes"],
)
def test_tables_of_other_programs_are_read(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    found = read_scores_file(tmp_path / "a.csv")
    assert [side.tolist() for side in found[:2]] == [[1.0, 2.0], [np.inf, -np.inf]]


@pytest.mark.parametrize("included", [["False", "no", "true", "1"], [False, False, True, True], [0, 0, 1, 1]], ids=str)
def test_parquet_with_text_is_read(included: list[Any], tmp_path: Path) -> None:
    found = read_scores_file(parquet(tmp_path / "a.parquet", score=["1", "2", "inf", "-inf"], included=included))
    assert [side.tolist() for side in found[:2]] == [[1.0, 2.0], [np.inf, -np.inf]]


def test_arrays_with_one_column_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", scores0=np.zeros((3, 1)), scores1=np.ones((2, 1)))
    assert [len(side) for side in read_scores_file(tmp_path / "a.npz")[:2]] == [3, 2]
    np.savez(tmp_path / "a.npz", scores0=np.zeros((3, 2)), scores1=np.ones(2))
    with pytest.raises(BadScores, match=r"scores0 must be a list of numbers, got shape \(3, 2\)"):
        read_scores_file(tmp_path / "a.npz")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".npz", ".parquet"])
def test_a_column_names_the_run_of_every_score(suffix: str, tmp_path: Path) -> None:
    file, names = tmp_path / f"runs{suffix}", np.where(np.arange(600) < 400, "a", "b")
    rows = list(zip(SCORES.tolist(), INCLUDED.tolist(), names.tolist(), strict=True))
    match suffix:
        case ".csv":
            file.write_text("run,included,score\n" + "".join(f"{n},{int(i)},{s!r}\n" for s, i, n in rows))
        case ".jsonl":
            file.write_text("".join(json.dumps({"score": s, "included": i, "run": n}) + "\n" for s, i, n in rows))
        case ".npz":
            np.savez(file, score=SCORES, included=INCLUDED, run=names)
        case _:
            parquet(file, score=SCORES, included=INCLUDED, run=names)
    _, _, run = read_scores_file(file)
    assert run is not None
    for side, chosen in zip(run, (~INCLUDED, INCLUDED), strict=True):
        assert np.array_equal(side == side[0], names[chosen] == "a")


def test_the_command_reads_the_run_of_every_score(tmp_path: Path) -> None:
    file = tmp_path / "runs.npz"
    np.savez(file, score=SCORES, included=INCLUDED, run=np.where(np.arange(600) < 400, "a", "b"))
    done = CliRunner().invoke(app, ["scores", str(file), *SURELY, "-o", str(tmp_path / "r.json")])
    assert done.exit_code == 0, done.output
    assert AuditResult.from_json(tmp_path / "r.json").trials_used == 2
    done = CliRunner().invoke(app, ["scores", str(file), "--independence", "runs"])
    assert done.exit_code == 2, done.output
    assert "is allowed only for canaries" in " ".join(done.output.split())


def test_a_fixed_number_on_the_command_line(tmp_path: Path) -> None:
    included = np.arange(300) < 60
    scores = np.random.default_rng(0).normal(4.0 * included)
    np.savez(tmp_path / "a.npz", scores0=scores[~included], scores1=scores[included])
    arguments = ["scores", str(tmp_path / "a.npz"), "--independence", "canaries", *SURELY]
    done = CliRunner().invoke(app, [*arguments, "--included-at-random", "fixed_number"])
    assert done.exit_code == 0, done.output
    assert "given which canaries were included" in done.stdout
    done = CliRunner().invoke(app, [*arguments, "--included-at-random", "half"])
    assert done.exit_code == 2, done.output


def test_the_command_prints_a_verdict_and_writes_a_report(tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**9."""
    file = str(written(tmp_path, ".csv"))
    out = tmp_path / "r.json"
    for arguments, code, words in (
        (["--claim", "pure(epsilon=1)", "-o", str(out)], 1, "if each canary was included at random"),
        (["--claim", "gaussian(mu=3.2)", "--independence", "canaries"], 0, "no violation"),
        (["--assuming", "gaussian"], 0, "assuming that the mechanism's curve is gaussian"),
        (["--claim", "pure(epsilon=1)", "--independence", "some"], 2, ""),
        (["--claim", "pure(eps)", "--independence", "runs"], 2, ""),
    ):
        done = CliRunner().invoke(app, ["scores", file, *SURELY, *arguments])
        assert done.exit_code == code, done.output
        assert words in done.stdout
    assert AuditResult.from_json(out).violated


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "", r"a\.csv: is empty; it must have a header with the columns score and included"),
        ("a.csv", "scores,included\n1,0\n", "is it 'scores'"),
        ("a.csv", "1,0\n2,1\n", "has no header; add a first line that names the columns, such as score,included"),
        ("a.csv", "score\n1\n2\n", "there is no column 'included' among score"),
        ("a.csv", "score,included\n1;0\n", "line 2 has 1 columns, but the header has 2"),
        ("a.csv", "score,included, score\n1,0,1\n", r"a\.csv: the column 'score' occurs twice"),
        ("a.csv", "score,included\nnan,0\n2,1\n", "line 2: score is nan; a score must be a number; give such runs"),
        ("a.csv", "score,included\n1,1\n2,1\n", r"a\.csv: at least 2 scores must have included = 0, .*; got 0"),
        ("a.csv", "score,included\n1,no\n2,t\n3,F\n", "at least 2 scores must have included = 1, .*; got 1"),
        ("a.csv", "score,included\n1,never\n", r"included must be 0 or 1 \(or true, false, t, f, yes, no\), got 'never'"),
        ("a.csv", "score,included\n1,0\nx,1\n", "line 3: score must be a number, got 'x'"),
        ("a.csv", 'score,included\n1,"0\n2,1\n', "line 3: "),
        ("a.jsonl", '{"score": 1}\n', "line 1: must be an object"),
        ("a.jsonl", '{"score": 1, "included": 0, "run": 1}\n{"score": 1, "included": 0}\n', "line 2: run must be given for all scores or for none"),
        ("a.jsonl", '{"score": 1, "included": 0}\n{"score": 1, "included": 0, "run": 1}\n', "line 2: run must be given for all scores or for none"),
    ],
)  # fmt: skip
def test_files_that_hold_no_scores(name: str, content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(BadScores, match=words):
        read_scores_file(tmp_path / name)


def test_a_family_that_cannot_be_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["scores", str(written(tmp_path, ".npz")), "--assuming", "repeated(?, n=2)"])
    assert done.exit_code == 2, done.output
    words = "--assuming: the ? in 'repeated(?, n=2)' takes the place of claim"
    assert words in " ".join(done.output.split())


def refused(path: Path, words: str) -> None:
    with pytest.raises(BadScores, match=words) as error:
        read_scores_file(path)
    assert str(path) in str(error.value)
    assert len(str(error.value)) < len(str(path)) + 800


def packed(**members: bytes) -> bytes:
    """Return an archive of arrays with correct checksums and a fixed date.

    Names of tests contain such archives, and the processes of pytest-xdist must agree on the names.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, body in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), body, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def array(values: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, values, allow_pickle=True)
    return content.getvalue()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".npz", ".parquet"])
def test_pipes_and_devices_are_refused_at_once(suffix: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"pipe{suffix}")
    refused(tmp_path / f"pipe{suffix}", "is not a regular file")
    (tmp_path / f"zeros{suffix}").symlink_to("/dev/zero")
    refused(tmp_path / f"zeros{suffix}", "is not a regular file")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_an_endless_line_is_not_kept_in_memory(suffix: str, tmp_path: Path) -> None:
    with (tmp_path / f"s{suffix}").open("wb") as file:
        file.truncate(2**40)  # a sparse file: it needs no space on the disk
    refused(tmp_path / f"s{suffix}", "a line has more than 1,048,576 characters")


class Runs:
    """An object that creates a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return open, ("RAN", "w")


def test_pickled_arrays_are_not_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.npz").write_bytes(packed(scores0=array(np.array([Runs()], dtype=object)), scores1=array([1.0])))
    refused(tmp_path / "s.npz", "allow_pickle=False")
    assert not (tmp_path / "RAN").exists()


def test_a_small_archive_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_files, "MAX_SCORES", 10_000)
    (tmp_path / "s.npz").write_bytes(packed(scores0=array(np.zeros(20_000)), scores1=array([1.0])))
    assert (tmp_path / "s.npz").stat().st_size < 2_000
    refused(tmp_path / "s.npz", "the arrays have .* bytes; the maximum is 80,000")


def test_a_table_is_limited_and_a_damaged_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "s.parquet"
    parquet.write_table(arrow.table({"score": np.zeros(20_000), "included": np.arange(20_000) % 2}), file)
    assert [len(side) for side in read_scores_file(file)[:2]] == [10_000, 10_000]
    monkeypatch.setattr(score_files, "MAX_SCORES", 10_000)
    refused(file, "has 20,000 values; the maximum is 10,000")
    file.write_bytes(file.read_bytes()[:-20])
    refused(file, "arquet")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 5},
        {"column_encoding": {"run": "DELTA_BYTE_ARRAY", "included": "DELTA_BINARY_PACKED"}, "use_dictionary": False},
    ],
    ids=["plain", "groups", "delta"],
)
def test_tables_are_read_however_they_are_encoded(options: dict[str, Any], tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = 30_000
    table = {"score": np.arange(rows, dtype=float), "included": np.arange(rows) % 2, "run": ["a", "b", "b"] * 10_000}
    parquet.write_table(arrow.table(table), tmp_path / "s.parquet", **options)
    found = read_scores_file(tmp_path / "s.parquet")
    assert [list(side) for side in found[:2]] == [list(range(first, rows, 2)) for first in (0, 1)]
    assert found.run is not None
    assert [np.bincount(side).tolist() for side in found.run] == [[5_000, 10_000]] * 2
