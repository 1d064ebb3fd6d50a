"""Locks on the splits of an output: at most one run writes a split, or a part of it, at a time.

A run has a lock for each of its splits, or for its part of each split. The lock is an object below
``leases/`` that identifies the process of the run. The run renews it every minute. A lock expires
two minutes after it was last written, by the clock of the store.

If a second run needs the same lock, it waits until the first run releases the lock or the lock
expires. It takes the lock over at once if the process of the first run is known to have ended, and
none of its tasks can continue on a cluster.

A run that writes a whole split and a run that writes a part of it exclude each other: the second of
them ends with an error. The same holds for two parts if the runs divide the split into different
numbers of parts.

If a run is suspended and another run takes over its lock, the first run notices this before it
writes or removes its next object.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from types import TracebackType

from pydantic import StrictBool, StrictInt
from pydantic_core import from_json

from dataprep.errors import (
    DataprepError,
    LeaseLost,
    ObjectNotFound,
    OutputConflict,
    PermissionRefused,
)
from dataprep.job.parts import Part
from dataprep.machine.processes import ProcessIdentity, this_process, unknown_process
from dataprep.name_encoding import escape
from dataprep.output import keys
from dataprep.schema import STRUCTURE_ERRORS, typed
from dataprep.stores import Store
from dataprep.stores.locked_writes import LockCheck, no_lock, version_of
from dataprep.stores.protocol import KeepsLocks

FOLDER = "leases/"
"""The prefix of the keys of all locks. It must stay, because runs of earlier versions use it."""

LIFETIME_S = 120.0
"""A lock expires this long after it was last written."""

RENEWAL_INTERVAL_S = LIFETIME_S / 2
"""How long a run waits between renewals.

It is half of the lifetime, so that a failed renewal can be repeated before the lock expires.
"""

_RENEWAL_RETRY_INTERVAL_S = 5.0
# A run that waits for a lock looks at it again after a pause between these limits.
_MAX_POLL_INTERVAL_S = 2.0
_MIN_POLL_INTERVAL_S = 0.1
_MESSAGE_INTERVAL_S = 30.0
# The limit of a text that another program may have stored as the content of a lock.
_MAX_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class _LockContent:
    """The content of a lock object. The field names are the keys of its JSON.

    Attributes:
        said: what the run writes, such as ``split 'train'``. Messages of other runs show it.
        token: random hexadecimal digits. They show whether the lock is still that of the run that
            has drawn them.
        machine, process, started: the fields of the ``ProcessIdentity`` of the run.
        renewals: how often the lock was renewed. Therefore each renewal writes other bytes. On S3,
            where the version of an object is its ETag, equal bytes would have the same version.
        released: whether the run has ended but was not allowed to remove the lock.
    """

    said: str
    token: str
    machine: str
    process: StrictInt
    started: str
    renewals: StrictInt = 0
    released: StrictBool = False

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def is_abandoned(self) -> bool:
        """Whether the lock was released, or the process of its run is known to have ended."""
        process = ProcessIdentity(self.machine, self.process, self.started)
        return self.released or process.has_ended()


@dataclass(frozen=True, slots=True)
class _OtherLock:
    """A lock that another run holds or has held.

    Attributes:
        subject: what the other run writes, escaped for messages.
        version: the version of the lock object.
        remaining_s: seconds until the lock expires; 0 or less if it has expired or is abandoned, so
            that it can be taken over.
    """

    subject: str
    version: str
    remaining_s: float


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock of this run. It can be pickled, so that workers can check it, too.

    Attributes:
        store: the output.
        key: the key of the lock object.
        subject: what the lock protects, such as ``split 'train'``.
        token: the random digits in the lock object, as long as this run has the lock.
    """

    store: KeepsLocks
    key: str
    subject: str
    token: str

    def check(self) -> None:
        """Raise an error unless the run still has the lock.

        Raises:
            LeaseLost: another run has taken over the lock, the lock was removed, or this machine
                does not see the output.
            StoreError: the lock cannot be read.
        """
        if self.read() is not None:
            return
        self._require_visible_output()
        raise LeaseLost(
            f"another run has taken over {self.subject} in {self.store.uri}, or the output was "
            "removed. This run stopped, because only one run may write there. Complete shards are "
            "kept: run again when no other run writes to this output"
        )

    def _require_visible_output(self) -> None:
        """Raise LeaseLost with advice if this machine sees neither the lock nor the job file.

        The output is then probably on a disk that this machine does not have.
        """
        split = self.key.removeprefix(FOLDER).partition(".")[0]
        if version_of(self.store, self.key) or version_of(self.store, keys.job(split)):
            return
        raise LeaseLost(
            f"the process on host {socket.gethostname()} does not see the output {self.store.uri}, "
            f"with the lock of this run and {keys.job(split)}: make it available there under the "
            "same path, or use an output that all workers can reach, such as s3://BUCKET/PREFIX. "
            "If it is available there, it was removed during this run: run again"
        )

    def read(self) -> tuple[_LockContent, str] | None:
        """Return the content of the lock and its version; None if this run does not have the lock.

        That is the case if the lock object is gone, is unreadable, or has the token of another run.
        """
        try:
            data, version = self.store.get_versioned(self.key)
        except ObjectNotFound:
            return None
        content = _parse(data)
        if content is None or content.token != self.token:
            return None
        return content, version

    def renew(self) -> None:
        """Write the lock again, so that it does not expire. Do nothing if it is lost."""
        current = self.read()
        if current is not None:
            content, version = current
            renewed = replace(content, renewals=content.renewals + 1)
            self.store.replace(self.key, renewed.to_json(), version)

    def release(self) -> None:
        """Remove the lock, unless it is lost. If removing is not allowed, mark it as released."""
        current = self.read()
        if current is not None:
            content, version = current
            try:
                self.store.delete(self.key)
            except PermissionRefused:
                released = replace(content, released=True)
                self.store.replace(self.key, released.to_json(), version)


