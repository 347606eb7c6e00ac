"""Draw the figures of the documentation: python docs/figures.py

`tests/test_docs.py` compares the files with the output of this command, except the README's picture,
which matplotlib draws.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from drawing import calibration, concepts, noise, operations, responses, scores, trainings

DOCS = Path(__file__).parent
FIGURES: dict[str, Callable[[], str]] = {
    "two-errors": concepts.two_errors,
    "the-curve": concepts.the_curve,
    "gaussian-curves": concepts.gaussian_curves,
    "epsilon-delta": concepts.epsilon_delta,
    "privacy-loss": concepts.privacy_loss,
    "sensitivity": noise.sensitivity,
    "laplace-loss": noise.laplace_loss,
    "three-deltas": noise.three_deltas,
    "audited-curve": concepts.audited_curve,
    "spinners": responses.spinners,
    "four-hundred-answers": responses.four_hundred_answers,
    "spinner-curve": responses.spinner_curve,
    "composition": operations.composition,
    "groups": operations.groups,
    "central-limit": operations.central_limit,
    "subsampling": operations.subsampling,
    "score-choices": scores.score_choices,
    "models-of-a-training": trainings.models_of_a_training,
    "calibration": calibration.calibration,
}


def main() -> None:
    """Write all figures."""
    for name, draw in FIGURES.items():
        (DOCS / "figures" / f"{name}.svg").write_text(draw(), encoding="utf-8")
    picture_of_the_readme()


def picture_of_the_readme() -> None:
    """Draw the audit of a sum with sensitivity 1.5 and a claim for sensitivity 1."""
    import matplotlib as mpl

    from dpaudit import Pair, audit
    from dpaudit.catalogue import Gaussian

    result = audit(Gaussian(1.0), "gaussian(mu=1)", Pair([0.0], [1.5], "replace_one"), confidence=0.999999, seed=1)
    figure = result.plot().figure
    figure.set_size_inches(5.2, 4.2)
    with mpl.rc_context({"svg.hashsalt": "dpaudit"}):  # without a fixed salt, each run gives a different file
        figure.savefig(DOCS / "violation.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
