"""Leases of a bucket: renewed, lapsed, taken over, refused a removal."""

from __future__ import annotations

import datetime
import itertools
import json
import threading
from collections.abc import Iterator

import pytest

from dataprep.errors import ObjectNotFound, PermissionRefused, StoreError, StoreUnreachable
from dataprep.stores import s3_leases
from dataprep.stores.protocol import Claim, Holder, ObjectInfo
from dataprep.stores.s3_leases import Dated, ObjectLease, age_s, holders, take

NEVER_S = 3600.0


class Bucket:
    """Objects in memory, with ETags that count, and a clock that only ``age`` moves."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, str]] = {}
        self.age_s = 0.0
        self.puts = itertools.count()
        self.put = threading.Event()
        self.refuses_removal = self.is_away = False

    def create(self, key: str, data: bytes) -> bool:
        if key in self.objects:
            return False
        self.objects[key] = data, f"etag {next(self.puts)}"
        return True

    def dated(self, key: str) -> Dated:
        if key not in self.objects:
            raise ObjectNotFound(key)
        return Dated(*self.objects[key], self.age_s)

    def replace(self, key: str, data: bytes, etag: str) -> str | None:
        self.put.set()
        if self.is_away:
            raise StoreUnreachable("away")
        if key not in self.objects or self.objects[key][1] != etag:
            return None
        self.objects[key] = data, f"etag {next(self.puts)}"
        return self.objects[key][1]

    def delete(self, key: str) -> None:
        if self.refuses_removal:
            raise PermissionRefused(key)
        self.objects.pop(key, None)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return (ObjectInfo(key, 1) for key in list(self.objects) if key.startswith(prefix))

    def written(self, **changes: object) -> None:
        """The lease as it would be, had another process written it."""
        data, _ = self.objects["leases/train"]
        changed = json.dumps({**json.loads(data), **changes}).encode()
        self.objects["leases/train"] = changed, f"etag {next(self.puts)}"


@pytest.fixture
def bucket() -> Bucket:
    """An empty one."""
    return Bucket()


def lease(bucket: Bucket, every_s: float = NEVER_S) -> ObjectLease:
    """One that is held."""
    found = take(bucket, "train", "me", every_s=every_s)
    assert isinstance(found, ObjectLease)
    return found


def renewed(bucket: Bucket) -> None:
    """Wait for one renewal, done or tried."""
    bucket.put.clear()
    assert bucket.put.wait(60)
    bucket.put.clear()
    assert bucket.put.wait(60)  # the one before is over


def test_it_is_renewed(bucket: Bucket) -> None:
    """Each time as another object, which whoever waits can see."""
    held = lease(bucket, every_s=0.001)
    before = bucket.dated("leases/train").etag
    renewed(bucket)
    assert bucket.dated("leases/train").etag != before
    assert held.lost() == ""
    held.release()
    assert bucket.objects == {}


@pytest.mark.parametrize(("age", "left"), [(0.0, 120.0), (119.0, 1.0)])
def test_of_another_machine_it_lapses_in_time(bucket: Bucket, age: float, left: float) -> None:
    """Until then nobody can tell whether its holder lives."""
    held = lease(bucket)
    bucket.written(machine="another")
    bucket.age_s = age
    assert [holder.left_s for holder in holders(bucket, "train")] == [left]
    found = take(bucket, "train", "you")
    assert isinstance(found, Holder)
    assert found.left_s == left
    held.release()


def test_lapsed_it_is_taken_over_and_its_holder_finds_out(bucket: Bucket) -> None:
    """By the server's time; what the old one does then is nothing."""
    old = lease(bucket, every_s=0.001)
    bucket.is_away = True  # whoever is cut off does not renew
    renewed(bucket)
    bucket.written(machine="another")
    bucket.age_s = 120.0
    assert list(holders(bucket, "train")) == []
    bucket.is_away = False
    new = take(bucket, "train", "you", every_s=NEVER_S)
    assert isinstance(new, ObjectLease)
    renewed_by_old = threading.Event()
    while not old.lost():
        renewed_by_old.wait(0.01)
    assert "another run has taken it over" in old.lost()
    old.release()
    assert new.lost() == ""
    assert "leases/train" in bucket.objects
    new.release()


