"""Attacks: one file, one attack.  A new file in this folder is found by itself.

An attack is a class with a `name` and `fit(outputs0, outputs1, rng) -> scorer`; see `dpaudit.learning.attack`.
"""
