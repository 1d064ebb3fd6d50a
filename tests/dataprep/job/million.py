"""Measures the memory of a plan of ILSVRC2012's size from a listing in memory.

python -m tests.dataprep.job.million [SAMPLES] prints one JSON object: the peak memory of this
process in bytes, samples and shards.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np

from dataprep.config.shard_config import ShardConfig
from dataprep.job.calibration import Calibration
from dataprep.job.split_plan import SplitPlan
from dataprep.job.split_planning import make_plans
from dataprep.labels import LabelSpace
from dataprep.sources import Listing

CLASSES = 1_000


def listing(samples: int) -> Listing:
    """A listing with names as in the training tars, in order, and sizes around 110 kB."""
    per_class = -(-samples // CLASSES)
    groups = [f"n{1_440_764 + 9 * i:08d}" for i in range(CLASSES)]
    names = [f"{group}/{group}_{j}.JPEG" for group in groups for j in range(per_class)][:samples]
    names.sort()
    sizes = np.random.default_rng(0).lognormal(11.5, 0.5, samples).astype(np.int64)
    by_name = {group: group for group in groups}
    tars = {group: f"{group}.tar" for group in groups}
    return Listing(
        names,
        sizes,
        [by_name[name[:9]] for name in names],
        {},
        [tars[name[:9]] for name in names],
        np.cumsum(sizes),
    )


def _peak_bytes() -> int:
    """The peak memory of this program, in bytes.

    getrusage(2) would return the peak of the parent process, if that is larger.
    """
    kilobytes = re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(kilobytes[0]) * 1024


def main(samples: int) -> None:
    """List, plan, encode and read back."""
    listed = listing(samples)
    listed.digest()
    config = ShardConfig(source="in", output="out")
    calibration = Calibration(((20_000, 12_000), (90_000, 38_000), (400_000, 70_000)))
    (plan,) = make_plans(listed, LabelSpace.of(listed.classes), calibration, config).values()
    table_bytes = plan.to_parquet()
    del listed
    samples = plan.samples
    del plan
    shards = SplitPlan.from_parquet(table_bytes).shard_count
    content = {"samples": samples, "shards": shards, "peak_bytes": _peak_bytes()}
    print(json.dumps(content))  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1_300_000)
