"""Hostile inputs: what every reader makes of files that nobody should have written."""

FAMILIES = ("records", "tables", "listings", "archives", "configs", "benchmarks", "outputs")
"""Modules of targets; each runs in a process of its own."""
