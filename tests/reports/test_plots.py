"""Plots of results and claims from Python, and the code of docs/reports.md."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import dpaudit_reports
from dpaudit import GaussianDP, PureDP
from dpaudit_reports.figures import tradeoff
from dpaudit_reports.html import blocks_html
from dpaudit_reports.plots import CLAIM_KINDS, KINDS

from . import audits, sample


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_plot_is_drawn_alone_and_together(kind: str) -> None:
    alone = sample.violation().plot(kind)
    assert alone.get_xlabel()
    assert alone.get_ylabel()
    assert alone.lines or alone.patches
    ax = Figure().add_subplot()
    results = {"1.0": sample.violation(), "1.1": sample.no_violation(), "1.2": sample.violation()}
    for label, result in results.items():
        assert result.plot(kind, ax=ax, label=label) is ax
    names = ax.get_legend_handles_labels()[1]
    own = [name for name in names if name.startswith("1.")]
    assert len(own) == (6 if kind == "scores" else 3)
    assert len(names) <= len(own) + 1, "the claim is named once, and nothing else"
    colors = {line.get_color() for line in ax.lines if str(line.get_label()).startswith("1.")}
    assert len(colors) == 3


def test_the_residual_is_the_excess_of_the_power() -> None:
    """The expected value is (1 - beta) - (1 - f(alpha)) from the result itself."""
    result = sample.violation()
    ax = result.plot("residual", label="lib", color="#123456")
    (line,) = [line for line in ax.lines if line.get_label() == "lib"]
    assert line.get_color() == "#123456"
    alpha, points = line.get_data()
    expected = 100 * ((1 - result.curve.beta) - (1 - np.asarray(result.claim.beta(result.curve.alpha))))
    corners = np.column_stack([result.curve.alpha, expected])
    distances = np.abs(corners[:, None] - np.column_stack([alpha, points])[None]).sum(axis=2).min(axis=1)
    assert distances.max() < 1e-9, "the line goes through every point of the curve"
    low, high = ax.get_ylim()
    assert (low, high) == pytest.approx(tradeoff.scale_of([result]))


def test_claims_are_drawn_together_and_with_results() -> None:
    for kind in CLAIM_KINDS:
        ax = GaussianDP(1.0).plot(kind)
        PureDP(1.0).plot(kind, ax=ax, label="mine", legend=False)
        names = [line.get_label() for line in ax.lines if not str(line.get_label()).startswith("_")]
        assert names == ["gaussian(mu=1)", "mine"]
    ax = PureDP(1.0).plot(color="red")
    sample.violation().plot(ax=ax, claim=False)
    assert [line.get_label() for line in ax.lines][-2:] == ["opendp-gaussian-sum", "_witness"]


def test_axes_as_the_first_argument_are_understood() -> None:
    ax = Figure().add_subplot()
    assert sample.violation().plot(ax) is ax
    assert "attack, observed" in ax.get_legend_handles_labels()[1]
    assert sample.violation().plot(legend=False).get_legend() is None


def test_plots_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown plot 'residul'; did you mean residual\?"):
        sample.violation().plot("residul")
    with pytest.raises(ValueError, match="unknown plot 'xyz'; choose one of tradeoff, profile"):
        GaussianDP(1.0).plot("xyz")
    with pytest.raises(ValueError, match="holds no scores of a witness"):
        dataclasses.replace(sample.violation(), witness=None).plot("scores")


def test_results_without_valid_bounds_are_drawn() -> None:
    for kind in KINDS:
        audits.dependent().plot(kind, label="a")


def test_notebooks_show_claims_and_several_results() -> None:
    html = GaussianDP(1.0)._repr_html_()
    assert html.count("<svg") == 2
    assert "ε at δ = 0" in html.replace("\u00a0", " ")
    several = dpaudit_reports.show([sample.violation(), sample.no_violation()])
    assert repr(several) == "<2 privacy audits, 2 parts>"
    assert several._repr_html_().count('<section class="short">') == 2
    compared = dpaudit_reports.comparison({"a": {"1": sample.violation()}})
    assert repr(dpaudit_reports.show(compared)) == "<Comparison of versions>"


TEXT = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")


def test_the_code_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(code.replace("=1000,", "=200, attacks='threshold',"), "docs/reports.md", "exec"), space)
    made = {file.name for file in tmp_path.iterdir()}
    assert made == {"report.pdf", "report.html", "comment.md", "long.html", "comparison.pdf", "site"}
    for pattern in ("index.html", "*-*.html", "*-*.svg", "feed.json", "dpaudit-site.json"):
        assert list((tmp_path / "site").glob(pattern)), pattern
    review, results = space["review"], space["results"]
    assert "Review" in "".join(blocks_html(review(result)) for result in results)  # type: ignore[operator,attr-defined]
