"""Tests that may stop at any time: wealth of bets against the claim (e-values)."""
