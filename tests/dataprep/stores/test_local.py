"""A directory is a store."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import ConfigError, ObjectNotFound, PermissionRefused, StoreError, StoreFull
from dataprep.machine.processes import this_process
from dataprep.stores import open_store
from dataprep.stores.local import PARTIAL, LocalStore
from tests.permissions import reachable_folder, unprivileged


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that an unprivileged user can reach."""
    with reachable_folder() as folder:
        yield folder


def entries(store: LocalStore) -> dict[str, str | None]:
    """The problem of each listed key, or None if it can be read."""
    entries = [(info.key, info.problem) for info in store.list()]
    assert len(entries) == len(dict(entries))
    return dict(entries)


def files_below(folder: Path) -> set[str]:
    """Every file, including hidden and temporary ones."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def failing(error: BaseException) -> Any:
    """A function that raises this error."""

    def fail(*args: object, **kwargs: object) -> None:
        raise type(error)(*error.args)  # a new error, whose traceback has no references

    return fail


def os_error(number: int) -> OSError:
    """The OSError of this number."""
    return OSError(number, os.strerror(number))


def test_paths_and_file_uris_are_the_same_place(tmp_path: Path) -> None:
    """A path and a file:// URI open the same directory, which is in the URI of the store."""
    folder = tmp_path / "store"
    store = open_store(f"file://{folder}")
    store.prepare()
    store.put("key", b"data")
    assert open_store(str(folder)).get("key") == b"data"
    assert store.uri == open_store(str(folder)).uri == str(folder)
    assert (folder / "key").read_bytes() == b"data"


@pytest.mark.parametrize("where", [".", "./", "sub/.."])
def test_the_working_directory_has_plain_keys(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A store opened as `.` lists keys without dots, and one opened as `/` lists full keys."""
    store.put("sub/key", b"x")
    store.put("top", b"x")
    monkeypatch.chdir(store.root)
    assert sorted(entries(LocalStore(where))) == ["sub/key", "top"]
    assert "etc/passwd" in [info.key for info in LocalStore("/").list("etc/passwd")]


def test_prepare_makes_the_directory_and_leaves_nothing_in_it(tmp_path: Path) -> None:
    """Before preparation nothing is found, and free space is that of the file system."""
    store = LocalStore(str(tmp_path / "a" / "b"))
    with pytest.raises(ObjectNotFound, match="a/b"):
        list(store.list())
    with pytest.raises(ObjectNotFound):
        store.get("key")
    assert store.free_bytes()
    assert not (tmp_path / "a").exists()
    store.prepare()
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="file"):
        LocalStore(str(tmp_path / "file")).prepare()


@pytest.mark.parametrize(
    "key", ["../out", "a/../../out", "a/..", "..", "/etc/passwd", "/", "nul\0byte"]
)
def test_keys_that_leave_the_root_are_refused(store: LocalStore, key: str) -> None:
    """Every operation refuses keys with `..`, absolute keys and keys with a NUL."""
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


def test_a_file_shows_only_when_it_is_complete(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An incomplete file is not listed, and its bytes are synced before it gets its name."""
    during: list[tuple[dict[str, str | None], set[str]]] = []
    fsync = os.fsync

    def spying(descriptor: int) -> None:
        during.append((entries(store), files_below(store.root)))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", spying)
    store.put("a/key", b"data")
    (listed, files), (afterwards, final) = during
    assert listed == {}
    (growing,) = files
    assert growing.startswith(PARTIAL)
    assert afterwards == {"a/key": None}
    assert final == {"a/key"}


@pytest.mark.parametrize("method", ["put", "create"])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (os_error(errno.ENOSPC), StoreFull),
        (os_error(errno.EDQUOT), StoreFull),
        (os_error(errno.EIO), StoreError),
        (os_error(errno.EACCES), PermissionRefused),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
    ids=["ENOSPC", "EDQUOT", "EIO", "EACCES", "Ctrl-C"],
)
def test_a_failing_write_leaves_what_was_there(
    store: LocalStore,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    error: BaseException,
    kind: type[BaseException],
) -> None:
    """A failed write leaves the old file, and its error gives the reason."""
    store.put("before", b"before")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(error))
        for key in ("a/key", "before") if method == "put" else ("a/key",):
            with pytest.raises(kind) as caught:
                getattr(store, method)(key, b"data")
            assert type(caught.value) is kind
    assert store.get("before") == b"before"
    assert files_below(store.root) == {"before"}
    assert entries(store) == {"before": None}


