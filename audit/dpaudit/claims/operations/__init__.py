"""Operations on claims: composition, group privacy, subsampling, both directions in one curve.

Importing this package registers all of them (`dpaudit.claims.base.operation`).
"""

from dpaudit.claims.operations import compose, group, subsample, symmetrize

__all__ = ["compose", "group", "subsample", "symmetrize"]
