"""Memory in which shared pages count once."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from iobench.samplers.proportional import pss_bytes, unbacked_bytes

ROLLUP = """\
55d0c0000000-7ffd00000000 ---p 00000000 00:00 0                          [rollup]
Rss:              100000 kB
Pss:               12345 kB
Pss_Dirty:          9999 kB
"""
PROC = Path("/proc")
OTHER = """\
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    pages = mmap.mmap(file.fileno(), 0)
sum(pages[::4096])
print("mapped", flush=True)
sys.stdin.read()
"""


def test_of_the_kernels_lines_the_one(tmp_path: Path) -> None:
    """In bytes; lines whose names begin like its own are others."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "smaps_rollup").write_text(ROLLUP)
    assert pss_bytes(tmp_path, 7) == 12345 * 1024


def test_a_process_that_has_gone_has_none(tmp_path: Path) -> None:
    """That is no failure to read it."""
    assert pss_bytes(tmp_path, 7) == 0


def test_what_may_not_be_read_is_not_known(tmp_path: Path) -> None:
    """Another user's process, say; a folder stands for it."""
    (tmp_path / "7" / "smaps_rollup").mkdir(parents=True)
    assert pss_bytes(tmp_path, 7) is None


def test_pages_that_files_back_are_left_out(tmp_path: Path) -> None:
    """Where the kernel tells them apart; an older one gives the whole."""
    for pid, text in ((7, f"{ROLLUP}Pss_Anon: 100 kB\nPss_Shmem: 8 kB\n"), (8, ROLLUP)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "smaps_rollup").write_text(text)
    assert unbacked_bytes(tmp_path, 7) == 108 * 1024
    assert unbacked_bytes(tmp_path, 8) == 12345 * 1024
    assert unbacked_bytes(tmp_path, 9) is None


@pytest.mark.skipif(not (PROC / "self" / "smaps_rollup").exists(), reason="no such kernel file")
def test_pages_of_two_processes_count_half_for_each(tmp_path: Path) -> None:
    """What another maps as well is not counted twice."""
    size = 64 * 2**20
    path = tmp_path / "pages"
    path.write_bytes(b"x" * size)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as pages:
        assert sum(pages[::4096]) > 0
        alone = pss_bytes(PROC, os.getpid())
        with subprocess.Popen(
            [sys.executable, "-c", OTHER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"mapped\n"
            shared = pss_bytes(PROC, os.getpid())
            theirs = pss_bytes(PROC, other.pid)
            other.communicate()
    assert alone is not None
    assert shared is not None
    assert theirs is not None
    assert size / 4 < alone - shared < size * 3 / 4
    assert theirs > size / 4
