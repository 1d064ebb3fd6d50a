"""PURE. Which modules make something of bytes that they did not write, and who gives them bad ones.

A module that calls one of ``CALLS`` stands in ``FUZZED``, with the families whose targets reach it,
or in ``TRUSTED``, with why nobody else writes what it reads. A test holds both against the code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

CALLS = frozenset(
    {
        *("json.loads", "json.load", "yaml.load", "yaml.safe_load", "tomllib.loads", "pickle.load"),
        *("pickle.loads", "struct.unpack", "struct.unpack_from", "np.frombuffer", "np.load"),
        *("pq.read_table", "pq.ParquetFile", "pq.read_schema", "pq.read_metadata"),
        *("tarfile.open", "zipfile.ZipFile", "gzip.GzipFile", "gzip.decompress", "gzip.open"),
        *("zlib.decompress", "zlib.decompressobj", "lzma.open", "fromstring", "ElementTree.parse"),
        *("csv.reader", "csv.DictReader", "pyarrow.csv.read_csv", "pyarrow.csv.open_csv"),
        *("pa.ipc.open_file", "pa.ipc.open_stream", "ipc.open_file", "int.from_bytes"),
        *("unpack_from", "unpack", "parsedate_to_datetime"),
    }
)
"""As they are written; ``unpack`` and ``unpack_from`` of a ``struct.Struct`` by the last name."""

IMAGES = "hostile_images"
FUZZED: dict[str, tuple[str, ...]] = {
    "dataprep/archives/deflate_entry.py": ("archives",),
    "dataprep/archives/compression.py": ("archives",),
    "dataprep/archives/gzip_points.py": ("tables", "archives"),
    "dataprep/archives/index_cache.py": ("tables",),
    "dataprep/archives/tar_block.py": ("archives",),
    "dataprep/parquet_bounds.py": ("tables", "listings"),
    "dataprep/boxes/read.py": ("listings",),
    "dataprep/boxes/table.py": ("listings",),
    "dataprep/boxes/voc.py": ("listings",),
    "dataprep/formats/example.py": ("records",),
    "dataprep/formats/recordio.py": ("records",),
    "dataprep/formats/tfrecord.py": ("records",),
    "dataprep/image/file_facts.py": (IMAGES,),
    "dataprep/image/jpeg.py": (IMAGES,),
    "dataprep/image/jpeg_decode.py": (IMAGES,),
    "dataprep/image/jpeg_repair.py": (IMAGES,),
    "dataprep/image/out_of_memory.py": (IMAGES,),
    "dataprep/inspection/image_facts.py": ("outputs", "unfinished"),
    "dataprep/inspection/record_head.py": ("records", "outputs"),
    "dataprep/job/split_plan.py": ("tables",),
    "dataprep/labelling/devkit.py": ("archives", "listings"),
    "dataprep/labelling/mat5.py": ("listings",),
    "dataprep/labelling/tables.py": ("listings",),
    "dataprep/sample_table.py": ("tables", "outputs"),
    "dataprep/schema.py": ("tables", "benchmarks"),
    "dataprep/sources/framing.py": ("records",),
    "dataprep/sources/listing_tables.py": ("listings",),
    "dataprep/sources/own_output.py": ("outputs",),
    "dataprep/sources/record_files.py": ("records",),
    "dataprep/sources/record_scan.py": ("records",),
    "dataprep/sources/scan_cache.py": ("tables",),
    "dataprep/stored_table.py": ("tables", "outputs"),
    "dataprep/stores/s3_leases.py": ("leases",),
    "dataprep/yaml_text.py": ("configs",),
    "iobench/probes/disk/fio.py": ("benchmarks",),
    "iobench/run_tables.py": ("benchmarks",),
}
"""Families of ``hostile``, and the corpus of hostile images."""

_CHILD = "what a process that this program has started tells it, or it tells that"
_MADE = "what this program has made in the same run"
_PEERS = "what peers, or examples that are made for them, leave in a folder of the comparison"
TRUSTED: dict[str, str] = {
    "dataprep/image/resize.py": "pixels that it has resized",
    "dataprep/isolation/child.py": _CHILD,
    "dataprep/sample/encodings.py": _MADE,
    "dataprep/sample/ilsvrc.py": _MADE,
    "iobench/bench_tars.py": _MADE,
    "iobench/child_process.py": _CHILD,
    "iobench/data/pixel_shards.py": "a table that stored_table has held against the manifest",
    "iobench/loaders/rungs/finished.py": _MADE,
    "iobench/loaders/rungs/preload.py": _MADE,
    "iobench/messages.py": _CHILD,
    "iobench/pixels.py": _MADE,
    "iobench/report/page.py": "a result that it has encoded",
    "iobench/sidebyside/child.py": _CHILD,
    "iobench/sidebyside/codec.py": _PEERS,
    "iobench/sidebyside/footprint.py": _MADE,
    "iobench/sidebyside/limited_store.py": _CHILD,
    "iobench/sidebyside/object_store.py": _PEERS,
    "iobench/sidebyside/rounds.py": _CHILD,
    "iobench/sidebyside/whole_job.py": _PEERS,
    "iobench/watching/messages.py": _CHILD,
}
"""Modules that read what nobody else writes, and what that is."""


def parsing(root: Path) -> Iterator[str]:
    """Modules of both packages that call one of ``CALLS``."""
    for package in ("dataprep", "iobench"):
        for path in sorted((root / package).rglob("*.py")):
            called = {
                ast.unparse(node.func)
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)
            }
            last = {name.rpartition(".")[2] for name in called} & {"unpack", "unpack_from"}
            if (called | last) & CALLS:
                yield path.relative_to(root).as_posix()
