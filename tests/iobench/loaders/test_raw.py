"""The parts of the first batch of the raw loader, on a clock that only delays advance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataprep.sources import Listing, Located, Source, open_source
from dataprep.stores import StoreOptions
from iobench.clock import VirtualClock
from iobench.loaders import FirstBatch, LoaderSettings, raw
from iobench.loaders.raw import RawLoader
from iobench.results.trial import Location

LISTING_S, READ_S = 4.0, 0.5


class SlowSource:
    """A source whose listing takes ``LISTING_S`` and whose files take ``READ_S`` each."""

    def __init__(self, source: Source, clock: VirtualClock) -> None:
        self._source, self._clock = source, clock

    def list(self) -> Listing:
        """List all files."""
        self._clock.sleep(LISTING_S)
        return self._source.list()

    def read(self, located: Located) -> bytes:
        """Read one file."""
        self._clock.sleep(READ_S)
        return bytes(self._source.read(located))


@pytest.fixture
def location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    """Return a location with five files of one class."""
    (tmp_path / "a").mkdir()
    for number in range(5):
        (tmp_path / "a" / f"{number}.jpg").write_bytes(b"encoded")
    return Location(str(tmp_path), "files")


def opened(location: Location, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> RawLoader:
    """Return a raw loader over a slow source, with batches of two."""
    clock = VirtualClock()

    def slow(uri: str, options: StoreOptions) -> SlowSource:
        return SlowSource(open_source(uri, options=options), clock)

    monkeypatch.setattr(raw, "open_source", slow)
    return RawLoader(location, LoaderSettings(batch_size=2, **settings), clock)


def test_the_first_batch_has_listing_and_reading(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing and reading are the parts of the first batch, and later batches do not count."""
    loader = opened(location, monkeypatch)
    assert loader.first_batch() is None
    for number in range(2):
        assert [batch.samples for batch in loader.epoch(number)] == [2, 2, 1]
        assert loader.first_batch() == FirstBatch(LISTING_S, 0.0, 2 * READ_S, 0.0)


def test_threads_are_not_told_from_their_reads(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads have no start of their own, since they begin with their first read."""
    loader = opened(location, monkeypatch, workers=1)
    list(loader.epoch(0))
    parts = loader.first_batch()
    assert parts is not None
    assert parts.worker_start_s is None
    assert (parts.listing_s, parts.decode_s) == (LISTING_S, 0.0)
