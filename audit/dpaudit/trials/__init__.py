"""Running the mechanism: addressed random streams, and blocks of trials in any worker."""
