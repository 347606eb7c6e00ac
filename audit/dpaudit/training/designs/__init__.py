"""The three designs of an audit of training: many runs, one run with many canaries, and step by step.

They call any training function.  What they share is in `checks`: signs of a training that cannot be audited.
"""
