"""Tests of dataprep.stores.local."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import (
    LeaseLost,
    ObjectNotFound,
    PermissionRefused,
    StoreError,
    StoreFull,
)
from dataprep.stores import leave, open_store
from dataprep.stores.local import PARTIAL, LocalStore
from dataprep.stores.processes import started
from tests.dataprep.stores.listed import entries
from tests.permissions import reachable_folder, unprivileged


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that an unprivileged user can reach."""
    with reachable_folder() as folder:
        yield folder


def files_below(folder: Path) -> set[str]:
    """Every file, hidden and temporary ones too."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def fail_with(number: int) -> Any:
    """A function that raises OSError of this number."""

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_paths_and_file_uris_are_the_same_place(tmp_path: Path) -> None:
    """A path and a file:// URI open the same directory, which the URI of the store names."""
    folder = tmp_path / "store"
    store = open_store(f"file://{folder}")
    store.prepare()
    store.put("key", b"data")
    assert open_store(str(folder)).get("key") == b"data"
    assert store.uri == open_store(str(folder)).uri == str(folder)
    assert (folder / "key").read_bytes() == b"data"


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leading ~ is the home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert LocalStore("~/photos").root == tmp_path / "photos"


@pytest.mark.parametrize("where", [".", "./", "sub/.."])
def test_the_working_directory_has_plain_keys(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A store opened as `.` lists keys without dots."""
    store.put("sub/key", b"x")
    store.put("top", b"x")
    monkeypatch.chdir(store.root)
    assert sorted(entries(LocalStore(where))) == ["sub/key", "top"]


def test_the_root_directory_has_plain_keys() -> None:
    """A store opened as `/` lists whole keys."""
    keys = [info.key for info in LocalStore("/").list("etc/passwd")]
    assert "etc/passwd" in keys


def test_prepare_makes_the_directory_and_leaves_nothing_in_it(tmp_path: Path) -> None:
    """Preparing creates missing directories, tries a file, and removes it."""
    store = LocalStore(str(tmp_path / "a" / "b"))
    store.prepare()
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_missing_directory_is_not_found(tmp_path: Path) -> None:
    """Listing or reading where there is no directory raises ObjectNotFound."""
    store = LocalStore(str(tmp_path / "nowhere"))
    with pytest.raises(ObjectNotFound, match="nowhere"):
        list(store.list())
    with pytest.raises(ObjectNotFound):
        store.get("key")


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    """A root that is a file cannot be prepared, and the error names it."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="file"):
        LocalStore(str(tmp_path / "file")).prepare()


@pytest.mark.parametrize(
    "key", ["../out", "a/../../out", "a/..", "..", "/etc/passwd", "/", "nul\0byte"]
)
def test_keys_that_leave_the_root_are_refused(store: LocalStore, key: str) -> None:
    """A key with `..`, an absolute key and one with a NUL are refused by every capability."""
    outside = store.root.parent / "out"
    outside.write_bytes(b"outside")
    for use in (
        lambda: store.get(key),
        lambda: store.get_range(key, 0, 1),
        lambda: store.head(key),
        lambda: store.put(key, b"x"),
        lambda: store.create(key, b"x"),
        lambda: store.delete(key),
        lambda: list(store.list(key)),
    ):
        with pytest.raises(PermissionRefused, match="would leave"):
            use()
    assert outside.read_bytes() == b"outside"
    assert files_below(store.root) == set()


def test_names_that_only_look_like_parents_are_fine(store: LocalStore) -> None:
    """Dots within a name are part of the name."""
    store.put("a/..b", b"x")
    store.put("c../...", b"y")
    assert sorted(entries(store)) == ["a/..b", "c../..."]


def test_a_file_shows_only_when_it_is_complete(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a file is written nothing is listed, and its bytes lie on disk before its name."""
    during: list[tuple[dict[str, str | None], set[str]]] = []
    fsync = os.fsync

    def spying(descriptor: int) -> None:
        during.append((entries(store), files_below(store.root)))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", spying)
    store.put("a/key", b"data")
    (listed, files), (afterwards, final) = during
    assert listed == {}
    assert [name.split("/")[0] for name in files] == [PARTIAL]
    assert afterwards == {"a/key": None}
    assert final == {"a/key"}


@pytest.mark.parametrize("method", ["put", "create"])
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreFull),
        (errno.EIO, StoreError),
        (errno.EACCES, PermissionRefused),
    ],
    ids=["ENOSPC", "EDQUOT", "EIO", "EACCES"],
)
def test_a_failing_write_leaves_nothing(
    store: LocalStore,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    number: int,
    kind: type[StoreError],
) -> None:
    """A write that fails on its way to the disk leaves no file, and says what went wrong."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_with(number))
        with pytest.raises(kind) as caught:
            getattr(store, method)("a/key", b"data")
    assert type(caught.value) is kind
    assert files_below(store.root) == set()
    assert entries(store) == {}


def test_a_failing_overwrite_keeps_what_was_there(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An overwrite that fails leaves the former object whole."""
    store.put("key", b"before")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_with(errno.EIO))
        with pytest.raises(StoreError):
            store.put("key", b"after")
    assert store.get("key") == b"before"
    assert files_below(store.root) == {"key"}


@pytest.mark.parametrize("method", ["put", "create"])
def test_a_file_that_cannot_get_its_name_leaves_nothing(store: LocalStore, method: str) -> None:
    """A key below a file is refused as a store error and leaves no temporary file."""
    store.put("a", b"file")
    with pytest.raises(StoreError, match="a/b"):
        getattr(store, method)("a/b", b"data")
    assert files_below(store.root) == {"a"}


def test_a_folder_is_not_overwritten(store: LocalStore) -> None:
    """A key that is a folder cannot be put, and what lies in it stays."""
    store.put("a/b", b"data")
    with pytest.raises(StoreError, match="'a'"):
        store.put("a", b"file")
    assert files_below(store.root) == {"a/b"}


@pytest.mark.parametrize("method", ["put", "create"])
def test_a_name_that_is_too_long_is_a_store_error(store: LocalStore, method: str) -> None:
    """A name longer than the file system takes is refused and leaves nothing."""
    with pytest.raises(StoreError, match="too long"):
        getattr(store, method)("x" * 300, b"data")
    assert files_below(store.root) == set()


def test_an_interrupted_write_is_cleaned_up(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C within a write passes through and leaves no temporary file."""

    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.put("key", b"data")
    assert files_below(store.root) == set()


def test_leftovers_are_never_listed_and_tidied(store: LocalStore) -> None:
    """What a killed writer left is not listed, and tidying removes that and nothing else."""
    store.put("key", b"data")
    dead = subprocess.Popen(["true"])
    dead.wait()
    leftover = store.root / PARTIAL / f"{platform.node()}-{dead.pid}-abc"
    leftover.parent.mkdir(exist_ok=True)
    leftover.write_bytes(b"half")
    old = store.root / PARTIAL / "elsewhere-1-abc"
    old.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert entries(store) == {"key": None}
    store.tidy()
    assert files_below(store.root) == {"key"}
    assert not leftover.parent.exists()


def test_a_process_number_used_again_protects_nothing(store: LocalStore) -> None:
    """What a writer left whose number another process has now is tidied; the living one's stays."""
    folder = store.root / PARTIAL
    folder.mkdir(exist_ok=True)
    left, growing = (
        folder / f"{platform.node()}-{os.getpid()}.{began}-abc"
        for began in ("1", started(os.getpid()))
    )
    left.write_bytes(b"half")
    growing.write_bytes(b"half")
    store.tidy()
    assert [*folder.iterdir()] == [growing]


def test_a_file_that_grows_is_named_for_its_writer(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run that tidies meanwhile leaves it alone."""
    fsync = os.fsync

    def tidying(descriptor: int) -> None:
        LocalStore(store.uri).tidy()
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", tidying)
    store.put("key", b"data")
    assert store.get("key") == b"data"


@pytest.mark.parametrize("host", [platform.node(), "elsewhere"])
def test_what_another_writer_writes_is_left_alone(store: LocalStore, host: str) -> None:
    """A file of a writer that lives, or that may live on another host, is not tidied away."""
    store.put("key", b"data")
    growing = store.root / PARTIAL / f"{host}-{os.getpid()}-abc"
    growing.parent.mkdir(exist_ok=True)
    growing.write_bytes(b"half")
    store.tidy()
    assert growing.exists()


def test_a_full_disk_is_a_full_store(tmp_path: Path) -> None:
    """A file system without space raises StoreFull, keeps its objects and has no half ones."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root can mount a small file system")
    try:
        store = LocalStore(str(folder))
        store.prepare()
        free = store.free_bytes()
        assert free is not None
        assert 0 < free <= 256 * 1024
        store.put("small", b"fits")
        with pytest.raises(StoreFull, match="no space left while writing 'big'"):
            store.put("big", bytes(400_000))
        assert store.get("small") == b"fits"
        assert files_below(folder) == {"small"}
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_an_unreadable_file_is_refused(reachable: Path) -> None:
    """A file that may not be read raises PermissionRefused, which names it."""
    store = LocalStore(str(reachable))
    store.put("secret.jpg", b"data")
    (reachable / "secret.jpg").chmod(0)
    with unprivileged():
        assert entries(store) == {"secret.jpg": None}
        with pytest.raises(PermissionRefused, match=r"secret\.jpg"):
            store.get("secret.jpg")
        with pytest.raises(PermissionError, match=r"secret\.jpg"):
            store.get_range("secret.jpg", 0, 1)


def test_an_unreadable_folder_is_no_empty_folder(reachable: Path) -> None:
    """A folder that may not be read is an error of the listing, never left out of it."""
    store = LocalStore(str(reachable))
    store.put("open/a.jpg", b"data")
    store.put("shut/b.jpg", b"data")
    (reachable / "shut").chmod(0)
    with unprivileged(), pytest.raises(PermissionRefused, match="shut"):
        list(store.list())


def test_an_unwritable_directory_is_refused_at_once(reachable: Path) -> None:
    """A directory that may not be written to fails in prepare, and put fails alike."""
    reachable.chmod(0o555)
    store = LocalStore(str(reachable))
    with unprivileged():
        with pytest.raises(PermissionRefused, match="permission denied"):
            store.prepare()
        with pytest.raises(PermissionRefused, match="permission denied"):
            store.put("key", b"data")
    assert files_below(reachable) == set()


def test_what_is_no_file_is_a_problem(store: LocalStore) -> None:
    """A named pipe is listed as a problem, and nobody waits for its other end."""
    os.mkfifo(store.root / "pipe")
    assert [(info.key, info.problem) for info in store.list()] == [("pipe", "not a regular file")]
    with pytest.raises(ObjectNotFound):
        store.head("pipe")
    with pytest.raises(ObjectNotFound, match="'pipe' is not a regular file"):
        store.get("pipe")
    with pytest.raises(ObjectNotFound, match="'pipe' is not a regular file"):
        store.get_range("pipe", 0, 1)


@pytest.mark.parametrize("key", ["x" * 300, "loop"], ids=["too long", "loop"])
def test_names_that_no_file_can_have_are_not_there(store: LocalStore, key: str) -> None:
    """A name longer than the file system takes, and a link to itself, are no file to read."""
    (store.root / "loop").symlink_to("loop")
    for read in (store.get, store.head, lambda key: store.get_range(key, 0, 1)):
        with pytest.raises(ObjectNotFound, match=r"no such file: .* \(.*\)"):
            read(key)
    with pytest.raises(StoreError):
        list(LocalStore(str(store.root / key)).list())


def test_space_of_a_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    """It is that of the file system on which it would be made."""
    free = LocalStore(str(tmp_path / "not" / "yet")).free_bytes()
    assert free
    assert not (tmp_path / "not").exists()


def test_who_lost_the_lease_while_it_wrote_leaves_what_is_there(store: LocalStore) -> None:
    """And nothing half-written."""
    store.put("a/key", b"of another run")

    def check() -> None:
        raise LeaseLost("the process that had it is gone")

    with leave.writing_while(check), pytest.raises(LeaseLost):
        store.put("a/key", b"ours")
    assert store.get("a/key") == b"of another run"
    assert [path.name for path in Path(store.uri).rglob("*") if path.is_file()] == ["key"]
