"""Tests of dataprep.archives.archives."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dataprep.archives.archives import Archives, container_of
from dataprep.errors import CorruptArchive, ObjectNotFound, SourceChanged
from dataprep.stores import Store
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore
from tests.tars import nested, tar_of, zipped

TREE = {"n1/a.jpg": b"\xff\xd8a" * 100, "n1/b.jpg": b"", "n2/c.jpg": b"\xff\xd8c"}
KINDS = {
    "plain": lambda: nested(TREE),
    "gzipped": lambda: zipped(nested(TREE)),
    "of gzipped": lambda: nested(TREE, packed=True),
}


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind that reads differently."""
    if request.param == "file":
        local = LocalStore(str(tmp_path / "store"))
        local.prepare()
        return local
    return MemoryStore(f"memory://{tmp_path}")


@pytest.fixture
def archives(store: Store, tmp_path: Path) -> Archives:
    """Archives with a cache of their own."""
    return Archives(store, str(tmp_path / "cache"))


def silent(_: object) -> None:
    """Hear nothing."""


def read_all(archives: Archives, key: str) -> dict[bytes, bytes]:
    """Every member's bytes by its name."""
    index = archives.index(key, silent, silent)
    return {
        index.names[row]: archives.read(
            container_of(key, index, int(index.part[row])),
            int(index.offsets[row]),
            int(index.sizes[row]),
        )
        for row in range(len(index))
    }


@pytest.mark.parametrize("kind", KINDS)
def test_members_are_read(kind: str, store: Store, archives: Archives) -> None:
    """Each member reads as what was packed, also by a copy in a worker and on many threads."""
    store.put("deep/key!gzip@", KINDS[kind]())
    expected = {name[3:].encode(): data for name, data in TREE.items()}
    assert read_all(archives, "deep/key!gzip@") == expected
    copy = pickle.loads(pickle.dumps(archives))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: read_all(copy, "deep/key!gzip@"), range(16)))
    assert found == [expected] * 16


def test_containers_say_what_offsets_count_in(store: Store, archives: Archives) -> None:
    """Plain archives are their own container, compressed ones and parts are named by place."""
    store.put("plain", nested(TREE))
    store.put("packed", zipped(nested(TREE)))
    store.put("parts", nested(TREE, packed=True))
    index = archives.index("plain", silent, silent)
    assert container_of("plain", index, 1) == "plain"
    index = archives.index("packed", silent, silent)
    size = len(zipped(nested(TREE)))
    assert {container_of("packed", index, part) for part in (0, 1, 2)} == {f"packed!gzip@0+{size}"}
    index = archives.index("parts", silent, silent)
    assert container_of("parts", index, 1) == f"parts!gzip@512+{index.parts[1].bytes}"


@pytest.mark.parametrize("kind", KINDS)
def test_another_archive_is_not_read(kind: str, store: Store, archives: Archives) -> None:
    """Who was told of one archive and finds another, or none, stops."""
    store.put("key", KINDS[kind]())
    index = archives.index("key", silent, silent)
    place = (container_of("key", index, 1), int(index.offsets[0]), 5)
    frozen = pickle.dumps(archives)
    store.put("key", tar_of({"x": b"other"}))
    with pytest.raises(SourceChanged, match="changed since it was indexed"):
        pickle.loads(frozen).read(*place)
    store.delete("key")
    with pytest.raises(SourceChanged, match="is gone"):
        pickle.loads(frozen).read(*place)


@pytest.mark.parametrize("packed", [False, True])
def test_a_relative_path_is_another_archive_elsewhere(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept for a path counts for the file there, not for one of that name elsewhere."""
    twins = {"one": {"n1/a.jpg": b"\xff\xd8aaa"}, "two": {"n2/b.jpg": b"\xff\xd8bbb"}}
    for folder, tree in twins.items():
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "X.tar"
        path.write_bytes(nested(tree, packed=packed))
        os.utime(path, ns=(1, 1))
    for folder, name in (("one", b"a.jpg"), ("two", b"b.jpg")):
        monkeypatch.chdir(tmp_path / folder)
        (data,) = twins[folder].values()
        archives = Archives(LocalStore("."), str(tmp_path / "cache"))
        assert read_all(archives, "X.tar") == {name: data}


def test_what_is_not_there(archives: Archives, store: Store) -> None:
    """An archive that never was is a store's own error."""
    store.put("other", b"")
    with pytest.raises(ObjectNotFound):
        archives.index("key", silent, silent)


def test_damage_inside_gzip_data(store: Store, archives: Archives) -> None:
    """The checksum of the whole is checked in the pass that indexes."""
    data = bytearray(zipped(tar_of({"a.jpg": bytes(range(256)) * 2000})))
    data[-6] ^= 1
    store.put("key", bytes(data))
    with pytest.raises(CorruptArchive, match="damaged or truncated"):
        archives.index("key", silent, silent)
