"""Looks into outputs, shards and records, and reads no more than it takes."""

from dataprep.inspection.inspecting import Inspection, inspect

__all__ = ["Inspection", "inspect"]
