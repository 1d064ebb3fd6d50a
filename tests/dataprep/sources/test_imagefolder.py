"""Tests of dataprep.sources.imagefolder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from dataprep.errors import (
    ConfigError,
    PermissionRefused,
    SourceChanged,
    SourceError,
    SourceNotFound,
    StoreError,
    StoreUnreachable,
    UnreadableImage,
)
from dataprep.sources import Listing, Located, open_source
from dataprep.sources.classes import is_clutter, promises_image
from dataprep.sources.imagefolder import ImageFolder
from dataprep.sources.protocol import Problem
from dataprep.stores import StoreOptions, open_store
from iobench.faults import FaultProxy, Match, Reset, Rule, Status
from iobench.s3_server import MotoServer
from tests.permissions import reachable_folder, unprivileged

HIDDEN = Problem("skipped", "hidden or system file")
NO_CLASS = Problem("skipped", "in no class folder")
NO_IMAGES = Problem("skipped", "its folder holds no images")


def draw(root: Path, names: Iterable[str]) -> None:
    """A file of a few bytes under each name."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(os.fsencode(name))


def listing_of(root: Path, *names: str) -> Listing:
    """The listing of a folder with files of these names."""
    draw(root, names)
    return ImageFolder(str(root)).list()


def classes(listing: Listing) -> dict[str, str]:
    """The class of each sample; entries with a problem left out."""
    rows = enumerate(zip(listing.names, listing.classes, strict=True))
    return {name: group for row, (name, group) in rows if row not in listing.problems}


def problems(listing: Listing) -> dict[str, Problem]:
    """What each entry that is no sample suffers from; each has no class unless it failed."""
    for row, problem in listing.problems.items():
        assert problem.status == "failed" or listing.classes[row] == ""
    return {listing.names[row]: problem for row, problem in listing.problems.items()}


