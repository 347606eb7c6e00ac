"""What `fuzz.py` mutates, and how it judges what dpaudit does with the mutation."""