class Locks:
    """The locks of one run.

    They are released when the ``with`` block ends, even with an error, unless ``leave_to_expire``
    was called.

    If the store does not support locks (``KeepsLocks``), runs do not exclude each other.

    Args:
        store: the output.
        part: the part of each split that the run writes; None for the whole split.
        note: called with messages for the user.
        takeover: take over the locks of other runs without waiting, and remove locks that exclude
            this run.
        outlives_driver: whether tasks of the run may continue on a cluster after this process has
            ended. Other runs then wait until the locks expire, even if this process has ended.

    Attributes:
        by_split: the lock of each split that the run has locked, by the name of the split.
    """

    def __init__(
        self,
        store: Store,
        part: Part | None,
        note: Callable[[str], None],
        takeover: bool = False,
        outlives_driver: bool = False,
    ) -> None:
        self.by_split: dict[str, Lock] = {}
        self._store = store
        self._part = part
        self._note = note
        self._takeover = takeover
        self._outlives_driver = outlives_driver
        self._release_at_end = True
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._renew_until_end, name="locks", daemon=True)

    def __enter__(self) -> Locks:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Remove temporary files of this run while it still has its locks.
        with contextlib.suppress(DataprepError):
            self._store.tidy()
        self._ended.set()
        if self._renewer.ident is not None:  # the thread was started
            self._renewer.join()
        if not self._release_at_end:
            return
        for lock in self.by_split.values():
            with contextlib.suppress(DataprepError):  # a lock that is not released expires
                lock.release()

    def leave_to_expire(self) -> None:
        """Let the locks expire instead of releasing them when the ``with`` block ends.

        This is needed if tasks of the run may still write.
        """
        self._release_at_end = False

    def take(self, splits: Iterable[str]) -> None:
        """Take the locks of the splits that the run has not locked yet.

        If another run writes the same split or part, wait until that run ends or its lock expires.
        With ``takeover``, do not wait. Do nothing if the store does not support locks.

        Raises:
            OutputConflict: another run writes the whole split, while this run writes a part of it;
                or the reverse; or the other run divides the split into another number of parts.
                The lock on this split is then released at the end of the ``with`` block.
            StoreError: a lock cannot be read or written.
        """
        if not isinstance(self._store, KeepsLocks):
            return
        for split in splits:
            if split in self.by_split:
                continue
            key = FOLDER + split
            subject = f"split {split!r}"
            if self._part is not None:
                key += f".{self._part.number}-of-{self._part.count}"
                subject = f"part {self._part} of {subject}"
            lock = Lock(self._store, key, subject, secrets.token_hex(8))
            self._acquire(self._store, lock)
            self.by_split[split] = lock
            if self._renewer.ident is None:  # the thread was not started yet
                self._renewer.start()
            # Search after the own lock was created. If two such runs start at the same time, at
            # least one of them then finds the lock of the other.
            self._refuse_conflicting_runs(self._store, split)

    def check(self) -> None:
        """Raise the errors of ``Lock.check`` unless the run still has all its locks."""
        for lock in self.by_split.values():
            lock.check()

    def check_of(self, split: str) -> LockCheck:
        """Return a function that raises an error unless the run still has the lock on a split.

        The function can be pickled.
        """
        if split not in self.by_split:  # the store does not support locks
            return no_lock
        return self.by_split[split].check

    def _acquire(self, store: KeepsLocks, lock: Lock) -> None:
        """Create the lock object, or replace that of another run. Wait until this is possible."""
        process = unknown_process() if self._outlives_driver else this_process()
        content = _LockContent(lock.subject, lock.token, *process).to_json()
        last_message_s = -_MESSAGE_INTERVAL_S  # so that the first message comes at once
        while True:
            remaining_s = 0.0
            with contextlib.suppress(ObjectNotFound):  # the other run released it at this moment
                # ``create`` may return False although it has stored the object (see ``Store``).
                if store.create(lock.key, content) or lock.read():
                    return
                other = _read_other_lock(store, lock.key)
                remaining_s = other.remaining_s
                may_replace = remaining_s <= 0 or self._takeover
                if may_replace and store.replace(lock.key, content, other.version):
                    return
                now_s = time.monotonic()
                if remaining_s > 0 and now_s - last_message_s >= _MESSAGE_INTERVAL_S:
                    last_message_s = now_s
                    self._note(
                        f"another run is making {other.subject} in {self._store.uri}: waiting "
                        f"until it ends or its lock expires, in {remaining_s:.0f} s unless that "
                        "run renews it (--takeover skips the wait)"
                    )
            time.sleep(min(max(remaining_s, _MIN_POLL_INTERVAL_S), _MAX_POLL_INTERVAL_S))

    def _refuse_conflicting_runs(self, store: KeepsLocks, split: str) -> None:
        """Raise OutputConflict if another run has a lock that excludes this run from the split.

        ``_conflicting_keys`` says which locks exclude a run. If such a lock has expired, or with
        ``takeover``, it is removed instead.
        """
        for key in self._conflicting_keys(store, split):
            # The lock may be removed at this moment. If this run may not remove an expired lock,
            # the lock stays.
            with contextlib.suppress(ObjectNotFound, PermissionRefused):
                other = _read_other_lock(store, key)
                if other.remaining_s > 0 and not self._takeover:
                    raise OutputConflict(
                        f"another run is making {other.subject} in {self._store.uri}: wait until "
                        f"it ends or its lock expires, in {other.remaining_s:.0f} s unless that "
                        "run renews it, or use another --output. Runs share a split only as parts "
                        "of one job (--part I/N)"
                    )
                store.delete(key)

    def _conflicting_keys(self, store: KeepsLocks, split: str) -> list[str]:
        """The keys of the locks on the split that exclude this run.

        If this run writes the whole split, these are the locks of all parts. If it writes a part,
        these are the lock of the whole split, and the locks of parts with another number of parts.
        """
        whole_split = FOLDER + split
        conflicting = []
        for info in store.list(whole_split):
            key = info.key
            # The listing also has the locks of splits whose names begin with the same letters.
            is_of_split = key == whole_split or key.startswith(f"{whole_split}.")
            is_own = key == self.by_split[split].key
            is_part_of_same_job = False
            if self._part is not None:
                is_part_of_same_job = key.endswith(f"-of-{self._part.count}")
            if is_of_split and not is_own and not is_part_of_same_job:
                conflicting.append(key)
        return conflicting

    def _renew_until_end(self) -> None:
        """Renew all locks until the ``with`` block ends. This is the function of a thread.

        After an error, all locks are renewed again after a shorter pause.
        """
        pause_s = RENEWAL_INTERVAL_S
        while not self._ended.wait(pause_s):
            try:
                for lock in list(self.by_split.values()):
                    lock.renew()
                pause_s = RENEWAL_INTERVAL_S
            except DataprepError:
                pause_s = _RENEWAL_RETRY_INTERVAL_S


def _read_other_lock(store: KeepsLocks, key: str) -> _OtherLock:
    """Read the lock of another run.

    Raises:
        ObjectNotFound: the lock is gone.
        StoreError: the lock could not be read.
    """
    data, version = store.get_versioned(key)
    remaining_s = LIFETIME_S - store.age_s(key)
    content = _parse(data)
    if content is None:
        return _OtherLock("an unknown split (its lock file is unreadable)", version, remaining_s)
    if content.is_abandoned():
        remaining_s = 0.0
    return _OtherLock(escape(content.said)[:_MAX_SHOWN_CHARACTERS], version, remaining_s)


def _parse(data: bytes) -> _LockContent | None:
    """Parse a lock object. Return None if it is not a lock that this version can read."""
    try:
        return typed(_LockContent, from_json(data))
    except STRUCTURE_ERRORS:
        return None