@pytest.mark.parametrize("method", ["put", "create"])
def test_a_file_that_cannot_get_its_name_leaves_nothing(store: LocalStore, method: str) -> None:
    """A key below a file is a store error, and leaves no temporary file."""
    store.put("a", b"file")
    with pytest.raises(StoreError, match="a/b"):
        getattr(store, method)("a/b", b"data")
    assert files_below(store.root) == {"a"}


WRITING = """
import os, sys
from dataprep.stores.local import LocalStore
fsync = os.fsync
def waiting(descriptor):
    print("half-written", flush=True)
    sys.stdin.read()
os.fsync = waiting
LocalStore(sys.argv[1]).put("key", b"data")
"""


def test_what_a_killed_writer_left_is_tidied_and_what_another_writes_is_not(
    store: LocalStore,
) -> None:
    """Files of a killed writer are not listed and are removed. Nothing else is removed."""
    store.put("other", b"data")
    command = [sys.executable, "-c", WRITING, store.uri]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"half-written\n"
        (growing,) = store.root.glob(f"{PARTIAL}*")
        store.tidy()
        assert growing.exists()
        writer.kill()
    assert entries(store) == {"other": None}
    store.tidy()
    assert [path.name for path in store.root.iterdir()] == ["other"]


@pytest.mark.parametrize(
    ("writer", "age_s", "is_removed"),
    [
        ("here", 0, False),
        ("here", 2 * 86_400, True),
        ("another machine", 3_600, False),
        ("another machine", 2 * 86_400, True),
        ("an earlier version", 3_600, False),
        ("an earlier version", 2 * 86_400, True),
    ],
)
def test_temporary_files_stay_while_their_writers_may_live(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, writer: str, age_s: int, is_removed: bool
) -> None:
    """Locks on files may be local to a host, so they do not show whether a writer lives."""
    monkeypatch.setattr(fcntl, "flock", lambda *arguments: None)
    here = "-".join(map(str, this_process()))
    names = {"here": here, "another machine": "0123456789abcdef-4711-99", "an earlier version": "1"}
    growing = store.root / f"{PARTIAL}-{names[writer]}-0123456789abcdef"
    growing.write_bytes(b"half")
    os.utime(growing, (time.time() - age_s,) * 2)
    store.tidy()
    assert growing.exists() is not is_removed


def test_a_store_that_left_its_process_has_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pickled store has an absolute path, because a worker may run in another folder."""
    monkeypatch.chdir(tmp_path)
    store = LocalStore("below/output")
    store.put("key", b"data")
    pickled = pickle.dumps(store)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    copy = pickle.loads(pickled)
    assert copy.get("key") == b"data"
    assert copy.uri == str(tmp_path / "below/output")
    copy.put("other", b"data")
    assert (tmp_path / "below/output/other").exists()


def test_replacing_needs_no_locks(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacing works without locks, as on a network file system.

    Two replacements at the same moment may then both succeed.
    """
    store.put("key", b"0")
    before = store.version("key")
    monkeypatch.setattr(fcntl, "flock", failing(os_error(errno.ENOLCK)))
    assert store.replace("key", b"1", before)
    assert not store.replace("key", b"2", before)
    assert store.get("key") == b"1"


def test_a_full_disk_is_a_full_store(tmp_path: Path) -> None:
    """A full file system raises StoreFull, and keeps its objects without incomplete ones."""
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


def test_what_may_not_be_read_is_refused(reachable: Path) -> None:
    """An unreadable file is listed and named when it is read. A folder ends the listing."""
    store = LocalStore(str(reachable))
    store.put("secret.jpg", b"data")
    store.put("shut/b.jpg", b"data")
    (reachable / "secret.jpg").chmod(0)
    with unprivileged():
        assert entries(store) == {"secret.jpg": None, "shut/b.jpg": None}
        with pytest.raises(PermissionRefused, match=r"secret\.jpg"):
            store.get("secret.jpg")
        with pytest.raises(PermissionError, match=r"secret\.jpg"):
            store.get_range("secret.jpg", 0, 1)
    (reachable / "shut").chmod(0)
    with unprivileged(), pytest.raises(PermissionRefused, match="shut"):
        list(store.list())


