"""A whole job: plan, Dask, receipts, manifest; resume and progress."""

from dataprep.job.run import Summary, shard

__all__ = ["Summary", "shard"]
