"""Samples converted in a process of their own, which may crash, hang or be killed."""

from dataprep.isolation.outcomes import isolated_outcomes

__all__ = ["isolated_outcomes"]
