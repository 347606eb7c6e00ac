"""Every kind of audit: of many runs, of one run, and the replay of a witness; also the planning of an audit.

May import: `claims`, `inference`, `learning`, `mechanisms`, `numerics`, `outputs`, `pairs`, `result`,
`sampling`, `settings`, `text`, `values`.
Public names: `audit.audit`, `one_run.audit_one_run`, `replay.replay`, `plan.plan`.
"""
