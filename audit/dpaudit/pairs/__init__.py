"""Defines pairs of neighbouring datasets, and searches for pairs on which a mechanism violates its claim."""
