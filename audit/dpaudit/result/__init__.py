"""The outcome of an audit: its evidence, what follows from it, and the files that hold it.

The methods of `AuditResult` that draw call `dpaudit_reports`: the one circle of the project, on purpose.

May import: `claims`, `inference`, `numerics`, `text`.
Public names: `model.AuditResult`, `values.Verdict`, `evidence`, `files`.
"""
