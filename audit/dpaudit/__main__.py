"""`python -m dpaudit` is the command `dpaudit`."""

from dpaudit.cli.app import main

main()
