"""Two runs on one output: who may write, and which of several first runs creates the job.

A run has a lock for each of its splits, or for its part of each: an object below ``leases/`` that
names the process. It is renewed every minute, and expires two minutes after it was last written,
by the store's clock. Another run waits for that, unless the process is known to have ended and no
task of it can go on elsewhere. A whole run and parts of another number exclude each other. A run
that was stopped for so long that another took over finds out before it writes or removes its next
object.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import TracebackType

from pydantic import StrictBool, StrictInt
from pydantic_core import from_json

from dataprep import keys
from dataprep.errors import (
    Changes,
    DataprepError,
    LeaseLost,
    ObjectNotFound,
    OutputConflict,
    PermissionRefused,
)
from dataprep.names import escape
from dataprep.processes import ProcessIdentity, this_process, unknown_process
from dataprep.schema import MISSHAPEN, typed
from dataprep.split_plan import Part
from dataprep.stores import Store
from dataprep.stores.permitted import Permitted, always_permitted
from dataprep.stores.protocol import KeepsLocks

FOLDER = "leases/"
LIFETIME_S = 120.0
RENEWED_EVERY_S = 60.0
PATIENCE_S = 5.0
"""How long other bytes without a job file may still be the beginning of another job."""

_TRIED_AGAIN_AFTER_S = 5.0
_LOOK_EVERY_S = 2.0
_NOTE_EVERY_S = 30.0
_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class _Owner:
    """What a lock holds: the process that has it, and ``said``, which part of what that makes.

    ``machine``, ``process`` and ``started`` are those of a ``ProcessIdentity``. ``token`` is of one
    run.
    """

    said: str
    token: str
    machine: str
    process: StrictInt
    started: str
    renewals: StrictInt = 0
    released: StrictBool = False

    def encoded(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def is_gone(self) -> bool:
        """Whether the lock was released, or its process is known to have ended."""
        process = ProcessIdentity(self.machine, self.process, self.started)
        return self.released or process.has_ended()


@dataclass(frozen=True, slots=True)
class Permit:
    """A lock that a run has. Workers get a copy, and call it before they write an object."""

    store: KeepsLocks
    key: str
    said: str
    token: str

    def __call__(self) -> None:
        """Go on only while the run has the lock.

        Raises:
            LeaseLost: another run has taken it over, or it was removed.
            StoreError: the store does not say.
        """
        if self.read() is None:
            self._require_visible_output()
            raise LeaseLost(
                f"another run has taken over {self.said} in {self.store.uri}, or the output is "
                "gone: stopped, so that no two runs write there. Complete shards are kept: run "
                "again when no other run does"
            )

    def _require_visible_output(self) -> None:
        """Say so if this machine sees neither the lock nor the job file of the run."""
        split = self.key.removeprefix(FOLDER).partition(".")[0]
        if _version(self.store, self.key) or _version(self.store, keys.job(split)):
            return
        raise LeaseLost(
            f"the process on host {socket.gethostname()} does not see the output {self.store.uri}, "
            f"with the lock of this run and {keys.job(split)}: make it available there under the "
            "same path, or give an output that all workers reach, such as s3://BUCKET/PREFIX. If "
            "it is available, the output was removed: run again"
        )

    def read(self) -> tuple[_Owner, str] | None:
        """Return what the lock holds and its version; None where it is not this run's."""
        try:
            data, version = self.store.get_versioned(self.key)
        except ObjectNotFound:
            return None
        owner = _decoded(data)
        return (owner, version) if owner is not None and owner.token == self.token else None

    def renew(self) -> None:
        """Write the lock again."""
        if (found := self.read()) is not None:
            owner, version = found
            again = replace(owner, renewals=owner.renewals + 1)
            self.store.replace(self.key, again.encoded(), version)

    def release(self) -> None:
        """Remove the lock; where that is not allowed, write down that it is released."""
        if (found := self.read()) is not None:
            owner, version = found
            try:
                self.store.delete(self.key)
            except PermissionRefused:
                self.store.replace(self.key, replace(owner, released=True).encoded(), version)


