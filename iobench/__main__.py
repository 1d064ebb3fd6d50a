"""``python -m iobench``."""

from iobench.cli.main import main

main()
