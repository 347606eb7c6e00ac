"""Figures have equal bytes for equal results, use no global state, and accept any numbers."""

import dataclasses
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dpaudit_reports
from dpaudit import audit_scores
from dpaudit.claims import ApproxDP, GaussianDP, PureDP, TradeoffFunction
from dpaudit.engine.online import OnlineAudit
from dpaudit.inference.grid import EDGES
from dpaudit.numerics import AnyArray
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Curve, History, Verdict
from dpaudit_reports.figures import CLAIM, COLORS, PAPER, WITNESS, panel_svg, tradeoff
from dpaudit_reports.figures.evidence import Scores, draw_distributions, draw_evidence
from dpaudit_reports.figures.tradeoff import draw_profile, point_name, tradeoff_svg
from dpaudit_reports.html import blocks_html
from dpaudit_reports.plots import CLAIM_KINDS, KINDS

from . import audits, sample


def profile_svg(result: AuditResult) -> str:
    return panel_svg(lambda ax: draw_profile(ax, result), height=2.3, logarithmic="y")


def evidence_svg(result: AuditResult) -> str:
    return panel_svg(lambda ax: draw_evidence(ax, result), height=2.3)


def distributions_svg(scores: Scores) -> str:
    return panel_svg(lambda ax: draw_distributions(ax, scores), height=2.3)


def drawn(result: AuditResult) -> list[str]:
    return [draw(result) for draw in (tradeoff_svg, profile_svg, evidence_svg)]


def test_a_plot_without_axes_gets_its_own_figure() -> None:
    ax = dpaudit_reports.plot_tradeoff(sample.violation())
    assert {"claim", "witness"} <= set(ax.get_legend_handles_labels()[1])
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_nobodys_settings_change_a_figure_and_no_figure_changes_settings() -> None:
    result = sample.violation()
    plain = drawn(result)
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "none", "svg.hashsalt": "x"}):
        assert drawn(result) == plain
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.parametrize("claim", [PureDP(0.0), ApproxDP(epsilon=1, delta=0.3), GaussianDP(40)])
def test_every_claim_can_be_drawn(claim: TradeoffFunction) -> None:
    for svg in drawn(dataclasses.replace(sample.violation(), claim=claim)):
        ElementTree.fromstring(svg)


@pytest.mark.slow
def test_a_figure_does_not_depend_on_those_before_it() -> None:
    first = drawn(sample.violation())
    for other in (sample.no_violation(), sample.empty()):
        drawn(other)
    assert drawn(sample.violation()) == first


def test_words_about_an_audit_change_no_panel() -> None:
    """The other tests of reports draw once for all results that differ in such words only."""
    assert drawn(dataclasses.replace(sample.hostile(), elapsed_s=1e9)) == drawn(sample.violation())


def test_figures_use_only_colours_that_have_a_counterpart_in_the_dark() -> None:
    known = {light for light, _ in COLORS.values()}
    svgs = [*drawn(sample.violation()), distributions_svg(spread())]
    used = {color.lower() for svg in svgs for color in re.findall("#[0-9a-fA-F]{6}", svg)}
    assert used <= known


@pytest.mark.parametrize("draw", [profile_svg, tradeoff_svg, evidence_svg])
def test_no_word_of_a_panel_is_cut_off(draw: Callable[[AuditResult], str]) -> None:
    """The width of a word is estimated by the mean width of a letter, half the font size."""
    root = ElementTree.fromstring(draw(sample.violation()))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        words, style = "".join(text.itertext()), text.attrib["style"]
        long = 0.5 * float(re.search(r"font(?:-size)?:[^;]*?([0-9.]+)px", style)[1]) * len(words)
        if "rotate(" in text.attrib.get("transform", ""):
            continue
        assert float(text.attrib["y"]) <= height - 2, words  # 2 px for descenders
        start = float(text.attrib["x"]) - long * {"middle": 0.5, "end": 1.0}.get(
            (re.search(r"text-anchor: (\w+)", style) or ["", ""])[1], 0.0
        )
        assert start >= 0, words
        assert start + long <= width, words


def spread(*, side0: dict[int, int] | None = None, side1: dict[int, int] | None = None, threshold: int = 150) -> Scores:
    counts = np.zeros((2, len(EDGES) + 1), dtype=np.int64)
    for side, entries in zip(counts, (side0 or {120: 30, 150: 5}, side1 or {140: 20, 170: 15}), strict=True):
        for place, n in entries.items():
            side[place] = n
    return Scores(edges=EDGES, counts0=counts[0], counts1=counts[1], threshold=threshold)


@pytest.mark.parametrize(
    "scores",
    [
        spread(),
        spread(side0={0: 9}, side1={289: 9}, threshold=144),
        spread(side0={10: 0}, side1={10: 0}, threshold=144),
    ],
)
def test_every_distribution_can_be_drawn(scores: Scores) -> None:
    ElementTree.fromstring(distributions_svg(scores))


