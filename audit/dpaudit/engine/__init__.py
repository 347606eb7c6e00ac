"""Every way to audit: with many runs, with one run, again as a replay, and planned.

May import: `claims`, `inference`, `learning`, `mechanisms`, `numerics`, `outputs`, `pairs`, `result`,
`sampling`, `settings`, `text`.
Public names: `audit.audit`, `one_run.audit_one_run`, `replay.replay`, `plan.plan`.
"""
