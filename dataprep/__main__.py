"""``python -m dataprep``."""

from dataprep.cli import main

main()