@pytest.mark.parametrize("far", [{}, {0: 3, 289: 4}], ids=["near", "some beyond the ends"])
def test_bars_hold_all_outputs_and_the_region_begins_between_two(far: dict[int, int]) -> None:
    scores = spread(side0={120: 3000, 150: 500} | far, side1={140: 2000, 170: 1500} | far)
    seen: list[tuple[AnyArray, AnyArray]] = []
    ax = Figure().add_subplot()
    stairs = ax.stairs

    def watched(values: AnyArray, edges: AnyArray, **how: Any) -> Any:
        seen.append((values, edges))
        return stairs(values, edges, **how)

    ax.stairs = watched  # type: ignore[method-assign, assignment]
    draw_distributions(ax, scores)
    for values, edges in seen:
        assert values.sum() == pytest.approx(1)
        assert np.abs(edges - EDGES[scores.threshold]).min() < 1e-9
    inside = [values[edges[:-1] >= EDGES[scores.threshold] - 1e-9].sum() for values, edges in seen]
    total, beyond = 3500 + sum(far.values()), far.get(289, 0)
    assert inside[0] == pytest.approx(beyond / total)  # bin 150 lies just below its edge 150
    assert inside[-1] == pytest.approx((1500 + beyond) / total)


ODD = [[], [np.nan, np.nan], [1.0], [np.inf, 0.5]]


@pytest.mark.parametrize("values", ODD)
def test_every_curve_can_be_drawn(values: list[float]) -> None:
    array = np.array(values, dtype=np.float64)
    curve = Curve(alpha=array, beta=array[::-1], beta_upper=np.ones_like(array))
    for svg in drawn(dataclasses.replace(sample.violation(), curve=curve)):
        ElementTree.fromstring(svg)


@pytest.mark.parametrize(
    ("values", "confidence"),
    [*((values, 0.95) for values in ODD), ([-np.inf, -1e5], 0.5), ([-1e5, 1e5], 1 - 1e-9), ([np.inf] * 2, 1 - 1e-9)],
)
def test_every_history_can_be_drawn(values: list[float], confidence: float) -> None:
    history = History(trials=np.arange(1, len(values) + 1), log_e=np.array(values, dtype=np.float64))
    result = dataclasses.replace(sample.violation(), history=history, confidence=confidence, _computed_at=None)
    ElementTree.fromstring(evidence_svg(result))


def _evidence(log_e: list[float], **changes: Any) -> Axes:
    ax = Figure().add_subplot()
    history = History(trials=np.arange(1, len(log_e) + 1), log_e=np.array(log_e, dtype=np.float64))
    draw_evidence(ax, dataclasses.replace(sample.violation(), history=history, **changes))
    return ax


def test_a_wealth_beyond_the_axis_is_marked_as_at_least() -> None:
    labels = [label.get_text() for label in _evidence([0.0, 200.0]).get_yticklabels()]
    assert labels[-1] == "≥ 10¹²"
    assert "≥" not in "".join(label.get_text() for label in _evidence([0.0, 20.0]).get_yticklabels())


def test_the_wealth_of_a_stream_is_drawn_against_its_steps() -> None:
    audit, rng = OnlineAudit("gaussian(mu=2)", seed=1, attacks="logistic"), np.random.default_rng(1)
    for _ in range(9):
        audit.update(2 * audit.coin() + rng.normal())
    ax = Figure().add_subplot()
    draw_evidence(ax, audit.result())
    assert ax.get_xlabel() == "steps"
    steps = np.asarray(ax.lines[-1].get_xdata())
    assert steps[-1] == 9
    assert np.all(np.diff(steps) > 0)


def test_figures_of_a_measurement_show_no_claim() -> None:
    rng = np.random.default_rng(1)
    result = audit_scores(rng.normal(size=50), rng.normal(2, 1, 50), independence="runs", seed=1)
    assert result.measurement
    for draw in (tradeoff_svg, profile_svg):
        words = "".join(ElementTree.fromstring(draw(result)).itertext())
        assert "claim" not in words
        assert "forbidden" not in words


@pytest.mark.parametrize(
    ("verdict", "name", "face", "edge"),
    [(Verdict.VIOLATION, "witness", WITNESS, PAPER), (Verdict.NO_VIOLATION, "closest", PAPER, CLAIM)],
)
def test_the_diamond_is_filled_where_it_shows_a_violation_and_else_hollow(
    verdict: Verdict, name: str, face: str, edge: str
) -> None:
    result = dataclasses.replace(sample.violation(), verdict=verdict)
    assert point_name(result) == name
    diamonds = re.findall(r'<use [^>]*style="fill: (#\w{6}); stroke: (#\w{6})', tradeoff_svg(result))
    assert [colors for colors in diamonds if PAPER in colors] == [(face, edge)]


def test_importing_the_reports_loads_nothing_heavy() -> None:
    code = "import sys, dpaudit_reports; print({'matplotlib', 'typst', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# --- plots of results and claims from Python, and the code of docs/reports.md


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
    assert (low, high) == pytest.approx(tradeoff.scale_of(result))


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
