"""What a job asks for: its config checked, its source listed, and what to warn of beforehand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dataprep import keys
from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import (
    ConfigError,
    ObjectNotFound,
    OutputConflict,
    SourceNotFound,
    StoreFull,
)
from dataprep.formats import format_names
from dataprep.labels import LabelSpace
from dataprep.labels.imagenet_synsets import difference
from dataprep.labels.labelling import Classified, Labelling, load_labelling, require_known
from dataprep.plan import VALIDATION, SplitPlan, clamp_target, sample_rows
from dataprep.sources import Announcing, Listing, Problem, Source, open_source
from dataprep.sources.classes import NO_CLASS, commonest, promises_image
from dataprep.stores import Store, open_store
from dataprep.stores.local import LocalStore


@dataclass(frozen=True)
class Request:
    """A config, the splits that it makes, what is at its source, and what the classes are."""

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
            f"give a dataprep.ShardConfig(source=..., output=...), not {type(config).__name__}"
        )
    return config


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
    source_store = config.source_store or config.store
    source = open_source(config.source, config.kind, source_store, config.source_section())
    if isinstance(source, Announcing):
        source.announce_to(note)
    labelling = load_labelling(config.labels, source_store)
    listing = _labelled(source.list(), labelling, note)
    source.concurrency = config.source_concurrency or source.concurrency
    rows = sample_rows(listing).tolist()
    if not rows:
        raise SourceNotFound(
            f"no images in {config.source!r}: every entry is skipped or refused"
            + commonest(listing.problems)
        )
    if not any(listing.classes[row] for row in rows):
        raise ConfigError(
            f"{config.source!r} does not say which class each of its images has: give "
            "--set labels.ground_truth=FILE (the devkit's tar.gz, synset_labels.txt, Kaggle's "
            "LOC_val_solution.csv, or a table of names and classes)"
        )
    return Request(config, splits, source, listing, labelling)


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
    if absent := sorted(label_space.index.keys() - classes):
        yield f"no sample here of {counted(len(absent), 'class')}, such as {absent[0]!r}"
    if (said := difference([label.synset for label in label_space.labels])) is not None:
        yield said
    wanted = int(request.config.shard_size)
    if wanted != (target := clamp_target(wanted)):
        yield (
            f"shard size {wanted:,} bytes becomes {target:,}: a shard 15 % off still has 1 to "
            "128 MB"
        )


def bytes_to_write(plans: Mapping[str, SplitPlan], config: ShardConfig) -> int:
    """Predicted bytes of all shards."""
    return sum(int(part.predicted.sum()) for part in plans.values()) * len(config.format)


def lack_of_space(
    store: Store, plans: Mapping[str, SplitPlan], config: ShardConfig
) -> StoreFull | None:
    """The refusal of a job for which the store has no room, where the store knows."""
    needed, free = bytes_to_write(plans, config), store.free_bytes()
    if free is None or needed <= free:
        return None
    error = StoreFull(
        f"about {needed / 1e6:,.0f} MB would be written to {store.uri}, where "
        f"{free / 1e6:,.0f} MB are free: choose another --output or free some space"
    )
    error.exit_code = 2
    return error


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
