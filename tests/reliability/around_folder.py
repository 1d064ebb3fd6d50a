"""A source of somebody's own around a folder of photos, to fault where it reads."""

from __future__ import annotations

from dataprep.sources import Listing, Located
from dataprep.sources.imagefolder import ImageFolder
from dataprep.stores import StoreOptions


class AroundFolder:
    """The folder's photos, one at a time."""

    concurrency = 1

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self._folder = ImageFolder(uri, options)

    @property
    def uri(self) -> str:
        """Where the photos lie."""
        return self._folder.uri

    def list(self) -> Listing:
        """All that lie there."""
        return self._folder.list()

    def read(self, item: Located) -> bytes:
        """One photo."""
        return self._folder.read(item)
