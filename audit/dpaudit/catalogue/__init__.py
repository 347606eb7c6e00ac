"""Builtin mechanisms, correct and wrong, for tests, examples and calibration.

A docstring states what the mechanism computes on the dataset x, a vector, its source, and its true privacy parameter.
`claim` is the claim it is usually audited against, `private` whether that claim is true, and `inputs` the neighbouring
datasets as arguments of `SearchPairs`.  Each answer to a counting query changes by at most 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpaudit.catalogue import mistakes, noise, responses, selection, synthetic, training
from dpaudit.catalogue.noise import Gaussian, Geometric, Laplace

__all__ = ["BUILTIN", "Gaussian", "Geometric", "Laplace"]

BUILTIN: Mapping[str, Callable[..., Any]] = {
    "gaussian": noise.Gaussian,
    "laplace": noise.Laplace,
    "geometric": noise.Geometric,
    "discrete_gaussian": noise.DiscreteGaussian,
    "snapping": noise.Snapping,
    "truncated_geometric": noise.TruncatedGeometric,
    "laplace_parallel": noise.LaplaceParallel,
    "spinner": responses.Spinner,
    "spinner_and_coin": responses.SpinnerAndCoin,
    "kary_response": responses.KaryResponse,
    "rappor": responses.Rappor,
    "one_time_rappor": responses.OneTimeRappor,
    "exponential": selection.Exponential,
    "noisy_max_1": selection.NoisyMax1,
    "noisy_max_2": selection.NoisyMax2,
    "noisy_max_3": selection.NoisyMax3,
    "noisy_max_4": selection.NoisyMax4,
    "svt_1": selection.Svt1,
    "svt_2": selection.Svt2,
    "svt_3": selection.Svt3,
    "svt_4": selection.Svt4,
    "svt_5": selection.Svt5,
    "svt_6": selection.Svt6,
    "svt_34_parallel": selection.Svt34Parallel,
    "numerical_svt": selection.NumericalSvt,
    "noisy_histogram_1": noise.NoisyHistogram1,
    "noisy_histogram_2": noise.NoisyHistogram2,
    "prefix_sum": noise.PrefixSum,
    "missing_cells": noise.MissingCells,
    "threshold_release": noise.ThresholdRelease,
    "noisy_sum": mistakes.NoisySum,
    "subsampled_gaussian": mistakes.SubsampledGaussian,
    "subsampled_wrongly": mistakes.SubsampledWrongly,
    "variance_for_deviation": mistakes.VarianceForDeviation,
    "sensitivity_off": mistakes.SensitivityOff,
    "bounds_from_data": mistakes.BoundsFromData,
    "fixed_seed": mistakes.FixedSeed,
    "reused_noise": mistakes.ReusedNoise,
    "mean_of_true_count": mistakes.MeanOfTrueCount,
    "nan_survives": mistakes.NanSurvives,
    "laplace_inverse_cdf": mistakes.LaplaceInverseCdf,
    "gaussian_box_muller": mistakes.GaussianBoxMuller,
    "geometric_by_trials": mistakes.GeometricByTrials,
    "dp_gd": training.DpGd,
    "dp_sgd": training.DpSgd,
    "dp_gd_unscaled_noise": training.UnscaledNoise,
    "dp_gd_clipped_mean": training.ClippedMean,
    "dp_gd_true_batch_size": training.TrueBatchSize,
    "dp_gd_momentum_before_noise": training.MomentumBeforeNoise,
    "dp_gd_shared_noise": training.SharedNoise,
    "dp_gd_batch_norm": training.BatchNorm,
    "dp_gd_accumulated_before_clipping": training.AccumulatedBeforeClipping,
    "dp_sgd_reused_seed": training.ReusedSeed,
    "dp_sgd_shuffled_as_poisson": training.ShuffledAsPoisson,
    "synthetic_marginals": synthetic.Marginals,
    "synthetic_histogram": synthetic.Histogram,
    "synthetic_mst": synthetic.MstLike,
    "synthetic_privbayes": synthetic.PrivBayesLike,
    "synthetic_rounds": synthetic.Rounds,
    "synthetic_pate": synthetic.PateLike,
    "synthetic_marginals_bounds_from_data": synthetic.BoundsFromTable,
    "synthetic_marginals_domain_from_data": synthetic.DomainFromTable,
    "synthetic_marginals_noise_for_shares": synthetic.NoiseForShares,
    "synthetic_rounds_early_stopping": synthetic.EarlyStopping,
    "synthetic_pate_shared_records": synthetic.SharedRecords,
}
