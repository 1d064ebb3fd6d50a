"""Class folders are listed with samples, classes and problems, and unclear ones are refused."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from itertools import pairwise
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
from dataprep.sources import HavingFolders, LeavingOut, Listing, Located, open_source
from dataprep.sources.file_names import promises_image
from dataprep.sources.imagefolder import ImageFolder
from dataprep.sources.protocol import Problem
from dataprep.stores import StoreOptions, open_store
from iobench.servers.fault_proxy import FaultProxy, Match, Reset, Rule, Status
from iobench.servers.moto_server import MotoServer
from tests.permissions import reachable_folder, unprivileged

HIDDEN = Problem("skipped", "hidden or system file")
NO_CLASS = Problem("skipped", "in no class folder")
NO_IMAGES = Problem("skipped", "its folder holds no images")


def draw(root: Path, names: Iterable[str]) -> None:
    """Write a file of a few bytes under each name."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(os.fsencode(name))


def listing_of(root: Path, *names: str) -> Listing:
    """The listing of a folder with files of these names."""
    draw(root, names)
    return ImageFolder(str(root)).list()


def classes(listing: Listing) -> dict[str, str]:
    """The class of each sample, without entries that have a problem."""
    rows = enumerate(zip(listing.names, listing.classes, strict=True))
    return {name: group for row, (name, group) in rows if row not in listing.problems}


def problems(listing: Listing) -> dict[str, Problem]:
    """The problem of each entry that is no sample. Only a failed entry may have a class."""
    for row, problem in listing.problems.items():
        assert problem.status == "failed" or listing.classes[row] == ""
    return {listing.names[row]: problem for row, problem in listing.problems.items()}


ODD = ["tab\tname.jpg", "line\nbreak.jpg", "caf\udce9.jpg", "back\\slash.jpg", "ü \u2028.jpg"]
LISTED: dict[str, tuple[dict[str, str], dict[str, Problem]]] = {
    "synset folders": ({"n01440764/n01440764_1.JPEG": "n01440764"}, {}),
    "imagenet": (
        {
            "ILSVRC2012/n01440764/n01440764_1.JPEG": "n01440764",
            "ILSVRC2012/n15075141/n15075141_1.JPEG": "n15075141",
        },
        {},
    ),
    "tiny-imagenet": (
        {"n01440764/images/1.JPEG": "n01440764", "n02105855/images/1.JPEG": "n02105855"},
        {},
    ),
    "tiny-imagenet with its root": (
        {
            "tiny-imagenet-200/n01440764/images/1.JPEG": "n01440764",
            "tiny-imagenet-200/n02105855/images/1.JPEG": "n02105855",
        },
        {},
    ),
    "kaggle": (
        {
            "ILSVRC/Data/CLS-LOC/n01440764/1.JPEG": "n01440764",
            "ILSVRC/Data/CLS-LOC/n02105855/1.JPEG": "n02105855",
        },
        {},
    ),
    "one synset, nested and not": (
        {"n01440764/images/a.JPEG": "n01440764", "n01440764/b.JPEG": "n01440764"},
        {},
    ),
    "clutter beside synsets": (
        {"n01440764/a.JPEG": "n01440764", "n01440764/box.txt": "n01440764"},
        {"extra/b.txt": NO_CLASS, "c.JPEG": NO_CLASS},
    ),
    "a folder within a single class": (
        {"cat/1.jpg": "cat", "cat/2.jpg": "cat", "cat/more/3.jpg": "cat"},
        {},
    ),
    "no extensions": (
        {"a/1": "a", "a/2": "a", "b/3": "b", "b/list.txt": "b"},
        {"docs/list.csv": NO_IMAGES},
    ),
    "one image's extension among names without": (
        {"c/4.jpg": "c"},
        {"a/1": NO_IMAGES, "b/list.txt": NO_IMAGES},
    ),
    "caltech": (
        {
            "256_ObjectCategories/001.ak47/001_0001.jpg": "001.ak47",
            "256_ObjectCategories/002.american-flag/002_0001.jpg": "002.american-flag",
            "256_ObjectCategories/257.clutter/257_0001.jpg": "257.clutter",
        },
        {},
    ),
    "deeper folders belong to the upper one": (
        {"cats/1.jpg": "cats", "cats/more/2.png": "cats", "dogs/x/y/3.webp": "dogs"},
        {},
    ),
    "a shared folder": ({"photos/cats/1.jpg": "cats", "photos/dogs/2.jpg": "dogs"}, {}),
    "several shared folders": ({"data/p/cats/1.jpg": "cats", "data/p/dogs/2.jpg": "dogs"}, {}),
    "one class": ({"cats/1.jpg": "cats", "cats/2.jpg": "cats"}, {}),
    "one class in a shared folder": (
        {"photos/cats/1.jpg": "cats", "photos/cats/2.jpg": "cats"},
        {},
    ),
    "texts beside the classes, at any depth": (
        {"photos/cats/1.jpg": "cats", "photos/dogs/2.jpg": "dogs"},
        {
            "README.txt": NO_CLASS,
            "docs/readme.txt": NO_CLASS,
            "photos/notes.md": NO_CLASS,
            "photos/meta/list.csv": NO_IMAGES,
        },
    ),
    "a text in a class is left to its content": (
        {"cats/1.jpg": "cats", "cats/noextension": "cats", "dogs/2.jpg": "dogs"},
        {},
    ),
    "a folder of texts": (
        {"cats/1.jpg": "cats", "dogs/2.jpg": "dogs"},
        {"notes/a.txt": NO_IMAGES, "notes/b.csv": NO_IMAGES},
    ),
    "files at the root": (
        {"cats/1.jpg": "cats", "dogs/2.jpg": "dogs"},
        {"stray.jpg": NO_CLASS, "labels.txt": NO_CLASS},
    ),
    "what systems leave behind": (
        {"cats/1.jpg": "cats", "dogs/2.jpg": "dogs"},
        {
            ".DS_Store": HIDDEN,
            ".cache/1.jpg": HIDDEN,
            "cats/.hidden.jpg": HIDDEN,
            "cats/._1.jpg": HIDDEN,
            "cats/Thumbs.db": HIDDEN,
            "cats/desktop.ini": HIDDEN,
            "__MACOSX/cats/1.jpg": HIDDEN,
        },
    ),
    "classes with the words of splits among others": (
        {
            "test_tube/1.jpg": "test_tube",
            "cup/2.jpg": "cup",
            "train station/3.jpg": "train station",
        },
        {},
    ),
    "a class that is called as a split, among nested ones": (
        {"train/steam/1.jpg": "train", "bus/red/2.jpg": "bus", "bus/3.jpg": "bus"},
        {},
    ),
    "a class that is called as a split": (
        {"test/1.jpg": "test", "exam/2.jpg": "exam", "train/3.jpg": "train"},
        {},
    ),
    "the order of bytes": (
        dict.fromkeys(["a/\udcff.jpg", "a/\U0001f41f.jpg", "a/\uff5e.jpg", "a/Z.jpg"], "a"),
        {},
    ),
    **{f"odd name {name!a}": ({f"cats/{name}": "cats", f"{name}/1.jpg": name}, {}) for name in ODD},
}


