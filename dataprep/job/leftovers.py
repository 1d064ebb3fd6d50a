"""What interrupted writers left in a store, removed where nobody else can still need it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from dataprep import keys
from dataprep.errors import DataprepError, LeaseLost, StoreUnreachable
from dataprep.formats import format_names
from dataprep.plan import Part
from dataprep.stores import Store
from dataprep.stores.protocol import AbortsUploads


def sweep(store: Store, splits: Iterable[str]) -> None:
    """Half-written files and leases of the dead; uploads in parts of ``splits``, which are held."""
    store.tidy()
    if isinstance(store, AbortsUploads):
        for split in splits:
            store.abort_uploads(partial(keys.belongs_to, split, format_names=format_names()))


@contextmanager
def swept_if_stopped(store: Store, splits: Iterable[str], part: Part | None) -> Iterator[None]:
    """A block whose end by an error or an interrupt leaves nothing of its workers behind.

    Parts of a job (``part``) write beside each other: one of them aborts no uploads.
    """
    held = () if part else tuple(splits)
    try:
        yield
    except (StoreUnreachable, GeneratorExit):
        raise
    except BaseException as error:
        refused = isinstance(error, DataprepError) and error.exit_code == 2
        if not refused:  # else nothing was written
            with suppress(DataprepError):  # why it stopped is to be told; the next run sweeps too
                # Uploads may be another run's, once that has the lease.
                sweep(store, () if isinstance(error, LeaseLost) else held)
        raise
