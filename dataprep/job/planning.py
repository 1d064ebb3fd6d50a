"""From a config to the plans of its splits and their job files; nothing is written.

The config is checked, the source is listed, and what is odd about them is noted.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dataprep import keys
from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import (
    ConfigError,
    ObjectNotFound,
    OutputConflict,
    SourceChanged,
    SourceError,
    SourceNotFound,
    StoreFull,
    nothing_written,
)
from dataprep.formats import Sample, format_names, get_format
from dataprep.image import Converted
from dataprep.job.jobfile import UNREADABLE_FOLDERS, JobFile
from dataprep.job.report import Understood
from dataprep.job.resume import content_of_split
from dataprep.job.worker import Outcome
from dataprep.labels import LabelSpace, are_whole, is_number
from dataprep.labels.box_files import find_boxes
from dataprep.labels.boxes import BoxColumns
from dataprep.labels.imagenet_synsets import difference
from dataprep.labels.labelling import Classified, Labelling, load_labelling, require_known
from dataprep.names import by_bytes, to_bytes
from dataprep.shard_buffer import Records
from dataprep.sources import (
    Announcing,
    HavingFolders,
    LeavingOut,
    Listing,
    Located,
    Problem,
    Source,
    open_source,
)
from dataprep.sources.exclusion import Exclusion
from dataprep.sources.file_names import advice_for, is_clutter, promises_image
from dataprep.sources.folder_classes import NO_CLASS, most_common_reason
from dataprep.sources.local_tree import list_tree
from dataprep.sources.protocol import Integers
from dataprep.split_plan import (
    VALIDATION,
    Calibration,
    SplitPlan,
    clamp_target,
    classes_in_a_shard,
    in_source_order,
    label_offsets,
    labels_of,
    make_plans,
    pick,
    pick_runs,
    sample_rows,
    sample_size,
)
from dataprep.stores import ObjectInfo, Store, open_store
from dataprep.stores.local import LocalStore
from dataprep.versions import determining

Convert = Callable[[Sequence[Located]], Iterable[Outcome]]
"""Converts samples in order."""

_STEP = 16
_FEW_CLASSES = 0.6
"""A shard has few classes below this share of those of a shuffled shard."""


@dataclass(frozen=True)
class Request:
    """A config, the splits that it makes, what is at its source, and what the classes are."""

    config: ShardConfig
    splits: tuple[str, ...]
    source: Source
    listing: Listing
    labelling: Labelling

    @property
    def used_classes(self) -> set[str]:
        """The classes that samples have; none where the job is unlabelled."""
        listing = self.listing
        return {listing.classes[row] for row in sample_rows(listing).tolist()} - {""}

    def own_labels(self) -> LabelSpace:
        """The classes of this source alone. Raises SourceError where its files contradict it."""
        return self.labelling.space(self.used_classes, self.listing.label_space)


def requested(config: ShardConfig, note: Callable[[str], None]) -> Request:
    """Check a config and list its source.

    Raises:
        ConfigError: splits or places that exclude each other.
        SourceError: it cannot be listed, or nothing in it is an image.
    """
    splits: tuple[str, ...] = (config.split,)
    if config.validation is not None:
        if config.split == VALIDATION:
            raise ConfigError("--validation takes a share from a split other than validation")
        splits = (config.split, VALIDATION)
    _refuse_places(config, splits)
    if config.unlabelled:
        _refuse_class_settings(config)
    source_store = config.source_store or config.store
    source = open_source(config.source, config.kind, source_store, config.source_section())
    if isinstance(source, Announcing):
        source.announce_to(note)
    if isinstance(source, LeavingOut):
        source.leave_out(config.exclude)
    if config.labels.split_folders == "classes" and isinstance(source, HavingFolders):
        source.read_splits_as_classes()
    labelling = load_labelling(config.labels, source_store)
    listing = Exclusion(config.exclude).applied(source.list())
    before = Classified(listing.classes, listing.problems, listing.label_space)
    found = labelling.applied(listing.names, before, note)
    problems = {row: Problem(*problem) for row, problem in found.problems.items()}
    listing = replace(listing, classes=found.classes, problems=problems, label_space=found.space)
    source.concurrency = config.source_concurrency or source.concurrency
    rows = sample_rows(listing).tolist()
    if not rows:
        raise SourceNotFound(
            f"no images in {config.source!r}: every entry is skipped or refused"
            + most_common_reason(listing.problems)
            + advice_for(listing.names)
        )
    if config.unlabelled:
        _refuse_classes(config, listing)
        return Request(config, splits, source, listing, labelling)
    lacking = [row for row in rows if not listing.classes[row]]
    if len(lacking) == len(rows):
        raise ConfigError(
            f"{config.source!r} does not say which class each of its images has: give "
            "--set labels.ground_truth=FILE (the devkit's tar.gz, synset_labels.txt, Kaggle's "
            "LOC_val_solution.csv, or a table of names and classes), or --unlabelled for images "
            "without classes" + "".join(f". {note}" for note in listing.notes)
        )
    problems |= dict.fromkeys(lacking, Problem("failed", "the source gives it no class"))
    listing = replace(listing, problems=problems)
    return Request(config, splits, source, listing, labelling)


def _refuse_class_settings(config: ShardConfig) -> None:
    """Refuse settings of an unlabelled job that give classes. Raises ConfigError."""
    labels = config.labels
    files = {
        "labels.ground_truth": labels.ground_truth,
        "labels.map": labels.map,
        "boxes": config.boxes,
        "label_offset": config.label_offset,
    }
    for key, setting in files.items():
        if setting:
            raise ConfigError(f"--unlabelled excludes {key}: leave one of them out")


def _refuse_classes(config: ShardConfig, listing: Listing) -> None:
    """Refuse a source of an unlabelled job that gives classes. Raises ConfigError."""
    classes = {*listing.classes} - {""}
    if classes:
        instead = "read images alone with --kind flat"
        if config.kind == "webdataset":
            instead = "leave the classes out with --exclude '*.cls' and without webdataset.label"
        if config.kind == "parquet":
            instead = "read no classes with --set parquet.label=false"
        raise ConfigError(
            f"--unlabelled, but {config.source!r} gives its images classes, such as "
            f"{min(classes)!r}: leave --unlabelled out, or {instead}"
        )


def _refuse_places(config: ShardConfig, splits: tuple[str, ...]) -> None:
    """Refuse an output that is a file, and one that would read or replace the source."""
    store = open_store(config.output, config.store)
    if isinstance(store, LocalStore) and os.path.isfile(store.root):  # noqa: PTH113  never raises
        raise ConfigError(f"the output {config.output!r} is a file: give a folder")
    source, output = (uri.removeprefix("file://") for uri in (config.source, config.output))
    if "://" not in source and "://" not in output:
        source, output = os.path.realpath(source), os.path.realpath(output)
    source, output = f"{source.rstrip('/')}/", f"{output.rstrip('/')}/"
    if output.startswith(source):
        raise ConfigError(
            f"the output {config.output!r} is inside the source {config.source!r}: the next run "
            "would read its own shards; choose another place"
        )
    key = source.removeprefix(output).strip("/")
    own = {"index", "receipts", *format_names()}
    if source.startswith(output) and (
        key.partition("/")[0] in own or any(keys.belongs_to(split, key, ()) for split in splits)
    ):
        raise ConfigError(
            f"the source {config.source!r} is where the output {config.output!r} keeps its shards "
            "and tables: it would be replaced; choose another output"
        )


def preflight_warnings(request: Request, label_space: LabelSpace) -> Iterator[str]:
    """What is odd about the source, its classes and the sizes that are asked for."""
    listing = request.listing
    yield from listing.notes
    for glob in Exclusion(request.config.exclude).unmatched(listing):
        yield f"exclude: {glob!r} matches nothing in the source"
    strays = [
        listing.names[row]
        for row, problem in listing.problems.items()
        if problem.reason == NO_CLASS and promises_image(listing.names[row])
    ]
    if strays:
        lost = counted(len(strays), "image is")
        yield f"{lost} in no class folder and skipped, such as {strays[0]!r}"
    classes = {*listing.classes} - {""}
    if unread := sorted(classes - label_space.index.keys()):
        yield f"no file of {counted(len(unread), 'class')} can be read, such as {unread[0]!r}"
    if not request.config.unlabelled and (absent := sorted(label_space.index.keys() - classes)):
        yield f"no sample here of {counted(len(absent), 'class')}, such as {absent[0]!r}"
    if (said := difference([label.synset for label in label_space.labels])) is not None:
        yield said
    wanted = int(request.config.shard_size)
    if wanted != (target := clamp_target(wanted)):
        sizes = f"{wanted / 1e6:.3g} MB becomes {target / 1e6:.3g} MB"
        yield f"shard size {sizes}, so that no shard is outside 1 to 128 MB"


def understood(
    request: Request, label_space: LabelSpace, plans: Mapping[str, SplitPlan] | None = None
) -> Understood:
    """What the job takes its source for, with the labels that its samples get.

    With ``plans`` the notes say what is odd about them.
    """
    config, listing = request.config, request.listing
    if config.unlabelled:  # the classes that the output has are no labels of these samples
        label_space = LabelSpace(())
    is_folder = config.kind in ("imagefolder", "flat") or os.path.isdir(config.source)  # noqa: PTH112
    return Understood(
        source=f"{config.source.rstrip('/')}/" if is_folder else config.source,
        kind=listing.form or config.kind,
        classes=len(label_space.labels),
        images=len(sample_rows(listing)),
        label_order=_label_order(request, label_space),
        notes=(
            *listing.notes,
            *_order_notes(label_space),
            *_level_notes(request),
            *_run_notes(request, plans or {}),
        ),
    )


def _run_notes(request: Request, plans: Mapping[str, SplitPlan]) -> Iterator[str]:
    """Notes on a source whose order is kept: its shards have few classes, or splits are uneven."""
    if not request.listing.in_runs:
        return
    for split, plan in plans.items():
        here, shuffled = classes_in_a_shard(plan)
        if plan.shard_count > 1 and here <= _FEW_CLASSES * shuffled:
            yield (
                f"{split}: the source is sorted by class, and a shard has {here:,.3g} classes on "
                f"average, where one of shuffled samples would have {shuffled:,.3g}: shard this "
                "output again with --kind records to shuffle it"
            )
    if VALIDATION in plans and request.config.validation is not None:
        held_out = plans[VALIDATION]
        runs = {*held_out.containers}
        share = held_out.samples / sum(plan.samples for plan in plans.values())
        yield (
            f"{VALIDATION} has {counted(len(runs), 'row group')} with {share:.1%} of the samples, "
            f"for --validation {request.config.validation}: the samples of a row group are not "
            "divided between splits, so that its classes may differ from those of "
            f"{request.config.split}"
        )


def _order_notes(label_space: LabelSpace) -> Iterator[str]:
    """A note if classes are numbers that are ordered as texts."""
    names = [label.synset for label in label_space.labels]
    if not all(map(is_number, names)) or names == (by_value := sorted(names, key=int)):
        return
    if names == by_bytes(names):
        shown, other = (", ".join(order[:5]) for order in (names, by_value))
        yield (
            f"class names are numbers and ordered as texts: {shown}, ...; --set "
            f"labels.order=numeric orders them by value: {other}, ..."
        )


def _level_notes(request: Request) -> Iterator[str]:
    """A note of the level of folders that became the class, where there are several levels."""
    listing = request.listing
    if request.config.kind not in ("imagefolder", "ilsvrc"):
        return
    for row in sample_rows(listing).tolist():
        name, group = listing.names[row], listing.classes[row]
        folders = name.split("/")[:-1]
        if len(folders) > 1 and group in folders:
            yield (
                f"folders of level {folders.index(group) + 1} are the classes, such as {group!r} "
                f"in {name!r}"
            )
            return


def _label_order(request: Request, label_space: LabelSpace) -> str:
    """How the labels number the classes, in words."""
    names = [label.synset for label in label_space.labels]
    listing = request.listing
    if request.labelling.order:
        return "as labels.classes lists them"
    if listing.label_space is not None and names == [*listing.label_space.index]:
        return "in numeric order" if are_whole(names) else listing.label_order
    if names == by_bytes(names):
        return "in the order of names"
    if all(map(is_number, names)) and names == sorted(names, key=int):
        return "in numeric order"
    return "as labels.json of the output numbers them"


def bytes_to_write(plans: Mapping[str, SplitPlan], config: ShardConfig) -> int:
    """Predicted bytes of all shards."""
    return sum(int(part.predicted.sum()) for part in plans.values()) * len(config.format)


def lack_of_space(store: Store, needed: int) -> StoreFull | None:
    """The refusal of a job of so many bytes for which the store has no room, if it knows."""
    free = store.free_bytes()
    if free is None or needed <= free:
        return None
    error = StoreFull(
        f"about {needed / 1e6:,.0f} MB would be written to {store.uri}, where "
        f"{free / 1e6:,.0f} MB are free: choose another --output or free some space"
    )
    error.exit_code = 2
    return error


def label_space_for(request: Request, store: Store, remove: Sequence[str] = ()) -> LabelSpace:
    """Return the output's label space if another split made one, else the source's own.

    Raises:
        OutputConflict: the source has classes that the output's label space lacks, or asks for
            other labels; or labels.json is gone.
    """
    own = request.own_labels()  # also where another split's are taken, to refuse what is wrong
    stored = keys.splits(info.key for info in store.list())
    if not stored - {*request.splits, *remove}:
        return own
    try:
        shared = LabelSpace.from_json(store.get(keys.LABELS))
    except ObjectNotFound:
        raise OutputConflict(
            f"{keys.LABELS} is gone from {store.uri}, which holds other splits: put it back, or "
            "run the job again that began this output"
        ) from None
    request.labelling.require_order(shared, request.config.split)
    require_known(shared, request.used_classes, request.config.split)
    return shared


class Planned(NamedTuple):
    """Plans and job files, and what is stored of labels and plans."""

    plans: dict[str, SplitPlan]
    jobs: dict[str, JobFile]
    labels: bytes
    encoded: dict[str, bytes]


def planned(
    request: Request, label_space: LabelSpace, note: Callable[[str], None], convert: Convert
) -> Planned:
    """What will be made of what; nothing is written."""
    config, listing = request.config, request.listing
    note(understood(request, label_space).line)
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
                **({UNREADABLE_FOLDERS: len(listing.unread)} if listing.unread else {}),
            },
            calibration=calibration.points,
            label_offsets=dict(label_offsets(config, label_space)),
            labels_sha256=hashlib.sha256(labels_json).hexdigest(),
            plan_sha256=hashlib.sha256(encoded[split]).hexdigest(),
            shards=split_plan.shard_count,
            file_versions=listing.file_versions,
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
    with nothing_written():
        return find_boxes(
            config.boxes, stores, names, labels, label_space.index, note, annotation_files
        )


def annotation_files(store: Store) -> Iterable[ObjectInfo]:
    """The files of a folder of annotations; links are followed as in a source of images."""
    if isinstance(store, LocalStore):
        return list_tree(store, "", is_clutter).files
    return store.list()


def calibrate(
    listing: Listing, rows: Integers, config: ShardConfig, convert: Convert
) -> Calibration:
    """Convert a few samples to learn how large records of this source become.

    A sample that cannot be converted counts as one of no bytes.

    Raises:
        SourceError, StoreError: one could not be read.
    """
    count = sample_size(len(rows))
    if listing.in_runs:
        ordered = in_source_order(listing, rows)
        containers = [listing.containers[row] for row in ordered.tolist()]
        chosen = ordered[pick_runs(containers, listing.sizes[ordered], count)].tolist()
    else:
        by_size = rows[pick(listing.sizes[rows], count)].tolist()
        # Each worker converts neighbours of this list, so that it gets large and small images.
        chosen = [row for start in range(_STEP) for row in by_size[start::_STEP]]
    pairs = []
    try:
        outcomes = convert([listing.located(row) for row in chosen])
        for row, outcome in zip(chosen, outcomes, strict=True):
            image, largest = outcome.converted, 0
            if isinstance(image, Converted):
                largest = _record_bytes(image, listing, row, config)
            pairs.append((int(listing.sizes[row]), largest))
    except SourceChanged as error:
        raise SourceError(
            f"the source changed while the job was planned ({error}): run the same command again"
        ) from None
    return Calibration.fit(_averaged(pairs) if listing.in_runs else pairs)


def _averaged(pairs: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """The same pairs with the mean of the records of one source size, which is that of a run."""
    records: dict[int, list[int]] = {}
    for source_bytes, record_bytes in pairs:
        records.setdefault(source_bytes, []).append(record_bytes)
    means = {size: sum(each) // len(each) for size, each in records.items()}
    return [(size, means[size]) for size, _ in pairs]


def _record_bytes(image: Converted, listing: Listing, row: int, config: ShardConfig) -> int:
    """The size of a sample's record in the format where it is largest."""
    group = to_bytes(listing.classes[row])
    sample = Sample(
        image=image.data,
        label=0,
        width=image.width,
        height=image.height,
        channels=image.channels,
        colorspace=image.colorspace,
        encoding=image.encoding,
        filename=to_bytes(listing.names[row].rpartition("/")[2]),
        synset=group,
        text=group,
    )
    formats = [get_format(name) for name in config.format]
    made = [Records.of(each, config.record_options, [sample]) for each in formats]
    return max(records.lengths[0] for records in made)
