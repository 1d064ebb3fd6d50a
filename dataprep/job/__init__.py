"""A whole job: plan, Dask, receipts, manifest; resume, parts, retries and progress."""

from dataprep.job.finish import finalize
from dataprep.job.parts import Part
from dataprep.job.run import shard, shard_part
from dataprep.job.summary import PartSummary, Summary

__all__ = ["Part", "PartSummary", "Summary", "finalize", "shard", "shard_part"]
