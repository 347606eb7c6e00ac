"""Anytime-valid tests: the wealth of bets against the claim (e-values).

Public names: the modules.
"""
