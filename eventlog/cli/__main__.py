"""`python -m eventlog.cli`: the command line where the `eventlog` script is not installed."""

from eventlog.cli import main

main()
