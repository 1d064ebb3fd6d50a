"""Tar archives read in place: where each member lies, never unpacked."""
