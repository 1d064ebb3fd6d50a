"""Leases of a bucket: objects that are created only if there are none, and renewed while held.

Whoever created ``KEY`` (``If-None-Match: *``) holds it, and puts it anew every half minute, each
time only if it is still the one that it put last (``If-Match``). One that was not put for two
minutes has lapsed: by the server's clock, which dates both the object and the answer that gives it.
Then one of those who want it replaces it, again by ``If-Match``; the old holder finds out at its
next renewal. A holder that cannot renew in time gives up before the lease lapses.

A process of this machine that is gone has lost its lease at once, and one that lives is known to.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from email.utils import parsedate_to_datetime
from typing import NamedTuple, Protocol

from dataprep.errors import DataprepError, ObjectNotFound, PermissionRefused, StoreError
from dataprep.stores.processes import machine as _machine
from dataprep.stores.processes import started
from dataprep.stores.protocol import Holder, ObjectInfo

FOLDER = "leases/"
"""Where the objects lie, while jobs run."""

LARGEST_BYTES = 2**16
"""An object that is larger is no lease."""

LIFETIME_S = 120.0
RENEWED_EVERY_S = 30.0
_GIVEN_UP_AFTER_S = LIFETIME_S - RENEWED_EVERY_S
_ROUNDS = 100
"""As often others may come in between, at the very moment, before the store is not believed."""
_sure_until_s: dict[str, float] = {}
"""By token, until when (``_now_s``) this process need not ask whether a lease is held."""


def _now_s() -> float:
    """Seconds that also count while the machine sleeps, as the server's do: Linux has a clock of
    its own for that."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Dated(NamedTuple):
    """A small object as an answer gave it: how old it is, both times being the server's."""

    data: bytes
    etag: str
    age_s: float


