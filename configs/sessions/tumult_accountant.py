"""A session of Tumult Core's PrivacyAccountant: noise on an integer with epsilon 1, until a budget of 2 is spent."""

import numpy as np
from tmlt.core.domains.numpy_domains import NumpyIntegerDomain
from tmlt.core.measurements.interactive_measurements import PrivacyAccountant, SequentialComposition
from tmlt.core.measurements.noise_mechanisms import AddGeometricNoise
from tmlt.core.measures import PureDP
from tmlt.core.metrics import AbsoluteDifference

from dpaudit.libraries import sessions

COMPOSITION = SequentialComposition(
    input_domain=NumpyIntegerDomain(),
    input_metric=AbsoluteDifference(),
    output_measure=PureDP(),
    d_in=1,
    privacy_budget=2,
)


def accountant(dataset, rng):
    return sessions.Tumult(
        PrivacyAccountant.launch(COMPOSITION, np.int64(dataset)), {"number": AddGeometricNoise(alpha=1)}
    )