class Locks:
    """The locks of one run, released when the block ends, however it ends.

    With a store that keeps no locks, runs do not exclude each other.

    Args:
        store: the output.
        part: which part of each split the run makes; None for all of it.
        note: called with what is worth a line.
        takeover: take locks of other runs at once.
        outlives_driver: tasks of the run may go on when this process has ended, on a cluster. Its
            locks then expire, also if this process is known to have ended.
    """

    def __init__(
        self,
        store: Store,
        part: Part | None,
        note: Callable[[str], None],
        takeover: bool = False,
        outlives_driver: bool = False,
    ) -> None:
        self._store, self._part, self._note, self._takeover = store, part, note, takeover
        self._outlives_driver, self._expire = outlives_driver, False
        self.permits: dict[str, Permit] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="locks", daemon=True)

    def __enter__(self) -> Locks:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        with contextlib.suppress(DataprepError):
            self._store.tidy()
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        for permit in () if self._expire else self.permits.values():
            with contextlib.suppress(DataprepError):  # it expires
                permit.release()

    def leave_to_expire(self) -> None:
        """Do not release the locks when the block ends: tasks of the run may still write."""
        self._expire = True

    def take(self, splits: Iterable[str]) -> None:
        """Take the locks of those of ``splits`` that the run does not have yet.

        A run that makes the same is waited for, until it ends or its lock expires.

        Raises:
            OutputConflict: a run that lives makes another part of one of them, or all of it.
            StoreError: the store does not answer.
        """
        if not isinstance(self._store, KeepsLocks):
            return
        for split in splits:
            if split in self.permits:
                continue
            part = f".{self._part.number}-of-{self._part.count}" if self._part else ""
            whose = f"part {self._part} of split {split!r}" if self._part else f"split {split!r}"
            permit = Permit(self._store, f"{FOLDER}{split}{part}", whose, secrets.token_hex(8))
            self._acquire(self._store, permit)
            self.permits[split] = permit
            if self._thread.ident is None:
                self._thread.start()
            self._refuse_others(self._store, split)

    def check(self) -> None:
        """Go on only while the run has all its locks. Raises as ``Permit``."""
        for permit in self.permits.values():
            permit()

    def _acquire(self, store: KeepsLocks, permit: Permit) -> None:
        process = unknown_process() if self._outlives_driver else this_process()
        owner = _Owner(permit.said, permit.token, *process)
        noted_s = -_NOTE_EVERY_S
        while True:
            left_s = 0.0
            with contextlib.suppress(ObjectNotFound):  # released at this moment
                if store.create(permit.key, owner.encoded()) or permit.read():
                    return
                other, version, left_s = _look(store, permit.key)
                if (left_s <= 0 or self._takeover) and store.replace(
                    permit.key, owner.encoded(), version
                ):
                    return
                if left_s > 0 and time.monotonic() - noted_s >= _NOTE_EVERY_S:
                    noted_s = time.monotonic()
                    self._note(
                        f"another run is making {other} in {self._store.uri}: waiting until it "
                        f"ends or its lock expires, in {left_s:.0f} s unless that run renews it "
                        "(--takeover skips the wait)"
                    )
            time.sleep(min(max(left_s, 0.1), _LOOK_EVERY_S))

    def _refuse_others(self, store: KeepsLocks, split: str) -> None:
        """Refuse to write beside a whole run or another number of parts; remove expired locks."""
        whole = f"{FOLDER}{split}"
        for key in [info.key for info in store.list(whole)]:
            is_beside = self._part and key.endswith(f"-of-{self._part.count}")
            is_of_split = key == whole or key.startswith(f"{whole}.")
            if key == self.permits[split].key or is_beside or not is_of_split:
                continue
            with contextlib.suppress(ObjectNotFound, PermissionRefused):
                other, _, left_s = _look(store, key)
                if left_s > 0 and not self._takeover:
                    raise OutputConflict(
                        f"another run is making {other} in {self._store.uri}: wait until it ends "
                        f"or its lock expires, in {left_s:.0f} s unless that run renews it, or use "
                        "another --output. Runs share a split only as parts of one job (--part I/N)"
                    )
                store.delete(key)

    def _renew(self) -> None:
        pause_s = RENEWED_EVERY_S
        while not self._over.wait(pause_s):
            try:
                for permit in [*self.permits.values()]:
                    permit.renew()
                pause_s = RENEWED_EVERY_S
            except DataprepError:
                pause_s = _TRIED_AGAIN_AFTER_S


def _look(store: KeepsLocks, key: str) -> tuple[str, str, float]:
    """What the owner of a lock makes, the lock's version, and the seconds until it expires."""
    data, version = store.get_versioned(key)
    left_s = LIFETIME_S - store.age_s(key)
    owner = _decoded(data)
    if owner is None:
        return "something that wrote no lock", version, left_s
    return escape(owner.said)[:_MOST_SHOWN], version, 0.0 if owner.is_gone() else left_s


def _decoded(data: bytes) -> _Owner | None:
    """None for what no version of this has written."""
    try:
        return typed(_Owner, from_json(data))
    except MISSHAPEN:
        return None


class Overtaken(Exception):
    """Another run created its job here first."""


def create_job(
    store: Store,
    labels: bytes,
    plans: Mapping[str, bytes],
    jobs: Mapping[str, bytes],
    patience_s: float = PATIENCE_S,
    permit: Permitted = always_permitted,
    changes: Changes | None = None,
) -> None:
    """Create labels, plans by split and job files by split; of concurrent runs exactly one wins.

    Parts of a job, and first runs of two splits, begin without each other's locks. Each object is
    created only if there is none, and who comes second must find its own bytes there. Labels and
    plans of a run that was killed before its job file are replaced, after ``patience_s``.
    ``permit`` is asked before each write; what is written is noted in ``changes``.

    Raises:
        LeaseLost: by ``permit``: another run has taken over.
        Overtaken: another job is there now.
        StoreError: the store cannot be written to.
    """
    changes = changes or Changes()
    objects = {keys.LABELS: labels}
    objects |= {keys.plan(split): data for split, data in plans.items()}
    objects |= {keys.job(split): data for split, data in jobs.items()}
    for key, data in objects.items():
        permit()
        with contextlib.suppress(ObjectNotFound):
            if store.create(key, data):
                changes.begin()
                continue
            if store.get(key) == data:
                continue
        leftover = ""
        for wait_s in (0.0, patience_s):
            time.sleep(wait_s)
            # Noted before the search for a job: what a job has written meanwhile is not replaced.
            leftover = _version(store, key)
            begun = keys.splits(info.key for info in store.list())
            if begun & {*jobs} or (begun and key == keys.LABELS):
                raise Overtaken
        permit()
        if not isinstance(store, KeepsLocks):
            store.put(key, data)
        elif not (leftover and store.replace(key, data, leftover)):
            raise Overtaken
        changes.begin()


def _version(store: Store, key: str) -> str:
    """The version of an object; empty if it is gone, or if the store tells no versions."""
    with contextlib.suppress(ObjectNotFound):
        return store.version(key) if isinstance(store, KeepsLocks) else ""
    return ""
