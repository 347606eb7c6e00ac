"""Statistical theorems: numbers in, numbers out, one theorem a module.

`sequential` bets and may stop at any time; `fixed` counts a number of trials that was planned; `independence` asks
whether runs are exchangeable; `scores` tests claims on two arrays of scores that others have made.

May import: `claims`, `numerics`, `values`.
Public names: the modules.
"""
