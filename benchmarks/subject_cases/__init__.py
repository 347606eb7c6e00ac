"""Subjects of `benchmarks/subjects.py`: for each library, functions that make subjects, by the call and its types."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpaudit.libraries import Subject
from subject_cases import opendp, others

LIBRARIES: Mapping[str, tuple[str, Callable[[], Mapping[str, Callable[[], Subject]]]]] = {
    "opendp": ("opendp", opendp.cases),
    "opendp_frames": ("opendp", opendp.frames),
    "diffprivlib": ("diffprivlib", others.of_diffprivlib),
    "pydp": ("python-dp", others.of_pydp),
    "smartnoise_sql": ("smartnoise-sql", others.of_smartnoise_sql),
    "tumult": ("tmlt.core", others.of_tumult),
    "accounting": ("dp-accounting", others.of_accounting),
    "numpy": ("numpy", others.of_numpy),
}
"""The distribution of each library, and its subjects; these raise ImportError if the library is not installed."""
