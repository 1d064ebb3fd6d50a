"""Which file system a path lies on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.machine.mounts import Mount, data_mounts, file_system, mount_of, mounts, parse_mount

names = st.text(
    st.characters(exclude_characters="/\x00", exclude_categories=["Cs"]), min_size=1, max_size=6
).filter(lambda name: name not in (".", ".."))
paths = st.lists(names, max_size=4).map(lambda parts: Path("/", *parts))
words = st.text("abcdef0123456789=,.", min_size=1, max_size=8)


def escaped(path: Path) -> str:
    """As the kernel prints it: space, tab, line feed and backslash as octal digits."""
    text = str(path).replace("\\", "\\134")
    for sign in " \t\n":
        text = text.replace(sign, f"\\{ord(sign):03o}")
    return text


@given(paths, words, words, st.lists(words, max_size=3))
def test_a_line_of_mountinfo(path: Path, kind: str, options: str, tags: list[str]) -> None:
    """Point, type, source and both kinds of options, wherever the optional fields end."""
    shared = "".join(f" {tag}" for tag in tags)
    line = f"36 35 98:0 /root {escaped(path)} {options}{shared} - {kind} /dev/sda1 rw,addr=10.0.0.1"
    expected = Mount(path, kind, options, "/dev/sda1", "rw,addr=10.0.0.1", "98:0")
    assert parse_mount(line) == expected


@given(st.text())
def test_what_is_no_line_of_mountinfo_is_none(line: str) -> None:
    """No text breaks it."""
    found = parse_mount(line)
    assert found is None or " - " in line


def test_names_with_spaces_and_other_bytes() -> None:
    """What the kernel escapes, and what it does not."""
    line = "1 2 0:3 / /mnt/my\\040disk\\134n\\303 rw - ext4 /dev/my\\040x rw"
    expected = Mount(Path("/mnt/my disk\\n\xc3"), "ext4", "rw", "/dev/my x", "rw", "0:3")
    assert parse_mount(line) == expected


def test_a_line_may_end_early() -> None:
    """A file system without a source or options has a type all the same."""
    assert parse_mount("1 2 0:3 / /x rw - tmpfs") == Mount(Path("/x"), "tmpfs", "rw", device="0:3")


@given(st.lists(paths, max_size=8), paths)
def test_a_path_lies_on_the_deepest_mount(points: list[Path], path: Path) -> None:
    """Of those above it, the one with most parts; no other is nearer."""
    table = [Mount(point, str(number), "rw") for number, point in enumerate(points)]
    found = mount_of(path, table)
    above = [mount for mount in table if path.is_relative_to(mount.point)]
    if not above:
        assert found is None
        return
    deepest = max(len(mount.point.parts) for mount in above)
    assert found == [mount for mount in above if len(mount.point.parts) == deepest][-1]


def test_a_name_is_not_a_part_of_another() -> None:
    """``/data2`` does not lie on ``/data``."""
    table = [Mount(Path("/"), "ext4", ""), Mount(Path("/data"), "xfs", "")]
    found = mount_of(Path("/data2/x"), table)
    assert found is not None
    assert found.file_system == "ext4"


def test_a_mount_over_another_hides_it() -> None:
    """The later of two on one point is what is seen."""
    table = [Mount(Path("/data"), "ext4", ""), Mount(Path("/data"), "tmpfs", "")]
    assert mount_of(Path("/data/x"), table) == table[1]


def test_this_machine_has_mounts() -> None:
    """The root, at least, and what everything here lies on."""
    assert Path("/") in {mount.point for mount in mounts()}
    assert file_system(Path("/proc/self")) == "proc"
    assert file_system(Path.cwd())


def test_no_mountinfo_is_an_unknown_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel says nothing, nothing is guessed."""
    monkeypatch.setattr("iobench.machine.mounts.mounts", list)
    assert file_system(Path("/")) == ""


def test_names_that_are_not_utf_8_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk mounted under a name in Latin-1 stops no run."""
    line = b"1 2 0:3 / /mnt/caf\xe9 rw - ext4 /dev/x rw\n"

    def opened(path: Path, *given: object, errors: str = "strict", **rest: object) -> str:
        return line.decode(errors=errors)

    monkeypatch.setattr(Path, "read_text", opened)
    assert [os.fsencode(mount.point) for mount in mounts()] == [b"/mnt/caf\xe9"]


def test_file_system_names_the_mount(tmp_path: Path) -> None:
    """The nearest mount above a path counts, also for a path that is not there."""
    assert file_system(Path("/proc/self")) == "proc"
    assert file_system(tmp_path) == file_system(tmp_path / "not" / "there")
    assert file_system(tmp_path) not in ("", "proc")


def test_mounts_that_hold_no_data_are_left_out(tmp_path: Path) -> None:
    """The kernel's own and single files; a point with several mounts is listed once."""
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
