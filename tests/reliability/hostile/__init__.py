"""Hostile inputs: what every reader makes of files that nobody should have written."""

FAMILIES = (
    *("records", "tables", "leases", "listings", "archives", "configs", "benchmarks", "outputs"),
    "unfinished",
)
"""Modules of targets; each runs in a process of its own."""
