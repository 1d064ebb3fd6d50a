"""A request into the plans of its splits and their job files; nothing is written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from dataprep.counted import counted
from dataprep.errors import ConfigError, StoreError
from dataprep.formats import get_format
from dataprep.job.calibration import Convert, calibrate
from dataprep.job.jobfile import JobFile
from dataprep.job.plans import label_offsets, labels_of, make_plans, sample_rows
from dataprep.job.remarks import oddities
from dataprep.job.request import Request
from dataprep.job.split_plan import SplitPlan
from dataprep.job.stored import content_of_split
from dataprep.labels import LabelSpace
from dataprep.labels.box_files import find_boxes
from dataprep.labels.boxes import BoxColumns
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
    for said in oddities(request, label_space):
        note(said)
    calibration = calibrate(listing, sample_rows(listing), config, convert)
    boxes = boxes_for(request, label_space, note)
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


def boxes_for(
    request: Request, label_space: LabelSpace, note: Callable[[str], None]
) -> BoxColumns | None:
    """Read the boxes of each entry of the listing; None where the job has none.

    Raises:
        ConfigError: no format keeps boxes, no image has any, or a match is ambiguous.
        SourceError, StoreError: the boxes cannot be read.
    """
    config, listing = request.config, request.listing
    if config.boxes is None:
        return None
    if not any(get_format(name).keeps_boxes(config.record_options) for name in config.format):
        raise ConfigError(
            "boxes would be lost: no format of this job keeps them. Use tfrecord with layout "
            "'imagenet', or with a mapping that has bbox/xmin and the others"
        )
    names = [None if row in listing.problems else name for row, name in enumerate(listing.names)]
    labels = labels_of(listing, label_space)
    stores = config.source_store or config.store
    try:
        return find_boxes(config.boxes, stores, names, labels, label_space.index, note)
    except StoreError as error:
        error.exit_code = 2  # nothing has been written
        raise
