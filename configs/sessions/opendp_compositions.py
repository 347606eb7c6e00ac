"""Sessions of OpenDP's interactive compositions: noisy counts with epsilon 1, until a budget of 2 is spent."""

import os

os.environ.setdefault("RUST_BACKTRACE", "0")  # before OpenDP is imported: it traces each refusal, for 0.2 seconds

import opendp.prelude as dp

from dpaudit.libraries import sessions

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int, bounds=(0, 1))), dp.symmetric_distance()
QUERIES = {
    "count": SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0),
    "sum": SPACE >> dp.t.then_sum() >> dp.m.then_laplace(scale=1.0),
}
PURE = dp.max_divergence()
ADAPTIVE = dp.c.make_adaptive_composition(*SPACE, output_measure=PURE, d_in=1, d_mids=[1.0, 1.0])
ODOMETER = dp.c.make_fully_adaptive_composition(*SPACE, output_measure=PURE)
FILTER = dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*SPACE, output_measure=PURE), d_in=1, d_out=2.0)


def adaptive(dataset, rng):
    return sessions.OpenDP(ADAPTIVE(dataset), QUERIES)


def odometer(dataset, rng):
    return sessions.OpenDP(ODOMETER(dataset), QUERIES)


def privacy_filter(dataset, rng):
    return sessions.OpenDP(FILTER(dataset), QUERIES)
