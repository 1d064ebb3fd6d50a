"""The process that a soak watches: it shards a tree again and again, and tells of each job."""

from __future__ import annotations

import argparse
import gc
import json
import threading
import time
from pathlib import Path

import dataprep
from dataprep.stores import StoreOptions


def main() -> None:
    """A JSON object a job: ``images``, ``seconds``, and what this process holds after it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("source")
    options.add_argument("output")
    options.add_argument("--minutes", type=float, required=True)
    options.add_argument("--jobs", type=int, default=0)
    options.add_argument("--endpoint-url", required=True)
    given = options.parse_args()
    remote = given.output.startswith("s3://")
    config = dataprep.ShardConfig.model_validate(
        {
            "source": given.source,
            "output": given.output,
            "format": ("tfrecord", "recordio"),
            "image": {"size": 64},
            "shard_size": "16MB",
            "dask": {"workers": 2, "processes": True},
            "store": StoreOptions(endpoint_url=given.endpoint_url) if remote else StoreOptions(),
        }
    )
    end_s = time.monotonic() + 60 * given.minutes
    done = 0
    while done < given.jobs or time.monotonic() < end_s:
        begun_s = time.perf_counter()
        (split,) = dataprep.shard(config, overwrite=True)
        seconds = time.perf_counter() - begun_s
        assert not split.manifest.samples.failed
        done += 1
        gc.collect()
        told = {
            "images": split.manifest.samples.written,
            "seconds": seconds,
            "descriptors": len(list(Path("/proc/self/fd").iterdir())),
            "threads": threading.active_count(),
        }
        print(json.dumps(told), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
