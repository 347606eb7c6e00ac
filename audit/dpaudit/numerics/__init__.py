"""Numerical tools that know nothing of privacy: one place for each idea that several packages need.

May import: nothing of ours.
Public names: `arrays.Array`, `binomials.log_choose`, `bisect`, `folds.out_of_fold`, `hulls.lower_hull`,
`logistic.fit_logistic`.
"""
