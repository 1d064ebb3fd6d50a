"""Samples in host memory instead of stored ones: rungs of the ladder."""
