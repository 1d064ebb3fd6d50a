"""What a person should hear of a job before it begins: ``plan`` warns of it, ``shard`` says it."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping

from dataprep import plan
from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import StoreFull
from dataprep.job.request import Request
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.labels.imagenet_synsets import difference
from dataprep.sources.classes import NO_CLASS, promises_image
from dataprep.stores import Store


def oddities(request: Request, label_space: LabelSpace) -> Iterator[str]:
    """What is odd about the source, its classes and the sizes that are asked for."""
    yield from request.listing.notes
    yield from _strays(request)
    yield from _lost(request, label_space)
    yield from _absent(request, label_space)
    yield from _lookalikes(label_space)
    if (said := difference([label.synset for label in label_space.labels])) is not None:
        yield said
    yield from _moved(request.config)


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


def bytes_to_write(plans: Mapping[str, SplitPlan], config: ShardConfig) -> int:
    """What all shards will have, as predicted."""
    return sum(int(part.predicted.sum()) for part in plans.values()) * len(config.format)


def _strays(request: Request) -> Iterator[str]:
    """Images that are skipped, and that somebody may have meant to be in a class."""
    listing = request.listing
    strays = [
        listing.names[row]
        for row, problem in listing.problems.items()
        if problem.reason == NO_CLASS and promises_image(listing.names[row])
    ]
    if strays:
        lost = counted(len(strays), "image is")
        yield f"{lost} in no class folder and skipped, such as {strays[0]!r}"


def _lost(request: Request, label_space: LabelSpace) -> Iterator[str]:
    """Classes of which every file was refused when it was listed."""
    if lost := sorted({*request.listing.classes} - {""} - label_space.index.keys()):
        get = "gets" if len(lost) == 1 else "get"
        shown = ", ".join(map(repr, lost[:3]))
        yield f"{counted(len(lost), 'class')} of which no file can be read {get} no label: {shown}"


def _absent(request: Request, label_space: LabelSpace) -> Iterator[str]:
    """Classes of the other splits that this source has no sample of."""
    absent = sorted(label_space.index.keys() - {*request.listing.classes})
    if absent:
        shown = ", ".join(map(repr, absent[:3]))
        more = f" and {len(absent) - 3:,} more" if len(absent) > 3 else ""
        yield f"no sample here of {counted(len(absent), 'class')}, such as {shown}{more}"


def _lookalikes(label_space: LabelSpace) -> Iterator[str]:
    """Classes that a person, or another file system, would take for one."""
    alike: dict[str, list[str]] = defaultdict(list)
    for label in label_space.labels:
        alike[unicodedata.normalize("NFC", label.synset).casefold()].append(label.synset)
    found = [names for names in alike.values() if len(names) > 1]
    if found:
        first, second = (ascii(name) for name in found[0][:2])
        yield (
            f"{counted(sum(map(len, found)), 'class')} differ by case or Unicode form alone, such "
            f"as {first} and {second}: each keeps its label; labels.map merges them"
        )


def _moved(config: ShardConfig) -> Iterator[str]:
    wanted, target = int(config.shard_size), plan.clamp_target(int(config.shard_size))
    if wanted != target:
        yield (
            f"shard size {wanted:,} bytes moved to {target:,}: a shard that comes out 15 % off "
            "still has 1 to 128 MB"
        )
