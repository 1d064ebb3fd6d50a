"""Who may write a split: one whole job, or parts of one job together; everybody else is refused."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType

from dataprep.errors import LeaseLost, OutputConflict
from dataprep.names import escape
from dataprep.plan import Part
from dataprep.stores import Store
from dataprep.stores.protocol import Claim, Claimable, Holder, KeepsLeases, Lease

_KEY = re.compile(r"(?P<split>[A-Za-z0-9_]+)(\.(?P<number>\d+)-of-(?P<count>\d+))?")
_LOOKS, _BETWEEN_LOOKS_S = 4, 0.5  # at another that began at the same moment
_ASKED_EVERY_S = 5.0
_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Permit:
    """What workers ask before they store anything: whether their run may still write."""

    uri: str
    said: str
    claim: Claim

    def __call__(self) -> None:
        """Go on only while the run has its lease.

        Raises:
            LeaseLost: it has not.
            StoreError: nobody can tell.
        """
        if why := self.claim.lost():
            raise _lost(self.uri, self.said, why)


class Leases:
    """The leases of one run, given back when the block ends, however it ends.

    A store that keeps none keeps nobody out; that is noted once.
    """

    def __init__(self, store: Store, part: Part | None, note: Callable[[str], None]) -> None:
        self._store, self._part, self._note = store, part, note
        self._held: dict[str, Lease] = {}

    def __enter__(self) -> Leases:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        while self._held:
            self._held.popitem()[1].release()

    def take(self, splits: Iterable[str]) -> None:
        """Those of ``splits`` that are not held yet.

        A run that holds one and does not live any more is waited for, until its lease lapses.

        Raises:
            OutputConflict: another run writes one of them.
            StoreError: the store gives no answer.
        """
        if not isinstance(self._store, KeepsLeases):
            return
        for split in splits:
            if split not in self._held:
                self._take(self._store, split)

    def check(self) -> None:
        """Go on only while all are held.

        Raises:
            LeaseLost: one is not.
        """
        for split, lease in self._held.items():
            if why := lease.lost():
                raise _lost(self._store.uri, _said(split, self._part), why)

    def permit(self, split: str) -> Permit | None:
        """For those who write ``split``; None where they cannot ask for its lease."""
        lease = self._held.get(split)
        if not isinstance(lease, Claimable):
            return None
        return Permit(self._store.uri, _said(split, self._part), lease.claim())

    def _take(self, keeper: KeepsLeases, split: str) -> None:
        key = _key(split, self._part)
        while True:
            found = keeper.lease(key, _said(split, self._part))
            if found is None:
                self._note(
                    f"nobody can be kept out of {self._store.uri}: see to it that no other run "
                    "writes there"
                )
                return
            if isinstance(found, Holder):
                self._outlast(keeper, found)
                continue
            self._held[split] = found
            rival = self._rival(keeper, split, key)
            if rival is None:
                return
            self._held.pop(split).release()
            self._outlast(keeper, rival)

    def _rival(self, keeper: KeepsLeases, split: str, key: str) -> Holder | None:
        """Another whose lease does not go with this one, once it is sure to stay.

        Of two that came at the same moment the one whose key comes later gives way.
        """
        for look in range(_LOOKS):
            rivals = [held for held in keeper.holders(split) if _clash(held.key, split, self._part)]
            if not rivals:
                return None
            if key > min(held.key for held in rivals):
                return rivals[0]
            if look < _LOOKS - 1:
                time.sleep(_BETWEEN_LOOKS_S)
        return rivals[0]

    def _outlast(self, keeper: KeepsLeases, holder: Holder) -> None:
        """Wait until the lease has lapsed.

        Raises:
            OutputConflict: its holder lives.
        """
        where = self._store.uri
        if holder.left_s is None:
            raise _refused(where, holder)
        self._note(
            f"{where} is held by a run that makes {_shown(holder)}: waiting to see whether it "
            f"lives, at most {holder.left_s:.0f} s"
        )
        left_s = holder.left_s
        while left_s > 0:
            time.sleep(min(left_s, _ASKED_EVERY_S))
            now = [held for held in keeper.holders(holder.key) if held.key == holder.key]
            if not now:
                return
            if now[0].stamp != holder.stamp or now[0].left_s is None:
                raise _refused(where, now[0])
            left_s = now[0].left_s


def _lost(where: str, said: str, why: str) -> LeaseLost:
    return LeaseLost(
        f"{where}: the lease of {said} is lost ({why}): stopped, so that no two runs write there. "
        "Run again when no other does: what is stored is kept"
    )


def _refused(where: str, holder: Holder) -> OutputConflict:
    return OutputConflict(
        f"another run is making {_shown(holder)} in {where}: wait until it ends, or use another "
        "--output. Runs share a split only as parts of one job (--part I/N)"
    )


def _key(split: str, part: Part | None) -> str:
    return split if part is None else f"{split}.{part.number}-of-{part.count}"


def _said(split: str, part: Part | None) -> str:
    return f"split {split!r}" if part is None else f"part {part} of split {split!r}"


def _shown(holder: Holder) -> str:
    """What it has written down, which may be anything: one line of text, not too long."""
    text = holder.said[:_MOST_SHOWN].encode(errors="replace").decode()
    return escape(text)


def _clash(key: str, split: str, part: Part | None) -> bool:
    """Whether the lease ``key`` keeps this run from writing; its own does not."""
    found = _KEY.fullmatch(key)
    if found is None or found["split"] != split or key == _key(split, part):
        return False
    return part is None or found["count"] is None or int(found["count"]) != part.count