@pytest.mark.parametrize(("samples", "others"), LISTED.values(), ids=LISTED)
def test_every_file_is_a_sample_of_a_class_or_has_a_reason(
    tmp_path: Path, samples: dict[str, str], others: dict[str, Problem]
) -> None:
    """Each file is listed once, with its name and size, and is read unchanged."""
    listing = listing_of(tmp_path, *samples, *others)
    assert classes(listing) == samples
    assert problems(listing) == others
    assert list(listing.names) == sorted([*samples, *others], key=os.fsencode)
    assert listing.sizes.tolist() == [len(os.fsencode(name)) for name in listing.names]
    source = ImageFolder(str(tmp_path))
    for row, name in enumerate(listing.names):
        assert source.read(listing.located(row)) == os.fsencode(name)


@pytest.mark.parametrize(
    ("names", "kind", "message"),
    [
        (
            ["n01440764/a.JPEG", "extra/b.JPEG"],
            SourceError,
            "mixes WordNet folders such as 'n01440764' .* 'extra'",
        ),
        (
            ["n01440764/1.jpg", "d/pictures/2.jpg"],
            SourceError,
            "move one of them elsewhere, or .* as in --source ROOT/FOLDER$",
        ),
        (
            ["d/train/n01440764/1.jpg", "d/pictures/2.jpg"],
            SourceError,
            "--source ROOT/d/pictures --kind flat --unlabelled --split pictures",
        ),
        (["CLS-LOC/train/n01440764/a.JPEG", "CLS-LOC/val/b.JPEG"], SourceError, "--split train"),
        (["train/a.JPEG"], SourceError, "--kind flat --unlabelled --split train"),
        (["1.jpg", "2.jpg"], SourceNotFound, r"expected CLASS/IMAGE\.JPEG"),
        (["n01440764_1.JPEG", "2.jpg"], SourceNotFound, r"expected CLASS/IMAGE\.JPEG"),
        (["cats/a.txt", "dogs/.b.jpg"], SourceNotFound, "no class folders with images"),
        ([], SourceNotFound, "no files in"),
    ],
)
def test_folders_whose_classes_are_not_clear_are_refused(
    tmp_path: Path, names: list[str], kind: type[SourceError], message: str
) -> None:
    """The error says what is expected, or has a remedy."""
    with pytest.raises(kind, match=message.replace("ROOT", str(tmp_path))):
        listing_of(tmp_path, *names)