def test_a_renewal_whose_answer_was_lost_counts(bucket: Bucket) -> None:
    """The object is its own, under an ETag that it was never told."""
    held = lease(bucket)
    bucket.objects["leases/train"] = bucket.objects["leases/train"][0], "unheard"
    held._put(released=False)
    assert held.lost() == ""
    held._put(released=False)
    assert held.lost() == ""
    held.release()


def test_a_renewal_that_is_refused_for_no_reason_does_not_count(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The object is its own, but as old as it was: to others the lease lapses."""
    held = lease(bucket)
    bucket.objects["leases/train"] = bucket.objects["leases/train"][0], "unheard"
    bucket.age_s = 80.0
    held._put(released=False)
    assert held.lost() == ""
    now_s = s3_leases._now_s() + 11.0
    monkeypatch.setattr(s3_leases, "_now_s", lambda: now_s)
    assert "could not be renewed for 90 s" in held.lost()


def test_who_cannot_renew_gives_up_before_it_lapses(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its own clock."""
    held = lease(bucket)
    now_s = s3_leases._now_s() + 89.0
    monkeypatch.setattr(s3_leases, "_now_s", lambda: now_s)
    assert held.lost() == ""
    now_s += 3.0
    assert "could not be renewed for 90 s" in held.lost()
    held.release()
    assert bucket.objects  # it may be another's by now


def test_where_nothing_may_be_removed_it_says_that_it_is_free(bucket: Bucket) -> None:
    """And is had again at once."""
    bucket.refuses_removal = True
    lease(bucket).release()
    assert json.loads(bucket.objects["leases/train"][0])["released"] is True
    assert list(holders(bucket, "train")) == []
    lease(bucket).release()


def test_a_process_number_that_is_used_again_is_another(bucket: Bucket) -> None:
    """When it began tells them apart."""
    held = lease(bucket)
    assert [holder.left_s for holder in holders(bucket, "train")] == [None]
    bucket.written(started="1")
    assert list(holders(bucket, "train")) == []
    held.release()


def test_something_else_of_that_name_is_left_alone_for_its_time(bucket: Bucket) -> None:
    """Whoever wrote it may be a later version."""
    bucket.objects["leases/train"] = b"{}", "etag"
    found = take(bucket, "train", "me")
    assert isinstance(found, Holder)
    assert found.left_s == 120.0


def test_no_name_of_a_machine_or_person_is_written(bucket: Bucket) -> None:
    """A number for the machine, which no other has."""
    held = lease(bucket)
    written = json.loads(bucket.objects["leases/train"][0])
    assert set(written) == {
        *("said", "token", "machine", "process", "started", "renewals", "released")
    }
    assert len(written["machine"]) == 16
    int(written["machine"], 16)
    held.release()


def test_age_is_between_two_times_of_the_server() -> None:
    """Never negative, should they be of two of its machines."""
    modified = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    assert age_s(modified, "Fri, 02 Jan 2026 03:04:35 GMT") == 30.0
    assert age_s(modified, "Fri, 02 Jan 2026 03:04:00 GMT") == 0.0


def test_without_a_date_this_machine_says_how_old_it_is() -> None:
    """Not every server has a clock."""
    now = datetime.datetime.now(datetime.UTC)
    assert age_s(now + datetime.timedelta(hours=1), None) == 0.0
    assert age_s(now - datetime.timedelta(hours=1), None) >= 3600.0


def elsewhere(held: ObjectLease) -> Claim:
    """Its claim, in a process that has not asked yet."""
    claim = held.claim()
    s3_leases._sure_until_s.clear()
    return claim


def test_who_holds_it_need_not_ask(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it should have been renewed."""
    claim = lease(bucket).claim()
    bucket.objects.clear()
    assert claim.lost() == ""
    now_s = s3_leases._now_s() + 91.0
    monkeypatch.setattr(s3_leases, "_now_s", lambda: now_s)
    assert claim.lost() == "it is gone"


def test_a_claim_asks_the_bucket_once_in_a_while(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that was fresh when it was asked for is held for the next minute and a half."""
    claim = elsewhere(lease(bucket))
    assert claim.lost() == ""
    bucket.written(token="another's")
    assert claim.lost() == ""
    now_s = s3_leases._now_s() + 91.0
    monkeypatch.setattr(s3_leases, "_now_s", lambda: now_s)
    assert claim.lost() == "another run has taken it over"


@pytest.mark.parametrize(
    ("changes", "age", "why"),
    [
        ({"token": "another's"}, 0.0, "another run has taken it over"),
        ({"released": True}, 0.0, "it has lapsed"),
        ({}, 121.0, "it has lapsed"),
        ({"renewals": 7}, 100.0, ""),
    ],
    ids=["taken over", "released", "lapsed", "renewed"],
)
def test_what_a_claim_says(
    bucket: Bucket, changes: dict[str, object], age: float, why: str
) -> None:
    """By the object alone: who asks may be another process, which renews nothing."""
    claim = elsewhere(lease(bucket))
    bucket.written(**changes)
    bucket.age_s = age
    assert claim.lost() == why


def test_a_claim_to_what_is_gone(bucket: Bucket) -> None:
    """Whoever took over may have ended by now."""
    claim = elsewhere(lease(bucket))
    bucket.objects.clear()
    assert claim.lost() == "it is gone"


def test_a_request_that_arrives_twice_takes_one_lease(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one is refused; the object is its own nevertheless."""
    create = bucket.create
    monkeypatch.setattr(bucket, "create", lambda key, data: create(key, data) and create(key, data))
    held = lease(bucket)
    assert held.lost() == ""
    held.release()
    assert bucket.objects == {}


def test_a_store_that_contradicts_itself_is_not_asked_for_ever(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there when it is to be created, and is not when it is read."""
    monkeypatch.setattr(bucket, "create", lambda key, data: False)
    with pytest.raises(StoreError, match="leases/train cannot be had: the store says"):
        take(bucket, "train", "me")


@pytest.mark.parametrize(
    "changes",
    [{"process": "../../etc/passwd\0"}, {"process": True}, {"released": "yes"}, {"said": ["x"]}],
)
def test_fields_of_other_kinds_are_no_lease(bucket: Bucket, changes: dict[str, object]) -> None:
    """It hinders for as long as it is fresh, and is named as what it is."""
    lease = take(bucket, "train", "me", every_s=NEVER_S)
    assert isinstance(lease, ObjectLease)
    bucket.written(**changes)
    found = take(bucket, "train", "another", every_s=NEVER_S)
    assert isinstance(found, Holder)
    assert found.said == "something that wrote no lease"
    lease.release()


def test_json_that_is_nested_too_deeply_is_no_lease(bucket: Bucket) -> None:
    """Nobody's program ends by it."""
    bucket.objects["leases/train"] = b"[" * 100_000, "etag"
    found = take(bucket, "train", "me", every_s=NEVER_S)
    assert isinstance(found, Holder)
    bucket.age_s = NEVER_S
    lease = take(bucket, "train", "me", every_s=NEVER_S)
    assert isinstance(lease, ObjectLease)
    lease.release()


@pytest.mark.parametrize(
    ("date", "age"),
    [("Sun, 22 Nov 2026 10:00:05 -0000", 5.0), ("Sun, 22 Nov 2026 10:00:05 GMT", 5.0)],
)
def test_a_date_of_no_zone_is_one_of_universal_time(date: str, age: float) -> None:
    """RFC 5322 has ``-0000`` for it."""
    put = datetime.datetime(2026, 11, 22, 10, tzinfo=datetime.UTC)
    assert age_s(put, date) == age


@pytest.mark.parametrize("date", ["yesterday", "Sun, 99 Nov 2026 10:00:05 GMT", "\0"])
def test_a_header_that_is_no_date_is_as_none(date: str) -> None:
    """This machine's clock is taken."""
    assert age_s(datetime.datetime.now(datetime.UTC), date) < 3600
