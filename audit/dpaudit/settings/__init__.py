"""The settings of an audit, with one definition of each default and each limit.

`audit`, configs, the command line and the pytest plugin read them here.  Importing this package loads only the standard
library.

May import: nothing of ours.
Public names: `audit.AuditSettings`, `audit.DEFAULTS`, `limits`.
"""
