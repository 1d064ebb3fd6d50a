"""What interrupted writers left in a store, removed where nobody else can still need it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from types import TracebackType

from dataprep import keys
from dataprep.errors import DataprepError, StoreUnreachable
from dataprep.formats import format_names
from dataprep.job.parts import Part
from dataprep.stores import Store
from dataprep.stores.protocol import AbortsUploads


def sweep(store: Store, splits: Iterable[str]) -> None:
    """Half-written files and leases of the dead; uploads in parts of ``splits``, which are held."""
    store.tidy()
    if isinstance(store, AbortsUploads):
        for split in splits:
            store.abort_uploads(partial(keys.belongs_to, split, format_names=format_names()))


class SweptIfStopped:
    """A block whose exit, by an error or an interrupt, leaves nothing of its workers behind.

    Parts of a job (``part``) write beside each other: one of them aborts no uploads.
    """

    def __init__(self, store: Store, splits: Iterable[str], part: Part | None) -> None:
        self._store, self._splits = store, () if part else tuple(splits)

    def __enter__(self) -> SweptIfStopped:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, StoreUnreachable | GeneratorExit):
            return
        if isinstance(error, DataprepError) and error.exit_code == 2:
            return  # refused: nothing was written
        with suppress(DataprepError):  # why the job stopped is to be told; the next run sweeps too
            sweep(self._store, self._splits)
