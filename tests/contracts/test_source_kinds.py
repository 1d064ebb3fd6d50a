"""Every kind of source lists and reads the same images alike, in each store."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from dataprep.errors import SourceChanged, SourceNotFound
from dataprep.formats import RecordOptions, Sample, get_format
from dataprep.formats.recordio import MAGIC
from dataprep.name_encoding import escape, to_bytes
from dataprep.sources import Listing, Located, Source, open_source
from dataprep.sources.options import (
    ListingOptions,
    ParquetOptions,
    RecordsOptions,
    WebDatasetOptions,
)
from dataprep.stores import Store
from dataprep.stores.s3 import S3Store
from tests.contracts.conftest import SCHEMES, open_fresh
from tests.parquet_files import images, parquet_of
from tests.tars import tar_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]

IMAGES = {
    "Dogs/z.jpg": b"zz",
    "Dogs/ü.jpg": b"umlaut",
    "Dogs/\U0001f41f.jpg": b"beyond the basic plane",
    "cats/10.jpg": b"ten",
    "cats/9.jpg": b"nine!" * 999,
    "cats/a b.jpg": b"\xff\xd8\xff\xe0" + MAGIC + b" aligned, so that RecordIO splits" + MAGIC * 2,
    "cats/Z.JPEG": b"",
}
CLASSES = ("Dogs", "cats")


class Kind(NamedTuple):
    """How images become a source of one kind, and what its listing contains.

    Attributes:
        in_archives: only a source that was listed, or a copy of it, can be read.
        knows_sizes: the listing has the size of each image, and not a mean.
    """

    name: str
    fill: Callable[[Store], None]
    path: str
    section: object
    keeps_names: bool = True
    in_archives: bool = False
    knows_sizes: bool = True


def _files(store: Store) -> None:
    """Store the images as files."""
    for name, data in IMAGES.items():
        store.put(name, data)


def _csv(store: Store) -> None:
    """Store the images, and a CSV of their paths and classes."""
    _files(store)
    rows = [f'"{name}",{name.split("/")[0]}\n' for name in IMAGES]
    store.put("list.csv", ("path,label\n" + "".join(rows)).encode())


def _lst(store: Store) -> None:
    """Store the images, a .lst of their paths and labels, and the names of the classes."""
    _files(store)
    rows = []
    for row, name in enumerate(IMAGES):
        label = CLASSES.index(name.split("/")[0])
        rows.append(f"{row}\t{label:f}\t{escape(name)}\n")
    store.put("list.lst", "".join(rows).encode())
    store.put("names.txt", "\n".join(CLASSES).encode())


def _records(format_name: str, *keys: str) -> Callable[[Store], None]:
    """A function that stores the images as records, divided among the keys."""

    def fill(store: Store) -> None:
        form = get_format(format_name)
        for number, key in enumerate(keys):
            shard = bytearray()
            writer = form.writer(_Appender(shard), RecordOptions())
            for name, data in list(IMAGES.items())[number :: len(keys)]:
                group, _, filename = name.partition("/")
                writer.write(
                    Sample(
                        image=data,
                        label=CLASSES.index(group),
                        filename=filename.encode(),
                        synset=group.encode(),
                    )
                )
            store.put(key, shard)

    return fill


def _webdataset(store: Store) -> None:
    """Store the images in two WebDataset tars."""
    for number in range(2):
        members = {}
        for name, data in list(IMAGES.items())[number::2]:
            key, _, extension = name.rpartition(".")
            members[f"{key}.{extension}"] = data
            members[f"{key}.cls"] = name.partition("/")[0].encode()
        store.put(f"train-{number:06}.tar", tar_of(members))


def _parquet(store: Store) -> None:
    """Store the images in Parquet files."""
    for number in range(2):
        chosen = dict(list(IMAGES.items())[number::2])
        labels = [name.partition("/")[0] for name in chosen]
        data = parquet_of({"image": images(*chosen.values()), "label": labels}, group=2)
        store.put(f"train-{number:05}-of-00002.parquet", data)


class _Appender:
    """Appends what it gets to an object of a store."""

    def __init__(self, target: bytearray) -> None:
        self.write = target.extend


SHARDS = [f"train-{number:05}-of-00003" for number in range(3)]
KINDS = {
    "folders": Kind("imagefolder", _files, "", None),
    "csv": Kind("listing", _csv, "/list.csv", ListingOptions()),
    "lst": Kind("listing", _lst, "/list.lst", ListingOptions()),
    "tfrecord": Kind("records", _records("tfrecord", *SHARDS), "", RecordsOptions()),
    "recordio": Kind(
        "records", _records("recordio", "a_0.rec", "a_1.rec"), "", RecordsOptions(), False
    ),
    "one-recordio": Kind(
        "records", _records("recordio", "a.rec"), "/a.rec", RecordsOptions(), False
    ),
    "webdataset": Kind("webdataset", _webdataset, "", WebDatasetOptions(), False, True),
    "parquet": Kind("parquet", _parquet, "", ParquetOptions(), False, True, False),
}


@pytest.fixture(params=SCHEMES)
def store(request: pytest.FixtureRequest) -> Store:
    """An empty store of each kind in which a source may be."""
    return open_fresh(request.param, request)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of source."""
    return KINDS[request.param]


