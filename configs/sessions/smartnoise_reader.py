"""A session of smartnoise-sql: the private reader's odometer reports, and queries beyond epsilon 2 are refused."""

import pandas as pd
import snsql

from dpaudit.libraries import sessions

TABLE = {"row_privacy": True, "censor_dims": False, "a": {"type": "int", "lower": 0, "upper": 1}}
QUERIES = ["SELECT COUNT(*) AS n FROM t"]


def reader(dataset, rng):
    privacy = snsql.Privacy(epsilon=1.0, delta=0.0)
    opened = snsql.from_df(pd.DataFrame({"a": dataset}), privacy=privacy, metadata={"": {"": {"t": TABLE}}})
    return sessions.Smartnoise(opened, QUERIES, budget=2.0)
