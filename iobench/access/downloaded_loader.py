"""Any loader, over a copy of its data that its first epoch makes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from iobench.access.download import downloaded, occupied_bytes
from iobench.loaders.protocol import Batch, CountsBatches, Framework, Loader
from iobench.stored import stored
from iobench.trial import Place


class DownloadedLoader:
    """What ``build`` makes of a place, of ``place`` first copied into ``folder`` / ``download``.

    The copy begins when the first epoch is asked for, and is gone after ``close``. Until then
    the loader is that of the place itself, so that frameworks are imported before any clock runs.
    """

    def __init__(
        self,
        place: Place,
        build: Callable[[Place], Loader],
        folder: Path,
        *,
        batch_size: int,
        connections: int,
    ) -> None:
        self._place, self._build = place, build
        self._folder = folder / "download"
        self._batch_size, self._connections = batch_size, connections
        self._inner = build(place)
        self._copied = False
        self.notes: Sequence[str] = self._inner.notes
        self.framework: Framework = self._inner.framework
        self.reads: str | None = self._inner.reads
        self.disk_bytes = 0

    def whole_batches(self) -> int:
        """Of epoch 0, as the loader counts them."""
        if isinstance(self._inner, CountsBatches):
            return self._inner.whole_batches()
        return stored(self._place, self._reads).samples // self._batch_size

    def epoch(self, number: int) -> Iterator[Batch]:
        """The loader's; the first time the download comes before it."""
        if not self._copied:
            self._download()
        yield from self._inner.epoch(number)

    def close(self) -> None:
        """End the loader and remove the copy."""
        self.notes = self._inner.notes  # it may have found out more meanwhile
        try:
            self._inner.close()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _download(self) -> None:
        self._folder.mkdir(parents=True)
        local = downloaded(self._place, self._reads, self._folder, self._connections)
        self.disk_bytes = occupied_bytes(self._folder)
        self._inner.close()
        self._inner = self._build(local)
        self.notes = self._inner.notes
        self._copied = True

    @property
    def _reads(self) -> str:
        return self.reads or "files"
