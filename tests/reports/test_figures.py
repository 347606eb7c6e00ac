"""Figures: the same bytes, no global state, whatever the numbers are."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import dpaudit_reports
from dpaudit.claims import ApproxDP, GaussianDP, PureDP
from dpaudit.result import Curve, History
from dpaudit_reports.figures import evidence_svg, tradeoff_svg

from . import sample


def test_a_plot_without_axes_gets_its_own_figure() -> None:
    ax = dpaudit_reports.plot_tradeoff(sample.violation())
    assert {"claim", "attack, observed", "witness"} <= set(ax.get_legend_handles_labels()[1])
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_a_plot_goes_where_it_is_told() -> None:
    ax = Figure().add_subplot()
    assert sample.violation().plot(ax) is ax


def test_nobodys_settings_change_a_figure_and_no_figure_changes_settings() -> None:
    result = sample.violation()
    plain = tradeoff_svg(result), evidence_svg(result)
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "none", "svg.hashsalt": "x"}):
        assert (tradeoff_svg(result), evidence_svg(result)) == plain
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.parametrize(
    "claim", [PureDP(0.0), PureDP(50.0), ApproxDP(epsilon=1, delta=0.3), GaussianDP(0), GaussianDP(40)]
)
def test_every_claim_can_be_drawn(claim) -> None:
    ElementTree.fromstring(tradeoff_svg(dataclasses.replace(sample.violation(), claim=claim)))


ODD = [[], [np.nan, np.nan], [1.0], [1.0, 1.0], [1.0, 0.0], [np.inf, 0.5]]


@pytest.mark.parametrize("values", ODD)
def test_every_curve_can_be_drawn(values) -> None:
    array = np.array(values, dtype=np.float64)
    curve = Curve(alpha=array, beta=array[::-1], beta_upper=np.ones_like(array))
    ElementTree.fromstring(tradeoff_svg(dataclasses.replace(sample.violation(), curve=curve)))


@pytest.mark.parametrize(
    ("values", "confidence"),
    [
        *((values, 0.95) for values in ODD),
        ([-np.inf, -1e5], 0.5),
        ([-1e5, 1e5], 1 - 1e-9),
        ([np.inf] * 2, 1 - 1e-9),
    ],
)
def test_every_history_can_be_drawn(values, confidence) -> None:
    history = History(trials=np.arange(1, len(values) + 1), log_e=np.array(values, dtype=np.float64))
    result = dataclasses.replace(sample.violation(), history=history, confidence=confidence)
    ElementTree.fromstring(evidence_svg(result))


def test_a_witness_without_errors_can_be_drawn_on_logarithmic_axes() -> None:
    result = sample.violation()
    witness = dataclasses.replace(result.witness, alpha=0.0, beta=0.0, claimed_beta=1.0)
    ElementTree.fromstring(tradeoff_svg(dataclasses.replace(result, witness=witness)))


def test_importing_the_reports_loads_nothing_heavy() -> None:
    code = "import sys, dpaudit_reports; print({'matplotlib', 'typst', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
