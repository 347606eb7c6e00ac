"""A simulated library for `benchmarks/sweeps.py`: 60 mechanisms that keep their claims exactly, and a catalogue."""
