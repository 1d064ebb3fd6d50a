"""Describe how a source has changed since its job was planned.

A job is resumed only if its source has not changed, apart from changes that are accepted here.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np
from numpy.typing import NDArray

from dataprep.job.job_file import JobFile
from dataprep.job.output_state import StoredJobs, rows_of_shard
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.message_text import counted
from dataprep.name_encoding import unescape
from dataprep.sources import Listing
from dataprep.stores import Store
from dataprep.stores.protocol import LEAVES

_RESIZED = "of another size"
_RETRY_ADVICE = " (if these files failed before, --retry-failed accepts them)"


def describe_source_changes(
    stored_jobs: StoredJobs, split: str, listing: Listing, *, retry_failed: bool
) -> list[str]:
    """Describe the changes of a source because of which a job cannot be resumed.

    Args:
        stored_jobs: the jobs of the output.
        split: the split whose job is to be resumed.
        listing: the source as it is now.
        retry_failed: whether failed samples are retried, so that their files may change.

    Returns:
        A line for each kind of change; none if the job can be resumed. Replaced files are named
        only if there is no other change.
    """
    job = stored_jobs.jobs[split]
    if job.source["sha256"] != listing.digest():
        lines = _describe_differences(stored_jobs, listing, retry_failed=retry_failed)
        if lines:
            return lines
    replaced = replaced_files(job, listing)  # the same names and sizes, but other bytes
    if replaced and retry_failed:
        replaced -= _files_to_retry(stored_jobs, listing)
    if not replaced:
        return []
    return [
        f"source: {counted(len(replaced), 'file')} replaced since, such as {min(replaced)!r}: the "
        "size is the same, but the modification time, ETag or SHA-256 is not. A copy of a file "
        f"must keep its modification time (cp -p){_RETRY_ADVICE}"
    ]


def replaced_files(job: JobFile, listing: Listing) -> set[str]:
    """Return the keys of files with many entries whose version differs from the planned version.

    A file without a known version counts as unchanged: not every store has versions, and jobs of
    earlier releases do not record them.
    """
    replaced = set()
    for key, version in listing.file_versions.items():
        planned_version = job.file_versions.get(key, "")
        if version and planned_version and version != planned_version:
            replaced.add(key)
    return replaced


def _describe_differences(
    stored_jobs: StoredJobs, listing: Listing, *, retry_failed: bool
) -> list[str]:
    """Describe how a listing differs from the plans, if their digests differ.

    The result is empty if only sizes have changed, and all of them may change.

    If no sample has another name, size or class, there are two reasons for which the digest may
    differ. Either entries that are not samples have changed, which is accepted. Or samples have
    changed in another way, such as their locations, which is described in general words. The second
    reason is assumed if entries that are not samples are as planned, or if samples have other
    labels.
    """
    names_by_change = _differing_names(listing, stored_jobs.label_space, stored_jobs.plans)
    resized = names_by_change[_RESIZED]
    for split, plan in stored_jobs.plans.items():
        accepted = _names_with_accepted_size(
            stored_jobs.store, stored_jobs.jobs[split], plan, resized, listing, retry_failed
        )
        names_by_change[_RESIZED] = names_by_change[_RESIZED] - accepted
    lines = []
    changes = set()
    for change, names in names_by_change.items():
        if names:
            changes.add(change)
            lines.append(f"source: {counted(len(names), 'file')} {change}, such as {min(names)!r}")
    is_unexplained = not resized and _are_refused_entries_as_planned(stored_jobs.plans, listing)
    if not changes and (is_unexplained or _has_other_labels(stored_jobs.plans, listing)):
        lines.append("source: other classes, labels or locations")
    if changes == {_RESIZED}:
        lines[-1] += _RETRY_ADVICE
    return lines


def rows_by_name(listing: Listing) -> dict[str, int]:
    """Return the row of each name in a listing.

    A listing may have a name several times, but at most one of its rows is a sample. If there is
    one, the result has this row.
    """
    rows: dict[str, int] = {}
    for row, name in enumerate(listing.names):
        if row not in listing.problems:
            rows[name] = row
        else:
            rows.setdefault(name, row)
    return rows


def _are_refused_entries_as_planned(plans: Mapping[str, SplitPlan], listing: Listing) -> bool:
    """Whether the entries that are not samples have the planned names, sizes and labels."""
    planned: list[tuple[str, int, bytes]] = []
    for plan in plans.values():
        for row in range(plan.samples, len(plan.names)):
            labels = _labels_in_row(plan.values, row)
            planned.append((plan.names[row], int(plan.sizes[row]), labels))
    current = []
    for row in listing.problems:
        labels = _labels_in_row(listing.values, row)
        current.append((listing.names[row], int(listing.sizes[row]), labels))
    return sorted(planned) == sorted(current)


def _has_other_labels(plans: Mapping[str, SplitPlan], listing: Listing) -> bool:
    """Whether labels of a planned sample have changed, if samples have several labels.

    An entry that was refused when the job was planned, and is a sample now, has no planned labels.
    """
    planned: dict[str, bytes] = {}
    for plan in plans.values():
        for row, name in enumerate(plan.names[: plan.samples]):
            planned[name] = _labels_in_row(plan.values, row)
    for row, name in enumerate(listing.names):
        if name not in planned or row in listing.problems:
            continue
        if planned[name] != _labels_in_row(listing.values, row):
            return True
    return False


def _labels_in_row(values: NDArray[np.float32] | None, row: int) -> bytes:
    """All labels of a row as bytes, which are equal if the labels are; empty without labels."""
    return b"" if values is None else values[row].tobytes()


def _differing_names(
    listing: Listing, label_space: LabelSpace, plans: Mapping[str, SplitPlan]
) -> dict[str, set[str]]:
    """Group the names of changed entries by the kind of change.

    The size of an entry that is not a sample may change. Such a change is in no group.

    Args:
        listing: the source as it is now.
        label_space: the classes of the output and their labels.
        plans: the plans of all splits.

    Returns:
        The names for each kind of change. The kinds are phrases for messages; some have no names.
    """
    planned_names: set[str] = set()
    planned_sizes: dict[str, int] = {}
    planned_labels: dict[str, int] = {}
    for plan in plans.values():
        sample_names = plan.names[: plan.samples]
        planned_names.update(plan.names)
        # Samples come first in the columns, so that ``zip`` stops at the last sample.
        planned_sizes.update(zip(sample_names, plan.sizes.tolist(), strict=False))
        planned_labels.update(zip(sample_names, plan.labels.tolist(), strict=False))
    rows = rows_by_name(listing)
    sizes = listing.sizes.tolist()
    samples = {name for row, name in enumerate(listing.names) if row not in listing.problems}
    groups = _names_skipped_now_or_before(listing, samples, planned_labels.keys(), plans)
    linked_names = _names_behind_failed_links(samples, plans)
    if linked_names:
        groups["behind links that earlier versions did not follow"] = linked_names
    # A name that is in one of these groups gets no second line.
    explained = {name for names in groups.values() for name in names}
    common = (rows.keys() & planned_labels.keys()) - explained
    labels = {name: label_space.index.get(listing.classes[rows[name]], -1) for name in common}
    groups["new"] = rows.keys() - planned_names - explained
    groups["gone"] = planned_names - rows.keys()
    groups[_RESIZED] = {name for name in common if sizes[rows[name]] != planned_sizes[name]}
    groups["of another class"] = {name for name in common if labels[name] != planned_labels[name]}
    return groups


def _names_skipped_now_or_before(
    listing: Listing,
    samples: Set[str],
    planned_samples: Set[str],
    plans: Mapping[str, SplitPlan],
) -> dict[str, set[str]]:
    """Group entries that are skipped now and were samples before, or the reverse, by the reason.

    A listing may have a name twice, as a sample and as a skipped row.

    Args:
        listing: the source as it is now.
        samples: the names of the samples in the listing.
        planned_samples: the names of the samples in the plans.
        plans: the plans of all splits.
    """
    groups: dict[str, set[str]] = {}
    for row, problem in listing.problems.items():
        name = listing.names[row]
        if problem.status == "skipped" and name in planned_samples and name not in samples:
            groups.setdefault(f"skipped now ({problem.reason})", set()).add(name)
    for plan in plans.values():
        for row in range(plan.samples, len(plan.names)):
            name = plan.names[row]
            was_skipped = plan.statuses[row] == "skipped"
            if was_skipped and name in samples and name not in planned_samples:
                groups.setdefault(f"skipped before ({plan.reasons[row]})", set()).add(name)
    return groups


def _names_behind_failed_links(samples: Set[str], plans: Mapping[str, SplitPlan]) -> set[str]:
    """The samples that an earlier version did not reach, because it did not follow symlinks.

    Such a sample is a link that failed when the job was planned, or is in a folder behind one.
    """
    links = set()
    for plan in plans.values():
        for name, reason in zip(plan.names, plan.reasons, strict=True):
            if reason == LEAVES:
                links.add(name)
    folders = tuple(f"{name}/" for name in links)
    return {name for name in samples if name in links or name.startswith(folders)}


def _files_to_retry(stored_jobs: StoredJobs, listing: Listing) -> set[str]:
    """The keys of the files that may be replaced, because one of their samples is retried.

    A sample is retried if it failed, or if its shard has no receipt.
    """
    listing_rows = rows_by_name(listing)
    names: set[str] = set()
    for split, job in stored_jobs.jobs.items():
        plan = stored_jobs.plans[split]
        for shard in range(job.shards):
            rows = rows_of_shard(stored_jobs.store, job, shard)
            if not rows:  # there is no receipt, so that the whole shard is made again
                names.update(plan.names[plan.rows_of(shard)])
            for row in rows:
                if row.status == "failed":
                    names.add(unescape(row.source))
    files: set[str] = set()
    for name in names & listing_rows.keys():
        container = listing.containers[listing_rows[name]]
        files.add(container)
        # The container of a sample in a section of a file, such as a row group, is KEY!SECTION.
        files.add(container.rpartition("!")[0])
    return files


def _names_with_accepted_size(
    store: Store,
    job: JobFile,
    plan: SplitPlan,
    resized: Set[str],
    listing: Listing,
    retry_failed: bool,
) -> set[str]:
    """The names of samples in a plan whose current size is accepted although it was not planned.

    The current size of a sample is accepted if its receipt has the same size, because the sample
    was retried before. With ``retry_failed``, any size is accepted for a sample that failed, and
    for the samples of shards without a receipt.

    Args:
        store: the output.
        job: the job of the split.
        plan: the plan of the split.
        resized: the names of samples whose size differs from a plan, of all splits.
        listing: the source as it is now.
        retry_failed: whether failed samples are retried.
    """
    listing_rows = rows_by_name(listing)
    sizes = listing.sizes.tolist()
    shards_to_check = set()
    for name, shard in zip(plan.names, plan.shards.tolist(), strict=True):
        if name in resized:
            shards_to_check.add(shard)
    accepted: set[str] = set()
    for shard in shards_to_check:
        rows = rows_of_shard(store, job, shard)
        if retry_failed and not rows:
            accepted.update(plan.names[plan.rows_of(shard)])
        for row in rows:
            name = unescape(row.source)
            listing_row = listing_rows.get(name)
            has_current_size = listing_row is not None and row.source_bytes == sizes[listing_row]
            if has_current_size or (retry_failed and row.status == "failed"):
                accepted.add(name)
    return accepted
