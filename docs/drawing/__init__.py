"""What draws the figures of the documentation; `python docs/figures.py` runs it."""