LAYOUTS = {
    "synsets": "{}/{}_1.JPEG",
    "imagenet": "train/{}/{}_1.JPEG",
    "tiny-imagenet": "{}/images/{}_1.JPEG",
    "tiny-imagenet-root": "tiny-imagenet-200/train/{}/images/{}_1.JPEG",
    "kaggle": "ILSVRC/Data/CLS-LOC/train/{}/{}_1.JPEG",
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_a_synset_in_the_path_is_the_class(tmp_path: Path, layout: str) -> None:
    """In every layout of ImageNet the folder named as a WordNet id is the class."""
    synsets = ["n01440764", "n02105855", "n15075141"]
    names = {layout.format(synset, synset): synset for synset in synsets}
    listing = listing_of(tmp_path, *names)
    assert classes(listing) == names
    assert problems(listing) == {}


def test_one_synset_is_one_class(tmp_path: Path) -> None:
    """A single synset folder is a class, nested or not."""
    names = ["n01440764/images/a.JPEG", "n01440764/b.JPEG"]
    assert set(classes(listing_of(tmp_path, *names)).values()) == {"n01440764"}


def test_other_folders_beside_synsets_are_refused(tmp_path: Path) -> None:
    """Images in WordNet folders and in others: nobody can tell which are the classes."""
    with pytest.raises(SourceError, match=r"mixes WordNet folders such as 'n01440764' .* 'extra'"):
        listing_of(tmp_path, "n01440764/a.JPEG", "extra/b.JPEG")


def test_clutter_beside_synsets_decides_nothing(tmp_path: Path) -> None:
    """Texts anywhere, and images beside the class folders, are skipped and accounted for."""
    listing = listing_of(tmp_path, "n01440764/a.JPEG", "n01440764/box.txt", "extra/b.txt", "c.JPEG")
    assert classes(listing) == {"n01440764/a.JPEG": "n01440764", "n01440764/box.txt": "n01440764"}
    assert problems(listing) == {"extra/b.txt": NO_CLASS, "c.JPEG": NO_CLASS}


def test_a_flat_split_beside_a_labelled_one_is_refused(tmp_path: Path) -> None:
    """Kaggle's train folders with its flat validation folder are two splits, not classes."""
    with pytest.raises(SourceError, match="--split train"):
        listing_of(tmp_path, "CLS-LOC/train/n01440764/a.JPEG", "CLS-LOC/val/b.JPEG")


def test_a_single_class_may_have_a_folder_in_it(tmp_path: Path) -> None:
    """Images beside one folder of images are one class."""
    listing = listing_of(tmp_path, "cat/1.jpg", "cat/2.jpg", "cat/more/3.jpg")
    assert list(listing.classes) == ["cat"] * 3
    assert problems(listing) == {}


def test_a_source_without_extensions(tmp_path: Path) -> None:
    """Where no name has the extension of an image, files without any make the classes."""
    listing = listing_of(tmp_path, "a/1", "a/2", "b/3", "b/list.txt", "docs/list.csv")
    assert classes(listing) == {"a/1": "a", "a/2": "a", "b/3": "b", "b/list.txt": "b"}
    assert list(problems(listing)) == ["docs/list.csv"]
    listing = listing_of(tmp_path, "c/4.jpg")
    assert set(classes(listing).values()) == {"c"}


def test_links_are_named_where_nothing_else_is_there(tmp_path: Path) -> None:
    """A tree of links to another place is refused with that reason."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "1.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "cat").symlink_to(tmp_path / "real")
    with pytest.raises(SourceNotFound, match="symlink that leaves the source"):
        ImageFolder(str(tmp_path / "links")).list()


def test_a_class_that_is_a_link_to_another(tmp_path: Path) -> None:
    """It is followed: a class of its own."""
    draw(tmp_path, ["cat/1.jpg", "dog/2.jpg"])
    (tmp_path / "Katze").symlink_to("cat")
    assert classes(ImageFolder(str(tmp_path)).list())["Katze/1.jpg"] == "Katze"


@pytest.mark.parametrize(
    ("files", "folders", "named"),
    [
        (("a/1.jpg", "b/1.jpg"), ("c",), "1 folder without images, which make no class: 'c'"),
        (("a/1.jpg", "b/x.txt"), (), "1 folder without images, which make no class: 'b'"),
        (("t/a/1.jpg", "t/c/1.jpg"), ("t/b/deep", "z"), "make no class: 'b'"),
        (
            ("a/1.jpg",),
            ("c", "d", "e", "f"),
            "4 folders without images, .* 'c', 'd', 'e', \\.\\.\\.",
        ),
        (("x/n00000001/1.jpg",), ("x/n00000002", "x/docs"), "make no class: 'n00000002'"),
        (("a/1.jpg", "b/1.jpg"), (".hidden", "__MACOSX"), None),
        (("a/1.jpg", "b/sub/1.jpg"), ("b/empty",), None),
        (("n00000001/1.jpg", "n00000002/1.jpg"), ("docs",), None),
    ],
)
def test_folders_without_images_are_noted(
    tmp_path: Path, files: tuple[str, ...], folders: tuple[str, ...], named: str | None
) -> None:
    """Those beside the classes that a person might take for classes."""
    for name in folders:
        (tmp_path / name).mkdir(parents=True)
    notes = listing_of(tmp_path, *files).notes
    assert len(notes) == (named is not None)
    assert not named or re.search(f"{named}$", notes[0])


def test_caltech_folders(tmp_path: Path) -> None:
    """Caltech-256's numbered folders are classes, below the folder that all share."""
    listing = listing_of(
        tmp_path,
        "256_ObjectCategories/001.ak47/001_0001.jpg",
        "256_ObjectCategories/002.american-flag/002_0001.jpg",
        "256_ObjectCategories/257.clutter/257_0001.jpg",
    )
    assert list(listing.classes) == ["001.ak47", "002.american-flag", "257.clutter"]


def test_plain_folders(tmp_path: Path) -> None:
    """Folders of any name are classes, what lies deeper belongs to the upper one."""
    listing = listing_of(tmp_path, "cats/1.jpg", "cats/more/2.png", "dogs/x/y/3.webp")
    assert list(listing.classes) == ["cats", "cats", "dogs"]


@pytest.mark.parametrize("above", ["", "photos/", "data/2024/photos/"])
def test_shared_folders_are_passed_over(tmp_path: Path, above: str) -> None:
    """Folders that all images share are no classes, however many there are."""
    listing = listing_of(tmp_path, f"{above}cats/1.jpg", f"{above}dogs/2.jpg")
    assert list(listing.classes) == ["cats", "dogs"]


@pytest.mark.parametrize("above", ["", "photos/"])
def test_one_class_only(tmp_path: Path, above: str) -> None:
    """A single folder of images is one class, named by the folder that holds them."""
    listing = listing_of(tmp_path, f"{above}cats/1.jpg", f"{above}cats/2.jpg")
    assert list(listing.classes) == ["cats", "cats"]


@pytest.mark.parametrize(
    "clutter", ["README.txt", "docs/readme.txt", "photos/notes.md", "photos/meta/list.csv"]
)
def test_files_that_are_no_images_move_no_class(tmp_path: Path, clutter: str) -> None:
    """Texts beside the images, at any depth, do not change which folders are classes."""
    listing = listing_of(tmp_path, "photos/cats/1.jpg", "photos/dogs/2.jpg", clutter)
    assert classes(listing) == {"photos/cats/1.jpg": "cats", "photos/dogs/2.jpg": "dogs"}
    assert set(problems(listing)) == {clutter}


def test_text_in_a_class_folder_stays_a_candidate(tmp_path: Path) -> None:
    """A file of another name within a class is left to its content to decide."""
    listing = listing_of(tmp_path, "cats/1.jpg", "cats/noextension", "dogs/2.jpg")
    assert classes(listing)["cats/noextension"] == "cats"


def test_a_folder_of_texts_is_no_class(tmp_path: Path) -> None:
    """A folder without any image is skipped, file by file, with the reason."""
    listing = listing_of(tmp_path, "cats/1.jpg", "dogs/2.jpg", "notes/a.txt", "notes/b.csv")
    assert set(classes(listing).values()) == {"cats", "dogs"}
    assert problems(listing) == {"notes/a.txt": NO_IMAGES, "notes/b.csv": NO_IMAGES}


def test_files_at_the_root_belong_to_no_class(tmp_path: Path) -> None:
    """Images and texts beside the class folders are skipped with the reason."""
    listing = listing_of(tmp_path, "cats/1.jpg", "dogs/2.jpg", "stray.jpg", "labels.txt")
    assert problems(listing) == {"stray.jpg": NO_CLASS, "labels.txt": NO_CLASS}


def test_hidden_files_and_clutter_are_skipped(tmp_path: Path) -> None:
    """What systems leave behind is skipped wherever it lies, and accounted for."""
    clutter = [
        ".DS_Store",
        ".cache/1.jpg",
        "cats/.hidden.jpg",
        "cats/._1.jpg",
        "cats/Thumbs.db",
        "cats/desktop.ini",
        "__MACOSX/cats/1.jpg",
    ]
    listing = listing_of(tmp_path, "cats/1.jpg", "dogs/2.jpg", *clutter)
    assert classes(listing) == {"cats/1.jpg": "cats", "dogs/2.jpg": "dogs"}
    assert problems(listing) == dict.fromkeys(clutter, HIDDEN)


def test_every_file_is_listed_once(tmp_path: Path) -> None:
    """Samples and problems together are every file of the folder."""
    names = ["cats/1.jpg", "dogs/2.jpg", ".x", "y", "notes/z.txt", "cats/a/b/c/d.gif"]
    listing = listing_of(tmp_path, *names)
    assert sorted(listing.names) == sorted(names)
    assert classes(listing).keys() | problems(listing).keys() == set(names)
    assert listing.sizes.tolist() == [len(name) for name in listing.names]


SPLITS = {
    "synsets": ("train/n01440764/a.JPEG", "val/n01440764/b.JPEG", "train"),
    "nested": (
        "ILSVRC/CLS-LOC/train/n01440764/a.JPEG",
        "ILSVRC/CLS-LOC/val/n01440764/b.JPEG",
        "ILSVRC/CLS-LOC/train",
    ),
    "plain": ("train/cats/a.jpg", "val/cats/b.jpg", "train"),
    "plain-nested": ("data/train/cats/a.jpg", "data/val/cats/b.jpg", "data/train"),
    "beside-a-text": ("train/cats/a.jpg", "validation/cats/b.jpg", "train"),
}


@pytest.mark.parametrize("layout", SPLITS.values(), ids=SPLITS.keys())
def test_several_splits_are_refused_with_the_way_out(
    tmp_path: Path, layout: tuple[str, str, str]
) -> None:
    """A source with several splits is refused, and the command that is offered works."""
    first, second, folder = layout
    draw(tmp_path, [first, second, "readme/readme.txt", "LICENSE"])
    with pytest.raises(SourceError, match="several splits") as caught:
        ImageFolder(str(tmp_path)).list()
    assert f"--source {tmp_path}/{folder} --split train" in str(caught.value)
    assert caught.value.exit_code == 2
    assert len(ImageFolder(f"{tmp_path}/{folder}").list()) == 1


def test_a_class_may_be_called_test(tmp_path: Path) -> None:
    """A folder named as a split is a class where others beside it are none."""
    listing = listing_of(tmp_path, "test/1.jpg", "exam/2.jpg", "train/3.jpg")
    assert set(classes(listing).values()) == {"test", "exam", "train"}


@pytest.mark.parametrize("name", ["1.jpg", "n01440764_1.JPEG"])
def test_a_flat_folder_is_refused(tmp_path: Path, name: str) -> None:
    """Images without class folders are refused, and the message shows what is expected."""
    with pytest.raises(SourceNotFound, match=r"expected CLASS/IMAGE\.JPEG"):
        listing_of(tmp_path, name, "2.jpg")


def test_folders_without_images_are_refused(tmp_path: Path) -> None:
    """Class folders that hold only texts or hidden files are no source."""
    with pytest.raises(SourceNotFound, match="no class folders with images"):
        listing_of(tmp_path, "cats/a.txt", "dogs/.b.jpg")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    """A folder with nothing in it is refused."""
    with pytest.raises(SourceNotFound, match="no files in"):
        ImageFolder(str(tmp_path)).list()


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    """A folder that is not there is refused by name, with the option to look at."""
    with pytest.raises(SourceNotFound, match=r"nowhere.*--source") as caught:
        ImageFolder(str(tmp_path / "nowhere")).list()
    assert caught.value.exit_code == 2


def test_an_unknown_kind_is_refused() -> None:
    """A kind of source that nobody registers is refused with those that are."""
    with pytest.raises(ConfigError, match=r"'tape'.*imagefolder"):
        open_source("photos", kind="tape")


ODD = ["tab\tname.jpg", "line\nbreak.jpg", "caf\udce9.jpg", "back\\slash.jpg", "ü \u2028.jpg"]


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_odd_names_are_listed_and_read(tmp_path: Path, name: str) -> None:
    """Tabs, line breaks and bytes that are not UTF-8 survive in file and folder names."""
    listing = listing_of(tmp_path, f"cats/{name}", f"{name}/1.jpg")
    assert classes(listing) == {f"cats/{name}": "cats", f"{name}/1.jpg": name}
    source = ImageFolder(str(tmp_path))
    assert source.read(Located(f"cats/{name}", 0)) == os.fsencode(f"cats/{name}")


def test_order_is_that_of_bytes(tmp_path: Path) -> None:
    """Names are sorted by their bytes, a name that is not UTF-8 by its own."""
    names = ["a/\udcff.jpg", "a/\U0001f41f.jpg", "a/\uff5e.jpg", "a/Z.jpg", "B/a.jpg", "a/a.jpg"]
    assert list(listing_of(tmp_path, *names).names) == sorted(names, key=os.fsencode)


def test_links_that_cannot_be_followed_fail_by_name(tmp_path: Path) -> None:
    """A link out of the source and a broken one are failures, each with its reason."""
    outside = tmp_path / "outside.jpg"
    outside.write_bytes(b"x")
    root = tmp_path / "photos"
    draw(root, ["cats/1.jpg", "dogs/2.jpg"])
    (root / "cats" / "out.jpg").symlink_to(outside)
    (root / "dogs" / "broken.jpg").symlink_to("missing.jpg")
    (root / "dogs" / "again.jpg").symlink_to("2.jpg")
    listing = ImageFolder(str(root)).list()
    assert problems(listing) == {
        "cats/out.jpg": Problem("failed", "symlink that leaves the source"),
        "dogs/broken.jpg": Problem("failed", "broken symlink"),
    }
    assert classes(listing)["dogs/again.jpg"] == "dogs"
    assert dict(zip(listing.names, listing.classes, strict=True))["cats/out.jpg"] == "cats"


def test_a_vanished_file_is_a_changed_source(tmp_path: Path) -> None:
    """A file, or its whole folder, gone since the listing is SourceChanged with the way out."""
    draw(tmp_path, ["cats/1.jpg"])
    source = ImageFolder(str(tmp_path))
    (tmp_path / "cats" / "1.jpg").unlink()
    for name in ("cats/1.jpg", "dogs/2.jpg"):
        with pytest.raises(SourceChanged, match=f"{name}.*--overwrite"):
            source.read(Located(name, 0))


def test_an_unreadable_local_file_fails_its_sample() -> None:
    """A local file that may not be read is UnreadableImage: that one sample fails."""
    with reachable_folder() as root:
        draw(root, ["cats/1.jpg", "cats/2.jpg"])
        (root / "cats" / "1.jpg").chmod(0)
        source = ImageFolder(str(root))
        with unprivileged():
            with pytest.raises(UnreadableImage, match=r"1\.jpg"):
                source.read(Located("cats/1.jpg", 0))
            assert source.read(Located("cats/2.jpg", 0)) == b"cats/2.jpg"


def test_an_unreadable_local_folder_cannot_be_listed() -> None:
    """A folder that may not be read ends the listing, instead of missing from it."""
    with reachable_folder() as root:
        draw(root, ["cats/1.jpg", "dogs/2.jpg"])
        (root / "dogs").chmod(0)
        with unprivileged(), pytest.raises(SourceError, match=r"cannot list.*dogs"):
            ImageFolder(str(root)).list()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Status(403, "AccessDenied", "Access Denied"), PermissionRefused),
        (Status(400, "ExpiredToken", "The provided token has expired."), PermissionRefused),
        (Status(500, "InternalError"), StoreError),
        (Reset(), StoreUnreachable),
    ],
    ids=["403", "expired", "500", "reset"],
)
def test_a_store_that_refuses_fails_no_sample(
    s3_server: MotoServer,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    fault: Status | Reset,
    kind: type[StoreError],
) -> None:
    """On S3 a refused or broken reading is an error of the store, never of the sample."""
    monkeypatch.setattr("time.sleep", lambda duration_s: None)
    with FaultProxy(s3_server.url, [Rule(Match(), fault)]) as proxy:
        options = StoreOptions(endpoint_url=proxy.url, max_attempts=1)
        source = ImageFolder(f"s3://{bucket}/photos", options)
        with pytest.raises(kind):
            source.read(Located("cats/1.jpg", 0))
        with pytest.raises(SourceError, match="cannot list s3://"):
            source.list()