def test_links_to_files_and_folders_are_followed(tmp_path: Path) -> None:
    """Links are followed to any target.

    A broken link fails by name, and a folder is never a row.
    """
    root = tmp_path / "photos"
    draw(tmp_path, ["outside/cat/0.jpg", "photos/cats/1.jpg", "photos/dogs/2.jpg", "o.jpg"])
    (root / "Katze").symlink_to("cats")
    (root / "foreign").symlink_to(tmp_path / "outside" / "cat")
    (root / "cats" / "out.jpg").symlink_to(tmp_path / "o.jpg")
    (root / "dogs" / "again.jpg").symlink_to("2.jpg")
    (root / "dogs" / "broken.jpg").symlink_to("missing.jpg")
    (root / "dogs" / "circle.jpg").symlink_to("circle.jpg")
    source = ImageFolder(str(root))
    listing = source.list()
    broken = Problem("failed", "broken symlink")
    assert problems(listing) == {"dogs/broken.jpg": broken, "dogs/circle.jpg": broken}
    assert classes(listing) == {
        "Katze/1.jpg": "Katze",
        "Katze/out.jpg": "Katze",
        "cats/1.jpg": "cats",
        "cats/out.jpg": "cats",
        "dogs/2.jpg": "dogs",
        "dogs/again.jpg": "dogs",
        "foreign/0.jpg": "foreign",
    }
    row = list(listing.names).index("foreign/0.jpg")
    assert source.read(listing.located(row)) == b"outside/cat/0.jpg"
    assert not listing.notes


def test_a_source_of_links_alone(tmp_path: Path) -> None:
    """A subset of links to class folders lists as these folders do, and may itself be a link."""
    draw(tmp_path, [f"full/{name}/{number}.jpg" for name in "abc" for number in range(2)])
    (tmp_path / "subset").mkdir()
    for name in "ab":
        (tmp_path / "subset" / name).symlink_to(Path("..") / "full" / name)
    (tmp_path / "link").symlink_to("subset")
    for folder_name in ("subset", "link"):
        listing = ImageFolder(str(tmp_path / folder_name)).list()
        assert classes(listing) == {f"{g}/{n}.jpg": g for g in "ab" for n in range(2)}


def test_loops_of_links_end_and_are_named(tmp_path: Path) -> None:
    """A link to a folder above it, or two links to each other, are skipped by name."""
    root = tmp_path / "photos"
    draw(tmp_path, ["beside.jpg"])
    draw(root, ["cats/1.jpg", "dogs/2.jpg"])
    (root / "cats" / "here").symlink_to(".")
    (root / "cats" / "top").symlink_to(root)
    (root / "dogs" / "above").symlink_to(tmp_path)
    (root / "dogs" / "cats").symlink_to("../cats")
    (root / "cats" / "dogs").symlink_to("../dogs")
    listing = ImageFolder(str(root)).list()
    assert set(problems(listing).values()) == {
        Problem("skipped", "symlink to a folder that contains it")
    }
    assert set(classes(listing)) == {
        "cats/1.jpg",
        "cats/dogs/2.jpg",
        "dogs/2.jpg",
        "dogs/cats/1.jpg",
    }
    (note,) = listing.notes
    assert "links to a folder that contains the link, not followed: " in note
    assert "'cats/here', 'cats/top'" in note


@pytest.mark.parametrize("kind", ["imagefolder", "flat"])
@pytest.mark.parametrize("link", ["owls and more", "cats/more", "cats/[a] more*"])
def test_a_broken_link_in_the_place_of_a_folder_is_refused(
    tmp_path: Path, kind: str, link: str
) -> None:
    """A broken link that could be a folder is refused. Images and excluded links are not."""
    draw(tmp_path, ["cats/1.jpg", "dogs/2.jpg"])
    (tmp_path / link).symlink_to("nowhere")
    (tmp_path / "3.jpg").symlink_to("nowhere")
    (tmp_path / "cats" / "4.jpg").symlink_to("4.jpg")
    source = open_source(str(tmp_path), kind)
    with pytest.raises(SourceError, match="would be missing") as refusal:
        source.list()
    assert isinstance(source, LeavingOut)
    glob = shlex.split(str(refusal.value).partition("--exclude ")[2])[0]
    source.leave_out((glob,))
    assert problems(source.list()) == {
        "3.jpg": Problem("failed", "broken symlink"),
        "cats/4.jpg": Problem("failed", "broken symlink"),
        link: Problem("skipped", f"excluded by {glob!r}"),
    }


def test_broken_links_among_images_without_extensions_fail(tmp_path: Path) -> None:
    """A broken link in a class may be an image, and fails. One beside the classes is refused."""
    draw(tmp_path, ["cats/1", "dogs/2"])
    (tmp_path / "cats" / "3").symlink_to("nowhere")
    assert problems(ImageFolder(str(tmp_path)).list()) == {
        "cats/3": Problem("failed", "broken symlink")
    }
    (tmp_path / "owls").symlink_to("nowhere")
    with pytest.raises(SourceError, match=r"owls is a link whose target does not exist"):
        ImageFolder(str(tmp_path)).list()