def source_at(store: Store, kind: Kind) -> Source:
    """The source of this kind in ``store``."""
    section = kind.section
    if kind.path == "/list.lst":
        section = ListingOptions(class_names=f"{store.uri}/names.txt")
    options: Any = getattr(store, "options", None)
    return open_source(store.uri + kind.path, kind.name, options, section)


def by_content(source: Source, listing: Listing) -> Mapping[bytes, str]:
    """The class of each image, by the bytes of the image."""
    rows = range(len(listing))
    return {source.read(listing.located(row)): listing.classes[row] for row in rows}


def test_every_image_is_listed_once_with_its_class_and_bytes(store: Store, kind: Kind) -> None:
    """Reading the listed samples gives the bytes of the images, with their sizes and classes."""
    kind.fill(store)
    source = source_at(store, kind)
    listing = source.list()
    assert not listing.problems
    expected = {data: name.split("/")[0] for name, data in IMAGES.items()}
    if not (kind.keeps_names or kind.name in ("listing", "webdataset", "parquet")):
        expected = {data: str(CLASSES.index(group)) for data, group in expected.items()}
    assert by_content(source, listing) == expected
    sizes = [len(source.read(listing.located(row))) for row in range(len(listing))]
    if kind.knows_sizes:
        assert listing.sizes.tolist() == sizes
    assert listing.sizes.dtype == np.int64


def test_names_are_unique_and_sorted_by_their_bytes(store: Store, kind: Kind) -> None:
    """Rows are in the byte order of their names, which are CLASS/FILE if the source knows them."""
    kind.fill(store)
    names = list(source_at(store, kind).list().names)
    assert names == sorted(set(names), key=to_bytes)
    assert len(names) == len(IMAGES)
    if kind.keeps_names:
        assert names == sorted(IMAGES, key=to_bytes)


def test_labels_are_the_same_whatever_the_kind(store: Store, kind: Kind) -> None:
    """Dogs have label 0 and cats label 1, whether classes are names or numbers."""
    kind.fill(store)
    listing = source_at(store, kind).list()
    names = [label.synset for label in listing.label_space.labels] if listing.label_space else []
    assert names in ([], ["Dogs", "cats"], ["0", "1"])


def test_a_pickled_source_reads_the_same(store: Store, kind: Kind) -> None:
    """A pickled copy, as in a worker, reads what another source has listed."""
    kind.fill(store)
    source = source_at(store, kind)
    fresh = pickle.loads(pickle.dumps(source))
    if kind.in_archives:
        fresh.list()
    listing = source.list()
    copy = pickle.loads(pickle.dumps(source))
    assert copy.uri == fresh.uri == source.uri
    assert copy.concurrency == source.concurrency
    assert by_content(fresh, listing) == by_content(copy, listing) == by_content(source, listing)
    assert copy.list().digest() == fresh.list().digest() == listing.digest()


