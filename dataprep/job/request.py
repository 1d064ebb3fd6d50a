"""Check a config and list its source, which is the first step of a job. Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import ConfigError, ObjectNotFound, OutputConflict, SourceNotFound
from dataprep.formats import format_names
from dataprep.job.sample_labels import rows_of_samples
from dataprep.job.split_planning import VALIDATION
from dataprep.labels import LabelSpace
from dataprep.labels.labelling import Classified, Labelling, load_labelling, require_shared_classes
from dataprep.output import keys
from dataprep.sources import (
    Announcing,
    HavingFolders,
    LeavingOut,
    Listing,
    Problem,
    Source,
    open_source,
)
from dataprep.sources.exclusion import Exclusion
from dataprep.sources.file_names import advice_for
from dataprep.sources.files import MISSING
from dataprep.sources.folder_classes import most_common_reason
from dataprep.stores import Store, open_store
from dataprep.stores.local import LocalStore
from dataprep.stores.protocol import location

_OUTPUT_FOLDERS = ("index", "receipts")


@dataclass(frozen=True)
class Request:
    """A checked config, together with what its source contains.

    Attributes:
        config: the config.
        splits: the names of the splits that the job makes.
        source: the opened source.
        listing: the entries of the source. Their classes are those that the config defines.
        labelling: how classes get their labels.
    """

    config: ShardConfig
    splits: tuple[str, ...]
    source: Source
    listing: Listing
    labelling: Labelling

    @property
    def used_classes(self) -> set[str]:
        """The classes that samples have; empty if the job is unlabelled."""
        classes = {self.listing.classes[row] for row in rows_of_samples(self.listing).tolist()}
        return classes - {""}

    def own_labels(self) -> LabelSpace:
        """Return the labels of the classes of this source alone.

        Raises:
            ConfigError: the settings of the labels do not fit the classes (``Labelling.space``).
        """
        return self.labelling.space(self.used_classes, self.listing.label_space)


def open_request(config: ShardConfig, note: Callable[[str], None]) -> Request:
    """Check a config and list its source.

    Args:
        config: the config of the job.
        note: called with messages for the user.

    Raises:
        ConfigError: settings, or the source and the output, exclude each other; the output is a
            file; the files that define classes are not valid; or no image has a class.
        SourceError: the source cannot be listed, or contains no images.
        StoreError: the source, or a file that defines classes, cannot be read.
    """
    splits = _splits_of(config)
    _refuse_locations(config, splits)
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
    listing = _with_labelling(listing, labelling, note)
    source.concurrency = config.source_concurrency or source.concurrency
    if not len(rows_of_samples(listing)):
        reason = most_common_reason(listing.problems)
        if reason.endswith(MISSING):  # only a listing can name files that do not exist
            reason += (
                " (relative paths begin at the folder of the listing, or at the folder in "
                "--set listing.root=FOLDER)"
            )
        raise SourceNotFound(
            f"no images in {config.source!r}: every entry is skipped or refused"
            + reason
            + advice_for(listing.names)
        )
    if config.unlabelled:
        _refuse_classes(config, listing)
    else:
        listing = _with_unclassified_failed(config, listing)
    return Request(config, splits, source, listing, labelling)


def _splits_of(config: ShardConfig) -> tuple[str, ...]:
    """The splits that the job makes. Raises ConfigError if both would be ``validation``."""
    if config.validation is None:
        return (config.split,)
    if config.split == VALIDATION:
        raise ConfigError("--validation takes a share from a split other than validation")
    return (config.split, VALIDATION)


def _with_labelling(listing: Listing, labelling: Labelling, note: Callable[[str], None]) -> Listing:
    """Return the listing with the classes that the section ``labels`` of the config defines.

    Labelling can also change which entries are samples, and which labels the source suggests.
    """
    before = Classified(listing.classes, listing.problems, listing.label_space)
    after = labelling.apply(listing.names, before, note)
    problems = {row: Problem(*problem) for row, problem in after.problems.items()}
    return replace(listing, classes=after.classes, problems=problems, label_space=after.space)


def _with_unclassified_failed(config: ShardConfig, listing: Listing) -> Listing:
    """Return the listing with each sample without a class marked as failed.

    Raises:
        ConfigError: no sample has a class.
    """
    rows = rows_of_samples(listing).tolist()
    rows_without_class = [row for row in rows if not listing.classes[row]]
    if len(rows_without_class) == len(rows):
        notes = "".join(f". {note}" for note in listing.notes)
        raise ConfigError(
            f"{config.source!r} does not say which class each of its images has: give "
            "--set labels.ground_truth=FILE (the devkit's tar.gz, synset_labels.txt, Kaggle's "
            "LOC_val_solution.csv, or a table of names and classes), or --unlabelled for images "
            f"without classes{notes}"
        )
    problems = dict(listing.problems)
    for row in rows_without_class:
        problems[row] = Problem("failed", "the source gives it no class")
    return replace(listing, problems=problems)


def _refuse_class_settings(config: ShardConfig) -> None:
    """Raise ConfigError if an unlabelled job has a setting that defines classes."""
    labels = config.labels
    settings = {
        "labels.ground_truth": labels.ground_truth,
        "labels.map": labels.map,
        "boxes": config.boxes,
        "label_offset": config.label_offset,
    }
    for key, setting in settings.items():
        if setting:
            raise ConfigError(f"--unlabelled excludes {key}: leave one of them out")


def _refuse_classes(config: ShardConfig, listing: Listing) -> None:
    """Raise ConfigError if the source of an unlabelled job has classes."""
    classes = set(listing.classes) - {""}
    if not classes:
        return
    alternative = "read images alone with --kind flat"
    if config.kind == "webdataset":
        alternative = "leave the classes out with --exclude '*.cls' and without webdataset.label"
    if config.kind == "parquet":
        alternative = "read no classes with --set parquet.label=false"
    raise ConfigError(
        f"--unlabelled, but {config.source!r} gives its images classes, such as "
        f"{min(classes)!r}: leave --unlabelled out, or {alternative}"
    )


def _refuse_locations(config: ShardConfig, splits: tuple[str, ...]) -> None:
    """Refuse an output that is a file, or that overlaps with the source.

    The source may be below the output, if the job writes no file there.

    Raises:
        ConfigError: the output is a file; the output is inside the source; or the source is where
            the output would be written.
    """
    store = open_store(config.output, config.store)
    if isinstance(store, LocalStore) and os.path.isfile(store.root):  # noqa: PTH113  never raises
        raise ConfigError(f"the output {config.output!r} is a file: give a folder")
    source = config.source.removeprefix("file://")
    output = config.output.removeprefix("file://")
    if "://" not in source and "://" not in output:  # both are local paths
        # The root has the home folder in place of a tilde.
        source = os.path.realpath(LocalStore(source).root)
        output = os.path.realpath(LocalStore(output).root)
    # With a slash at the end, the folder ``photos2`` does not begin with ``photos``.
    source = f"{source.rstrip('/')}/"
    output = f"{output.rstrip('/')}/"
    if output.startswith(source):
        raise ConfigError(
            f"the output {config.output!r} is inside the source {config.source!r}, so that the "
            "next run would read its own shards: choose another output"
        )
    if not source.startswith(output):
        return
    source_key = source.removeprefix(output).strip("/")
    top_folder = source_key.partition("/")[0]
    is_written = top_folder in (*_OUTPUT_FOLDERS, *format_names())
    if is_written or any(keys.belongs_to(split, source_key, ()) for split in splits):
        raise ConfigError(
            f"the source {config.source!r} is where the output {config.output!r} keeps its shards "
            "and tables, so that it would be replaced: choose another output"
        )


def label_space_for(
    request: Request, store: Store, removed_splits: Sequence[str] = ()
) -> LabelSpace:
    """Return the labels for the job. If the output has other splits, the job uses their labels.

    Args:
        request: the job that is planned.
        store: the output.
        removed_splits: splits of the output that the job removes first.

    Raises:
        ConfigError: see ``Request.own_labels``.
        OutputConflict: the source has classes that the labels of the output do not have, or the
            config asks for other labels; or labels.json is missing.
        DatasetError: labels.json is damaged, or a newer version wrote it.
    """
    # Called in any case, because it refuses settings that do not fit the classes.
    own_labels = request.own_labels()
    stored_splits = keys.splits(info.key for info in store.list())
    if not stored_splits - {*request.splits, *removed_splits}:
        return own_labels
    try:
        name = location(store, keys.LABELS)
        shared_labels = LabelSpace.from_json(store.get(keys.LABELS), name)
    except ObjectNotFound:
        raise OutputConflict(
            f"{keys.LABELS} is missing in {store.uri}, which has other splits: put it back, or run "
            "the first job of this output again"
        ) from None
    request.labelling.require_order(shared_labels, request.config.split)
    require_shared_classes(shared_labels, request.used_classes, request.config.split)
    return shared_labels
