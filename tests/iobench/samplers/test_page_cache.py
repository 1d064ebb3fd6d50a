"""The size of the page cache as the kernel tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.errors import Unavailable
from iobench.samplers.page_cache import PageCacheSampler


def test_cached_and_dirty_in_bytes(tmp_path: Path) -> None:
    """The file's kB are KiB; swap is no file."""
    (tmp_path / "meminfo").write_text(
        "MemTotal: 900 kB\nCached:      300 kB\nSwapCached:  7 kB\nDirty: 12 kB\n"
    )
    assert PageCacheSampler(1, tmp_path).read(0.0) == {
        "cached_bytes": 300 * 1024,
        "dirty_bytes": 12 * 1024,
    }


def test_no_such_file_is_unavailable(tmp_path: Path) -> None:
    """Nothing is made up."""
    with pytest.raises(Unavailable, match="page cache"):
        PageCacheSampler(1, tmp_path)