class Bucket(Protocol):
    """What leases need of a bucket."""

    def create(self, key: str, data: bytes) -> bool:
        """As ``Create`` has it."""
        ...

    def dated(self, key: str) -> Dated:
        """The object. Raises ObjectNotFound."""
        ...

    def replace(self, key: str, data: bytes, etag: str) -> str | None:
        """Put it if it still has that ETag; the new one, None where it has another or is gone."""
        ...

    def delete(self, key: str) -> None:
        """Remove it."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """As ``List`` has it."""
        ...


@dataclass(frozen=True, slots=True)
class _Written:
    """What the object holds. ``machine`` and ``started`` tell a process from all others."""

    said: str
    token: str
    machine: str
    process: int
    started: str
    renewals: int = 0
    released: bool = False

    def encoded(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decoded(cls, data: bytes) -> _Written | None:
        """None for what no version of this has written."""
        try:
            content = json.loads(data)
            told = {field.name: content[field.name] for field in fields(cls)}
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        kinds = {"process": int, "renewals": int, "released": bool}
        if any(type(told[name]) is not kinds.get(name, str) for name in told):
            return None
        return cls(**told)


class ObjectLease:
    """A lease that a thread renews."""

    def __init__(
        self, bucket: Bucket, key: str, written: _Written, etag: str, every_s: float
    ) -> None:
        self._bucket, self._key, self._written, self._etag = bucket, key, written, etag
        self._every_s = every_s
        self._renewed_s = _now_s()
        self._why_lost = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease {key}", daemon=True)
        self._thread.start()

    def lost(self) -> str:
        """Taken over by another, or not renewed for so long that it may be."""
        if not self._why_lost and _now_s() - self._renewed_s > _GIVEN_UP_AFTER_S:
            self._why_lost = f"it could not be renewed for {_GIVEN_UP_AFTER_S:.0f} s"
        return self._why_lost

    def claim(self) -> ObjectClaim:
        """For those who write under this lease."""
        claim = ObjectClaim(self._bucket, self._key, self._written.token)
        _sure_until_s[claim.token] = self._renewed_s + _GIVEN_UP_AFTER_S
        return claim

    def release(self) -> None:
        """Remove the object; where that is not allowed, write down that it is released."""
        self._over.set()
        self._thread.join()
        _sure_until_s.pop(self._written.token, None)
        if self.lost():
            return
        try:
            self._bucket.delete(self._key)
        except PermissionRefused:
            self._put(released=True)
        except DataprepError:
            pass  # it lapses

    def _renew(self) -> None:
        while not self._over.wait(self._every_s) and not self.lost():
            try:
                self._put(released=False)
            except DataprepError:
                continue  # until it has been too long

    def _put(self, *, released: bool) -> None:
        began_s = _now_s()
        content = {**asdict(self._written), "released": released}
        self._written = _Written(**{**content, "renewals": self._written.renewals + 1})
        etag = self._bucket.replace(self._key, self._written.encoded(), self._etag)
        if etag is not None:
            self._etag, self._renewed_s = etag, began_s
        elif not self._is_own():
            self._why_lost = "another run has taken it over"

    def _is_own(self) -> bool:
        """Whether a renewal whose answer was lost was done nevertheless; renewed it was then."""
        asked_s = _now_s()
        try:
            found = self._bucket.dated(self._key)
        except ObjectNotFound:
            return False
        there = _Written.decoded(found.data)
        if there is None or there.token != self._written.token:
            return False
        self._etag, self._renewed_s = found.etag, asked_s - found.age_s
        return True


@dataclass(frozen=True, slots=True)
class ObjectClaim:
    """Whether the object is still that of one run: asked of the bucket, at most every minute or so.

    A process that stood still, with its machine or by itself, does not know whether another run has
    taken over meanwhile; what it would write then would be written over what that run has made.
    """

    bucket: Bucket
    key: str
    token: str

    def lost(self) -> str:
        """Taken over, released, or lapsed."""
        now_s = _now_s()
        if now_s < _sure_until_s.get(self.token, now_s):
            return ""
        try:
            found = self.bucket.dated(self.key)
        except ObjectNotFound:
            return "it is gone"
        written = _Written.decoded(found.data)
        if written is None or written.token != self.token:
            return "another run has taken it over"
        if written.released or found.age_s > LIFETIME_S:
            return "it has lapsed"
        _sure_until_s[self.token] = now_s + _GIVEN_UP_AFTER_S - found.age_s
        return ""


def take(
    bucket: Bucket,
    key: str,
    said: str,
    *,
    lifetime_s: float = LIFETIME_S,
    every_s: float = RENEWED_EVERY_S,
) -> ObjectLease | Holder:
    """Hold ``key``, or tell who does.

    Raises:
        StoreError: the bucket does not answer, may not be written to, or contradicts itself.
    """
    written = _Written(said, secrets.token_hex(8), _machine(), os.getpid(), started(os.getpid()))
    name = f"{FOLDER}{key}"
    for _ in range(_ROUNDS):
        if bucket.create(name, written.encoded()):
            etag = bucket.dated(name).etag  # not the MD5 everywhere
            return ObjectLease(bucket, name, written, etag, every_s)
        try:
            found = bucket.dated(name)
        except ObjectNotFound:
            continue  # released in between
        there = _Written.decoded(found.data)
        if there is not None and there.token == written.token:  # something sent the request twice
            return ObjectLease(bucket, name, written, found.etag, every_s)
        holder = _holder(key, found, lifetime_s)
        if holder is not None and holder.left_s != 0:
            return holder
        replaced = bucket.replace(name, written.encoded(), found.etag)
        if replaced is not None:
            return ObjectLease(bucket, name, written, replaced, every_s)
    raise StoreError(
        f"{name} cannot be had: the store says that it is there when it is to be created, and that "
        "it is not, or is another, when it is asked for. Run again; if it stays so, it keeps no "
        "leases"
    )


def holders(bucket: Bucket, prefix: str, *, lifetime_s: float = LIFETIME_S) -> Iterator[Holder]:
    """Who holds which lease whose key begins so; lapsed and released ones are left out."""
    for name in [info.key for info in bucket.list(f"{FOLDER}{prefix}")]:
        try:
            holder = _holder(name.removeprefix(FOLDER), bucket.dated(name), lifetime_s)
        except ObjectNotFound:
            continue
        if holder is not None and holder.left_s != 0:
            yield holder


def sweep(bucket: Bucket) -> None:
    """Remove those that nobody holds, as far as that is allowed."""
    try:
        names = {info.key for info in bucket.list(FOLDER)}
        live = {f"{FOLDER}{holder.key}" for holder in holders(bucket, "")} if names else set()
        for name in sorted(names - live):
            bucket.delete(name)
    except DataprepError:
        pass  # they hinder nobody


def _holder(key: str, found: Dated, lifetime_s: float) -> Holder | None:
    written = _Written.decoded(found.data)
    if written is not None and written.released:
        return None
    left_s = max(0.0, lifetime_s - found.age_s)
    if written is None:
        return Holder(key, "something that wrote no lease", found.etag, left_s)
    if written.machine == _machine():
        lives = started(written.process) == written.started
        return Holder(key, written.said, found.etag, None) if lives and left_s else None
    return Holder(key, written.said, found.etag, left_s)


def age_s(modified: datetime.datetime, date: str | None) -> float:
    """Seconds from ``LastModified`` to the ``Date`` header of the same answer.

    A server that dates no answers (RFC 9110 asks for it of those that have a clock) is taken to
    have this machine's.
    """
    now = datetime.datetime.now(datetime.UTC)
    if date:
        with contextlib.suppress(ValueError, OverflowError):  # no date: as if there were none
            told = parsedate_to_datetime(date)
            now = told if told.tzinfo else told.replace(tzinfo=datetime.UTC)
    return max(0.0, (now - modified).total_seconds())