SYSTEM_FOLDERS = [
    "@eaDir",
    "lost+found",
    "$RECYCLE.BIN",
    "$Recycle.Bin",
    "System Volume Information",
    ".Trash",
    ".Trash-1000",
    ".Trashes",
    "__MACOSX",
    ".ipynb_checkpoints",
    ".hidden",
    "#recycle",
]


@pytest.mark.parametrize("kind", ["imagefolder", "flat"])
@pytest.mark.parametrize("folder", SYSTEM_FOLDERS)
def test_system_folders_are_no_classes_at_any_depth(tmp_path: Path, folder: str, kind: str) -> None:
    """Files of system folders are skipped rows."""
    clutter = [f"{folder}/1.jpg", f"cats/{folder}/1.jpg", f"cats/more/{folder}/x/1.jpg"]
    draw(tmp_path, ["cats/1.jpg", "dogs/2.jpg", *clutter])
    listing = open_source(str(tmp_path), kind).list()
    assert problems(listing) == dict.fromkeys(clutter, HIDDEN)
    assert not listing.notes


def test_a_system_folder_that_cannot_be_read_is_passed_over() -> None:
    """An unreadable system folder is named, and another one ends the listing unless excluded."""
    with reachable_folder() as root:
        draw(root, ["cats/1.jpg", "dogs/2.jpg", "lost+found/x.jpg", "cats/@eaDir/y.jpg", "own/z"])
        for name in ("lost+found", "cats/@eaDir"):
            (root / name).chmod(0)
        source = ImageFolder(str(root))
        with unprivileged():
            listing = source.list()
            assert set(classes(listing)) == {"cats/1.jpg", "dogs/2.jpg"}
            assert set(listing.unread) == {"lost+found", "cats/@eaDir"}
            assert "2 folders left out that cannot be read either" in " ".join(listing.notes)
        (root / "own").chmod(0)
        with unprivileged():
            with pytest.raises(SourceError, match=r"cannot list.*own"):
                source.list()
            source.leave_out(("own",))
            assert len(source.list().unread) == 3


EXCLUSIONS = {
    "a name at any depth": ("thumbs", {"cats/thumbs/3.jpg", "thumbs/4.jpg"}),
    "a name and a slash": ("thumbs/", {"cats/thumbs/3.jpg", "thumbs/4.jpg"}),
    "a path": ("cats/thumbs", {"cats/thumbs/3.jpg"}),
    "a path from the root": ("/thumbs", {"thumbs/4.jpg"}),
    "files": ("*.png", {"cats/2.png", "cats/thumbs/5.png"}),
    "a star stays within a name": ("cats/*.png", {"cats/2.png"}),
    "a star does not reach into a folder": ("ca*.png", set[str]()),
    "two stars do not": ("cats/**/*.png", {"cats/2.png", "cats/thumbs/5.png"}),
    "all below": ("cats/**", {"cats/1.jpg", "cats/2.png", "cats/thumbs/3.jpg"}),
    "one character and a range": ("d?gs/[0-7].jpg", {"dogs/6.jpg", "dogs/7.jpg"}),
    "not in a range": ("dogs/[!0-7].jpg", {"dogs/8.jpg"}),
    "characters without a meaning": ("a+b(c)", {"a+b(c)/9.jpg"}),
    "case": ("CATS", set[str]()),
}


@pytest.mark.parametrize(("glob", "excluded"), EXCLUSIONS.values(), ids=EXCLUSIONS)
def test_globs_leave_files_out(tmp_path: Path, glob: str, excluded: set[str]) -> None:
    """Files that a glob matches, and files below them, are skipped with the glob as reason."""
    names = {"cats/1.jpg", "dogs/6.jpg", "dogs/7.jpg", "dogs/8.jpg", "a+b(c)/9.jpg", "thumbs/4.jpg"}
    names |= {"cats/2.png", "cats/thumbs/3.jpg", *excluded}
    draw(tmp_path, names)
    source = ImageFolder(str(tmp_path))
    source.leave_out((glob,))
    skipped = problems(source.list())
    assert set(skipped) >= excluded
    assert set(skipped.values()) <= {Problem("skipped", f"excluded by {glob!r}")}
    if glob != "cats/**":
        assert set(skipped) == excluded


