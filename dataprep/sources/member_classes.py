"""PURE. The classes of images in archives: by the archives, by folders, or by the images' names.

The name of an archive is a class only if nothing inside says otherwise. Images may carry a WordNet
synset in their names, as in ``n01440764_10026_n01440764.JPEG``; folders inside several archives may
be the classes; tars of WebDataset hold the class of each image beside it. What can be read in two
ways is refused, with the setting for each.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dataprep.errors import SourceError
from dataprep.labels import is_synset
from dataprep.sources.classes import promises_image
from dataprep.sources.protocol import Problem, Problems
from dataprep.sources.splits import find_splits, role_of
from dataprep.sources.tar_samples import key_and_extension
from dataprep.sources.tars import TAR_ENDING, is_sidecar

_NO_SYNSET = "no synset in its name"
_PART_WORDS = frozenset(
    {
        *("archive", "batch", "chunk", "data", "dataset", "part", "parts", "set", "split"),
        *("shard", "shards", "vol", "volume", "file", "files", "image", "images", "img", "imgs"),
        *("photo", "photos", "pic", "pics", "picture", "pictures", "train", "training", "val"),
        *("valid", "validation", "test", "testing", "dev", "eval"),
    }
)
"""Words in the names of archives that are parts of one data set."""

_SYNSET = r"(?<![A-Za-z0-9])n\d{8}(?![A-Za-z0-9])"
_carries_synset = re.compile(rf"{_SYNSET}[^/]*\Z").search
_synsets_in = re.compile(_SYNSET).findall
# A pattern, since most archives are of this form and have a million images.
_repeats_its_folder = re.compile(r"(?:\A|/)(n\d{8})/(?:[^/]*/)*\1[_.][^/]*\Z").search
_may_be_sidecar = re.compile(
    r"[^/]\.(?:caption|class|cls2|id|index|inx|jsn|npy|text|txt)\Z", re.IGNORECASE
).search
_ends_with_long_number = re.compile(r"(?:\A|[-_.])\d{5,}\Z").search


@dataclass(frozen=True)
class Members:
    """The members of the archives of one source, as columns.

    Attributes:
        uri: the source, for errors.
        names: the path of each member, below a folder that is called as its tar is.
        tars: the tar of each member where there are several; else empty.
        problems: rows that are no samples.
    """

    uri: str
    names: Sequence[str]
    tars: Sequence[str]
    problems: Problems

    @property
    def images(self) -> list[int]:
        """The rows of members that are named as images and may be samples."""
        return [
            row
            for row, name in enumerate(self.names)
            if row not in self.problems and promises_image(name)
        ]

    def inside(self, row: int) -> str:
        """The path of a member within its own archive."""
        name, tar = self.names[row], self.tars[row]
        return name[len(TAR_ENDING.sub("", tar)) + 1 :] if tar else name


def refuse_webdataset(members: Members) -> None:
    """Refuse tars with a ``.cls`` or ``.json`` file beside an image, under the same key.

    Captions (``.txt``) and the like count where half of the images have them.

    Raises:
        SourceError: it names both files.
    """
    sidecars = {key_and_extension(name)[0]: name for name in members.names if is_sidecar(name)}
    texts = {key_and_extension(name)[0]: name for name in members.names if _may_be_sidecar(name)}
    if not (sidecars or texts):
        return
    names = [members.names[row] for row in members.images]
    if 2 * sum(key_and_extension(name)[0] in texts for name in names) >= len(names):
        sidecars = {**texts, **sidecars}
    for name in names:
        if (sidecar := sidecars.get(key_and_extension(name)[0])) is not None:
            raise SourceError(
                f"{members.uri} has {sidecar!r} beside {name!r}, as WebDataset has: read it with "
                f"--source {shlex.quote(members.uri)} --kind webdataset. If it is no WebDataset, "
                "say what the classes are with --set ilsvrc.classes=archives, folders or names"
            )


def named_classes(members: Members) -> list[str] | None:
    """The class of each member by the synset in its name; None if folders or archives decide.

    Names decide where every image carries a synset, unless it is below a folder or archive of the
    same synset, or each folder of a single archive has a synset of its own.

    Raises:
        SourceError: images in several archives carry a synset and others do not, one carries two,
            or a synset differs from that of its folder or archive.
    """
    images = members.images
    names = [members.names[row] for row in images]
    if all(map(_repeats_its_folder, names)) or not any(map(_carries_synset, names)):
        return None
    synsets = {name: _synset_of(name, members.uri) for name in names}
    above = {name: _synset_above(name) for name in names}
    if all(above[name] and synsets[name] in ("", above[name]) for name in names):
        return None
    is_single = not any(members.tars)
    without = [name for name in names if not synsets[name]]
    if is_single and (without or _one_synset_each(synsets)):
        return None
    if without:
        carrying = next(name for name in names if synsets[name])
        raise SourceError(
            f"{members.uri}: {carrying!r} carries a synset in its name and {without[0]!r} does "
            "not, so that neither can be the rule for all. --set ilsvrc.classes=archives takes the "
            "names of the archives; ilsvrc.classes=names skips images without a synset"
        )
    for name in names:
        if above[name] not in ("", synsets[name]):
            choice = "folders" if is_single else "archives"
            raise SourceError(
                f"{members.uri}: {name!r} has one synset in its name and another one above it: "
                f"choose with --set ilsvrc.classes=names or ilsvrc.classes={choice}"
            )
    return classes_by_name(members)


def classes_by_name(members: Members) -> list[str]:
    """The synset in the name of each member. Members without one join the problems.

    Raises:
        SourceError: a name has two synsets.
    """
    classes = [""] * len(members.names)
    for row, name in enumerate(members.names):
        if row in members.problems:
            continue
        classes[row] = _synset_of(name, members.uri)
        if not classes[row]:
            members.problems[row] = Problem("skipped", _NO_SYNSET)
    return classes


def refuse_crowded_archives(members: Members) -> None:
    """Refuse several archives with folders in them that could be the classes as well.

    Raises:
        SourceError: all images are in folders, and an archive has several of these.
    """
    folders: dict[str, set[str]] = {}
    for row in members.images:
        if members.tars[row] and not _synset_above(members.names[row]):
            folder = members.inside(row).rpartition("/")[0]
            folders.setdefault(members.tars[row], set()).add(folder)
    crowded = [tar for tar in sorted(folders) if len(folders[tar]) > 1]
    if crowded and not any("" in inside for inside in folders.values()):
        if len({*members.tars}) == 1:
            archive = f"{members.uri.rstrip('/')}/{crowded[0]}"
            raise SourceError(
                f"{members.uri} has one archive, with folders in it: shard the archive, as in "
                f"--source {shlex.quote(archive)} --kind ilsvrc, or take its "
                "name for the class of all with --set ilsvrc.classes=archives"
            )
        shown = ", ".join(sorted(folders[crowded[0]])[:3])
        raise SourceError(
            f"{members.uri}: {crowded[0]} has several folders ({shown}), and either these or the "
            "archives could be the classes: choose with --set ilsvrc.classes=folders or "
            "ilsvrc.classes=archives"
        )


def parts_among(members: Members) -> list[str]:
    """Archives whose names are no classes, since they are called as the parts of a data set are.

    Two differ in a number alone, or the only one has a number.
    """
    tars = sorted({members.tars[row] for row in members.images} - {""})
    alike: dict[str, list[str]] = {}
    for tar in tars:
        stem = TAR_ENDING.sub("", tar).rpartition("/")[2]
        if _is_part(stem):
            alike.setdefault(re.sub(r"\d+", "0", stem), []).append(tar)
    for parts in alike.values():
        if len(parts) > 1 or len(tars) == 1:
            return parts
    return []


def tars_are_splits(members: Members, parts: Sequence[str]) -> bool:
    """Whether several tars, or folders in each of them, look like splits.

    ``parts`` are tars that may be parts of one split.
    """
    tars = {*members.tars} - {""}
    roles = {role_of(TAR_ENDING.sub("", tar).rpartition("/")[2]) for tar in tars}
    if not tars or (parts and len(roles) == 1):
        return False
    folders = {members.names[row].rpartition("/")[0] for row in members.images}
    return find_splits({tuple(folder.split("/")) for folder in folders if folder}) is not None


def has_class_folders(members: Members) -> bool:
    """Whether images inside archives are in several folders that are not parts themselves."""
    folders = {members.inside(row).rpartition("/")[0] for row in members.images}
    names = [folder.rpartition("/")[2] for folder in folders]
    return len(folders) > 1 and not all(not name or _is_part(name) for name in names)


def note_of_parts(parts: Sequence[str]) -> str:
    """Say that the names of these archives were not taken for classes."""
    shown = " and ".join(parts[:2])
    return (
        f"{shown}: called as parts of a data set are, so that these names are no classes; "
        "--set ilsvrc.classes=archives takes them for classes"
    )


def _is_part(stem: str) -> bool:
    """Whether a name is one that parts of a data set have: ``train_images_3``, ``cc-00003``."""
    words = {*re.findall("[a-z]+", stem.lower())}
    has_number = any(map(str.isdecimal, stem))
    return (has_number and bool(words & _PART_WORDS)) or bool(_ends_with_long_number(stem))


def _synset_of(name: str, uri: str) -> str:
    """The synset in a base name; empty where it has none. Raises SourceError for two."""
    synsets = {*_synsets_in(name.rpartition("/")[2])}
    if len(synsets) > 1:
        shown = " and ".join(sorted(synsets))
        raise SourceError(
            f"{uri}: {name!r} has {shown} in its name: say what the classes are with --set "
            "ilsvrc.classes=archives or folders"
        )
    return synsets.pop() if synsets else ""


def _synset_above(name: str) -> str:
    """The first folder of a path that is called as a synset is; empty where none is."""
    return next(filter(is_synset, name.split("/")[:-1]), "")


def _one_synset_each(synsets: Mapping[str, str]) -> bool:
    """Whether paths are in folders, each of which has one synset, and each synset one folder."""
    pairs = {(name.rpartition("/")[0], synset) for name, synset in synsets.items()}
    folders, classes = ({*column} for column in zip(*pairs, strict=True))
    return folders != {""} and len(pairs) == len(folders) == len(classes)
