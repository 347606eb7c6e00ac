"""Audits of many runs and of single runs, replays of witnesses, and plans of audits.

May import: `claims`, `inference`, `learning`, `numerics`, `outputs`, `pairs`, `result`, `rounding`, `running`,
`settings`, `text`, `values`.
Public names: `audit.audit`, `one_run.audit_one_run`, `replay.replay`, `plan.plan`.
"""
