"""Targets: what stands where a lease should, and the names that a run has left in hand.

Whatever it is, two runs never hold one lease, and what is said of a holder is one line of text.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dataprep.job.journal import Journal
from dataprep.job.leases import Leases
from dataprep.stores.local import LocalStore
from dataprep.stores.local_leases import FileLease
from dataprep.stores.local_leases import take as take_file
from dataprep.stores.processes import machine
from dataprep.stores.protocol import Holder
from dataprep.stores.s3_leases import LIFETIME_S, ObjectLease, holders, take
from tests.dataprep.stores.test_s3_leases import NEVER_S, Bucket
from tests.reliability.hostile import mutations as m
from tests.reliability.hostile.fuzz import Target

_ROOT = Path(tempfile.mkdtemp(prefix="hostile-", dir="/dev/shm"))
_KEY = "leases/train"
_SAID = "split 'train'"


def written() -> Sequence[bytes]:
    """Of another machine, of this one by a process that is gone, and released."""
    bucket = Bucket()
    lease = _taken(bucket)
    data, _ = bucket.objects[_KEY]
    lease.release()
    return [
        json.dumps({**json.loads(data), **changes}).encode()
        for changes in ({"machine": "x" * 16}, {"process": 2**22 + 1}, {"released": True}, {})
    ]


def _taken(bucket: Bucket) -> ObjectLease:
    lease = take(bucket, "train", _SAID, every_s=NEVER_S)
    assert isinstance(lease, ObjectLease)
    return lease


def _other_holds(data: bytes) -> bool:
    """Whether nothing that is written there can mean that the lease is free before it lapses."""
    try:
        told: Any = json.loads(data)
    except (ValueError, RecursionError):
        return True
    return not isinstance(told, dict) or (
        told.get("released") is not True and told.get("machine") != machine()
    )


def in_a_bucket(data: bytes) -> None:
    """Found by one who wants it, and by one who has it."""
    fresh = hashlib.sha256(data).digest()[0] % 2 == 0
    bucket = Bucket()
    bucket.objects[_KEY] = data, "etag of somebody"
    bucket.age_s = 1.0 if fresh else 2 * LIFETIME_S
    listed = [held for held in holders(bucket, "") if held.key == "train"]
    found = take(bucket, "train", _SAID, every_s=NEVER_S)
    if isinstance(found, Holder):
        assert [held.key for held in listed] == ["train"]
        assert fresh
        return
    assert not fresh or not _other_holds(data), "taken from one who may live"
    bucket.age_s = 0.0
    try:
        assert isinstance(take(bucket, "train", _SAID, every_s=NEVER_S), Holder), "two hold it"
        bucket.objects[_KEY] = data, "etag of another"
        found._put(released=False)
        assert found.lost() or found._written.token.encode() in data, "lost, and does not know"
    finally:
        found.release()


def in_a_directory(data: bytes) -> None:
    """Found by one who wants it; then written by one who has it, in the way of another."""
    output = _ROOT / "output"
    shutil.rmtree(output, ignore_errors=True)
    path = output / ".partial/leases/train"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    lease = take_file(path, _SAID)
    assert isinstance(lease, FileLease)
    try:
        other = take_file(path, "another")
        assert isinstance(other, Holder)
        assert other.said == _SAID
        path.write_bytes(data)
        _refuse(LocalStore(os.fspath(output)))
    finally:
        lease.release()


def in_the_way(data: bytes) -> None:
    """An object that somebody renews: the job that meets it is refused in a line."""
    store = _Met(data)
    if isinstance(store.lease("train", _SAID), Holder):
        _refuse(store)


class _Met(LocalStore):
    """A directory whose leases are a bucket's; the holder lives on this machine."""

    def __init__(self, data: bytes) -> None:
        super().__init__(os.fspath(_ROOT))
        self.bucket = Bucket()
        self.bucket.objects[_KEY] = data, "etag of somebody"

    def lease(self, key: str, said: str) -> Any:
        found = take(self.bucket, key, said, every_s=NEVER_S)
        if isinstance(found, ObjectLease):
            found.release()
            return found
        return found._replace(left_s=None)  # nobody waits for it here

    def holders(self, prefix: str) -> Any:
        return holders(self.bucket, prefix)


def _refuse(store: LocalStore) -> None:
    """Raises OutputConflict: that is what has to come."""
    try:
        with Leases(store, None, lambda line: _one_line(line)) as leases:
            leases.take(["train"])
    except Exception as error:
        _one_line(str(error))
        raise
    raise AssertionError("two hold it")


def _one_line(text: str) -> None:
    assert text.splitlines() == [text], "not one line"
    assert not any(ord(letter) < 32 for letter in text), "what a terminal obeys"
    assert len(text) < 2000, "a long line"
    text.encode()


def journals() -> Sequence[bytes]:
    """Names of which one is not UTF-8."""
    slots = [b"a/b.jpg", b"", b"caf\xe9.jpg", b"x" * 255]
    return [b"".join(slot.ljust(256, b"\0") for slot in slots)]


def in_hand(data: bytes) -> None:
    """What a run that died had in hand, as the next one finds it."""
    path = _ROOT / "in-hand"
    path.write_bytes(data)
    told: list[str] = []
    with Journal(path) as journal:
        journal.announce(told.append)
        journal.take("another.jpg")
        journal.lay_down()
        assert journal.isolated == bool(journal.died_over)
    for line in told:
        assert len(line.splitlines()) == 1
        line.encode()
    assert not path.exists()


def targets() -> list[Target]:
    """All of them."""
    family, own = "leases", ("dataprep/stores", "dataprep/job")
    json_, any_ = m.stacked(m.json_tree), m.stacked(m.json_tree, m.cells, m.bytes_at_random)
    place = "another run is making .* in "
    bucket = Target("lease of a bucket", family, written, json_, in_a_bucket, own, "$^", cost=2)
    return [
        bucket,
        dataclasses.replace(
            bucket, name="lease in the way", read=in_the_way, place=place, mutate=any_
        ),
        Target(
            "lease of a directory",
            family,
            lambda: [_SAID.encode(), b"part 0/2 of split 'train'"],
            any_,
            in_a_directory,
            own,
            place,
            cost=4,
        ),
        Target(
            "samples in hand",
            family,
            journals,
            m.stacked(m.bytes_at_random),
            in_hand,
            ("dataprep/job",),
            "$^",
            cost=4,
        ),
    ]
