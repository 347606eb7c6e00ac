"""Builtin mechanisms, correct and wrong, for tests, examples and calibration.

The docstring of each class states what the mechanism computes, its source, and its true privacy parameter.  The
attribute `claim` is the claim against which the mechanism is usually audited, and `private` states whether that claim
is true.  The attribute `inputs` describes neighbouring datasets by arguments of `SearchPairs`.  In the docstrings, x is
the dataset as a vector.  If x holds answers to counting queries, neighbours differ in one answer or in all answers, as
`inputs` states.  Each answer changes by at most 1.

May import: `claims`, `numerics`, `pairs`, `training`, `values`.
Public names: `BUILTIN`, and those below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpaudit.catalogue.floats import GaussianBoxMuller, GeometricByTrials, LaplaceInverseCdf
from dpaudit.catalogue.histograms import MissingCells, NoisyHistogram1, NoisyHistogram2, PrefixSum, ThresholdRelease
from dpaudit.catalogue.mistakes import (
    BoundsFromData,
    FixedSeed,
    MeanOfTrueCount,
    NanSurvives,
    NoisySum,
    ReusedNoise,
    SensitivityOff,
    VarianceForDeviation,
)
from dpaudit.catalogue.noise import (
    DiscreteGaussian,
    Gaussian,
    Geometric,
    Laplace,
    LaplaceParallel,
    Snapping,
    TruncatedGeometric,
)
from dpaudit.catalogue.responses import KaryResponse, OneTimeRappor, Rappor, Spinner, SpinnerAndCoin
from dpaudit.catalogue.selection import Exponential, NoisyMax1, NoisyMax2, NoisyMax3, NoisyMax4
from dpaudit.catalogue.sparse_vector import NumericalSvt, Svt1, Svt2, Svt3, Svt4, Svt5, Svt6, Svt34Parallel
from dpaudit.catalogue.subsampling import SubsampledGaussian, SubsampledWrongly
from dpaudit.catalogue.synthetic import Histogram, Marginals, MstLike, PateLike, PrivBayesLike, Rounds
from dpaudit.catalogue.synthetic_mistakes import (
    BoundsFromTable,
    DomainFromTable,
    EarlyStopping,
    NoiseForShares,
    SharedRecords,
)
from dpaudit.catalogue.training import DpGd, DpSgd
from dpaudit.catalogue.training_mistakes import (
    AccumulatedBeforeClipping,
    BatchNorm,
    ClippedMean,
    MomentumBeforeNoise,
    ReusedSeed,
    SharedNoise,
    ShuffledAsPoisson,
    TrueBatchSize,
    UnscaledNoise,
)
from dpaudit.values import Foreign

__all__ = ["BUILTIN", "Gaussian", "Geometric", "Laplace"]

BUILTIN: Mapping[str, Callable[..., Foreign]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "geometric": Geometric,
    "discrete_gaussian": DiscreteGaussian,
    "snapping": Snapping,
    "truncated_geometric": TruncatedGeometric,
    "laplace_parallel": LaplaceParallel,
    "spinner": Spinner,
    "spinner_and_coin": SpinnerAndCoin,
    "kary_response": KaryResponse,
    "rappor": Rappor,
    "one_time_rappor": OneTimeRappor,
    "exponential": Exponential,
    "noisy_max_1": NoisyMax1,
    "noisy_max_2": NoisyMax2,
    "noisy_max_3": NoisyMax3,
    "noisy_max_4": NoisyMax4,
    "svt_1": Svt1,
    "svt_2": Svt2,
    "svt_3": Svt3,
    "svt_4": Svt4,
    "svt_5": Svt5,
    "svt_6": Svt6,
    "svt_34_parallel": Svt34Parallel,
    "numerical_svt": NumericalSvt,
    "noisy_histogram_1": NoisyHistogram1,
    "noisy_histogram_2": NoisyHistogram2,
    "prefix_sum": PrefixSum,
    "missing_cells": MissingCells,
    "threshold_release": ThresholdRelease,
    "noisy_sum": NoisySum,
    "subsampled_gaussian": SubsampledGaussian,
    "subsampled_wrongly": SubsampledWrongly,
    "variance_for_deviation": VarianceForDeviation,
    "sensitivity_off": SensitivityOff,
    "bounds_from_data": BoundsFromData,
    "fixed_seed": FixedSeed,
    "reused_noise": ReusedNoise,
    "mean_of_true_count": MeanOfTrueCount,
    "nan_survives": NanSurvives,
    "laplace_inverse_cdf": LaplaceInverseCdf,
    "gaussian_box_muller": GaussianBoxMuller,
    "geometric_by_trials": GeometricByTrials,
    "dp_gd": DpGd,
    "dp_sgd": DpSgd,
    "dp_gd_unscaled_noise": UnscaledNoise,
    "dp_gd_clipped_mean": ClippedMean,
    "dp_gd_true_batch_size": TrueBatchSize,
    "dp_gd_momentum_before_noise": MomentumBeforeNoise,
    "dp_gd_shared_noise": SharedNoise,
    "dp_gd_batch_norm": BatchNorm,
    "dp_gd_accumulated_before_clipping": AccumulatedBeforeClipping,
    "dp_sgd_reused_seed": ReusedSeed,
    "dp_sgd_shuffled_as_poisson": ShuffledAsPoisson,
    "synthetic_marginals": Marginals,
    "synthetic_histogram": Histogram,
    "synthetic_mst": MstLike,
    "synthetic_privbayes": PrivBayesLike,
    "synthetic_rounds": Rounds,
    "synthetic_pate": PateLike,
    "synthetic_marginals_bounds_from_data": BoundsFromTable,
    "synthetic_marginals_domain_from_data": DomainFromTable,
    "synthetic_marginals_noise_for_shares": NoiseForShares,
    "synthetic_rounds_early_stopping": EarlyStopping,
    "synthetic_pate_shared_records": SharedRecords,
}
