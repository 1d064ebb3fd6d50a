"""How large files are of which only the keys are known, many at a time.

On a disk each is asked for its own size. On S3 a HEAD tells one size and a LIST a thousand, at
the price of twelve: a hundred keys or more below one prefix are listed, as long as a tenth of
what comes is wanted, and the rest is asked for one by one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from dataprep.errors import ObjectNotFound, PermissionRefused
from dataprep.ordered import in_order
from dataprep.stores import Store
from dataprep.stores.s3 import S3Store

LIST_FROM = 100
WANTED_SHARE = 10
THREADS = 32
_PAGE = 1000
_AT_ONCE = 64

Size: TypeAlias = int | str
"""Bytes, or the reason why there are none."""

MISSING = "not there"
UNREADABLE = "it may not be read, or is not there"


def sizes_of(store: Store, keys: Sequence[str]) -> list[Size]:
    """The size of each key in ``store``, or why it has none.

    Raises:
        PermissionRefused: not one of them may be asked for.
        StoreError: the store does not answer.
    """
    remote = isinstance(store, S3Store)
    known = _listed(store, keys) if remote and len(keys) >= LIST_FROM else {}
    unknown = [key for key in dict.fromkeys(keys) if key not in known]

    def ask(some: Sequence[str]) -> list[Size | PermissionRefused]:
        return [_head(store, key, remote=remote) for key in some]

    batches = _batches(unknown, 1 if remote else _AT_ONCE)
    answers = chain.from_iterable(in_order(ask, batches, THREADS))
    asked = dict(zip(unknown, answers, strict=True))
    refused = [answer for answer in asked.values() if isinstance(answer, PermissionRefused)]
    if refused and len(refused) == len(asked) and not known:
        raise refused[0]
    found = {
        key: UNREADABLE if isinstance(size, Exception) else size for key, size in asked.items()
    }
    return [known[key] if key in known else found[key] for key in keys]


def _batches(keys: Sequence[str], at_once: int) -> Iterator[Sequence[str]]:
    return (keys[start : start + at_once] for start in range(0, len(keys), at_once))


def _head(store: Store, key: str, *, remote: bool) -> Size | PermissionRefused:
    if remote and not _is_text(key):
        return "its name is not UTF-8, as a key on S3 is"
    try:
        return store.head(key).bytes
    except ObjectNotFound:
        return MISSING
    except PermissionRefused as error:
        return error


def _is_text(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def _listed(store: Store, keys: Sequence[str]) -> dict[str, int]:
    """Sizes of those keys that a few pages of their common folder hold."""
    wanted = set(keys)
    folder = os.path.commonprefix(list(wanted)).rpartition("/")[0]  # noqa: RUF071  cut at a slash
    found = {}
    try:
        for seen, info in enumerate(store.list(f"{folder}/" if folder else ""), 1):
            if info.key in wanted:
                found[info.key] = info.bytes
            if len(found) == len(wanted) or seen > _PAGE + WANTED_SHARE * len(found):
                break
    except PermissionRefused:
        pass  # who may read an object may not always list the bucket
    return found
