"""Statistical theorems: numbers in, numbers out, one theorem a module.

`sequential` bets and may stop at any time; `fixed` counts a number of trials that was planned; `independence` asks
whether runs are exchangeable.

May import: `claims`, `numerics`, `values`.
Public names: the modules.
"""
