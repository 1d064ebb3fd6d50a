"""Looks into outputs, shards and records, and reads no more than it takes."""

from dataprep.inspection.inspect import Inspection, Wanted, inspect

__all__ = ["Inspection", "Wanted", "inspect"]
