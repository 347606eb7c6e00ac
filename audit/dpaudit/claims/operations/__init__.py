"""Operations on claims: composition, group privacy, subsampling, and the combination of both directions of a pair.

Importing this package registers all operations on claims (see `dpaudit.claims.base.operation`).
"""

from dpaudit.claims.operations import compose, group, subsample

__all__ = ["compose", "group", "subsample"]
