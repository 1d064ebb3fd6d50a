"""Targets: tars of every kind, read in place; compressed ones; the devkit's tarball."""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random

from dataprep.archives.archives import Archives, container_of
from dataprep.archives.tar_index import Inner, Part, TarIndex, index_tar
from dataprep.archives.windows import Streamed, Windowed
from dataprep.labelling.devkit import GROUND_TRUTH, META, unpack_devkit
from dataprep.sources import open_source
from dataprep.sources.options import ILSVRCOptions
from dataprep.stores import open_store
from tests.reliability.hostile import mutations as m
from tests.reliability.hostile.fuzz import NAME, Target
from tests.reliability.hostile.listings import metas
from tests.tars import tar_of

_FILES = {"n1/a.jpg": b"\xff\xd8a" * 100, "n2/" + "b" * 150 + ".jpg": b"\xff\xd8b", "n2/é.jpg": b""}
_ROOT = tempfile.mkdtemp(prefix="hostile-", dir="/dev/shm")


def tars() -> Sequence[bytes]:
    """GNU's, POSIX' and an old one, with links, within each other, with holes."""
    forms = (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    found = [tar_of(_FILES, form, {"link": "n1/a.jpg"}) for form in forms]
    short = {"a.jpg": b"\xff\xd8", "b.jpg": b"x" * 600}
    return [*found, tar_of(short, tarfile.USTAR_FORMAT), tar_of({"n1.tar": tar_of(short)}), b""]


def checked(found: TarIndex, size: int) -> None:
    """Members that lie within the archive, none of which leads out of it."""
    for row, name in enumerate(found.names):
        part = found.parts[found.part[row]]
        offset, length = int(found.offsets[row]), int(found.sizes[row])
        assert offset >= 0
        assert length >= 0
        if not part.compressed and not found.parts[0].compressed:
            assert part.start + part.bytes <= size
            assert offset + length <= part.start + part.bytes
        if row not in found.refused:
            assert not name.startswith(b"/")
            assert b".." not in name.split(b"/")
            assert name


def read_tar(data: bytes) -> None:
    """By windows, tars within by themselves; and as a stream."""

    def windowed() -> Windowed:
        return Windowed(lambda at, size: data[at : at + size], len(data), 4096, 512)

    def opened(part: Part) -> Inner:
        return Inner(windowed(), part.start, part.start + part.bytes)

    whole = Part(NAME.encode(), 0, len(data), False)
    checked(index_tar(windowed(), whole, opened), len(data))
    index_tar(Streamed(io.BytesIO(data)), whole._replace(compressed=True), None)


def gzips() -> Sequence[bytes]:
    """Tars that are compressed, and one with a compressed tar within."""
    first, *_, inner, _ = tars()
    packed = gzip.compress(first, mtime=0)
    return [packed, tar_of({"n1.tar.gz": gzip.compress(inner, mtime=0)}), packed[:1000]]


def within_gzip(data: bytes, rng: Random) -> bytes:
    """What a gzip file holds made hostile, and compressed again."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(m.MOST_BYTES)
    except (OSError, EOFError, ValueError, zlib.error):
        return m.bytes_at_random(data, rng)
    if rng.random() < 0.05:
        content += bytes(rng.choice((2**20, 2**26)))
    return gzip.compress(m.tar_header(content, rng), 1, mtime=0)


def _unheard(_: object) -> None:
    """Nobody is told."""


def read_gzip(data: bytes) -> None:
    """As a source has it: indexed, and each member read."""
    with tempfile.TemporaryDirectory(dir=_ROOT) as folder:
        (Path(folder) / NAME).write_bytes(data)
        archives = Archives(open_store(folder), f"{folder}/cache")
        found = archives.index(NAME, _unheard, _unheard)
        checked(found, len(data))
        for row in range(min(20, len(found))):
            if row not in found.refused and found.sizes[row] <= 2**20:
                container = container_of(NAME, found, int(found.part[row]))
                archives.read(container, int(found.offsets[row]), int(found.sizes[row]))


def read_source(data: bytes) -> None:
    """As the source of a job."""
    with tempfile.TemporaryDirectory(dir=_ROOT) as folder:
        path = Path(folder) / f"{NAME}.tar"
        path.write_bytes(data)
        source = open_source(str(path), "ilsvrc", None, ILSVRCOptions(cache=f"{folder}/cache"))
        listing = source.list()
        assert len(listing.names) == len(listing.sizes)
        samples = [name for row, name in enumerate(listing.names) if row not in listing.problems]
        assert len(set(samples)) == len(samples)


def devkits() -> Sequence[bytes]:
    """As downloaded, in little."""
    folder = "ILSVRC2012_devkit_t12/data"
    content = {f"{folder}/{META}": metas()[1], f"{folder}/{GROUND_TRUTH}": b"1\n2\n1\n"}
    return [gzip.compress(tar_of(content), mtime=0)]


def read_devkit(data: bytes) -> None:
    """Both of its files."""
    assert unpack_devkit(data, NAME).keys() == {META, GROUND_TRUTH}


def targets() -> list[Target]:
    """All of them."""
    family, own = "archives", ("dataprep/archives/", "dataprep/sources/ilsvrc")
    tar = m.stacked(m.tar_header, m.tar_header, m.bytes_at_random)
    packed = m.stacked(within_gzip, within_gzip, m.bytes_at_random)
    return [
        Target("tar", family, tars, tar, read_tar, own),
        Target("tar as source", family, tars, tar, read_source, own, "hostile", cost=8),
        Target("tar in gzip", family, gzips, packed, read_gzip, own, "hostile|gzip data", cost=8),
        Target("devkit", family, devkits, packed, read_devkit, ("dataprep/labelling/",), cost=2),
    ]