@pytest.mark.parametrize(
    ("files", "folders", "named"),
    [
        (("a/1.jpg", "b/1.jpg"), ("c",), "1 folder without images, which make no class: 'c'"),
        (("a/1.jpg", "b/x.txt"), (), "1 folder without images, which make no class: 'b'"),
        (("t/a/1.jpg", "t/c/1.jpg"), ("t/b/deep", "z"), "make no class: 'b'"),
        (
            ("a/1.jpg",),
            tuple("cdefghijklm"),
            r"11 folders without images, .* 'c', 'd', .*, 'l', \.\.\.",
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
    """Folders beside the classes that a user might expect to be classes are noted."""
    for name in folders:
        (tmp_path / name).mkdir(parents=True)
    notes = listing_of(tmp_path, *files).notes
    assert len(notes) == (named is not None)
    assert not named or re.search(f"{named}$", notes[0])


SPLITS: dict[str, tuple[list[str], dict[str, str]]] = {
    "synsets": (
        ["train/n01440764/a.JPEG", "val/n01440764/b.JPEG"],
        {"train": "train", "val": "validation"},
    ),
    "nested": (
        ["ILSVRC/CLS-LOC/train/n01440764/a.JPEG", "ILSVRC/CLS-LOC/val/n01440764/b.JPEG"],
        {"ILSVRC/CLS-LOC/train": "train", "ILSVRC/CLS-LOC/val": "validation"},
    ),
    "plain": (["train/c/a.jpg", "val/c/b.jpg"], {"train": "train", "val": "validation"}),
    "capital": (
        ["Testing/c/b.jpg", "Training/c/a.jpg"],
        {"Training": "train", "Testing": "test"},
    ),
    "with words behind": (
        ["train_images/c/a.jpg", "val-images/c/b.jpg"],
        {"train_images": "train", "val-images": "validation"},
    ),
    "with words before": (
        ["imgs.dev/c/a.jpg", "imgs.eval/c/b.jpg"],
        {"imgs.dev": "dev", "imgs.eval": "eval"},
    ),
    "years": (
        ["train2017/c/a.jpg", "val2017/c/b.jpg"],
        {"train2017": "train", "val2017": "validation"},
    ),
    "two of a role": (
        ["train_1/c/a.jpg", "train_2/c/b.jpg"],
        {"train_1": "train_1", "train_2": "train_2"},
    ),
    "two that differ in punctuation": (
        ["train-1/c/a.jpg", "train.1/c/b.jpg"],
        {"train-1": "train_1", "train.1": "train_1_2"},
    ),
    "alone": (["train/c/a.jpg", "train/d/b.jpg"], {"train": "train"}),
    "alone, of synsets": (["Valid/n01440764/a.JPEG"], {"Valid": "validation"}),
    "in folders of their own name": (
        ["seg_train/seg_train/c/a.jpg", "seg_test/seg_test/c/b.jpg", "seg_pred/seg_pred/c.jpg"],
        {"seg_train/seg_train": "train", "seg_test/seg_test": "test"},
    ),
    "beside the folder that they were in": (
        ["xray/xray/train/c/a.jpg", "xray/train/c/a.jpg", "xray/test/c/b.jpg"],
        {"xray/train": "train", "xray/test": "test"},
    ),
    "alone beside images": (["train/c/a.jpg", "train/d/a.jpg", "more/b.jpg"], {"train": "train"}),
}


@pytest.mark.parametrize(("names", "splits"), SPLITS.values(), ids=SPLITS)
def test_folders_that_look_like_splits_are_refused_with_the_way_out(
    tmp_path: Path, names: list[str], splits: dict[str, str]
) -> None:
    """The error has a command for each split, and the sources in these are accepted."""
    root = tmp_path / "my photos"
    draw(root, [*names, "readme/readme.txt", "LICENSE"])
    with pytest.raises(SourceError, match="look like splits") as caught:
        ImageFolder(str(root)).list()
    assert caught.value.exit_code == 2
    commands = [line.split() for line in str(caught.value).splitlines() if line.startswith("  ")]
    *one_each, command_of_all = [shlex.split(" ".join(command)) for command in commands]
    split_of_source = {command[3]: command[command.index("--split") + 1] for command in one_each}
    assert split_of_source == {f"{root}/{folder}": split for folder, split in splits.items()}
    for folder in split_of_source:
        assert len(ImageFolder(folder).list()) > 0
    assert command_of_all[2:6] == ["--source", str(root), "--set", "labels.split_folders=classes"]
    source = ImageFolder(str(root))
    source.read_splits_as_classes()
    assert any(source.list().classes)


def test_splits_with_images_and_no_classes(tmp_path: Path) -> None:
    """The command for a folder of images alone reads it as such."""
    draw(tmp_path, ["train/c/a.jpg", "train/d/a.jpg", "test/1.jpg"])
    with pytest.raises(SourceError) as caught:
        ImageFolder(str(tmp_path)).list()
    command = f"dataprep shard --source {tmp_path}/test --kind flat --unlabelled --split test "
    assert command in str(caught.value)


DIFFERENT_SPLITS = {
    "images alone": (["train/1.jpg", "test/1.jpg"], "train", "test"),
    "class folders": (["Train/a/1.jpg", "Train/b/1.jpg", "Val/a/1.jpg"], "Train", "Val"),
    "beside other folders": (["more/1.jpg", "train/1.jpg", "test/2.jpg", "3.jpg"], "train", "test"),
    "below another folder": (["all/train_1/1.jpg", "all/val_1/1.jpg"], "all/train_1", "all/val_1"),
}


@pytest.mark.parametrize("names", DIFFERENT_SPLITS.values(), ids=DIFFERENT_SPLITS)
def test_different_splits_are_not_read_as_one_folder_of_images(
    tmp_path: Path, names: tuple[list[str], str, str]
) -> None:
    """``--kind flat`` refuses splits with a command for each, unless a setting joins them."""
    images, *folders = names
    draw(tmp_path, images)
    with pytest.raises(SourceError) as caught:
        open_source(str(tmp_path), "flat").list()
    *commands, command_of_all = [
        shlex.split(line)
        for line in str(caught.value).splitlines()
        if line.startswith("  dataprep shard")
    ]
    assert [command[3] for command in commands] == [f"{tmp_path}/{folder}" for folder in folders]
    for command in commands:
        assert command[4:7] == ["--kind", "flat", "--unlabelled"]
        assert len(open_source(command[3], "flat").list()) > 0
    assert command_of_all[3:] == [
        *(str(tmp_path), "--kind", "flat", "--set", "labels.split_folders=classes"),
        *("--output", "OUTPUT"),
    ]
    source = open_source(str(tmp_path), "flat")
    assert isinstance(source, HavingFolders)
    source.read_splits_as_classes()
    assert len(source.list()) == len(images)


@pytest.mark.parametrize(
    "names",
    [
        ["val/1.jpg", "val/2.jpg"],
        ["test/1.jpg", "more/1.jpg"],
        ["train_1/1.jpg", "train_2/2.jpg"],
        ["cats/1.jpg", "dogs/1.jpg", "2.jpg"],
        ["train/1.jpg", "@eaDir/test/1.jpg"],
        ["images/1.jpg", "photos/2.jpg"],
    ],
)
def test_a_folder_of_images_may_have_folders(tmp_path: Path, names: list[str]) -> None:
    """One split alone, or folders that are no splits, are read as one folder."""
    draw(tmp_path, names)
    assert [*open_source(str(tmp_path), "flat").list().names] == sorted(names)


NO_CLASSES: dict[str, tuple[list[str], dict[str, str]]] = {
    "one": (["jpg/image_1.jpg"], {"jpg": "--kind flat --unlabelled"}),
    "one, numbered, below another": (
        ["root/photos-2/1.jpg"],
        {"root/photos-2": "--kind flat --unlabelled"},
    ),
    "images and what is drawn on them": (
        ["VOC/JPEGImages/1.jpg", "VOC/SegmentationClass/1.png"],
        {
            "VOC/JPEGImages": "--kind flat --unlabelled",
            "VOC/SegmentationClass": "--kind flat --unlabelled",
        },
    ),
    "each with the same classes": (
        ["images/a/1.jpg", "images/b/1.jpg", "masks/a/1.png", "masks/b/1.png"],
        {"images": "", "masks": ""},
    ),
    "parts": (
        ["images_001/images/1.png", "images_002/images/2.png"],
        {
            "images_001/images": "--kind flat --unlabelled",
            "images_002/images": "--kind flat --unlabelled",
        },
    ),
    "inside splits": (
        ["train/a/images/1.jpg", "train/b/images/1.jpg", "val/images/1.jpg", "test/images/1.jpg"],
        {
            "train": "--split train",
            "test/images": "--kind flat --unlabelled --split test",
            "val/images": "--kind flat --unlabelled --split validation",
        },
    ),
    "beside a split": (
        ["data_256/a/1.jpg", "data_256/b/1.jpg", "val_256/1.jpg"],
        {
            "data_256": "--split data_256",
            "val_256": "--kind flat --unlabelled --split validation",
        },
    ),
    "of revisions": (
        [f"snapshots/{digit * 40}/{group}/1.jpg" for digit in "1f" for group in "ab"],
        {f"snapshots/{'1' * 40}": "", f"snapshots/{'f' * 40}": ""},
    ),
}


@pytest.mark.parametrize(("names", "commands"), NO_CLASSES.values(), ids=NO_CLASSES)
def test_folders_called_after_the_kind_of_their_files_are_no_classes(
    tmp_path: Path, names: list[str], commands: dict[str, str]
) -> None:
    """These folders are refused with a command for each, and can be made classes."""
    draw(tmp_path, names)
    with pytest.raises(SourceError, match=r"not after classes|look like splits") as caught:
        ImageFolder(str(tmp_path)).list()
    lines = [line.strip() for line in str(caught.value).splitlines() if line.startswith("  ")]
    expected = [
        f"dataprep shard --source {tmp_path}/{folder} {options} --output OUTPUT".replace("  ", " ")
        for folder, options in commands.items()
    ]
    assert lines[:-1] == expected
    source = ImageFolder(str(tmp_path))
    source.read_splits_as_classes()
    assert any(source.list().classes)


@pytest.mark.parametrize(
    "names",
    [
        ["images/a/1.jpg", "images/b/1.jpg"],
        ["mask/1.jpg", "no mask/1.jpg"],
        ["a/images/1.jpg", "b/images/1.jpg"],
        ["train/red/1.jpg", "bus/red/1.jpg", "car/blue/1.jpg"],
        ["train/1.jpg", "bus/1.jpg", "car/1.jpg"],
    ],
)
def test_such_names_among_others_stay_classes(tmp_path: Path, names: list[str]) -> None:
    """Such folders among classes, and class folders inside such a folder, stay classes."""
    assert len({*listing_of(tmp_path, *names).classes}) == len(names)


@pytest.mark.parametrize(
    ("top", "top_glob", "other", "other_glob"),
    [
        ("objects", "objects", "ground_truth", "ground_truth"),
        ("[1]", "[[]1]", "ground truth?", "ground truth[?]"),
    ],
)
def test_splits_inside_each_class_are_refused_with_a_command_each(
    tmp_path: Path, top: str, top_glob: str, other: str, other_glob: str
) -> None:
    """Each command leaves out the other folders by globs, so that the classes stay."""
    names = [
        f"{top}/{group}/{part}/1.png"
        for group in ("bottle", "cable")
        for part in ("train/good", "test/broken", f"{other}/broken")
    ]
    draw(tmp_path, names)
    with pytest.raises(SourceError, match="inside each folder of a class") as caught:
        ImageFolder(str(tmp_path)).list()
    lines = [line for line in str(caught.value).splitlines() if line.startswith("  ")]
    globs = {}
    for line in lines[:-1]:
        arguments = shlex.split(line)
        globs[arguments[arguments.index("--split") + 1]] = tuple(
            after for word, after in pairwise(arguments) if word == "--exclude"
        )
    assert globs == {
        "train": (f"{top_glob}/*/{other_glob}", f"{top_glob}/*/test"),
        "test": (f"{top_glob}/*/{other_glob}", f"{top_glob}/*/train"),
    }
    for split, left_out in globs.items():
        source = ImageFolder(str(tmp_path))
        source.leave_out(left_out)
        listing = source.list()
        samples = [name for row, name in enumerate(listing.names) if row not in listing.problems]
        assert [f"/{split}/" in name for name in samples] == [True, True]
        assert {*listing.classes} - {""} == {"bottle", "cable"}


def test_parts_whose_images_carry_synsets_are_no_classes(tmp_path: Path) -> None:
    """Folders that share synsets are refused, and folders with their own synsets are classes."""
    shared = [f"batch_{part}/n0144076{row}_{part}.JPEG" for part in range(2) for row in range(3)]
    draw(tmp_path / "parts", shared)
    source = ImageFolder(str(tmp_path / "parts"))
    with pytest.raises(SourceError, match=r"'batch_0' and 'batch_1' both .*--kind listing"):
        source.list()
    source.read_splits_as_classes()
    assert {*source.list().classes} == {"batch_0", "batch_1"}
    above = ["dog/n02085620_1.JPEG", "dog/n02085782_1.JPEG", "cat/n02123045_1.JPEG"]
    assert {*listing_of(tmp_path / "above", *above).classes} == {"dog", "cat"}


@pytest.mark.parametrize("name", ["a/1.parquet", "a/1.tar", "a/1.tfrecord-00000-of-00001"])
def test_files_without_an_extension_beside_other_data_are_no_images(
    tmp_path: Path, name: str
) -> None:
    """As in a download cache, such files belong to the other data, which the error names."""
    draw(tmp_path, ["blobs/0a1b", "blobs/2c3d", name])
    with pytest.raises(SourceNotFound, match=re.escape(name)):
        ImageFolder(str(tmp_path)).list()


def test_folders_that_look_like_splits_can_be_classes(tmp_path: Path) -> None:
    """With the setting, all of these folders are classes with any content."""
    draw(tmp_path, ["train/n01440764/a.jpg", "test/n01440764/b.jpg"])
    source = ImageFolder(str(tmp_path))
    source.read_splits_as_classes()
    assert list(source.list().classes) == ["test", "train"]


def test_a_vanished_file_is_a_changed_source(tmp_path: Path) -> None:
    """A file or folder that was removed after the listing is SourceChanged with a remedy."""
    draw(tmp_path, ["cats/1.jpg"])
    source = ImageFolder(str(tmp_path))
    (tmp_path / "cats" / "1.jpg").unlink()
    for name in ("cats/1.jpg", "dogs/2.jpg"):
        with pytest.raises(SourceChanged, match=f"{name}.*--overwrite"):
            source.read(Located(name, 0))


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
    """On S3 a refused or broken read is an error of the store, never of the sample."""
    monkeypatch.setattr("time.sleep", lambda duration_s: None)
    with FaultProxy(s3_server.url, [Rule(Match(), fault)]) as proxy:
        options = StoreOptions(endpoint_url=proxy.url, max_attempts=1)
        source = ImageFolder(f"s3://{bucket}/photos", options)
        with pytest.raises(kind):
            source.read(Located("cats/1.jpg", 0))
        with pytest.raises(SourceError, match="cannot list s3://"):
            source.list()


def test_a_prefix_on_s3_lists_as_a_folder(s3_server: MotoServer, bucket: str) -> None:
    """Folder markers are no entries, and a missing prefix is no source."""
    options = StoreOptions(endpoint_url=s3_server.url)
    store = open_store(f"s3://{bucket}/raw", options)
    for name in ("pictures/", "pictures/n01440764/a.JPEG", "pictures/n02105855/b.JPEG"):
        store.put(name, b"" if name.endswith("/") else b"x")
    listing = ImageFolder(f"s3://{bucket}/raw", options).list()
    assert list(listing.classes) == ["n01440764", "n02105855"]
    for uri in ("s3://no-such-bucket/photos", f"s3://{bucket}/no/such/prefix"):
        with pytest.raises(SourceNotFound, match="--source"):
            ImageFolder(uri, options).list()


@pytest.mark.parametrize("kind", ["imagefolder", "flat"])
def test_entries_on_s3_are_left_out_as_on_disk(
    s3_server: MotoServer, bucket: str, kind: str
) -> None:
    """System folders and excluded entries are left out at any depth, and splits are refused."""
    options = StoreOptions(endpoint_url=s3_server.url)
    store = open_store(f"s3://{bucket}/raw", options)
    clutter = ["@eaDir/1.jpg", "a/lost+found/2.jpg"]
    for name in ("a/1.jpg", "b/1.jpg", "b/thumbs/1.jpg", *clutter):
        store.put(name, b"x")
    source = open_source(store.uri, kind, options)
    assert isinstance(source, LeavingOut)
    source.leave_out(("thumbs",))
    assert problems(source.list()) == {
        **dict.fromkeys(clutter, HIDDEN),
        "b/thumbs/1.jpg": Problem("skipped", "excluded by 'thumbs'"),
    }
    for name in ("train/a/1.jpg", "Test/a/1.jpg"):
        open_store(f"s3://{bucket}/both", options).put(name, b"x")
    with pytest.raises(SourceError, match=f"--source s3://{bucket}/both/Test --split test"):
        ImageFolder(f"s3://{bucket}/both", options).list()


def test_images_in_no_class(tmp_path: Path) -> None:
    """With kind flat, images at any depth are samples without a class, and others are skipped."""
    draw(tmp_path, ["b.JPEG", "a/c.png", "a/notes.txt", ".hidden.jpg"])
    source = open_source(str(tmp_path), "flat")
    listing = source.list()
    assert list(listing.names) == [".hidden.jpg", "a/c.png", "a/notes.txt", "b.JPEG"]
    assert set(listing.classes) == {""}
    assert listing.problems == {0: HIDDEN, 2: Problem("skipped", "not named as an image")}
    assert source.read(Located("a/c.png", 4)) == b"a/c.png"
    with pytest.raises(SourceNotFound):
        open_source(str(tmp_path / "nothing"), "flat").list()


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    """A missing folder, a file and an unknown kind are named, with an option."""
    (tmp_path / "list.csv").write_text("path,label\n")
    with pytest.raises(SourceNotFound, match=r"list\.csv.* is a file.*--kind listing"):
        open_source(str(tmp_path / "list.csv")).list()
    with pytest.raises(SourceNotFound, match=r"nowhere.*--source") as caught:
        ImageFolder(str(tmp_path / "nowhere")).list()
    assert caught.value.exit_code == 2
    with pytest.raises(ConfigError, match=r"'tape'.*imagefolder"):
        open_source("photos", kind="tape")


def test_files_and_folders_that_may_not_be_read() -> None:
    """An unreadable file fails its sample, and an unreadable folder ends the listing."""
    with reachable_folder() as root:
        draw(root, ["cats/1.jpg", "cats/2.jpg", "dogs/2.jpg"])
        for path in (root / "cats" / "1.jpg", root / "dogs"):
            path.chmod(0)
        source = ImageFolder(str(root))
        with unprivileged():
            with pytest.raises(UnreadableImage, match=r"1\.jpg"):
                source.read(Located("cats/1.jpg", 0))
            assert source.read(Located("cats/2.jpg", 0)) == b"cats/2.jpg"
            with pytest.raises(SourceError, match=r"cannot list.*dogs"):
                source.list()


@pytest.mark.parametrize(
    ("name", "promises"),
    [
        *((name, True) for name in ("a.JPEG", "b.jpg", "c.Png", "d/e.webp", "x.tiff", "y.z.gif")),
        *((name, False) for name in ("a.txt", "jpeg", ".jpg", "a.jpg.txt", "a.jpg/readme", "")),
    ],
)
def test_extensions_promise_images(name: str, promises: bool) -> None:
    """Only the extension of the file itself counts, in upper or lower case."""
    assert bool(promises_image(name)) is promises
