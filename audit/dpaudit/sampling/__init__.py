"""Runs trials: addressed random streams, blocks of trials in any process, and the store that keeps their outputs.

May import: `mechanisms`, `outputs`, `pairs`, `text`.
Public names: `sampler.Sampler`, `runs.Terms`, `store.Store`.
"""
