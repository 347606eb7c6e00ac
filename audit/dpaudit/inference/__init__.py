"""Numbers in, numbers out, one theorem a module.  Knows claims only as objects with `beta` and `delta`."""
