"""The command line of iobench."""
