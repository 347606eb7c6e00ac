"""A simulated library of mechanisms that keep their claims exactly, and its catalogue."""
