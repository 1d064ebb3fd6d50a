"""PURE. Find the classes of images in tars: from the tars, from folders, or from image names.

There are three cases. The names of images may contain WordNet synsets, as in
``n01440764_10026_n01440764.JPEG``. The folders inside archives may be the classes. Otherwise, the
archives are the classes.

Tars of WebDataset, which have the class of each image in another member, are refused here. A source
that can be read in two ways is refused, too. The error then names the setting for each way.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dataprep.errors import SourceError
from dataprep.labels import is_synset
from dataprep.sources.file_names import TAR_ENDING, promises_image
from dataprep.sources.protocol import Problem, Problems
from dataprep.sources.split_folders import find_unclear_folders
from dataprep.sources.split_names import split_of
from dataprep.sources.tar_index import is_sidecar
from dataprep.sources.webdataset_samples import key_and_extension

_NO_SYNSET = "no synset in its name"
_MAX_FOLDERS_SHOWN = 3

_VOLUME_WORDS = frozenset(
    {
        *("archive", "batch", "chunk", "data", "dataset", "part", "parts", "set", "split"),
        *("shard", "shards", "vol", "volume", "file", "files", "image", "images", "img", "imgs"),
        *("photo", "photos", "pic", "pics", "picture", "pictures", "train", "training", "val"),
        *("valid", "validation", "test", "testing", "dev", "eval"),
    }
)
"""Words in the names of archives that are volumes of one data set, such as ``images_3.tar``."""

# A synset that is not a part of a longer word.
_SYNSET = r"(?<![A-Za-z0-9])n\d{8}(?![A-Za-z0-9])"
_has_synset_in_base_name = re.compile(rf"{_SYNSET}[^/]*\Z").search
_synsets_in = re.compile(_SYNSET).findall
# One pattern does the whole check, because archives have a million images, and most match it.
_repeats_its_folder = re.compile(r"(?:\A|/)(n\d{8})/(?:[^/]*/)*\1[_.][^/]*\Z").search
# Files beside the images that ``is_sidecar`` does not match.
_may_be_sidecar = re.compile(
    r"[^/]\.(?:caption|class|cls2|id|index|inx|jsn|npy|text|txt)\Z", re.IGNORECASE
).search
# Volumes often have five digits, as in "train-00001".
_ends_with_long_number = re.compile(r"(?:\A|[-_.])\d{5,}\Z").search


@dataclass(frozen=True)
class Members:
    """The members of the archives of one source, as columns.

    Attributes:
        uri: the address of the source, for errors.
        names: the path of each member. If it has a tar in ``tars``, the path begins with the name
            of this tar without its ending.
        tars: the tar whose name may be the class of each member: an inner tar, or one of several
            archives; else empty.
        problems: why members are not samples, by their row. ``classes_by_name`` adds to it.
    """

    uri: str
    names: Sequence[str]
    tars: Sequence[str]
    problems: Problems

    @property
    def image_rows(self) -> list[int]:
        """The rows of members that have names of images and no problem."""
        rows = []
        for row, name in enumerate(self.names):
            if row not in self.problems and promises_image(name):
                rows.append(row)
        return rows

    def path_in_tar(self, row: int) -> str:
        """The path of a member within its tar."""
        name, tar = self.names[row], self.tars[row]
        if not tar:
            return name
        folder = TAR_ENDING.sub("", tar)
        return name[len(folder) + 1 :]


def refuse_webdataset(members: Members) -> None:
    """Refuse WebDataset tars, in which an image and a ``.cls`` or ``.json`` file have the same key.

    Files of other types, such as captions (``.txt``), count only if at least half of the images
    have one with the same key.

    Raises:
        SourceError: the tars are WebDataset. The message names an image and its other file.
    """
    sidecar_by_key = {}
    text_by_key = {}
    for name in members.names:
        if is_sidecar(name):
            sidecar_by_key[key_and_extension(name)[0]] = name
        elif _may_be_sidecar(name):
            text_by_key[key_and_extension(name)[0]] = name
    if not (sidecar_by_key or text_by_key):
        return
    images = [members.names[row] for row in members.image_rows]
    images_with_text = sum(key_and_extension(image)[0] in text_by_key for image in images)
    if 2 * images_with_text >= len(images):
        sidecar_by_key = {**text_by_key, **sidecar_by_key}
    for image in images:
        sidecar = sidecar_by_key.get(key_and_extension(image)[0])
        if sidecar is not None:
            raise SourceError(
                f"{members.uri} has {sidecar!r} beside {image!r}, as in WebDataset: read it with "
                f"--source {shlex.quote(members.uri)} --kind webdataset. If it is no WebDataset, "
                "say what the classes are with --set ilsvrc.classes=archives, folders or names"
            )


def classes_if_named(members: Members) -> list[str] | None:
    """Return the synset in the name of each member; None if folders or archives are the classes.

    The names decide if every image has a synset in its name, except in two cases. In the first
    case, each image is in a folder or archive that is named by a synset, and no name has another
    synset. In the second case, there is a single archive, and each of its folders has its own
    synset. If only some images have a synset, the names do not decide.

    Raises:
        SourceError: an image has two synsets in its name; there are several archives, and only some
            images have a synset; or the names decide, but an image has another synset than its
            folder or archive.
    """
    images = [members.names[row] for row in members.image_rows]
    if all(map(_repeats_its_folder, images)) or not any(map(_has_synset_in_base_name, images)):
        return None
    synset_in_name = {image: _synset_in_name(image, members.uri) for image in images}
    synset_above = {image: _synset_above(image) for image in images}
    if all(
        synset_above[image] and synset_in_name[image] in ("", synset_above[image])
        for image in images
    ):
        return None
    is_single_tar = not any(members.tars)
    with_synset = [image for image in images if synset_in_name[image]]
    without_synset = [image for image in images if not synset_in_name[image]]
    if is_single_tar and (without_synset or _has_one_synset_per_folder(synset_in_name)):
        return None
    if without_synset:
        raise SourceError(
            f"{members.uri}: {with_synset[0]!r} has a synset in its name and "
            f"{without_synset[0]!r} has none, so it is not clear what the classes are. "
            "--set ilsvrc.classes=archives takes the names of the archives; "
            "ilsvrc.classes=names skips images without a synset"
        )
    for image in images:
        if synset_above[image] not in ("", synset_in_name[image]):
            choice = "folders" if is_single_tar else "archives"
            raise SourceError(
                f"{members.uri}: {image!r} has one synset in its name and another one above it: "
                f"choose with --set ilsvrc.classes=names or ilsvrc.classes={choice}"
            )
    return classes_by_name(members)


def classes_by_name(members: Members) -> list[str]:
    """Return the synset in the name of each member. Members without one are added to the problems.

    Raises:
        SourceError: a name has two synsets.
    """
    classes = [""] * len(members.names)
    for row, name in enumerate(members.names):
        if row in members.problems:
            continue
        classes[row] = _synset_in_name(name, members.uri)
        if not classes[row]:
            members.problems[row] = Problem("skipped", _NO_SYNSET)
    return classes


def refuse_folders_in_tars(members: Members) -> None:
    """Refuse archives if either the archives or the folders in them could be the classes.

    Archives and folders that are named by synsets are left out of this check.

    Raises:
        SourceError: all images are in folders, and an archive has several folders.
    """
    folders_by_tar: dict[str, set[str]] = {}
    for row in members.image_rows:
        tar = members.tars[row]
        if tar and not _synset_above(members.names[row]):
            folder = _folder_of(members.path_in_tar(row))
            folders_by_tar.setdefault(tar, set()).add(folder)
    tars = [tar for tar in sorted(folders_by_tar) if len(folders_by_tar[tar]) > 1]
    has_images_outside = any("" in folders for folders in folders_by_tar.values())
    if not tars or has_images_outside:
        return
    if len({*members.tars}) == 1:
        archive = f"{members.uri.rstrip('/')}/{tars[0]}"
        raise SourceError(
            f"{members.uri} has one archive, with folders in it: shard the archive, as in "
            f"--source {shlex.quote(archive)} --kind ilsvrc, or take its "
            "name for the class of all with --set ilsvrc.classes=archives"
        )
    folders = ", ".join(sorted(folders_by_tar[tars[0]])[:_MAX_FOLDERS_SHOWN])
    raise SourceError(
        f"{members.uri}: {tars[0]} has several folders ({folders}), and either these or the "
        "archives could be the classes: choose with --set ilsvrc.classes=folders or "
        "ilsvrc.classes=archives"
    )


def volumes_among(members: Members) -> list[str]:
    """Return the archives that are volumes of one data set according to their names.

    These names are not classes. Each is the name of a volume (``_is_volume``). In addition, either
    several names differ only in their numbers, or there is only one archive. If there are volumes
    of several data sets, those of one data set are returned.
    """
    tars = sorted({members.tars[row] for row in members.image_rows} - {""})
    tars_by_pattern: dict[str, list[str]] = {}
    for tar in tars:
        stem = TAR_ENDING.sub("", tar).rpartition("/")[2]
        if _is_volume(stem):
            tars_by_pattern.setdefault(re.sub(r"\d+", "0", stem), []).append(tar)
    for volumes in tars_by_pattern.values():
        if len(volumes) > 1 or len(tars) == 1:
            return volumes
    return []


def tars_are_splits(members: Members, volumes: Sequence[str]) -> bool:
    """Whether several tars, or folders in each of them, look like splits.

    Args:
        members: the members.
        volumes: the result of ``volumes_among``. If there are volumes and all tars belong to the
            same split, the tars are not splits.
    """
    tars = {*members.tars} - {""}
    splits = {split_of(TAR_ENDING.sub("", tar).rpartition("/")[2]) for tar in tars}
    if not tars or (volumes and len(splits) == 1):
        return False
    folders = {_folder_of(members.names[row]) for row in members.image_rows} - {""}
    return find_unclear_folders({tuple(folder.split("/")) for folder in folders}) is not None


def has_class_folders(members: Members) -> bool:
    """Whether images are in several folders of archives, and these may be classes.

    A folder that is named like a volume is no class. Images outside of folders count as one folder.
    """
    folders = {_folder_of(members.path_in_tar(row)) for row in members.image_rows}
    if len(folders) < 2:
        return False
    names = {folder.rpartition("/")[2] for folder in folders}
    return any(name and not _is_volume(name) for name in names)


def note_of_volumes(volumes: Sequence[str]) -> str:
    """Return a note that the names of these archives are not used as classes."""
    names = " and ".join(volumes[:2])
    return (
        f"{names}: named like volumes of one data set, so that these names are no classes; "
        "--set ilsvrc.classes=archives uses them as classes"
    )


def _folder_of(path: str) -> str:
    """The path of the folder that contains a file; empty if there is none."""
    return path.rpartition("/")[0]


def _is_volume(stem: str) -> bool:
    """Whether a name looks like a volume of a data set, such as ``train_images_3``.

    It ends with at least five digits, or it has a digit and one of ``_VOLUME_WORDS``.
    """
    if _ends_with_long_number(stem):
        return True
    has_number = any(character.isdecimal() for character in stem)
    words_in_name = {*re.findall("[a-z]+", stem.lower())}
    return has_number and bool(words_in_name & _VOLUME_WORDS)


def _synset_in_name(path: str, uri: str) -> str:
    """The synset in the base name of a path; empty if there is none.

    Raises:
        SourceError: the name has two synsets.
    """
    synsets = {*_synsets_in(path.rpartition("/")[2])}
    if len(synsets) > 1:
        names = " and ".join(sorted(synsets))
        raise SourceError(
            f"{uri}: {path!r} has {names} in its name: say what the classes are with --set "
            "ilsvrc.classes=archives or folders"
        )
    return synsets.pop() if synsets else ""


def _synset_above(path: str) -> str:
    """The first folder of a path that is named by a synset; empty if there is none."""
    for folder in path.split("/")[:-1]:
        if is_synset(folder):
            return folder
    return ""


def _has_one_synset_per_folder(synset_by_path: Mapping[str, str]) -> bool:
    """Whether there are folders, each folder has one synset, and each synset has one folder.

    Args:
        synset_by_path: the synset in the name of each image, by the path of the image.
    """
    pairs = {(_folder_of(path), synset) for path, synset in synset_by_path.items()}
    folders = {folder for folder, _ in pairs}
    synsets = {synset for _, synset in pairs}
    return folders != {""} and len(pairs) == len(folders) == len(synsets)
