"""Draw the figures of the documentation: python docs/figures.py

`tests/test_docs.py` compares the files with the output of this command.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from drawing import calibration, concepts, noise, operations, responses, scores, sessions, trainings

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
    "survivors": sessions.survivors,
    "score-choices": scores.score_choices,
    "models-of-a-training": trainings.models_of_a_training,
    "calibration": calibration.calibration,
}


def main() -> None:
    """Write all figures."""
    for name, draw in FIGURES.items():
        (DOCS / "figures" / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
