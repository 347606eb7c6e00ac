"""Runs trials in any process, with a random stream for each trial, and stores the outputs of the trials.

May import: `mechanisms`, `outputs`, `pairs`, `settings`, `text`, `values`.
Public names: `sampler.Sampler`, `runs.ExecutionSettings`, `store.Store`.
"""
