"""Samples in host memory instead of stored ones: rungs of the ladder."""

from __future__ import annotations

MOST_THREADS = 16
"""That read and prepare samples at the same time, before a loop begins."""