def test_what_vanished_is_a_changed_source(store: Store, kind: Kind) -> None:
    """Reading a removed sample raises SourceChanged with its name."""
    kind.fill(store)
    source = source_at(store, kind)
    item = source.list().located(0)
    key = item.container.partition("!")[0] or item.name
    store.delete(key)
    with pytest.raises(SourceChanged, match=f"{key}.*(is gone|or removed)"):
        source.read(item)


def test_an_empty_place_holds_no_source(store: Store, kind: Kind) -> None:
    """An empty location raises SourceNotFound with the location."""
    with pytest.raises(SourceNotFound) as caught:
        source_at(store, kind).list()
    assert store.uri in str(caught.value)


def test_reads_overlap_where_latency_asks_for_it(store: Store, kind: Kind) -> None:
    """A source on S3 has many reads in flight, and every source has at least one."""
    concurrency = source_at(store, kind).concurrency
    assert concurrency > 4 if isinstance(store, S3Store) else concurrency >= 1


def test_the_digest_changes_with_any_size(
    store: Store, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image of another size changes the digest."""
    kind.fill(store)
    before = source_at(store, kind).list().digest()
    monkeypatch.setitem(IMAGES, "cats/10.jpg", b"eleven")
    kind.fill(store)
    assert source_at(store, kind).list().digest() != before


def test_an_unlisted_place_cannot_be_read(store: Store, kind: Kind) -> None:
    """A sample that never existed is reported as a changed source as well."""
    if kind.in_archives:
        pytest.skip("members can only be read after a listing")
    kind.fill(store)
    item = Located("cats/no.jpg", 3, "none-00000-of-00001" if kind.name == "records" else "", 0)
    with pytest.raises(SourceChanged):
        source_at(store, kind).read(item)


OTHER_FILES = {
    "cats/.hidden.jpg": (b"hidden", "hidden or system file"),
    "notes/only.txt": (b"no images", "its folder holds no images"),
    "stray.txt": (b"at the root", "in no class folder"),
}


def folders_with_more(store: Store) -> Source:
    """Class folders with files that are not samples."""
    folders = KINDS["folders"]
    folders.fill(store)
    for name, (data, _) in OTHER_FILES.items():
        store.put(name, data)
    return source_at(store, folders)


def test_other_files_of_folders_are_listed_with_the_reason(store: Store) -> None:
    """Other files of class folders have no class.

    The digest covers all names, sizes and classes.
    """
    listing = folders_with_more(store).list()
    assert list(listing.names) == sorted([*IMAGES, *OTHER_FILES], key=to_bytes)
    problems = {listing.names[row]: problem for row, problem in listing.problems.items()}
    assert problems == {name: ("skipped", why) for name, (_, why) in OTHER_FILES.items()}
    digest = hashlib.sha256()
    rows = zip(listing.names, listing.sizes, listing.classes, strict=True)
    for name, size, group in rows:
        assert group == ("" if name in OTHER_FILES else name.split("/")[0])
        digest.update(f"{name}\0{size}\0{group}\0".encode())
    assert listing.digest() == digest.hexdigest()


def test_the_digest_of_folders_changes_with_any_file(store: Store) -> None:
    """Adding, renaming or removing a file changes the digest, and nothing else does."""
    source = folders_with_more(store)
    digests = [source.list().digest()]
    assert source.list().digest() == digests[0]
    for added, removed in (("new", None), ("renamed", "new"), (None, "10")):
        if added:
            store.put(f"cats/{added}.jpg", b"new")
        if removed:
            store.delete(f"cats/{removed}.jpg")
        digests.append(source.list().digest())
    assert len(set(digests)) == 4
