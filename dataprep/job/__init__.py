"""A whole job: plan, Dask, receipts, manifest; resume, parts, retries and progress."""

from dataprep.job.finalizing import finalize
from dataprep.job.parts import Part
from dataprep.job.report import PartSummary, Summary
from dataprep.job.run import shard, shard_part

__all__ = ["Part", "PartSummary", "Summary", "finalize", "shard", "shard_part"]
