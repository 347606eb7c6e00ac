"""NVIDIA FLARE's filter of a client's update, which sends the largest weights with noise.

The library uses numpy's global generator, which the worker seeds.
"""

import math

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.filters.svt_privacy import SVTPrivacy


class SparseVector:
    """The filter SVTPrivacy on the update of one client; a dataset lists the weights of the update.

    The claim is the sum of the filter's three budgets: for the threshold, for the comparisons, and for each weight that
    is sent.  From 2.8.0 on, the filter's accountant states this sum.
    """

    def __init__(self, weights, fraction, **parameters):
        self._filter = SVTPrivacy(fraction=fraction, **parameters)
        self([0.0] * weights, None)
        if hasattr(self._filter, "get_privacy_spent"):
            epsilon = self._filter.get_privacy_spent()
        else:
            epsilon = self._filter.eps_1 + self._filter.eps_2 + math.ceil(weights * fraction) * self._filter.eps_3
        self.claim = f"pure(epsilon={float(epsilon)!r})"

    def __call__(self, dataset, rng):
        update = DXO(DataKind.WEIGHT_DIFF, data={"weights": np.array(dataset, dtype=float)})
        filtered = self._filter.process(update.to_shareable(), FLContext())
        return from_shareable(filtered).data["weights"]
