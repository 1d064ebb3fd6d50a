"""Plan a job: assign samples to splits and shards, and fill in the job files. Writes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import ConfigError, StoreFull, nothing_written
from dataprep.formats import get_format
from dataprep.job.calibration import Convert, calibrate
from dataprep.job.job_file import UNREADABLE_FOLDERS, JobFile, content_of_split
from dataprep.job.request import Request
from dataprep.job.sample_labels import label_offsets, labels_of, rows_of_samples
from dataprep.job.source_notes import describe_source, preflight_warnings
from dataprep.job.split_plan import SplitPlan
from dataprep.job.split_planning import make_plans
from dataprep.labels import LabelSpace
from dataprep.labels.box_files import find_boxes
from dataprep.labels.boxes import BoxColumns
from dataprep.output.versions import versions_that_determine_bytes
from dataprep.sources.file_names import is_clutter
from dataprep.sources.local_tree import list_tree
from dataprep.stores import ObjectInfo, Store
from dataprep.stores.local import LocalStore


@dataclass(frozen=True)
class JobPlan:
    """A planned job, in the form in which ``create_job`` writes it to the output.

    Attributes:
        plans: the plan of each split, by the name of the split.
        jobs: the job file of each split.
        labels_json: the content of labels.json.
        encoded_plans: ``plans`` as the bytes of ``SPLIT.plan.parquet``.
    """

    plans: dict[str, SplitPlan]
    jobs: dict[str, JobFile]
    labels_json: bytes
    encoded_plans: dict[str, bytes]


def plan_job(
    request: Request, label_space: LabelSpace, note: Callable[[str], None], convert: Convert
) -> JobPlan:
    """Plan all splits of a job, and tell the user how the source was understood.

    Args:
        request: the checked config and its source.
        label_space: the classes of the output and their labels.
        note: called with messages for the user.
        convert: converts a few samples, to estimate the size of records.

    Raises:
        ConfigError: as ``read_boxes`` and ``make_plans`` raise it.
        SourceError, StoreError: a sample or the boxes cannot be read.
        JobError: ``convert`` failed.
    """
    config, listing = request.config, request.listing
    note(describe_source(request, label_space).line)
    for warning in preflight_warnings(request, label_space):
        note(warning)
    calibration = calibrate(listing, rows_of_samples(listing), config, convert)
    boxes = read_boxes(request, label_space, note)
    plans = make_plans(listing, label_space, calibration, config, boxes)
    labels_json = label_space.to_json()
    encoded_plans = {split: plan.to_parquet() for split, plan in plans.items()}
    source = {
        "files": len(listing),
        "bytes": int(listing.sizes.sum()),
        "sha256": listing.digest(),
    }
    if listing.unread:
        source[UNREADABLE_FOLDERS] = len(listing.unread)
    versions = versions_that_determine_bytes(same_everywhere=config.image.same_everywhere)
    jobs = {}
    for split, plan in plans.items():
        jobs[split] = JobFile(
            split=split,
            config=content_of_split(config, split),
            versions=dict(versions),
            source=source,
            calibration=calibration.points,
            label_offsets=dict(label_offsets(config, label_space)),
            labels_sha256=hashlib.sha256(labels_json).hexdigest(),
            plan_sha256=hashlib.sha256(encoded_plans[split]).hexdigest(),
            shards=plan.shard_count,
            file_versions=listing.file_versions,
        )
    return JobPlan(plans, jobs, labels_json, encoded_plans)


def read_boxes(
    request: Request, label_space: LabelSpace, note: Callable[[str], None]
) -> BoxColumns | None:
    """Read the boxes of each entry of the listing; None if the job has no boxes.

    Entries that are not samples get no boxes.

    Raises:
        ConfigError: no format keeps boxes, no image has boxes, or a match is ambiguous.
        SourceError, StoreError: the boxes cannot be read.
    """
    config, listing = request.config, request.listing
    if config.boxes is None:
        return None
    if not any(get_format(name).keeps_boxes(config.record_options) for name in config.format):
        raise ConfigError(
            "boxes would be lost: no format of this job keeps them. Use tfrecord with layout "
            "'imagenet', or with a mapping that has bbox/xmin and the other sides of boxes"
        )
    names = [None if row in listing.problems else name for row, name in enumerate(listing.names)]
    labels = labels_of(listing, label_space)
    store_options = config.source_store or config.store
    with nothing_written():
        return find_boxes(
            config.boxes,
            store_options,
            names,
            labels,
            label_space.index,
            note,
            list_annotation_files,
        )


def list_annotation_files(store: Store) -> Iterable[ObjectInfo]:
    """List the files of a folder of annotations. Links are followed, as in a source of images."""
    if isinstance(store, LocalStore):
        return list_tree(store, "", is_clutter).files
    return store.list()


def bytes_to_write(plans: Mapping[str, SplitPlan], config: ShardConfig) -> int:
    """Return the predicted bytes of all shards in all formats.

    The prediction of a record is that of its largest format, so that the result is too large rather
    than too small if a job has several formats.
    """
    bytes_per_format = sum(int(plan.predicted_bytes.sum()) for plan in plans.values())
    return bytes_per_format * len(config.format)


def not_enough_space(store: Store, needed_bytes: int) -> StoreFull | None:
    """Return the error to raise if the store has less free space than the job needs.

    Return None if there is enough space, or if the store does not know its free space.
    """
    free_bytes = store.free_bytes()
    if free_bytes is None or needed_bytes <= free_bytes:
        return None
    error = StoreFull(
        f"about {needed_bytes / 1e6:,.0f} MB would be written to {store.uri}, where "
        f"{free_bytes / 1e6:,.0f} MB are free: choose another --output or free some space"
    )
    error.exit_code = 2
    return error
