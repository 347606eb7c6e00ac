"""What may be asked of an audit: each default and each limit, once.

`audit`, configs, the command line and the pytest plugin read them here.  Importing this loads nothing but the standard
library.

May import: nothing of ours.
Public names: `audit.AuditSettings`, `audit.DEFAULTS`, `limits`.
"""
