"""Decide whether a stored job can be resumed, or whether files without a job file can stay.

A job is resumed only with the config, source and library versions with which it was planned.
``require_same_job`` lists the few changes of the source that are accepted. The complete shards of a
resumed job are kept (``output_state.complete_shards``), and all other shards are made.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import DatasetError, ObjectNotFound, OutputConflict
from dataprep.formats import format_names
from dataprep.job.job_file import content_of_split, differences, with_defaults
from dataprep.job.output_state import StoredJobs, read_job
from dataprep.job.source_changes import describe_source_changes, rows_by_name
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.output import keys
from dataprep.output.versions import resizer_difference, versions_that_determine_bytes
from dataprep.sources import Listing
from dataprep.stores import Store

# Limits of the differences and of the keys that an error names.
_MAX_SHOWN_CONFLICTS = 8
_MAX_SHOWN_KEYS = 3


def require_same_job(
    config: ShardConfig, stored_jobs: StoredJobs, listing: Listing, *, retry_failed: bool
) -> None:
    """Refuse to resume jobs that were planned with another config, source or library versions.

    Three changes of the source are accepted:

    - A sample that is retried, or was retried before, may have another size. Other samples may then
      be at other locations in their archives.
    - An entry that is not a sample may have another size.
    - A file with many samples may be replaced if one of its samples is retried.

    Args:
        config: the config of this run.
        stored_jobs: the stored jobs of the requested splits.
        listing: the source as it is now.
        retry_failed: whether failed samples are retried (``--retry-failed``).

    Raises:
        OutputConflict: a job differs. The message lists the first differences of the first split
            that differs.
    """
    current_versions = dict(
        versions_that_determine_bytes(same_everywhere=config.image.same_everywhere)
    )
    for split, job in stored_jobs.jobs.items():
        # A resizer is compared first, because its error gives advice of its own.
        resizer_problem = resizer_difference(job.versions)
        if resizer_problem:
            raise OutputConflict(
                f"{config.output}: its job for split {split!r} was {resizer_problem}, or start "
                "again with another --output or with --overwrite"
            )
        # Jobs of earlier versions do not name their resizer. It gives the same pixels as the
        # current resizer, as was just checked.
        planned_versions = {"resizer": current_versions.get("resizer"), **job.versions}
        conflicts = [
            *differences(with_defaults(job.config), content_of_split(config, split)),
            *differences(planned_versions, current_versions),
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
    """Return the plan with the current sizes, containers and offsets of its samples.

    Entries that are not samples stay as they were planned.

    Args:
        plan: the stored plan.
        listing: the source as it is now. It has every sample of the plan, as ``require_same_job``
            checks.
    """
    listing_rows = rows_by_name(listing)
    sample_names = plan.names[: plan.samples]
    rows = np.array([listing_rows[name] for name in sample_names], dtype=np.int64)
    sizes = np.concatenate([listing.sizes[rows], plan.sizes[plan.samples :]])
    if not plan.containers:  # every sample is a separate file
        return replace(plan, sizes=sizes)
    containers = [listing.containers[row] for row in rows.tolist()]
    containers.extend(plan.containers[plan.samples :])
    offsets = np.concatenate([listing.offsets[rows], plan.offsets[plan.samples :]])
    return replace(plan, sizes=sizes, containers=containers, offsets=offsets)


def refuse_leftovers(store: Store, split: str) -> None:
    """Refuse to create a job for a split if the output has files of the split but no job file.

    The plan and the labels are accepted, because a run that is killed before it writes its job file
    leaves them behind. Labels that cannot be read are refused.

    Raises:
        OutputConflict: the output has other files of the split, or labels that cannot be read. The
            message names some of these files.
    """
    stored_keys = {info.key for info in store.list()}
    leftovers = {key for key in stored_keys if keys.belongs_to(split, key, format_names())}
    leftovers.discard(keys.plan(split))
    if keys.LABELS in stored_keys and not _are_labels_readable(store):
        leftovers.add(keys.LABELS)
    # Read the job file last. A run of another part may have written it, and then shards, since the
    # listing. Its shards are no leftovers.
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
