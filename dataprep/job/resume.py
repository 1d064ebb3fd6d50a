"""Decide whether a stored job can be resumed.

A job is resumed only with the config, source and library versions with which it was planned. Its
complete shards are kept (``output_state.complete_shards``), and all other shards are made.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import DatasetError, ObjectNotFound, OutputConflict
from dataprep.formats import format_names
from dataprep.job.job_file import content_of_split, differences, with_defaults
from dataprep.job.output_state import StoredJobs, read_job
from dataprep.job.source_changes import describe_source_changes
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.output import keys
from dataprep.output.versions import resizer_difference, versions_that_determine_bytes
from dataprep.sources import Listing
from dataprep.stores import Store

_MAX_SHOWN_CONFLICTS = 8
_MAX_SHOWN_KEYS = 3


def require_same_job(
    config: ShardConfig, stored_jobs: StoredJobs, listing: Listing, *, retry_failed: bool
) -> None:
    """Refuse to resume jobs that were planned with another config, source or library versions.

    Three changes of the source are accepted. Samples that are retried may have other sizes. Samples
    may be at other locations in archives. A file with many samples may be replaced if one of its
    samples is retried.

    Args:
        config: the config of this run.
        stored_jobs: the jobs of the output.
        listing: the source as it is now.
        retry_failed: whether failed samples are retried (``--retry-failed``).

    Raises:
        OutputConflict: something differs; the message lists the differences.
    """
    versions = dict(versions_that_determine_bytes(same_everywhere=config.image.same_everywhere))
    for split, job in stored_jobs.jobs.items():
        difference = resizer_difference(job.versions)
        if difference:
            raise OutputConflict(
                f"{config.output}: its job for split {split!r} was {difference}, or start again "
                "with another --output or with --overwrite"
            )
        # Jobs of earlier versions do not name their resizer.
        planned_versions = {"resizer": versions.get("resizer"), **job.versions}
        conflicts = [
            *differences(with_defaults(job.config), content_of_split(config, split)),
            *differences(planned_versions, versions),
            *describe_source_changes(stored_jobs, split, listing, retry_failed=retry_failed),
        ]
        if conflicts:
            shown_conflicts = conflicts[:_MAX_SHOWN_CONFLICTS]
            if len(conflicts) > len(shown_conflicts):
                shown_conflicts.append(f"and {len(conflicts) - len(shown_conflicts)} more")
            lines = "".join(f"\n  {line}" for line in shown_conflicts)
            raise OutputConflict(
                f"{config.output} already has split {split} with other settings:{lines}\n"
                "Undo the changes to resume it, use another --output, or --overwrite to replace it"
            )


def with_current_locations(plan: SplitPlan, listing: Listing) -> SplitPlan:
    """Return the plan with the current sizes, containers and offsets of its samples."""
    rows_by_name = {name: row for row, name in enumerate(listing.names)}
    rows = np.array([rows_by_name[name] for name in plan.names[: plan.samples]], dtype=np.int64)
    sizes = np.concatenate([listing.sizes[rows], plan.sizes[plan.samples :]])
    if not plan.containers:
        return replace(plan, sizes=sizes)
    containers = [listing.containers[row] for row in rows.tolist()]
    containers.extend(plan.containers[plan.samples :])
    offsets = np.concatenate([listing.offsets[rows], plan.offsets[plan.samples :]])
    return replace(plan, sizes=sizes, containers=containers, offsets=offsets)


def refuse_leftovers(store: Store, split: str) -> None:
    """Refuse files with names of this split if the split has no job file.

    A plan and readable labels are accepted. A run that is killed before it writes its job file
    leaves them behind.

    Raises:
        OutputConflict: there are such files; the message names some of them.
    """
    stored_keys = {info.key for info in store.list()}
    leftovers = {key for key in stored_keys if keys.belongs_to(split, key, format_names())}
    leftovers.discard(keys.plan(split))
    if keys.LABELS in stored_keys and not _are_labels_readable(store):
        leftovers.add(keys.LABELS)
    # Read the job file last. Another part may have written it, and shards, since the listing.
    if leftovers and read_job(store, split) is None:
        shown_keys = ", ".join(sorted(leftovers)[:_MAX_SHOWN_KEYS])
        if len(leftovers) > _MAX_SHOWN_KEYS:
            shown_keys += f" and {len(leftovers) - _MAX_SHOWN_KEYS:,} more"
        raise OutputConflict(
            f"{store.uri} has {shown_keys}, but not {keys.job(split)}, which describes their job: "
            "put this file back, use another --output, or --overwrite to remove split "
            f"{split!r} and start again"
        )


def _are_labels_readable(store: Store) -> bool:
    """Whether the stored labels can be read. True if they were removed since the listing."""
    try:
        LabelSpace.from_json(store.get(keys.LABELS))
    except ObjectNotFound:
        return True
    except (DatasetError, ValueError, LookupError, TypeError, AttributeError):
        return False
    return True
