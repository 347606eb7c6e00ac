"""Numerical tools that know nothing of privacy.

May import: numpy and scipy only.  Public name: `arrays.Array`.
"""
