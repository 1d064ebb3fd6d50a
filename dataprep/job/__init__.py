"""Run a job from planning to the manifest: plan, lock, make shards, resume, and finish."""

from dataprep.job.finish import finalize
from dataprep.job.report import PartSummary, Summary
from dataprep.job.run import shard, shard_part
from dataprep.split_plan import Part

__all__ = ["Part", "PartSummary", "Summary", "finalize", "shard", "shard_part"]
