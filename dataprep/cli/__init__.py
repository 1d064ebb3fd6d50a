"""The command line: each command calls one function of the library, and prints its result."""
