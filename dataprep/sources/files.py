"""Files of a source: listed, read and measured, with the errors of a source."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from itertools import chain, islice

from dataprep.errors import (
    ConfigError,
    ObjectNotFound,
    PermissionRefused,
    SourceChanged,
    SourceError,
    SourceNotFound,
    UnreadableImage,
)
from dataprep.ordered import in_order
from dataprep.sources.classes import is_clutter
from dataprep.sources.local_tree import Tree, list_tree
from dataprep.sources.protocol import REMOTE_READS
from dataprep.stores import Store
from dataprep.stores.local import LocalStore
from dataprep.stores.s3 import S3Store

MISSING = "not there"
UNREADABLE = "it may not be read, or is not there"

_LIST_FROM = 100
_LISTED_FOR_ONE = 10
_THREADS = 32
_ASKED_AT_ONCE = 64


def split_uri(uri: str) -> tuple[str, str]:
    """The folder of a file, and its name there: ``s3://bucket/a`` and ``b.csv``.

    Raises:
        ConfigError: it is a URI that names no file.
    """
    scheme, found, rest = uri.partition("://")
    if found and not rest.rpartition("/")[0]:
        raise ConfigError(f"{uri!r} names no file: write {scheme}://PLACE/FILE")
    folder, slash, name = uri.rpartition("/")
    return folder or slash or ".", name


def reads_at_once(store: Store) -> int:
    """How many reads a worker keeps in flight: one of a disk, many where each one waits."""
    return 1 if isinstance(store, LocalStore) else REMOTE_READS


def disk_paths(store: Store) -> Sequence[str]:
    """The folder of a store on a disk, which every worker has to see; none of other stores."""
    return [os.fspath(store.root.absolute())] if isinstance(store, LocalStore) else []


def list_files(
    store: Store, prefix: str = "", is_left_out: Callable[[str], object] = is_clutter
) -> Tree:
    """List every file of ``store`` whose key begins with ``prefix``; links on disk are followed.

    A folder of which ``is_left_out`` says so need not be readable.

    Raises:
        SourceNotFound: there is no such place.
        SourceError: it cannot be listed.
    """
    try:
        if isinstance(store, LocalStore):
            return list_tree(store, prefix, is_left_out)
        return Tree(list(store.list(prefix)))
    except ObjectNotFound as error:
        raise SourceNotFound(f"{error} (check --source)") from None
    except OSError as error:
        why = str(error).removeprefix(f"{store.uri}: ")
        raise SourceError(f"cannot list {store.uri}: {why}") from None


def read_error(
    error: ObjectNotFound | PermissionRefused, store: Store, key: str, where: str
) -> Exception:
    """An error of reading ``key`` as that of the sample or of the source at ``where``."""
    if isinstance(error, ObjectNotFound):
        return SourceChanged(
            f"{key!r} is gone from {where} since it was listed: restore it, or start "
            "anew with --overwrite"
        )
    if isinstance(store, LocalStore):
        return UnreadableImage(str(error))
    return error  # an expired token refuses everything: that is no property of a sample


def sizes_of(store: Store, keys: Sequence[str]) -> list[int | str]:
    """The size of each file in bytes, or the reason why it is unknown.

    On S3 a hundred keys or more are looked up in a listing of their common folder, of at most ten
    times as many objects: one LIST gives a thousand sizes. The others are asked for one by one.

    Raises:
        StoreError: the store does not answer.
    """
    found: dict[str, int | str] = {}
    on_s3 = isinstance(store, S3Store)
    if on_s3 and len(keys) >= _LIST_FROM:
        wanted = {*keys}
        folder = os.path.commonprefix(keys).rpartition("/")[0]  # noqa: RUF071  cut at a slash
        # Who may read an object may not always list the bucket.
        with contextlib.suppress(PermissionRefused):
            listed = islice(store.list(f"{folder}/".lstrip("/")), _LISTED_FOR_ONE * len(wanted))
            found.update({info.key: info.bytes for info in listed if info.key in wanted})
    unknown = [key for key in keys if key not in found]

    def size_of(key: str) -> int | str:
        if on_s3 and key.encode(errors="ignore").decode() != key:
            return "its name is not UTF-8, as a key on S3 is"
        try:
            return store.head(key).bytes
        except ObjectNotFound:
            return MISSING
        except PermissionRefused:
            return UNREADABLE

    # Several for each call, since handing over a call takes longer than asking a local disk.
    each = min(_ASKED_AT_ONCE, len(unknown) // (4 * _THREADS) + 1)
    parts = [unknown[start : start + each] for start in range(0, len(unknown), each)]
    asked = in_order(lambda part: [size_of(key) for key in part], parts, _THREADS)
    sizes = chain.from_iterable(asked)
    return [found[key] if key in found else next(sizes) for key in keys]
