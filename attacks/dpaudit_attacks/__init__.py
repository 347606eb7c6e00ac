"""The built-in attacks, with kindred attacks in one file.  A new file in this folder needs no registration.

An attack is a class with a `name` and `fit(outputs0, outputs1, rng) -> scorer`; see `dpaudit.learning.attack`.
"""
