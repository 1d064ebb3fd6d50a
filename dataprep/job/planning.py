"""A request into the plans of its splits and their job files; nothing is written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from dataprep.counted import counted
from dataprep.job.box_plans import find_boxes
from dataprep.job.calibration import Convert, calibrate
from dataprep.job.jobfile import JobFile
from dataprep.job.request import Request, preflight_warnings
from dataprep.job.stored import content_of_split
from dataprep.labels import LabelSpace
from dataprep.plan import SplitPlan, label_offsets, make_plans, sample_rows
from dataprep.versions import determining


class Planned(NamedTuple):
    """Plans and job files, and what is stored of labels and plans."""

    plans: dict[str, SplitPlan]
    jobs: dict[str, JobFile]
    labels: bytes
    encoded: dict[str, bytes]


def planned(
    request: Request,
    label_space: LabelSpace,
    note: Callable[[str], None],
    convert: Convert,
) -> Planned:
    """What will be made of what; nothing is written."""
    config, listing = request.config, request.listing
    note(
        f"{config.source}: {counted(len(listing), 'file')}, "
        f"{counted(len(label_space.labels), 'class')}"
    )
    for said in preflight_warnings(request, label_space):
        note(said)
    calibration = calibrate(listing, sample_rows(listing), config, convert)
    boxes = find_boxes(config, listing, label_space, note)
    plans = make_plans(listing, label_space, calibration, config, boxes)
    labels_json = label_space.to_json()
    encoded = {split: split_plan.to_parquet() for split, split_plan in plans.items()}
    jobs = {
        split: JobFile(
            split=split,
            config=content_of_split(config, split),
            versions=dict(determining(same_everywhere=config.image.same_everywhere)),
            source={
                "files": len(listing),
                "bytes": int(listing.sizes.sum()),
                "sha256": listing.digest(),
            },
            calibration=calibration.points,
            label_offsets=dict(label_offsets(config, label_space)),
            labels_sha256=hashlib.sha256(labels_json).hexdigest(),
            plan_sha256=hashlib.sha256(encoded[split]).hexdigest(),
            shards=split_plan.shard_count,
        )
        for split, split_plan in plans.items()
    }
    return Planned(plans, jobs, labels_json, encoded)
