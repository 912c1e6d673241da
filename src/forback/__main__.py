"""`python -m forback` is the command `forback`."""

from forback.cli import main

main()
