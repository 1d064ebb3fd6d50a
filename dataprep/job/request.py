"""What is asked for: checked, and its source listed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dataprep import keys
from dataprep.config import ShardConfig
from dataprep.errors import ConfigError, ObjectNotFound, OutputConflict, SourceNotFound
from dataprep.formats import format_names
from dataprep.job.plans import VALIDATION, sample_rows
from dataprep.labels import LabelSpace
from dataprep.labels.labelling import Classified, Labelling, load_labelling, require_known
from dataprep.sources import Announcing, Listing, Problem, Source, open_source
from dataprep.sources.classes import commonest
from dataprep.stores import Store, open_store
from dataprep.stores.local import LocalStore


@dataclass(frozen=True)
class Request:
    """A config, the splits that it makes, what lies at its source, and what the classes are."""

    config: ShardConfig
    splits: tuple[str, ...]
    source: Source
    listing: Listing
    labelling: Labelling

    def own_labels(self) -> LabelSpace:
        """The classes of this source alone. Raises SourceError where its files contradict it."""
        listing = self.listing
        classes = [listing.classes[row] for row in sample_rows(listing).tolist()]
        return self.labelling.space(classes, listing.label_space)


def checked(config: object) -> ShardConfig:
    """The config itself. Raises ConfigError where it is something else."""
    if not isinstance(config, ShardConfig):
        raise ConfigError(
            "a job is told as dataprep.ShardConfig(source=..., output=...), not as "
            f"{type(config).__name__}"
        )
    return config


def requested(config: ShardConfig, note: Callable[[str], None]) -> Request:
    """Check a config and list its source.

    Raises:
        ConfigError: splits or places that exclude each other.
        SourceError: it cannot be listed, or nothing in it is an image.
    """
    splits = _splits(config)
    _refuse_nesting(config, splits)
    _refuse_file(config)
    source = open_source(
        config.source,
        config.kind,
        config.source_store or config.store,
        config.source_section(),
    )
    if isinstance(source, Announcing):
        source.announce_to(note)
    labelling = load_labelling(config.labels, config.source_store or config.store)
    listing = _labelled(source.list(), labelling, note)
    _require_classes(config, listing)
    source.concurrency = config.source_concurrency or source.concurrency
    if not len(sample_rows(listing)):
        raise SourceNotFound(
            f"no images in {config.source!r}: every entry is skipped or refused"
            + commonest(listing.problems)
        )
    return Request(config, splits, source, listing, labelling)


def label_space_for(
    request: Request, store: Store, note: Callable[[str], None], remove: Sequence[str] = ()
) -> LabelSpace:
    """Return the output's label space if another split made one, else the source's own.

    Raises:
        OutputConflict: the source has classes that the output's label space lacks, or asks for
            other labels; or labels.json is gone.
    """
    own = request.own_labels()
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
    request.labelling.require_order(shared, request.config.split, note)
    require_known(shared, own.index, request.config.split)
    return shared


def _labelled(listing: Listing, labelling: Labelling, note: Callable[[str], None]) -> Listing:
    before = Classified(listing.classes, listing.problems, listing.label_space)
    found = labelling.applied(listing.names, before, note)
    problems = {row: Problem(*problem) for row, problem in found.problems.items()}
    return replace(listing, classes=found.classes, problems=problems, label_space=found.space)


def _require_classes(config: ShardConfig, listing: Listing) -> None:
    """Refuse a source that says nothing of classes, where no file does either."""
    rows = sample_rows(listing).tolist()
    if rows and not any(listing.classes[row] for row in rows):
        raise ConfigError(
            f"{config.source!r} does not say which class each of its images has: give "
            "--set labels.ground_truth=FILE (the devkit's tar.gz, synset_labels.txt, Kaggle's "
            "LOC_val_solution.csv, or a table of names and classes)"
        )


def _splits(config: ShardConfig) -> tuple[str, ...]:
    if config.validation is None:
        return (config.split,)
    if config.split == VALIDATION:
        raise ConfigError("--validation takes a share from a split that is not itself validation")
    return (config.split, VALIDATION)


def _refuse_file(config: ShardConfig) -> None:
    store = open_store(config.output, config.store)
    try:
        is_file = isinstance(store, LocalStore) and store.root.is_file()
    except PermissionError as error:  # a folder above it is closed to us
        raise ConfigError(
            f"permission denied: {error.filename!r}: give an output that you may write to"
        ) from None
    if is_file:
        raise ConfigError(
            f"the output {config.output!r} is a file: give a folder, which need not be there yet"
        )


def _refuse_nesting(config: ShardConfig, splits: Sequence[str]) -> None:
    """Neither may lie where the other one's files do: an output replaces and removes its own."""
    source, output = (
        uri.removeprefix("file://").rstrip("/") or "/" for uri in (config.source, config.output)
    )
    if "://" not in source and "://" not in output:
        # Path.resolve raises where a link leads to itself.
        source, output = (os.path.realpath(path) for path in (source, output))
    if _below(output, source) is not None:
        raise ConfigError(
            f"the output {config.output!r} lies inside the source {config.source!r}: the next "
            "run would read its own shards; choose another place"
        )
    key = _below(source, output)
    if key and (
        key.partition("/")[0] in {"index", "receipts", *format_names()}
        or any(keys.belongs_to(split, key, ()) for split in splits)
    ):
        raise ConfigError(
            f"the source {config.source!r} lies where the output {config.output!r} keeps its "
            "shards and tables: it would be replaced, or removed by --overwrite; choose another "
            "output"
        )


def _below(inner: str, outer: str) -> str | None:
    """The path from ``outer`` to ``inner``, empty where they are one; None where it leads out."""
    start = outer.rstrip("/") + "/"
    return (inner + "/")[len(start) :].strip("/") if (inner + "/").startswith(start) else None