def test_no_such_bucket_is_no_source(s3_server: MotoServer, bucket: str) -> None:
    """A bucket or prefix that is not there is SourceNotFound."""
    options = StoreOptions(endpoint_url=s3_server.url)
    for uri in ("s3://no-such-bucket/photos", f"s3://{bucket}/no/such/prefix"):
        with pytest.raises(SourceNotFound, match="--source"):
            ImageFolder(uri, options).list()


def test_a_prefix_on_s3_lists_as_a_folder(s3_server: MotoServer, bucket: str) -> None:
    """ImageNet's tree below a prefix has its classes; folder markers are no entries."""
    options = StoreOptions(endpoint_url=s3_server.url)
    store = open_store(f"s3://{bucket}/raw", options)
    for name in ("train/", "train/n01440764/a.JPEG", "train/n02105855/b.JPEG"):
        store.put(name, b"" if name.endswith("/") else b"x")
    listing = ImageFolder(f"s3://{bucket}/raw", options).list()
    assert list(listing.classes) == ["n01440764", "n02105855"]


@pytest.mark.parametrize("name", ["a.JPEG", "b.jpg", "c.Png", "d/e.webp", "x.tiff", "y.z.gif"])
def test_names_that_promise_images(name: str) -> None:
    """An image's extension, in any case, promises an image."""
    assert promises_image(name)


