"""PURE. What data will hold that are not there yet, and what making them takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from iobench.data.settings import DataSettings, sized, split_name
from iobench.forecast.bounds import UNKNOWN, Bounds, exactly, up_to
from iobench.forecast.facts import DataFacts, Facts, Photographs
from iobench.forecast.predicted import Predicted
from iobench.requests import STORED, Requests, listing

DRAWN_BYTES = 110_000
"""Mean size of a photograph that is drawn; an image differs from it by less than 3 times."""

_ABOUT = 3.0
_HEAD_BYTES = 600
_DRAWN_PER_S, _CONVERTED_PER_S = 40.0, 200.0
_CONVERSIONS = {
    "shards": ("images sharded", _CONVERTED_PER_S),
    "originals": ("images sharded, not resized", _CONVERTED_PER_S),
    "files": ("the images of shards written as files", 10 * _CONVERTED_PER_S),
    "pixels": ("the images of shards written as pixels", 3 * _CONVERTED_PER_S),
}
"""What is done to make a form, and how many images a second a processor does it to."""
_COPIED_BYTES_PER_S = 100e6
_FORMATS = 2
_OBJECTS_A_SHARD, _OBJECTS_BESIDE = 6, 5
_RECORDS = 1.2  # of a source's bytes: framing, labels, and what little grows
_TABLES = 3


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
    name, settings = sized(name, settings)
    form, size_bytes, _ = split_name(name)
    if photos is None:
        return DataFacts(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
    if form == "photos":
        count = photos.count
        return DataFacts(count, photos.bytes, count, photos.bytes, count)
    samples = Bounds(0.0 if photos.listed else photos.count.low, photos.count.high)
    size = _times(_about(image_bytes(settings.size, settings.quality)), samples)
    if form == "originals":
        # JPEGs stay as they are; other files become JPEGs, which seldom are larger.
        low, high = photos.bytes
        size = Bounds(low / _ABOUT, None if high is None else high * _RECORDS)
    if form == "files":
        return DataFacts(samples, size, samples, size, samples)
    shards = _shards(size, size_bytes or int(settings.shard_size))
    every = shards.times(_OBJECTS_A_SHARD).plus(exactly(_OBJECTS_BESIDE))
    if form == "pixels":
        return _as_pixels(samples, _times(_about(4 * settings.size**2), samples), shards)
    # An index has some 20 bytes a record, the table of samples 100.
    beside = samples.times(100 + 20 * _FORMATS)
    return DataFacts(samples, size, shards, size.times(_FORMATS).plus(beside), every)


def decoded(shards: DataFacts) -> DataFacts:
    """Images of shards that are there, as pixels: 3 bytes each, where JPEGs have 0.1 to 1.5."""
    low, high = shards.bytes
    size = Bounds(low * 2, None if high is None else high * 30)
    return _as_pixels(shards.samples, size, shards.objects)


def _as_pixels(samples: Bounds, size: Bounds, shards: Bounds) -> DataFacts:
    """One format, without indexes and receipts."""
    beside = samples.times(150)
    every = shards.plus(exactly(_TABLES))
    return DataFacts(samples, size, shards, size.plus(beside), every)


def unpacked(shards: DataFacts) -> DataFacts:
    """The images of shards that are there, as files: a record is little more than its image."""
    size = Bounds(shards.bytes.low / 2, shards.bytes.high)
    return DataFacts(shards.samples, size, shards.samples, size, shards.samples)


OF_SHARDS: Mapping[str, Callable[[DataFacts], DataFacts]] = {
    "files": unpacked,
    "pixels": decoded,
}
"""Forms that are made of the shards, and what they then hold."""


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
    if form in OF_SHARDS:
        return [*_chain("shards@disk", settings), name]
    given = form == "shards" and settings.shards is not None and size_bytes is None
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
    form = split_name(name)[0]
    what, rate = _CONVERSIONS[form]
    of_shards = form in OF_SHARDS
    per_s = rate if of_shards else rate * facts.processors
    made = _written(found, _seconds(found.samples, per_s), found.all_bytes)
    read = Bounds() if facts.photographs is None or of_shards else facts.photographs.bytes
    about = (
        "images in shards and files have half a byte a pixel at quality 95, within 3 times",
        f"a processor converts {_CONVERTED_PER_S:g} images a second",
    )
    return Making(
        f"{name}: {what}",
        replace(made, disk_read=up_to(read.high), assumed=about),
    )


def _copied(name: str, found: DataFacts) -> Making:
    """What is there in its size already is not copied again."""
    high = found.all_objects.high
    most = None
    if high is not None:
        most = Requests(gets=1) + listing(int(high)) + STORED * int(high)
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
