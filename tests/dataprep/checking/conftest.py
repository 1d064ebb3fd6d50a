"""A valid output in memory, with a new copy for each test that damages it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dataprep
from dataprep.checking import Depth, Fault, Verification, verify
from dataprep.cli.main import app
from dataprep.output.receipt import Receipt, Row
from dataprep.stores.memory import MemoryStore

DEPTHS: tuple[Depth, ...] = ("quick", "full", "deep")
RECEIPT = "receipts/train-{:05}-of-00003.json"
MANIFEST, TABLE, PLAN = "train.manifest.json", "train.samples.parquet", "train.plan.parquet"
SHARDS = {
    "tfrecord": "tfrecord/train-{:05}-of-00003",
    "recordio": "recordio/train-{:05}-of-00003.rec",
    "webdataset": "webdataset/train-{:05}-of-00003.tar",
}


def flip(offset: int) -> Callable[[bytearray], None]:
    """An edit that inverts every bit of one byte."""

    def edit(data: bytearray) -> None:
        data[offset] ^= 0xFF

    return edit


@dataclass(frozen=True)
class Output:
    """A copy of an output that a test damages."""

    store: MemoryStore

    def verify(self, depth: Depth = "full") -> Verification:
        """The verification of its one split."""
        (verification,) = verify(self.store.uri, depth=depth, workers=2)
        return verification

    def faults(self, depth: Depth = "full") -> tuple[Fault, ...]:
        """The faults of its one split."""
        return self.verify(depth).faults

    def receipt(self, shard: int) -> Receipt:
        """The receipt of a shard."""
        key = RECEIPT.format(shard)
        return Receipt.from_json(self.store.get(key), key)

    def location_of(self, form: str, shard: int, record: int) -> tuple[int, int]:
        """Offset and length of one record in its shard, in bytes."""
        return self.place_of(self.receipt(shard).rows[record], form)

    def place_of(self, row: Row, form: str) -> tuple[int, int]:
        """Offset and length of the record of a row, in bytes."""
        return (row.records or {})[form][:2]

    def change(self, key: str, edit: Callable[[bytearray], object]) -> None:
        """Change the bytes of an object in place."""
        data = bytearray(self.store.get(key))
        edit(data)
        assert data != self.store.get(key)
        self.store.put(key, data)

    def change_json(self, key: str, edit: Callable[[Any], object]) -> None:
        """Change the JSON of an object in place."""
        content = json.loads(self.store.get(key))
        edit(content)
        self.store.put(key, json.dumps(content).encode())


def command(*arguments: object) -> tuple[int, str, str]:
    """Run ``dataprep verify``. Return its exit code, stdout and stderr."""
    result = CliRunner().invoke(app, ["verify", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def job(tree: Path, store: MemoryStore) -> dataprep.ShardConfig:
    """The config of the job that made ``clean``, with which it can be made again."""
    return dataprep.ShardConfig.model_validate(
        {
            "source": str(tree),
            "output": store.uri,
            "format": tuple(SHARDS),
            "image": {"size": 224},
            "shard_size": "1.2MB",
            "dask": {"workers": 2, "processes": False},
        }
    )


@pytest.fixture(scope="session")
def clean(tree: Path) -> Mapping[str, bytes]:
    """Three shards in all formats."""
    store = MemoryStore(f"memory://clean-{secrets.token_hex(4)}")
    dataprep.shard(job(tree, store))
    return {info.key: store.get(info.key) for info in store.list()}


@pytest.fixture
def output(clean: Mapping[str, bytes]) -> Output:
    """A copy of ``clean``."""
    store = MemoryStore(f"memory://{secrets.token_hex(8)}")
    for key, data in clean.items():
        store.put(key, data)
    return Output(store)
