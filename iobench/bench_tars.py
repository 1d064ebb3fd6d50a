"""What reading tars in place costs: the index of an ILSVRC-shaped archive, and images through it.

``python -m iobench.bench_tars --source PHOTOS`` writes a tar of 1,000 tars of 1,282 tiny members
each, and times the pass over its headers, the index kept and read back, and the listing. Then it
packs the class folders PHOTOS as a tar of tars and reads all images by offset and from their
files, in turns, in an order drawn anew each time, from the page cache. Figures are medians; run it
under ``taskset -c 0`` for those of one processor.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dataprep.sources import Located, Source, open_source
from dataprep.sources.options import ILSVRCOptions

_TINY = b"\xff\xd8" + b"x" * 98


def write_shape(path: Path, archives: int, members: int) -> None:
    """A tar of tars of tiny members, as GNU tar lays them out."""
    end = bytes(2 * tarfile.BLOCKSIZE)
    with path.open("wb", buffering=1 << 22) as file:
        for number in range(archives):
            synset = f"n{1440764 + 137 * number:08}"
            body = b"".join(
                _header(f"{synset}_{member}.JPEG", len(_TINY)) + _TINY.ljust(512, b"\0")
                for member in range(members)
            )
            file.write(_header(f"{synset}.tar", len(body) + len(end)) + body + end)
        file.write(end)


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


def pack(source: Path, path: Path) -> None:
    """Class folders as a tar of tars."""
    with tarfile.open(path, "w") as outer, tempfile.TemporaryDirectory() as work:
        for folder in sorted(child for child in source.iterdir() if child.is_dir()):
            inner = Path(work) / f"{folder.name}.tar"
            with tarfile.open(inner, "w") as tar:
                for image in sorted(folder.iterdir()):
                    tar.add(image, image.name)
            outer.add(inner, inner.name)
            inner.unlink()


def seconds(call: Callable[[], object]) -> tuple[float, float]:
    """How long it takes, and how much of a processor: where others use it too, they differ."""
    started_s, cpu_s = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - started_s, time.process_time() - cpu_s


def read_all(source: Source, items: list[Located]) -> int:
    """Bytes read."""
    return sum(len(source.read(item)) for item in items)


def index_speed(work: Path, archives: int, members: int, repeats: int) -> list[str]:
    """Times of the pass over headers and of listings."""
    archive = work / "shape.tar"
    write_shape(archive, archives, members)
    lines = []
    for title, fresh in (
        ("headers read, index kept, listed", True),
        ("listed from the index", False),
    ):
        times = []
        for number in range(repeats):
            section = ILSVRCOptions(cache=str(work / f"cache-{number * fresh}"))
            source = open_source(str(archive), "ilsvrc", None, section)
            times.append(seconds(source.list))
        wall_s, cpu_s = (statistics.median(column) for column in zip(*times, strict=True))
        lines.append(
            f"{archives * members:,} members, {title}: {wall_s:.1f} s ({cpu_s:.1f} s of CPU time)"
        )
    archive.unlink()
    return lines


def read_speed(work: Path, photos: Path, repeats: int) -> str:
    """The rate through an index against that of the same files."""
    pack(photos, work / "photos.tar")
    tars = open_source(str(work / "photos.tar"), "ilsvrc", None, ILSVRCOptions(cache=str(work)))
    folders = open_source(str(photos))
    found, files = tars.list(), folders.list()
    if list(found.names) != list(files.names):
        raise SystemExit(f"{photos} holds more than class folders of images")
    rates: dict[str, list[float]] = {"index": [], "folders": []}
    rows = list(range(len(found)))
    for number in range(repeats + 1):
        random.shuffle(rows)
        ways = [("index", tars, found), ("folders", folders, files)]
        for name, source, listing in ways if number % 2 else ways[::-1]:
            items = [listing.located(row) for row in rows]
            rate = len(rows) / seconds(partial(read_all, source, items))[0]
            if number:
                rates[name].append(rate)
    ratio = statistics.median(a / b for a, b in zip(rates["index"], rates["folders"], strict=True))
    index, plain = (statistics.median(rates[name]) for name in ("index", "folders"))
    return (
        f"{len(rows):,} images: {index:,.0f} a second through the index, {plain:,.0f} from "
        f"folders; {ratio:.2f} times (median of {repeats} pairs)"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, help="class folders of images; drawn without it")
    parser.add_argument("--archives", type=int, default=1000)
    parser.add_argument("--members", type=int, default=1282)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        work = Path(folder)
        if options.source is None:
            from dataprep.sample import draw_tree

            options.source = draw_tree(work / "drawn", images=600, classes=20).root
        lines = index_speed(work, options.archives, options.members, min(options.repeats, 3))
        lines.append(read_speed(work, options.source, options.repeats))
    processors = len(os.sched_getaffinity(0))
    sys.stdout.write("\n".join([f"on {processors} processors", *lines]) + "\n")


if __name__ == "__main__":
    main()
