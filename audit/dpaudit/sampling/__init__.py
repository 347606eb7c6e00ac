"""Runs trials: addressed random streams, blocks of trials in any process, and the store that keeps their outputs.

May import: `mechanisms`, `numerics`, `outputs`, `pairs`, `settings`, `text`, `values`.
Public names: `sampler.Sampler`, `runs.ExecutionSettings`, `store.Store`.
"""
