"""The mechanisms of `benchmarks/safeguards.py`, the process that audits one of them, and its table."""
