"""Contests of the probes: contenders do the whole work."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.mounts import file_system
from iobench.s3_server import MotoServer
from iobench.sidebyside import probes, s5cmd
from iobench.sidebyside.limited_store import Limits
from iobench.sidebyside.workplace import Workplace
from tests.programs import find_program

pytestmark = pytest.mark.slow

SMALL = 2**22


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of 4 MiB and objects of 1 MB, in a store without limits."""
    monkeypatch.setattr(probes, "_FILE_BYTES", SMALL)
    monkeypatch.setattr(probes, "_OBJECT_BYTES", 10**6)
    monkeypatch.setattr(probes, "_POOL_BYTES", 10**7)
    monkeypatch.setattr(probes, "_LIMITS", Limits())
    for name, value in MotoServer.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)  # a limited store sets it, and this puts it back


def test_contests(tmp_path: Path, few: Path) -> None:
    """Every one has its goals beside a contender that is in it."""
    found = list(probes.contests(Workplace(tmp_path, few, 6)))
    assert len({contest.name for contest in found}) == len(found) == 17
    for contest in found:
        names = {contender.name for contender in contest.contenders[1:]}
        assert {goal.beside for goal in contest.goals} <= names


@pytest.mark.parametrize("engine", ["iobench", "fio"])
def test_on_disk(tmp_path: Path, few: Path, engine: str) -> None:
    """Both go through all of a cold file, which has to be one."""
    if engine == "fio" and find_program("fio") is None:
        pytest.skip("fio is not installed")
    if file_system(tmp_path) not in ("ext4", "xfs"):
        pytest.skip("cold cannot be had here")
    found = {contest.name: contest for contest in probes.contests(Workplace(tmp_path, few, 6))}
    both = {contender.name: contender for contender in found["disk-read-cold-1M-1"].contenders}
    assert probes.on_disk(**both[engine].arguments).amount == SMALL / 1e6


def test_what_is_not_cold_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in memory is refused, not compared."""
    shm = Path("/dev/shm")
    if file_system(shm) != "tmpfs":
        pytest.skip("no /dev/shm here")
    from iobench.probes import disk

    params = {
        "target": "here",
        "operation": "read",
        "pattern": "sequential",
        "cache": "cold",
        "block_bytes": 2**16,
        "parallelism": 1,
        "file_bytes": 2**17,
        "seconds": 1.0,
    }
    try:
        with pytest.raises(RuntimeError, match="cold was asked: warm"):
            probes.on_disk(str(shm), params)
    finally:
        disk.clean(shm)


def test_on_store() -> None:
    """Each object of the pool, and the first of each connection whatever the others have done."""
    measured = probes.on_store("boto3")
    assert 10 <= measured.amount <= 10 + 7
    assert "store_cpu_share" in measured.others


def test_by_s5cmd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is called with the pool's keys, and what it copied is counted."""

    def copy(store: object, pattern: str, target: Path) -> float:
        assert pattern == "iobench-probe/read/1000000/*"
        (target / "00000").write_bytes(bytes(10**6))
        return 2.0

    monkeypatch.setattr(s5cmd, "copy", copy)
    measured = probes.by_s5cmd(str(tmp_path))
    assert (measured.amount, measured.seconds) == (1, 2.0)
