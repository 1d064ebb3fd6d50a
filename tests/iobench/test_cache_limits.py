"""What could not be done, in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from iobench import cache_limits
from iobench.cache_limits import Access, access_to, limits

ALL = Access("ext4", told=True, has_cachestat=True, may_drop=True, counts=True, container="")


def test_where_everything_can_be_done_nothing_is_said() -> None:
    """Root on a disk of its own."""
    assert limits(ALL) == ()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"file_system": "tmpfs", "told": False}, "tmpfs: files lie in memory"),
        ({"told": False}, "what is resident is not told"),
        ({"file_system": "overlay"}, "overlay: cachestat sees nothing"),
        ({"has_cachestat": False}, "no cachestat"),
        ({"may_drop": False}, "drop_caches is not permitted"),
        ({"counts": False}, "no /proc/PID/io"),
        ({"container": "signs of Docker: /.dockerenv"}, "signs of Docker: /.dockerenv: the page"),
    ],
)
def test_each_thing_that_is_missing_is_said_once(changed: dict[str, object], said: str) -> None:
    """And nothing else."""
    (found,) = limits(replace(ALL, **changed))  # type: ignore[arg-type]
    assert found.startswith(said)


def test_this_machine_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may not be written is not permitted; what is not there is not counted."""
    monkeypatch.setattr(cache_limits, "DROP_CACHES", tmp_path / "absent")
    monkeypatch.setattr(cache_limits, "_OWN_IO", tmp_path / "absent")
    found = access_to(tmp_path, told=False)
    assert (found.may_drop, found.counts, found.told) == (False, False, False)
    monkeypatch.setattr(cache_limits, "DROP_CACHES", tmp_path)
    monkeypatch.setattr(cache_limits, "_OWN_IO", tmp_path)
    found = access_to(tmp_path, told=True)
    assert (found.may_drop, found.counts, found.told) == (True, True, True)
