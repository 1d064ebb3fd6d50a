"""Run the command line with ``python -m dataprep``."""

from dataprep.cli.main import main

main()
