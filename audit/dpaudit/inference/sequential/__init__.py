"""Sequential tests of a claim that remain valid at any stopping time, based on e-values."""
