"""PURE. What data will hold that are not there yet, and what making them takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dataprep.requests import Requests, listing
from iobench.data.settings import DataSettings, split_name
from iobench.forecast.bounds import UNKNOWN, Bounds, exactly, up_to
from iobench.forecast.facts import DataFacts, Facts, Photographs
from iobench.forecast.predicted import Predicted
from iobench.forecast.stores import RULE

DRAWN_BYTES = 110_000
"""Mean size of a photograph that is drawn; an image differs from it by less than 3 times."""

_ABOUT = 3.0
_HEAD_BYTES = 600
_DRAWN_PER_S, _CONVERTED_PER_S = 40.0, 200.0
_COPIED_BYTES_PER_S = 100e6
_FORMATS = 2
_OBJECTS_A_SHARD, _OBJECTS_BESIDE = 6, 5


@dataclass(frozen=True, slots=True)
class Making:
    """Something that is made before the trial that needs it first."""

    words: str
    predicted: Predicted


def photographs(settings: DataSettings) -> Photographs:
    """Those that are drawn where there is neither source nor shards."""
    count = exactly(settings.images)
    return Photographs(count, _about(settings.images * DRAWN_BYTES), drawn=True)


def image_bytes(size: int, quality: int) -> float:
    """About how large a JPEG is whose short side has ``size`` pixels, 4:3.

    Half a byte a pixel at quality 95, as ImageNet's photographs at 256 pixels, and a quarter at 80.
    """
    return _HEAD_BYTES + 0.5 * size * size * 4 / 3 * 15 / (110 - quality)


def to_be_made(name: str, settings: DataSettings, photos: Photographs | None) -> DataFacts:
    """What ``name`` will hold on a disk, estimated."""
    form, size_bytes, _ = split_name(name)
    if photos is None:
        return DataFacts(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
    if form == "photos":
        count = photos.count
        return DataFacts(count, photos.bytes, count, photos.bytes, count)
    each = _about(image_bytes(settings.size, settings.quality))
    samples = Bounds(0.0 if photos.listed else photos.count.low, photos.count.high)
    size = _times(each, samples)
    if form == "files":
        return DataFacts(samples, size, samples, size, samples)
    shards = _shards(size, size_bytes or int(settings.shard_size))
    every = shards.times(_OBJECTS_A_SHARD).plus(exactly(_OBJECTS_BESIDE))
    # An index has some 20 bytes a record, the table of samples 100.
    beside = samples.times(100 + 20 * _FORMATS)
    return DataFacts(samples, size, shards, size.times(_FORMATS).plus(beside), every)


def unpacked(shards: DataFacts) -> DataFacts:
    """The images of shards that are there, as files: a record is little more than its image."""
    size = Bounds(shards.bytes.low / 2, shards.bytes.high)
    return DataFacts(shards.samples, size, shards.samples, size, shards.samples)


def steps(names: list[str], settings: DataSettings, facts: Facts) -> Iterator[Making]:
    """All that ``names`` need and that is not there, each once, in the order of its making."""
    seen: set[str] = set()
    for name in names:
        for needed in _chain(name, settings):
            if needed not in seen and needed in facts.data:
                seen.add(needed)
                yield from _step(needed, settings, facts)


def _chain(name: str, settings: DataSettings) -> list[str]:
    """A name and what it is made of, that first."""
    form, size_bytes, remote = split_name(name)
    if remote:
        local = f"{name.rpartition('@')[0]}@disk"
        return [*_chain(local, settings), name]
    if form == "photos":
        return [name]
    if form == "files":
        return [*_chain("shards@disk", settings), name]
    given = settings.shards is not None and size_bytes is None
    return [name] if given else ["photos@disk", name]


def _step(name: str, settings: DataSettings, facts: Facts) -> Iterator[Making]:
    found = facts.data[name]
    if found.made:
        return
    form, _, remote = split_name(name)
    if remote:
        yield _copied(name, found)
    elif form == "photos":
        if facts.photographs is not None and facts.photographs.drawn:
            yield _drawn(settings, found)
    elif form == "shards" and settings.shards is not None:
        yield Making(
            f"{settings.shards} copied to {name}",
            _written(found, _seconds(found.all_bytes, _COPIED_BYTES_PER_S), found.all_bytes),
        )
    else:
        yield _converted(name, found, facts)


def _drawn(settings: DataSettings, found: DataFacts) -> Making:
    seconds = settings.images / _DRAWN_PER_S
    made = _written(found, seconds, found.bytes)
    assumed = (*made.assumed, f"{_DRAWN_PER_S:g} images are drawn a second")
    return Making(f"{settings.images:,} images drawn", replace(made, assumed=assumed))


def _converted(name: str, found: DataFacts, facts: Facts) -> Making:
    is_files = name.startswith("files")
    rate = _CONVERTED_PER_S * 10 if is_files else _CONVERTED_PER_S * facts.processors
    made = _written(found, _seconds(found.samples, rate), found.all_bytes)
    read = Bounds() if facts.photographs is None or is_files else facts.photographs.bytes
    about = (
        "images in shards and files have half a byte a pixel at quality 95, within 3 times",
        f"a processor converts {_CONVERTED_PER_S:g} images a second",
    )
    what = "the images of shards written as files" if is_files else "images sharded"
    return Making(
        f"{name}: {what}",
        replace(made, disk_read=up_to(read.high), assumed=about),
    )


def _copied(name: str, found: DataFacts) -> Making:
    """What is there in its size already is not copied again."""
    high = found.all_objects.high
    each = found.object_bytes.high
    most = None
    if high is not None and each is not None:
        most = Requests(gets=1) + listing(int(high)) + RULE.stored(int(each)) * int(high)
    return Making(
        f"{name}: copied to the object store",
        Predicted(
            seconds=Bounds(0.0, None),
            likely_s=_seconds(found.all_bytes, _COPIED_BYTES_PER_S),
            disk_read=up_to(found.all_bytes.high),
            store_written=up_to(found.all_bytes.high),
            store=found.store,
            requests=(Requests(gets=1, lists=1), most),
            unknown=() if most is not None else (f"how many objects {name} will have",),
            assumed=(f"copies go at {_COPIED_BYTES_PER_S / 1e6:g} MB/s",),
        ),
    )


def _written(found: DataFacts, likely_s: float | None, size: Bounds) -> Predicted:
    return Predicted(
        seconds=Bounds(0.0, None),
        likely_s=likely_s,
        disk_written=size,
        unknown=() if size.high is not None else ("how large data that are made will be",),
    )


def _seconds(amount: Bounds, per_s: float) -> float | None:
    """In the middle of what it may be."""
    if amount.high is None:
        return None
    middle = amount.high if amount.low == amount.high else amount.high / _ABOUT
    return middle / per_s


def _about(value: float) -> Bounds:
    return Bounds(value / _ABOUT, value * _ABOUT)


def _times(each: Bounds, count: Bounds) -> Bounds:
    if each.high is None or count.high is None:
        return Bounds(each.low * count.low, None)
    return Bounds(each.low * count.low, each.high * count.high)


def _shards(size: Bounds, target_bytes: int) -> Bounds:
    high = None if size.high is None else size.high // target_bytes + 2
    return Bounds(max(1.0, size.low // target_bytes), high)
