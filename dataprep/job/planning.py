"""From a request to the plans of its splits and their job files; nothing is written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import ConfigError, ImageError, SourceChanged, SourceError, StoreError
from dataprep.estimate import Calibration, pick, sample_size
from dataprep.formats import Sample, get_format
from dataprep.image import Converted
from dataprep.job.jobfile import JobFile
from dataprep.job.request import Request, preflight_warnings
from dataprep.job.resume import content_of_split
from dataprep.job.worker import Outcome
from dataprep.labels import LabelSpace
from dataprep.labels.box_files import find_boxes
from dataprep.labels.boxes import BoxColumns
from dataprep.names import to_bytes
from dataprep.plan import SplitPlan, label_offsets, labels_of, make_plans, sample_rows
from dataprep.sources import Listing, Located
from dataprep.versions import determining

Convert = Callable[[Sequence[Located]], Iterable[Outcome]]
"""Converts samples in order."""

_STEP = 16


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


def calibrate(
    listing: Listing, rows: NDArray[np.int64], config: ShardConfig, convert: Convert
) -> Calibration:
    """Convert a few samples to learn how large records of this source become.

    A sample that cannot be converted counts as one of no bytes, whatever the reason.

    Raises:
        SourceError, StoreError: one could not be read.
    """
    sizes = listing.sizes[rows]
    by_size = rows[pick(sizes, sample_size(len(rows)))].tolist()
    # Whoever converts some in a row gets large and small ones.
    chosen = [row for start in range(_STEP) for row in by_size[start::_STEP]]
    measure = _Measure(listing, config)
    try:
        outcomes = convert([listing.located(row) for row in chosen])
        pairs = [measure.one(row, found) for row, (found, _) in zip(chosen, outcomes, strict=True)]
    except SourceChanged as error:
        raise SourceError(
            f"the source changed while the job was planned ({error}): run the same command again"
        ) from None
    return Calibration.fit(pairs)


class _Measure:
    """Bytes of a sample's file, and of its largest record in any format of the job."""

    def __init__(self, listing: Listing, config: ShardConfig) -> None:
        self._listing = listing
        self._formats = [get_format(name) for name in config.format]
        self._options = config.record_options

    def one(self, row: int, image: Converted | ImageError) -> tuple[int, int]:
        size = int(self._listing.sizes[row])
        if isinstance(image, ImageError):
            return size, 0
        group = to_bytes(self._listing.classes[row])
        sample = Sample(
            image=image.data,
            label=0,
            width=image.width,
            height=image.height,
            channels=image.channels,
            colorspace=image.colorspace,
            encoding=image.encoding,
            filename=to_bytes(self._listing.names[row].rpartition("/")[2]),
            synset=group,
            text=group,
        )
        writers = [form.writer(_Nowhere(), self._options) for form in self._formats]
        return size, max(writer.write(sample)[1] for writer in writers)


class _Nowhere:
    """A sink that keeps nothing."""

    def write(self, data: Any, /) -> None:
        """Forget ``data``."""
