"""Statistical tests and confidence bounds as pure functions.

- `sequential`: tests that remain valid at any stopping time.
- `fixed`: tests for which the number of trials is fixed in advance.
- `independence`: tests of whether runs are exchangeable.
- `scores`: tests of a claim on two arrays of scores that another program computed.
"""
