"""The outcome of an audit: its evidence, the conclusions from it, and result files.

`AuditResult` has methods that draw or write reports, and they call `dpaudit_reports`.  This import cycle is intended;
the project has no other.
"""

RESULTS = "dpaudit-results"
"""Folder of `dpaudit run`, in the folder in which the command runs."""
