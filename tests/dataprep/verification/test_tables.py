"""Of the table of samples, the manifest and the receipts, the one that is wrong is named."""

from __future__ import annotations

import io
from typing import Any

import pyarrow.parquet as pq
import pytest

from dataprep.errors import PermissionRefused
from dataprep.stores.memory import MemoryStore
from tests.dataprep.verification.conftest import RECEIPT, Output

TABLE, MANIFEST = "train.samples.parquet", "train.manifest.json"


def rewritten(data: bytes) -> bytes:
    """The same rows, stored otherwise."""
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(data)), sink, compression="snappy")
    return sink.getvalue()


def test_a_table_of_other_bytes(output: Output) -> None:
    """Its SHA-256 is held against the manifest's, also where its rows are right."""
    output.store.put(TABLE, rewritten(output.store.get(TABLE)))
    (fault,) = output.faults("quick")
    assert (fault.key, fault.remedy) == (TABLE, TABLE)
    assert "its bytes changed" in fault.what


def test_a_manifest_that_may_not_be_read(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making anew what lacks would not help against a missing right, so it is not advised."""
    get = MemoryStore.get

    def refuse(store: MemoryStore, key: str) -> bytes:
        if key == MANIFEST:
            raise PermissionRefused(f"permission denied: {key!r}")
        return get(store, key)

    monkeypatch.setattr(MemoryStore, "get", refuse)
    verified = output.verify("quick")
    assert [(fault.key, fault.remedy) for fault in verified.faults] == [(MANIFEST, None)]
    assert "permission denied" in str(verified)
    assert "to mend" not in str(verified)


def test_a_manifest_of_before(output: Output) -> None:
    """A manifest that has no checksum of its table is held against its rows alone."""
    output.change_json(MANIFEST, lambda content: content.pop("table"))
    output.store.put(TABLE, rewritten(output.store.get(TABLE)))
    assert output.verify().ok


def test_a_wrong_checksum_of_the_table(output: Output) -> None:
    """Where the table is what the receipts give, the manifest is wrong."""
    output.change_json(MANIFEST, lambda content: content["table"].update(sha256="0" * 64))
    (fault,) = output.faults("quick")
    assert (fault.key, fault.what) == (MANIFEST, f"what it says of {TABLE} is not true")


def test_a_receipt_that_differs_from_an_intact_table(output: Output) -> None:
    """Where the table is as the manifest says, the receipt of the row is wrong."""

    def widen(content: Any) -> None:
        content["samples"]["source_width"][4] += 1

    output.change_json(RECEIPT.format(2), widen)
    (fault,) = output.faults("quick")
    assert (fault.key, fault.remedy) == (RECEIPT.format(2), RECEIPT.format(2))
    assert f"not those of {TABLE}, which is as the manifest says" in fault.what


def test_a_shard_of_the_manifest(output: Output) -> None:
    """Receipt and manifest are both named where no shard is read; then the manifest is wrong."""

    def edit(content: Any) -> None:
        content["formats"]["tfrecord"]["shards"][1]["sha256"] = "0" * 64

    output.change_json(MANIFEST, edit)
    (fault,) = output.faults("quick")
    assert fault.key == MANIFEST
    assert fault.what == f"its 'formats' does not agree with {RECEIPT.format(1)}"
    (fault,) = output.faults("full")
    assert (fault.key, fault.remedy) == (MANIFEST, MANIFEST)