def test_an_unwritable_directory_is_refused_at_once(reachable: Path) -> None:
    """A directory without write permission fails in prepare, and in put."""
    reachable.chmod(0o555)
    store = LocalStore(str(reachable))
    with unprivileged():
        with pytest.raises(PermissionRefused, match="permission denied"):
            store.prepare()
        with pytest.raises(PermissionRefused, match="permission denied"):
            store.put("key", b"data")
    assert files_below(reachable) == set()


def test_what_is_no_file_is_a_problem(store: LocalStore) -> None:
    """A named pipe is listed as a problem, without waiting for its other end."""
    os.mkfifo(store.root / "pipe")
    (store.root / "empty" / "inner").mkdir(parents=True)
    assert entries(store) == {"pipe": "not a regular file"}
    with pytest.raises(ObjectNotFound):
        store.head("pipe")
    for read in (store.get, lambda key: store.get_range(key, 0, 1)):
        with pytest.raises(ObjectNotFound, match="'pipe' is not a regular file"):
            read("pipe")


@pytest.mark.parametrize("key", ["x" * 300, "loop"], ids=["too long", "loop"])
def test_names_that_no_file_can_have_are_not_there(store: LocalStore, key: str) -> None:
    """A name beyond the file system's limit, and a link to itself, are no files."""
    (store.root / "loop").symlink_to("loop")
    for read in (store.get, store.head, lambda key: store.get_range(key, 0, 1)):
        with pytest.raises(ObjectNotFound, match=r"no such file: .* \(.*\)"):
            read(key)
    with pytest.raises(StoreError):
        list(LocalStore(str(store.root / key)).list())


CIRCLE = "symlink to a folder that contains it"
LEAVES = "symlink that leaves the source"
LINKS: dict[str, tuple[list[str], dict[str, str], dict[str, str | None]]] = {
    "within the root": (
        ["real/a"],
        {"folder": "real", "file": "real/a"},
        {"file": None, "folder/a": None, "real/a": None},
    ),
    "out of the root": (
        [],
        {"folder": "../outside", "file": "../outside/secret", "parent": "..", "absolute": "/"},
        {"folder": LEAVES, "file": LEAVES, "parent": LEAVES, "absolute": LEAVES},
    ),
    "judged by the end": (
        [],
        {"first": "second", "second": "/"},
        {"first": LEAVES, "second": LEAVES},
    ),
    "broken": (
        [],
        {"broken": "missing", "self": "self", "one": "two", "two": "one"},
        dict.fromkeys(["broken", "self", "one", "two"], "broken symlink"),
    ),
    "a folder above": (
        ["a/b/file"],
        {"a/b/here": ".", "a/b/up": "..", "a/b/top": "../.."},
        {"a/b/file": None, "a/b/here": CIRCLE, "a/b/up": CIRCLE, "a/b/top": CIRCLE},
    ),
    "two folders to each other": (
        ["a/one", "b/two"],
        {"a/to-b": "../b", "b/to-a": "../a"},
        {
            "a/one": None,
            "a/to-b/two": None,
            "a/to-b/to-a": CIRCLE,
            "b/two": None,
            "b/to-a/one": None,
            "b/to-a/to-b": CIRCLE,
        },
    ),
    "back from within the target": (
        ["b/c/file", "b/d"],
        {"a": "b/c", "b/c/back": ".."},
        {"a/back": CIRCLE, "a/file": None, "b/c/back": CIRCLE, "b/c/file": None, "b/d": None},
    ),
}


