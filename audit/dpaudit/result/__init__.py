"""The outcome of an audit: its evidence, the conclusions from it, and result files.

The methods of `AuditResult` that draw call `dpaudit_reports`.  This is the only import cycle of the project, and it is
intended.

May import: `claims`, `inference`, `numerics`, `text`, `values`.
Public names: `model.AuditResult`, `values.Verdict`, `evidence`, `files`.
"""