@pytest.mark.parametrize("name", ["a.txt", "jpeg", ".jpg", "a.jpg.txt", "a.jpg/readme", ""])
def test_names_that_promise_none(name: str) -> None:
    """Other extensions, none, and a folder's extension promise no image."""
    assert not promises_image(name)


@pytest.mark.parametrize(
    ("name", "clutter"),
    [("a/b.jpg", False), (".a/b.jpg", True), ("a/._b.jpg", True), ("a/Thumbs.db", True)],
)
def test_clutter(name: str, clutter: bool) -> None:
    """Hidden files and what operating systems leave behind are recognised by their names."""
    assert bool(is_clutter(name)) is clutter


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """The kinds that read files are named."""
    (tmp_path / "list.csv").write_text("path,label\n")
    with pytest.raises(SourceNotFound, match=r"list\.csv.* is a file.*--kind listing"):
        open_source(str(tmp_path / "list.csv")).list()


def test_images_in_no_class(tmp_path: Path) -> None:
    """Kind flat: every image at any depth is a sample without a class, the rest is skipped."""
    draw(tmp_path, ["b.JPEG", "a/c.png", "a/notes.txt", ".hidden.jpg"])
    source = open_source(str(tmp_path), "flat")
    listing = source.list()
    assert list(listing.names) == [".hidden.jpg", "a/c.png", "a/notes.txt", "b.JPEG"]
    assert set(listing.classes) == {""}
    assert listing.problems == {0: HIDDEN, 2: Problem("skipped", "not named as an image")}
    assert source.read(Located("a/c.png", 4)) == b"a/c.png"
    with pytest.raises(SourceNotFound):
        open_source(str(tmp_path / "nothing"), "flat").list()


@pytest.mark.parametrize("above", ["", "d/train/"])
def test_mixed_folders_are_refused_with_the_way_out(tmp_path: Path, above: str) -> None:
    """The error says what to do."""
    way_out = rf"move one elsewhere, or take .* as in --source {tmp_path}/FOLDER$"
    with pytest.raises(SourceError, match=way_out):
        listing_of(tmp_path, f"{above}n01440764/1.jpg", "d/pictures/2.jpg")
