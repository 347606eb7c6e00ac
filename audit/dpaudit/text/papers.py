"""Sizes of paper."""

PAPERS = ("a4", "letter")
"""The sizes of paper for PDF documents; the first is the default."""
