"""Everything before the first shard: refuse, resume, or plan and write the plan down."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dataprep import keys, plan
from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import (
    ConfigError,
    SourceNotFound,
    StoreError,
    StoreFull,
)
from dataprep.job.box_plans import find_boxes
from dataprep.job.jobfile import JobFile
from dataprep.job.plans import (
    VALIDATION,
    SplitPlan,
    calibrate,
    label_offsets,
    make_plans,
    sample_rows,
)
from dataprep.job.stored import (
    content_of_split,
    refuse_leftovers,
    remove_split,
    require_same,
    splits_to_remove,
    stored_job,
    stored_labels,
    stored_manifest,
    stored_plan,
)
from dataprep.labelling import Labelling, load_labelling
from dataprep.labelling.known import remark
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest
from dataprep.sources import Listing, Source, open_source
from dataprep.sources.imagefolder import NO_CLASS, commonest, promises_image
from dataprep.stores import Store, open_store
from dataprep.versions import determining

Note = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """A job that can begin: what is stored about it, by split."""

    config: ShardConfig
    source: Source
    store: Store
    label_space: LabelSpace
    jobs: Mapping[str, JobFile]
    plans: Mapping[str, SplitPlan]
    manifests: Mapping[str, Manifest]


def prepare(config: ShardConfig, *, overwrite: bool, note: Note) -> Prepared:
    """Check the request, then find the job that OUTPUT holds or write a new one down.

    Raises:
        ConfigError, SourceError, StoreError, OutputConflict: nothing was written.
    """
    splits = _splits(config)
    _refuse_nesting(config)
    source = open_source(
        config.source,
        config.kind,
        config.source_store or config.store,
        config.source_section(),
    )
    store = open_store(config.output, config.store)
    labelling = load_labelling(config.labels, config.source_store or config.store)
    listing = labelling.applied(source.list(), note)
    _require_classes(config, listing)
    source.concurrency = config.source_concurrency or source.concurrency
    if not len(sample_rows(listing)):
        raise SourceNotFound(
            f"no images in {config.source!r}: every entry is skipped or refused"
            + commonest(listing.problems)
        )
    _ready(store)
    found = (
        {} if overwrite else {split: job for split in splits if (job := stored_job(store, split))}
    )
    if found:
        label_space = stored_labels(store, found)
        plans = {split: stored_plan(store, split, found[split]) for split in found}
        for split, job in found.items():
            require_same(config, split, job, listing, plans)
        if set(found) == set(splits):
            manifests = {s: m for s in splits if (m := stored_manifest(store, s, found[s]))}
            note(f"resuming {store.uri}: same config, same source")
            return Prepared(config, source, store, label_space, found, plans, manifests)
    if overwrite:
        remove = splits_to_remove(store, splits)
        return _new(config, source, store, listing, labelling, note, remove)
    for split in splits:
        if split not in found:
            refuse_leftovers(store, split)
    return _new(config, source, store, listing, labelling, note, ())


def _splits(config: ShardConfig) -> list[str]:
    if config.validation is None:
        return [config.split]
    if config.split == VALIDATION:
        raise ConfigError("--validation takes a share from a split that is not itself validation")
    return [config.split, VALIDATION]


def _refuse_nesting(config: ShardConfig) -> None:
    source, output = (
        uri.removeprefix("file://").rstrip("/") or "/" for uri in (config.source, config.output)
    )
    if "://" in source or "://" in output:
        inside = (output + "/").startswith(source + "/")
    else:
        inside = Path(output).resolve().is_relative_to(Path(source).resolve())
    if inside:
        raise ConfigError(
            f"the output {config.output!r} lies inside the source {config.source!r}: the next "
            "run would read its own shards; choose another place"
        )


def _ready(store: Store) -> None:
    try:
        store.prepare()
    except StoreError as error:
        error.exit_code = 2  # the request was wrong: nothing has been written
        raise


def _new(
    config: ShardConfig,
    source: Source,
    store: Store,
    listing: Listing,
    labelling: Labelling,
    note: Note,
    remove: Sequence[str],
) -> Prepared:
    """Plan, remove what is to be overwritten, then write labels, plans and job files."""
    label_space = _label_space(config, store, listing, labelling, remove)
    note(
        f"{config.source}: {counted(len(listing), 'file')}, "
        f"{counted(len(label_space.labels), 'class')}"
    )
    for found in listing.notes:
        note(found)
    _note_strays(listing, note)
    if (said := remark(label.synset for label in label_space.labels)) is not None:
        note(said)
    calibration = calibrate(listing, sample_rows(listing), source, config)
    boxes = find_boxes(config, listing, label_space, note)
    plans = make_plans(listing, label_space, calibration, config, boxes)
    _require_space(store, plans, config, note)
    wanted, target = int(config.shard_size), plan.clamp_target(int(config.shard_size))
    if wanted != target:
        note(f"shard size {wanted:,} bytes moved to {target:,}, so that shards stay in 1 to 128 MB")
    labels_json = label_space.to_json()
    jobs = {}
    encoded = {split: split_plan.to_parquet() for split, split_plan in plans.items()}
    for split, split_plan in plans.items():
        jobs[split] = JobFile(
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
    try:
        for split in remove:
            remove_split(store, split)
        store.put(keys.LABELS, labels_json)
        for split in jobs:
            store.put(keys.plan(split), encoded[split])
        for split, job in jobs.items():
            store.put(keys.job(split), job.to_json())
    except StoreError as error:
        error.exit_code = 2  # the first write shows whether writing is allowed at all
        raise
    return Prepared(config, source, store, label_space, jobs, plans, {})


def _require_classes(config: ShardConfig, listing: Listing) -> None:
    """Refuse a source that says nothing of classes, where no file does either."""
    rows = sample_rows(listing).tolist()
    if rows and not any(listing.classes[row] for row in rows):
        raise ConfigError(
            f"{config.source!r} does not say which class each of its images has: give "
            "--set labels.ground_truth=FILE (the devkit's tar.gz, synset_labels.txt, Kaggle's "
            "LOC_val_solution.csv, or a table of names and classes)"
        )


def _note_strays(listing: Listing, note: Note) -> None:
    """Say where images are skipped that somebody may have meant to be in a class."""
    strays = [
        listing.names[row]
        for row, problem in listing.problems.items()
        if problem.reason == NO_CLASS and promises_image(listing.names[row])
    ]
    if strays:
        lost = counted(len(strays), "image is")
        note(f"{lost} in no class folder and skipped, such as {strays[0]!r}")


def _label_space(
    config: ShardConfig,
    store: Store,
    listing: Listing,
    labelling: Labelling,
    remove: Sequence[str],
) -> LabelSpace:
    """The output's label space if another split made one, else this source's own."""
    classes = [listing.classes[row] for row in sample_rows(listing).tolist()]
    own = labelling.space(classes, listing.label_space)
    mine = {*_splits(config), *remove}
    others = [
        split
        for info in store.list()
        if (split := keys.split_of_job(info.key)) and split not in mine
    ]
    if not others:
        return own
    shared = LabelSpace.from_json(store.get(keys.LABELS))
    shared.require(own.index, config.split)
    return shared


def _require_space(
    store: Store, plans: Mapping[str, SplitPlan], config: ShardConfig, note: Note
) -> None:
    predicted = sum(int(part.predicted.sum()) for part in plans.values())
    needed = predicted * len(config.format)
    free = store.free_bytes()
    if free is not None and needed > free:
        raise _full(store, needed, free)
    shards = sum(part.shard_count for part in plans.values())
    note(
        f"plan: {counted(shards, 'shard')} a format, "
        f"about {predicted / 1e6 / shards:,.1f} MB each, {needed / 1e6:,.0f} MB in all"
    )


def _full(store: Store, needed: int, free: int) -> StoreFull:
    error = StoreFull(
        f"about {needed / 1e6:,.0f} MB would be written to {store.uri}, where "
        f"{free / 1e6:,.0f} MB are free: choose another --output or free some space"
    )
    error.exit_code = 2
    return error
