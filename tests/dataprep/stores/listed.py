"""What a store lists."""

from __future__ import annotations

from dataprep.stores.local import LocalStore


def entries(store: LocalStore) -> dict[str, str | None]:
    """The problem of each listed key, None for those that can be read."""
    found = [(info.key, info.problem) for info in store.list()]
    assert len(found) == len(dict(found))
    return dict(found)
