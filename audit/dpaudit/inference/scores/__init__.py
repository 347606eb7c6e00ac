"""Tests and bounds from two arrays of scores that another program computed, without a pilot."""
