"""Read the records of a shard of any registered format, and describe what they contain."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from PIL import Image

from dataprep.counted import counted
from dataprep.errors import ConfigError, RecordError, TruncatedRecord
from dataprep.formats import (
    HEAD_BYTES,
    Buffer,
    BytesList,
    Feature,
    format_names,
    formats_like,
    get_format,
)
from dataprep.formats.protocol import Extent, damaged, without_place
from dataprep.image.containers import FORMATS, without_warnings
from dataprep.names import escape
from dataprep.stores import ObjectInfo, Store, location

_BLOCK_BYTES = 8 * 2**20
_IMAGES = ("image/encoded", "image")


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """The header of an encoded image; ``mode`` is Pillow's name of its colours."""

    container: str
    width: int
    height: int
    mode: str


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a shard.

    Attributes:
        uri: the shard.
        format: the format of the shard.
        number: its place in the shard, from 0.
        offset, length: its bytes in the shard, framing included.
        features: what it contains, by the names that its format gives.
        image: the encoded image as it is stored; empty if there is none.
        facts: the header of the image; None if it cannot be read.
        damage: what is wrong with the record; empty if it is sound.
        sample: its number in the split, or -1.
        known: its row in the table of samples; empty if there is no table.
    """

    uri: str
    format: str
    number: int
    offset: int
    length: int
    features: Mapping[str, Feature] = field(default_factory=dict)
    image: bytes = b""
    facts: ImageFacts | None = None
    damage: str = ""
    sample: int = -1
    known: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Shard, record and byte in words."""
        return f"{self.uri}: record {self.number} at byte {self.offset}"

    def first(self, kinds: tuple[type[Feature], ...], *names: str) -> Sequence[Any]:
        """The values of the first of these features that has one of these types."""
        found = [self.features.get(name) for name in names]
        return next((one.values for one in found if isinstance(one, kinds)), ())

    def text(self, *names: str) -> str:
        """``first`` of byte strings, as escaped text."""
        data = b" ".join(map(bytes, self.first((BytesList,), *names)))
        return escape(data.decode("utf-8", "surrogateescape"))


class Shard:
    """The records of one object, in order or by number, and its bytes in blocks, by slices.

    Attributes:
        uri: where it is stored.
        format: the name of its format.
        fault: why there are no more records than those that were read or counted; else None.
    """

    def __init__(
        self,
        store: Store,
        info: ObjectInfo,
        choose: Callable[[Sequence[str]], str | None] | None = None,
    ) -> None:
        """Open a shard whose first bytes tell its format.

        If shards of several formats begin like this, ``choose`` is called with their names. It
        returns the name of the right format, or None if that is not known; then the first one is
        taken.

        Raises:
            ConfigError: it is a shard of no known format.
        """
        self.uri = location(store, info.key)
        self.fault: RecordError | None = None
        self._store, self._info = store, info
        self._start, self._block = 0, b""
        self._spans: list[Extent] = []
        head = self[:HEAD_BYTES]
        candidates = formats_like(head)
        chosen = choose(candidates) if choose is not None and len(candidates) > 1 else None
        if not candidates:
            raise ConfigError(
                f"{self.uri} is no shard of a known format ({', '.join(format_names())}), or its "
                f"first record is damaged: it begins with {head[:12]!r}"
            )
        self.format = chosen or candidates[0]

    def __len__(self) -> int:
        """Its size in bytes."""
        return self._info.bytes

    def __getitem__(self, where: slice) -> bytes:
        """Bytes, fetched in blocks; slices should rise."""
        start, stop, _ = where.indices(len(self))
        if not self._start <= start <= stop <= self._start + len(self._block):
            wanted = min(max(stop - start, _BLOCK_BYTES), len(self) - start)
            self._start = start
            self._block = self._store.get_range(self._info.key, start, wanted)
        return self._block[start - self._start : stop - self._start]

    def count(self) -> int:
        """The number of records before damage, by the headers of all."""
        self._spans = self._spans or list(self.spans())
        return len(self._spans)

    def __iter__(self) -> Iterator[Record]:
        """Every record, also damaged ones, up to the place where the framing is damaged."""
        for number, (offset, length) in enumerate(self.spans()):
            data = self[offset : offset + length]
            yield read_record(data, self.uri, self.format, number, offset)

    def read(self, number: int) -> Record:
        """One record.

        Raises:
            ConfigError: there is none of this number.
            RecordError: the framing is damaged before it.
        """
        spans = self._spans or list(islice(self.spans(), max(0, number + 1)))
        if self.fault and number >= len(spans):
            raise self.fault
        require_number(number, len(spans), self.uri)
        offset, length = spans[number]
        return read_record(
            self._store.get_range(self._info.key, offset, length),
            self.uri,
            self.format,
            number,
            offset,
        )

    def spans(self) -> Iterator[Extent]:
        """The place of each record, by its header; ends with a ``fault`` at damage."""
        record_format = get_format(self.format)
        offset = number = 0
        while offset < len(self):
            try:
                span = record_format.span_at(self, offset, (self.uri, number))
            except RecordError as error:
                self.fault = error
                return
            if span is None:
                return
            yield span
            offset += span[1]
            number += 1
        if record_format.trailer:
            problem = "the file ends without the trailer that follows the last record"
            self.fault = damaged(TruncatedRecord, self.uri, number, offset, problem)


def require_number(number: int, count: int, where: str) -> None:
    """Raise ConfigError if there is no record of this number among ``count``."""
    if not 0 <= number < count:
        raise ConfigError(
            f"--record {number}: {where} has {counted(count, 'record')}, counted from 0"
        )


def read_record(data: Buffer, uri: str, form: str, number: int, offset: int) -> Record:
    """The record whose encoded bytes, which begin at ``offset`` of the shard, are ``data``."""
    record = Record(uri, form, number, offset, len(data))
    try:
        (raw,) = get_format(form).read(data, "record")
    except ValueError as error:
        what = without_place(str(error))
        return replace(record, damage=what if isinstance(error, RecordError) else "not one record")
    features = _features(raw.payload, form)
    # The image by its customary name, or the largest byte string.
    found = [features[name] for name in _IMAGES if name in features] or [*features.values()]
    values = [bytes(value) for one in found if isinstance(one, BytesList) for value in one.values]
    image = max(values, key=len, default=b"")
    return replace(record, features=features, image=image, facts=image_facts(image))


def image_facts(image: bytes) -> ImageFacts | None:
    """The header of an encoded image; None if it is not one."""
    try:
        with without_warnings(), Image.open(io.BytesIO(image), formats=FORMATS) as opened:
            return ImageFacts(opened.format or "", *opened.size, opened.mode)
    except Exception:  # noqa: BLE001  decoders raise errors of all kinds
        return None


def _features(payload: Buffer, form: str) -> Mapping[str, Feature]:
    try:
        return get_format(form).fields(payload)
    except RecordError:
        return {"payload": BytesList([payload])}
