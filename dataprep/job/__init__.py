"""A whole job: plan, Dask, receipts, manifest; resume and progress."""

from dataprep.job.run import shard
from dataprep.job.summary import Summary

__all__ = ["Summary", "shard"]
