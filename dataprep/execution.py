"""Options that change no byte: who does the work, and what a forecast is told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ByteSize, ConfigDict, Field, field_validator

from dataprep.credentials import check_no_credentials

Hung = Literal["stop", "fail"]


class SampleLimit(NamedTuple):
    """How long one conversion may last, and what becomes of a sample that lasts longer."""

    seconds: float = 600.0
    hung: Hung = "stop"


USUAL_LIMIT = SampleLimit()


class DaskOptions(BaseModel):
    """Who does the work."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    workers: Annotated[int, Field(ge=1)] | None = None
    """How many. (default: one for each processor that affinity and control group allow)"""

    processes: bool | Literal["auto"] = "auto"
    """`auto` and `true`: worker processes of one thread each. `false`: this process alone, for
    notebooks and tests; an image that crashes a codec then ends the program."""

    memory_limit: ByteSize = ByteSize(2 * 10**9)
    """Of each worker process."""

    scheduler: str | None = None
    """Address of a running cluster, as in `tcp://host:8786`."""

    cluster: str | None = None
    """Any importable cluster class, as in `dask_jobqueue.SLURMCluster`. It starts programs with
    `cluster_args`: read a stranger's config before you run it."""

    cluster_args: dict[str, Any] = {}
    """What it is called with."""

    dashboard: str | None = None
    """Where Dask's dashboard listens, as in `127.0.0.1:8787`. (default: no dashboard)"""

    max_concurrent_uploads: Annotated[int, Field(ge=1)] = 32
    """Shards that all workers store at a time."""

    sample_timeout_s: Annotated[float, Field(gt=0, le=86_400)] = USUAL_LIMIT.seconds
    """Seconds that one image may take to be read and converted, far more than any should need. A
    worker process that takes longer is ended; see `hung_samples`."""

    retries: Annotated[int, Field(ge=0, le=20)] = 2
    """Of a shard after a store error or a lost worker."""

    @field_validator("scheduler")
    @classmethod
    def _without_credentials(cls, value: str | None) -> str | None:
        return None if value is None else check_no_credentials(value)

    @property
    def uses_workers(self) -> bool:
        """Whether a job is done by worker processes or a cluster, not by this process."""
        return bool(self.scheduler or self.cluster or self.processes)

    @property
    def worker_count(self) -> int:
        """``workers``, or one for each processor that affinity and control group allow."""
        if self.workers:
            return self.workers
        from dask.system import CPU_COUNT

        return int(CPU_COUNT)


class PlanOptions(BaseModel):
    """What ``plan`` is told beside the job itself; none of it changes a byte."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    readers: Annotated[int, Field(ge=1)] | None = None
    """Ranks times loader workers that will read the shards: a warning where shards are fewer."""

    prices: Path | None = None
    """A file such as ``configs/prices.yaml``; that one where none is named."""

    upload_mb_per_s: Annotated[float, Field(gt=0)] | None = None
    """MB/s (10^6) at which one worker stores a shard. None: 85 on S3, not counted elsewhere."""
