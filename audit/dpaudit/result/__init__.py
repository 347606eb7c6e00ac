"""The outcome of an audit: its evidence, the conclusions from it, and result files.

Methods of `AuditResult` draw reports and call `dpaudit_reports`; this import cycle is intended.
"""
