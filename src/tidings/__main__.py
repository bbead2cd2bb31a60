"""`python -m tidings` is the command `tidings`."""

from tidings.cli import main

main()
