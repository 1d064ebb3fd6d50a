"""Targets: YAML configs of both programs, dated figures, ``--set`` and the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from unittest import mock

from dataprep import config as shard_config
from dataprep.cache_folder import default_folder
from dataprep.command_line import settings
from dataprep.prices import price_at, read_prices
from dataprep.stores.options import StoreOptions
from iobench import config as bench_config
from iobench.consumers.processor import threads
from iobench.environment.machine import container
from iobench.limits import read_limits
from iobench.plan import trials
from iobench.watching.ranks import rank_of
from tests.reliability.hostile import mutations as m
from tests.reliability.hostile.fuzz import Target

_CONFIGS = Path(__file__).parents[3] / "configs"
_NAME = f"hostile-{os.getpid()}.yaml"
_FILE = Path("/dev/shm") / _NAME


def seeds(*patterns: str) -> Callable[[], Sequence[bytes]]:
    """The example configs that are shipped."""
    return lambda: [
        path.read_bytes() for pattern in patterns for path in sorted(_CONFIGS.glob(pattern))
    ]


def from_file(load: Callable[[Path], object]) -> Callable[[bytes], None]:
    """Readers of configs open files."""

    def read(data: bytes) -> None:
        _FILE.write_bytes(data)
        try:
            load(_FILE)
        finally:
            _FILE.unlink()

    return read


def load_shards(path: Path) -> None:
    """A config that is read is written as one that is read as the same."""
    found = shard_config.load(path, {})
    path.write_text(shard_config.dump(found))
    assert shard_config.load(path, {}) == found
    found.content()


def load_bench(path: Path) -> None:
    """A config that is read names trials, as far as it names few."""
    found = bench_config.load(path, {})
    path.write_text(bench_config.dump(found))
    assert bench_config.load(path, {}) == found
    if found.repeats < 100:
        trials(found)


def load_prices(path: Path) -> None:
    """Prices that are read are at least 0."""
    found = read_prices(path)
    price, _ = price_at(found, StoreOptions())
    assert price is None or min(price.put_per_1000, price.get_per_1000, price.gb_month) >= 0


def option(data: bytes) -> None:
    """``--set KEY=VALUE`` as the command line has it, on a config."""
    text = data.decode("utf-8", "surrogateescape")
    found = settings([text], "image.upscale=true")
    shard_config.load(None, {"source": "a", "output": "b", **found})


def options() -> Sequence[bytes]:
    """Some of all kinds."""
    return [
        *(b"image.size=256", b"listing.labels=[a, b]", b"layout={a: encoded, b: label}"),
        *(b"label_offset.tfrecord=1", b"shard_size=1MB", b"validation=5%", b"max_failures=0.1"),
        *(b"boxes=x.csv", b"dask.cluster.kwargs={a: 1}", b"store.endpoint_url=http://x:1"),
    ]


_SETTINGS = (
    *("XDG_CACHE_HOME", "AWS_REGION", "RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_PROCID"),
    *("SLURM_NTASKS", "SLURM_LOCALID", "OMP_NUM_THREADS", "KUBERNETES_SERVICE_HOST"),
)


def environment(data: bytes) -> None:
    """``NAME=VALUE`` lines as a process finds them."""
    pairs = [line.partition(b"=") for line in data.replace(b"\0", b"").split(b"\n")]
    told = {os.fsdecode(n): os.fsdecode(v) for n, _, v in pairs if os.fsdecode(n) in _SETTINGS}
    _in_environment(told)


def _in_environment(told: Mapping[str, str]) -> None:
    rank = rank_of(told)
    assert rank.world_size > 1 or rank == (0, 1, 0)
    with mock.patch.dict(os.environ, told):
        assert default_folder().is_absolute()
        assert threads("OMP_NUM_THREADS") >= 1
        price_at(read_prices(None), StoreOptions())
        container(Path("/nowhere"), told)


def environments() -> Sequence[bytes]:
    """What launchers set."""
    return [
        b"RANK=1\nWORLD_SIZE=4\nLOCAL_RANK=0\nOMP_NUM_THREADS=4\nXDG_CACHE_HOME=/tmp/c",
        b"SLURM_PROCID=3\nSLURM_NTASKS=8\nSLURM_LOCALID=x\nAWS_REGION=eu-central-1",
    ]


def environment_values(data: bytes, rng: Random) -> bytes:
    """One value that few set."""
    lines = data.split(b"\n")
    number = rng.randrange(len(lines))
    values = (
        *(
            "",
            "²",
            "-1",
            "9" * 5000,
            "1.5",
            "true",
            "~",
            "/",
            "relative/x",
            "x" * 4096,
            "０",
            "\u0661",
        ),
        *("4,8", " 4 ", "0", "0x4", "a\tb", "\udcff"),
    )
    name = lines[number].partition(b"=")[0]
    lines[number] = name + b"=" + os.fsencode(rng.choice(values))
    return b"\n".join(lines)


def targets() -> list[Target]:
    """All of them."""
    family, place = "configs", re.escape(_NAME)
    yaml = m.stacked(m.yaml_text)
    ours, theirs = ("dataprep/config", "dataprep/schema"), ("iobench/", "dataprep/config")
    return [
        Target(
            "shard config",
            family,
            seeds("shard/*.yaml"),
            yaml,
            from_file(load_shards),
            ours,
            place,
            cost=4,
        ),
        Target(
            "bench config",
            family,
            seeds("bench/*.yaml"),
            yaml,
            from_file(load_bench),
            theirs,
            place,
            cost=10,
        ),
        Target(
            "prices",
            family,
            seeds("prices.yaml"),
            yaml,
            from_file(load_prices),
            ours,
            place,
            cost=4,
        ),
        Target(
            "limits",
            family,
            seeds("limits.yaml"),
            yaml,
            from_file(read_limits),
            theirs,
            place,
            cost=4,
        ),
        Target(
            "--set", family, options, m.stacked(m.yaml_text), option, ours, "--set|command line"
        ),
        Target(
            "environment",
            family,
            environments,
            m.stacked(environment_values),
            environment,
            theirs,
            "$^",
        ),
    ]
