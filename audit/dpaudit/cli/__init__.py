"""The command line parses options, calls the lower packages, prints, and exits with a documented code."""
