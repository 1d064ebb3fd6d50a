"""Measure sharding to a store with a limited rate, and reading shards from a limited store."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.contest import Contender, Contest, Measured
from benchmarks.limited_store import Limits, limited_store, s5cmd_copy, store_share
from benchmarks.workplace import Workplace, files_below

SIZE = 256
WORKERS = 2
LATENCY_S = 0.02
READ_BYTES_PER_S = 200e6
_SHARD_BYTES = 8_000_000
_OURS = "dataprep shard"
_ALONE = "the slower of the two alone"
_S5CMD = "s5cmd cp"
_STORE = (
    "store cpu share: the number of processors that the limited store kept busy. It runs on the "
    "same processors: it is the proxy of iobench.servers.fault_proxy with objects in its memory."
)


def contests(workplace: Workplace) -> Iterator[Contest]:
    """Yield two contests of uploading while encoding, and a contest of reading."""
    yield _overlap(workplace, 1.0, "overlap", "uploading alone takes as long as encoding alone")
    yield _overlap(workplace, 2.0, "overlap-slow", "uploading alone takes twice as long")
    yield _reading(workplace)


def _overlap(workplace: Workplace, times: float, name: str, when: str) -> Contest:
    arguments = {
        "root": str(workplace.root),
        "source": str(workplace.repeated()),
        "shard_bytes": _SHARD_BYTES,
        "times": times,
    }
    return Contest(
        name=name,
        title=f"Sharding to S3, where {when}",
        unit="img",
        contenders=(
            Contender(_OURS, f"{__name__}:to_store", arguments),
            Contender(_ALONE, f"{__name__}:slower_alone", arguments),
        ),
        cores=WORKERS,
        notes=(
            f"{_ALONE}: the same job writes to the local disk, and {WORKERS} threads put its "
            "shards into the same limited store. The longer of both times counts.",
            _STORE,
        ),
    )


def _reading(workplace: Workplace) -> Contest:
    folder = str(workplace.sharded(workplace.images))
    arguments = {"folder": folder}
    return Contest(
        name="read-s3",
        title=f"Reading shards of 16 MiB from S3 at {READ_BYTES_PER_S / 1e6:.0f} MB/s and "
        f"{LATENCY_S * 1e3:.0f} ms a request",
        unit="MB",
        contenders=(
            Contender("dataprep.open", f"{__name__}:read", arguments),
            Contender(_S5CMD, f"{__name__}:s5cmd", arguments, ("s5cmd",)),
        ),
        cores=WORKERS,
        notes=(
            "dataprep.open reads every sample in order, checks its checksum, and returns label and "
            f"image. {_S5CMD} copies the same objects into files, and checks nothing.",
            _STORE,
        ),
    )


def to_store(root: str, source: str, shard_bytes: int, times: float) -> Measured:
    """Measure a job from local files to the limited store, from its start to its manifest."""
    _, rate = _encoded(Path(root), source, shard_bytes)
    with limited_store(Limits(rate / times)) as store, store_share(store) as share:
        samples, seconds = _shard(source, f"{store.uri}/out", shard_bytes, store.url)
    return Measured(samples, seconds, share)


def slower_alone(root: str, source: str, shard_bytes: int, times: float) -> Measured:
    """Measure the same job to the local disk, and putting its shards into the limited store.

    The longer of both times counts.
    """
    from dataprep.stores import open_store

    folder, rate = _encoded(Path(root), source, shard_bytes)
    with tempfile.TemporaryDirectory(dir=root) as other:
        samples, encode_s = _shard(source, other, shard_bytes)
    shards = files_below(folder / "tfrecord")
    with limited_store(Limits(rate / times)) as limited, store_share(limited) as share:
        store = open_store(limited.uri, limited.options())
        started_s = time.perf_counter()
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(lambda path: store.put(path.name, path.read_bytes()), shards))
        upload_s = time.perf_counter() - started_s
    others = {"encoding_alone_s": encode_s, "uploading_alone_s": upload_s, **share}
    return Measured(samples, max(encode_s, upload_s), others)


def read(folder: str) -> Measured:
    """Read every sample of a data set in order.

    Raises:
        RuntimeError: no sample was read.
    """
    import dataprep

    limits = Limits(READ_BYTES_PER_S, LATENCY_S)
    with (
        limited_store(limits, Path(folder)) as store,
        dataprep.open(store.uri, options=store.options()) as dataset,
        store_share(store) as share,
    ):
        started_s = time.perf_counter()
        image_bytes = sum(len(sample.image) for sample in dataset)
        seconds = time.perf_counter() - started_s
        size = sum(shard.bytes for shard in dataset.shards())
    if image_bytes == 0:
        raise RuntimeError("no sample was read")
    return Measured(size / 1e6, seconds, share)


def s5cmd(folder: str) -> Measured:
    """Copy the shards by ``s5cmd cp`` into a folder on the disk of ``folder``."""
    limits = Limits(READ_BYTES_PER_S, LATENCY_S)
    with (
        tempfile.TemporaryDirectory(dir=Path(folder).parent) as target,
        limited_store(limits, Path(folder)) as store,
        store_share(store) as share,
    ):
        seconds = s5cmd_copy(store, "tfrecord/*", Path(target))
        size = sum(path.stat().st_size for path in files_below(Path(target)))
    return Measured(size / 1e6, seconds, share)


def _encoded(root: Path, source: str, shard_bytes: int) -> tuple[Path, float]:
    """Run the job to the local disk, unless an earlier call has done it.

    Returns:
        The folder of its output, and the rate in bytes per second at which the shards were made.
    """
    folder = root / f"encoded-{shard_bytes}"
    rate_file = root / f"encoded-{shard_bytes}.json"
    if not rate_file.exists():
        _, seconds = _shard(source, str(folder), shard_bytes)
        size = sum(path.stat().st_size for path in files_below(folder / "tfrecord"))
        rate_file.write_text(json.dumps({"bytes_per_s": size / seconds}))
    return folder, json.loads(rate_file.read_text())["bytes_per_s"]


def _shard(source: str, output: str, shard_bytes: int, endpoint: str = "") -> tuple[int, float]:
    """Run a job. Returns the number of samples that it wrote, and its seconds."""
    import dataprep

    config: Mapping[str, Any] = {
        "source": source,
        "output": output,
        "image": {"size": SIZE},
        "shard_size": shard_bytes,
        "dask": {"workers": WORKERS},
        "store": {"endpoint_url": endpoint or None},
    }
    started_s = time.perf_counter()
    summaries = dataprep.shard(dataprep.ShardConfig.model_validate(config))
    seconds = time.perf_counter() - started_s
    return sum(summary.manifest.samples.written for summary in summaries), seconds
