"""A source lists and reads the same wherever its files lie."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest

from dataprep.errors import SourceChanged, SourceNotFound
from dataprep.names import to_bytes
from dataprep.sources import Located, Source, open_source
from dataprep.stores import Store, StoreOptions
from dataprep.stores.s3 import S3Store
from tests.contracts.conftest import SCHEMES, open_fresh

FILES = {
    "cats/10.jpg": b"ten",
    "cats/9.jpg": b"nine!",
    "cats/Z.JPEG": b"",
    "cats/a b.jpg": b"space",
    "cats/.hidden.jpg": b"hidden",
    "cats/readme.txt": b"text",
    "Dogs/ü.jpg": b"umlaut",
    "Dogs/z.jpg": b"zz",
    "Dogs/\U0001f41f.jpg": b"beyond the basic plane",
    "Dogs/\uff5e.jpg": b"at the end of it",
    "notes/only.txt": b"no images",
    "stray.txt": b"at the root",
}


@pytest.fixture(params=SCHEMES)
def place(request: pytest.FixtureRequest) -> Store:
    """An empty store at each place where a source may lie."""
    return open_fresh(request.param, request)


def source_at(store: Store) -> Source:
    """Class folders in ``store``."""
    options: StoreOptions | None = getattr(store, "options", None)
    return open_source(store.uri, options=options)


def fill(store: Store, files: dict[str, bytes]) -> Source:
    """Class folders in ``store`` made of ``files``."""
    for key, data in files.items():
        store.put(key, data)
    return source_at(store)


def test_names_are_sorted_by_their_bytes(place: Store) -> None:
    """The listing holds every file once, in the byte order of the names."""
    listing = fill(place, FILES).list()
    assert list(listing.names) == sorted(FILES, key=to_bytes)
    assert len(listing) == len(FILES)


def test_columns_belong_to_the_names(place: Store) -> None:
    """Sizes, classes and problems are those of the file in their row."""
    listing = fill(place, FILES).list()
    assert listing.sizes.dtype == np.int64
    assert listing.sizes.tolist() == [len(FILES[name]) for name in listing.names]
    rows = {
        name: (group, listing.problems.get(row))
        for row, (name, group) in enumerate(zip(listing.names, listing.classes, strict=True))
    }
    assert {name: group for name, (group, problem) in rows.items() if problem is None} == {
        name: name.split("/")[0]
        for name in FILES
        if name.startswith(("cats/", "Dogs/")) and "hidden" not in name
    }
    assert {name: (group, problem) for name, (group, problem) in rows.items() if problem} == {
        "cats/.hidden.jpg": ("", ("skipped", "hidden or system file")),
        "notes/only.txt": ("", ("skipped", "its folder holds no images")),
        "stray.txt": ("", ("skipped", "in no class folder")),
    }


def test_the_digest_is_the_same_everywhere(place: Store) -> None:
    """The digest is that of names, sizes and classes, whichever store holds the files."""
    digest = hashlib.sha256()
    for name in sorted(FILES, key=to_bytes):
        group = name.split("/")[0] if name.startswith(("cats/", "Dogs/")) else ""
        group = "" if "hidden" in name else group
        digest.update(f"{name}\0{len(FILES[name])}\0{group}\0".encode())
    assert fill(place, FILES).list().digest() == digest.hexdigest()


def test_the_digest_changes_with_any_file(place: Store) -> None:
    """A file added, removed, renamed or of another size changes the digest."""
    source = fill(place, FILES)
    digests = [source.list().digest()]
    assert source.list().digest() == digests[0]
    place.put("cats/9.jpg", b"another size")
    digests.append(source.list().digest())
    place.put("cats/new.jpg", b"new")
    digests.append(source.list().digest())
    place.delete("cats/new.jpg")
    place.put("cats/renamed.jpg", b"new")
    digests.append(source.list().digest())
    place.delete("cats/10.jpg")
    digests.append(source.list().digest())
    assert len(set(digests)) == 5


def test_reading_gives_the_bytes(place: Store) -> None:
    """Every listed name reads as the file's own bytes, an empty one too."""
    source = fill(place, FILES)
    assert {name: source.read(Located(name, 0)) for name in source.list().names} == FILES


def test_a_vanished_file_is_a_changed_source(place: Store) -> None:
    """A file that is gone since the listing raises SourceChanged, which names it."""
    source = fill(place, FILES)
    place.delete("cats/9.jpg")
    with pytest.raises(SourceChanged, match=r"cats/9\.jpg.*is gone"):
        source.read(Located("cats/9.jpg", 0))


def test_an_empty_place_holds_no_source(place: Store) -> None:
    """A place without files raises SourceNotFound and names the place."""
    with pytest.raises(SourceNotFound, match="--source") as caught:
        source_at(place).list()
    assert place.uri in str(caught.value)


def test_a_pickled_source_reads_the_same(place: Store) -> None:
    """A source that crossed to a worker lists and reads the same."""
    source = fill(place, FILES)
    copy = pickle.loads(pickle.dumps(source))
    assert copy.uri == source.uri == place.uri
    assert copy.concurrency == source.concurrency
    assert copy.list().digest() == source.list().digest()
    assert copy.read(Located("cats/9.jpg", 0)) == b"nine!"


def test_reads_overlap_where_latency_asks_for_it(place: Store) -> None:
    """A source on S3 keeps many reads in flight, and every source at least one."""
    concurrency = source_at(place).concurrency
    assert concurrency > 4 if isinstance(place, S3Store) else concurrency >= 1


def test_a_drawn_tree_lists_the_same_as_on_disk(place: Store, tree: Path) -> None:
    """A copy of a local tree has its listing, its digest and its bytes."""
    local = open_source(str(tree))
    expected = local.list()
    some = [name for row, name in enumerate(expected.names) if row % 5 == 0]
    here = fill(place, {name: local.read(Located(name, 0)) for name in some})
    listing = here.list()
    by_name = dict(zip(expected.names, expected.classes, strict=True))
    assert list(listing.names) == some
    assert list(listing.classes) == [by_name[name] for name in some]
    assert here.read(Located(some[0], 0)) == (tree / some[0]).read_bytes()
