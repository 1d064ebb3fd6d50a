"""Annotations from a folder of XML files, a tar of them, or a CSV file; local or on S3.

Each of ILSVRC's 544,546 XML files takes 64 microseconds to get out of its tar and 69 to parse: 73 s
of one processor in all. From some thousands on, processes share the parsing.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import PurePosixPath
from typing import IO

import pyarrow as pa

from dataprep.boxes.annotations import SCHEMA, of_xml
from dataprep.boxes.options import BoxOptions
from dataprep.boxes.voc import LARGEST_BYTES
from dataprep.errors import ObjectNotFound, SourceError, SourceNotFound
from dataprep.ordered import in_order
from dataprep.stores import StoreOptions, open_store

_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_TABLES = (".csv", ".csv.gz", ".txt")
_BATCH = 5_000
_REMOTE_READS = 32
_PIECE_BYTES = 2**20
_LARGEST_INNER_TAR_BYTES = 2**30

_File = tuple[str, bytes]


def read_annotations(
    options: BoxOptions, store: StoreOptions | None = None, workers: int = 1
) -> pa.Table:
    """All annotations at ``options.source``; columns as in ``dataprep.boxes.annotations``.

    Raises:
        SourceNotFound: nothing there, or no annotation in it.
        SourceError: it cannot be read.
        ConfigError: a CSV file of another form.
    """
    uri = options.source
    try:
        table = _read(options, store, workers)
    except ObjectNotFound as error:
        raise SourceNotFound(f"no boxes at {uri!r}: {error} (check boxes.source)") from None
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(f"{uri!r} is not a whole archive: {error}") from None
    if not len(table):
        raise SourceNotFound(
            f"no boxes at {uri!r}: expected XML files, a tar of them, or a CSV file"
        )
    return table


def _read(options: BoxOptions, store: StoreOptions | None, workers: int) -> pa.Table:
    uri = options.source.rstrip("/")
    lower = uri.lower()
    if options.format == "csv" or (options.format == "auto" and lower.endswith(_TABLES)):
        data = _whole(uri, store)
        from dataprep.boxes.table import parse_boxes  # pandas: a third of a second

        return parse_boxes(_unzipped(data) if lower.endswith(".gz") else data, options, uri)
    files = _in_tar(_whole(uri, store)) if lower.endswith(_TARS) else _in_folder(uri, store)
    return _parsed(files, workers)


def _unzipped(data: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        found = file.read(_LARGEST_INNER_TAR_BYTES + 1)
    if len(found) > _LARGEST_INNER_TAR_BYTES:
        raise gzip.BadGzipFile(f"more than {_LARGEST_INNER_TAR_BYTES:,} bytes in it")
    return found


def _whole(uri: str, options: StoreOptions | None) -> bytes:
    """One file."""
    folder, _, name = uri.rpartition("/")
    return open_store(folder if folder or not uri.startswith("/") else "/", options).get(name)


def _in_folder(uri: str, options: StoreOptions | None) -> Iterator[_File]:
    store = open_store(uri, options)
    keys = sorted(entry.key for entry in store.list() if _is_annotation(entry.key))
    threads = _REMOTE_READS if "://" in uri else 0
    return zip(keys, in_order(store.get, keys, threads), strict=True)


def _in_tar(data: bytes, *, nested: bool = False) -> Iterator[_File]:
    """XML files, also those of tars within, as ILSVRC's older archives had them.

    Not read as a stream: tarfile would go to the end of a size that is not true block by block.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as tar:
            while (member := tar.next()) is not None:
                tar.members = []  # type: ignore[attr-defined]  # else it keeps them all
                inner = not nested and member.name.lower().endswith(_TARS)
                if not member.isfile() or not (inner or _is_annotation(member.name)):
                    continue
                if member.issparse():  # a few bytes that may say that they are many
                    raise tarfile.ReadError(f"{member.name!r} is a sparse file")
                limit = _LARGEST_INNER_TAR_BYTES if inner else LARGEST_BYTES + 1
                content = tar.extractfile(member)
                read = _up_to(limit, content) if content else b""
                if inner:
                    yield from _in_tar(read, nested=True)
                else:
                    yield member.name.removeprefix("./"), read
    except (OSError, ValueError, OverflowError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise tarfile.ReadError(str(error)) from None


def _up_to(limit: int, file: IO[bytes]) -> bytes:
    """At most so many bytes: Python would make room for as many as a header says there are."""
    pieces: list[bytes] = []
    while limit > 0 and (piece := file.read(min(limit, _PIECE_BYTES))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def _is_annotation(name: str) -> bool:
    path = PurePosixPath(name)
    return path.suffix.lower() == ".xml" and not path.name.startswith(".")


def _parsed(files: Iterable[_File], workers: int) -> pa.Table:
    files = iter(files)
    batches = iter(lambda: list(islice(files, _BATCH)), [])
    first = list(islice(batches, 2))
    everything = chain(first, batches)
    if workers <= 1 or len(first) < 2:
        return _joined(map(of_xml, everything))
    # Not forked: this process has threads.
    with ProcessPoolExecutor(min(workers, 16), mp_context=get_context("spawn")) as pool:
        return _joined(_in_processes(pool, everything, 2 * workers))


def _in_processes(
    pool: ProcessPoolExecutor, batches: Iterable[list[_File]], ahead: int
) -> Iterator[pa.Table]:
    """Tables in the order of the batches, of which only so many are held."""
    pending: deque[Future[pa.Table]] = deque()
    for batch in batches:
        pending.append(pool.submit(of_xml, batch))
        if len(pending) > ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _joined(tables: Iterable[pa.Table]) -> pa.Table:
    parts = list(tables)
    return pa.concat_tables(parts).combine_chunks() if parts else SCHEMA.empty_table()
