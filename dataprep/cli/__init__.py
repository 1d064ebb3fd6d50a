"""The command line: options in, one call of the library, its answer in words or as JSON."""
