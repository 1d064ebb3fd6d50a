"""Which mounts may hold data."""

from __future__ import annotations

from pathlib import Path

from iobench.mounts import Mount
from iobench.targets.listing import data_mounts


def test_the_kernels_own_and_single_files_are_left_out(tmp_path: Path) -> None:
    """Each point once, however many mounts lie on it."""
    data, hosts = tmp_path / "data", tmp_path / "hosts"
    data.mkdir()
    hosts.touch()
    table = [
        Mount(Path("/"), "ext4", "rw"),
        Mount(Path("/proc"), "proc", "rw"),
        Mount(Path("/sys/fs/cgroup"), "tmpfs", "rw"),
        Mount(Path("/run/user/1000"), "tmpfs", "rw"),
        Mount(Path("/dev/shm"), "tmpfs", "rw"),
        Mount(Path("/dev/pts"), "devpts", "rw"),
        Mount(hosts, "ext4", "rw"),
        Mount(data, "autofs", "rw"),
        Mount(data, "nfs4", "rw"),
        Mount(data, "nfs4", "rw"),
        Mount(tmp_path / "gone", "ext4", "rw"),
    ]
    assert data_mounts(table) == sorted([Path("/"), Path("/dev/shm"), data])