@pytest.mark.parametrize(("files", "links", "expected_entries"), LINKS.values(), ids=LINKS)
def test_symbolic_links(
    store: LocalStore,
    files: list[str],
    links: dict[str, str],
    expected_entries: dict[str, str | None],
) -> None:
    """Links within the root are followed, also if the root is a link. Others are problems."""
    outside = store.root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    for key in files:
        store.put(key, b"data")
    for name, target in links.items():
        (store.root / name).symlink_to(target)
    assert entries(store) == expected_entries
    assert [info for info in store.list() if info.key.startswith("a/b")] == [*store.list("a/b")]
    for key, problem in expected_entries.items():
        assert problem or store.get(key) == b"data"
    (outside / "link").symlink_to(store.root)
    assert entries(LocalStore(str(outside / "link"))) == expected_entries


def test_files_that_vanish_while_listing_are_left_out(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was deleted after its folder was read does not end the listing."""
    for name in ("a", "b", "c"):
        store.put(name, b"x")
    real = os.scandir

    def scanned(folder: str) -> Any:
        with real(folder) as entries:
            remaining = list(entries)
        (store.root / "b").unlink(missing_ok=True)
        return nullcontext(remaining)

    monkeypatch.setattr(os, "scandir", scanned)
    assert [info.key for info in store.list()] == ["a", "c"]


def test_listing_is_in_the_order_of_bytes(store: LocalStore) -> None:
    """The order of bytes does not depend on the locale, and a name may contain dots."""
    names = ["B", "a", "\udcff", "ü", "Z", "c..", "d/..b"]
    for name in names:
        store.put(name, b"x")
    assert [info.key for info in store.list()] == sorted(names, key=os.fsencode)


SIZE = 5 * 2**20 + 1234


@pytest.fixture
def pages() -> Iterator[memoryview]:
    """Memory that begins at a page, with content that does not repeat in each page."""
    with mmap.mmap(-1, SIZE) as memory:
        memory.write(os.urandom(SIZE))
        view = memoryview(memory)
        yield view
        view.release()


@pytest.fixture
def modes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int]]:
    """Each attempted write: whether it bypasses the cache, and its size in bytes."""
    writes = []
    write = os.write

    def noting_write(descriptor: int, data: memoryview) -> int:
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        writes.append((bool(flags & os.O_DIRECT), len(data)))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", noting_write)
    return writes


def written(store: LocalStore, data: memoryview | bytes) -> bytes:
    """The content of a file after put."""
    store.put("key", data)
    return (store.root / "key").read_bytes()


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="the system has no O_DIRECT")
def test_whole_blocks_go_past_the_cache_and_the_rest_the_usual_way(
    store: LocalStore, pages: memoryview, modes: list[tuple[bool, int]]
) -> None:
    """Page-aligned memory is written around the cache, except for its last incomplete block."""
    assert written(store, pages) == pages
    whole_blocks_bytes = SIZE // 4096 * 4096
    assert modes[0] == (True, whole_blocks_bytes)
    assert (
        modes[-1] == (False, SIZE - whole_blocks_bytes) or (False, SIZE) in modes
    )  # a file system that does not support it


@pytest.mark.parametrize("start", [1, 512, 4095])
def test_memory_that_begins_at_no_page_is_written_all_the_same(
    store: LocalStore, pages: memoryview, start: int
) -> None:
    """The bytes are written, whether the file system accepts unaligned memory or refuses it."""
    assert written(store, pages[start:]) == pages[start:]


def test_a_file_system_that_takes_less_gets_the_rest_the_usual_way(
    store: LocalStore, pages: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No byte is lost or written twice if only some blocks were written around the cache."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: 2**20]))
    assert written(store, pages) == pages


def test_a_disk_that_fills_up_is_reported(
    store: LocalStore, pages: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way of writing reports a full disk."""
    monkeypatch.setattr(os, "write", failing(os_error(errno.ENOSPC)))
    with pytest.raises(StoreFull, match="no space left while writing 'key'"):
        store.put("key", pages)
    assert files_below(store.root) == set()


def test_a_home_folder_that_is_not_known() -> None:
    """A tilde stands for a home folder, and one with an unknown user is refused."""
    assert LocalStore("~/photos").root == Path.home() / "photos"
    with pytest.raises(ConfigError, match="'~no-such-user/photos': no home folder is known"):
        LocalStore("~no-such-user/photos")
