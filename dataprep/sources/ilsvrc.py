"""Kind ``ilsvrc``: images in tar archives of any data set, despite its name.

It is named after ILSVRC2012, whose archives it reads as they are downloaded. The tars are read
without unpacking. A source is a tar of tars, a tar without folders, a folder tree in a tar, or a
folder of tars.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from dataprep.errors import SourceError, SourceNotFound
from dataprep.message_text import counted, listed
from dataprep.name_encoding import by_bytes
from dataprep.output.samples_table import to_numpy_array
from dataprep.sources.exclusion import literal_glob
from dataprep.sources.file_names import CLUTTER, TAR_ENDING, is_clutter, promises_image
from dataprep.sources.folder_classes import classify, unclassified
from dataprep.sources.ilsvrc_classes import (
    Members,
    classes_by_name,
    classes_if_named,
    has_class_folders,
    note_of_volumes,
    refuse_folders_in_tars,
    refuse_webdataset,
    tars_are_splits,
    volumes_among,
)
from dataprep.sources.label_classes import Classes
from dataprep.sources.local_tree import Tree
from dataprep.sources.options import ILSVRCOptions
from dataprep.sources.protocol import Listing, Problem, Problems
from dataprep.sources.split_names import is_not_a_class
from dataprep.sources.tar_index import EMPTY, leaves_archive
from dataprep.sources.tar_source import TarSource, interned_texts
from dataprep.stores import StoreOptions

_REPLACED = "a later member of the archive has the same name"


@dataclass
class _TarUse:
    """Which tars of a source contain samples.

    Attributes:
        folders_with_samples: the folders that tars with samples would be unpacked into. Images that
            failed count as samples.
        maybe_without_images: the paths of tars that have no members, or a member that is no sample.
            Such a tar has no images unless ``has_samples`` is true for it.
        unreadable: the reason why a file cannot be read as a tar, by the path of each such file
            whose name ends like that of a tar.
    """

    folders_with_samples: set[str] = field(default_factory=set)
    maybe_without_images: set[str] = field(default_factory=set)
    unreadable: dict[str, str] = field(default_factory=dict)

    def has_samples(self, tar: str) -> bool:
        """Whether samples are in the folder that a tar would be unpacked into.

        Another tar may be unpacked into the same folder, such as ``cat.tar.gz`` beside ``cat.tar``.
        """
        return _unpacked_folder(tar) in self.folders_with_samples


class ILSVRC(TarSource):
    """Images in tar archives. Only the headers and the images are read.

    ``uri`` is an archive or a folder of archives. Examples of an archive are ILSVRC2012's tar of
    tars for training, and its flat tar for validation. An image in ``n01440764.tar`` is called
    ``n01440764/NAME``, as if the tar had been unpacked into a folder. Its class is found in the
    same way as in a tree of folders. Images that are not in a folder have no class.
    """

    kind = "ilsvrc"

    def __init__(
        self,
        uri: str,
        options: StoreOptions | None = None,
        section: ILSVRCOptions | None = None,
    ) -> None:
        self._section = section or ILSVRCOptions()
        super().__init__(uri, options, self._section.cache)

    def list(self) -> Listing:
        """List the members of all archives, sorted by the bytes of their names, without folders."""
        tree = Tree()
        # The index has the content of small members, which only kind ``webdataset`` needs.
        indexes = self._indexed(tree, lambda index: index.drop_columns(["content"]))
        table = pa.concat_tables(indexes)
        folder = posixpath.normpath(self._section.folder or "/").strip("/")
        prefix = f"{folder}/".lstrip("/")
        table = table.filter(pc.starts_with(table["name"], os.fsencode(prefix)))
        if not len(table):
            raise SourceNotFound(f"nothing is below {folder!r} in {self.uri!r} (ilsvrc.folder)")
        table = table.take(pc.sort_indices(table, [("name", "ascending")]))
        names = [name.removeprefix(prefix) for name in _member_names(table)]
        tars = [_tar_below(tar, prefix) for tar in interned_texts(table, "tar")]
        problems = self._problems(names, table)
        # ``_classes`` adds problems. The reason why a tar cannot be read is found before.
        problems_before_classes = dict(problems)
        classes = self._classes(names, tars, problems)
        use = self._tar_use(names, tars, problems_before_classes, problems)
        self._require_readable_tars(use)
        return Listing(
            names=names,
            sizes=to_numpy_array(table["bytes"]),
            classes=classes.names,
            problems=problems,
            containers=interned_texts(table, "container"),
            offsets=to_numpy_array(table["offset"]),
            notes=(*classes.notes, *_notes_on_empty_tars(use), *tree.notes()),
            form="archives",
            unread=tuple(tree.unread),
            file_versions=self._versions,
        )

    def _classes(self, names: Sequence[str], tars: Sequence[str], problems: Problems) -> Classes:
        """The class of each member. Members without a class may be added to ``problems``.

        Args:
            names: the name of each member.
            tars: the tar of each member.
            problems: the members that are not samples.

        Raises:
            SourceNotFound: no member is a sample.
            SourceError: the source can be read in two ways.
        """
        # A member whose path leaves the archive is not a sample, so that its folders do not count.
        paths = ["" if leaves_archive(name) else name for name in names]
        members = Members(self.uri, paths, tars, problems)
        paths_in_tars = [members.path_in_tar(row) for row in range(len(names))]
        setting = self._section.classes
        if setting == "names":
            return Classes(classes_by_name(members))
        if setting == "folders":
            return Classes(self._by_folders(paths_in_tars, problems, splits_are_classes=True))
        if setting == "archives":
            # The path of a member begins with the folder that its tar would be unpacked into.
            return Classes(self._by_folders(paths, problems, splits_are_classes=True))
        refuse_webdataset(members)
        synsets = classes_if_named(members)
        if synsets is not None:
            return Classes(synsets)
        volumes = volumes_among(members)
        if tars_are_splits(members, volumes):
            return Classes(self._by_folders(paths, problems))
        if volumes:
            notes = (note_of_volumes(volumes),)
            if not has_class_folders(members):
                return Classes(unclassified(paths, problems), notes=notes)
            are_several_tars = any(tars)
            classes = self._by_folders(paths_in_tars, problems, in_each_tar=are_several_tars)
            return Classes(classes, notes=notes)
        refuse_folders_in_tars(members)
        return Classes(self._by_folders(paths, problems))

    def _by_folders(
        self,
        paths: Sequence[str],
        problems: Problems,
        *,
        splits_are_classes: bool = False,
        in_each_tar: bool = False,
    ) -> Sequence[str]:
        """The class of each path by its folders; empty texts if there are no class folders.

        Args:
            paths: the paths of the members.
            problems: members that are not samples. More members are added to it.
            splits_are_classes: whether folders that look like splits are read as classes.
            in_each_tar: whether the paths belong to several tars, which may have the same folders.

        Raises:
            SourceNotFound, SourceError: as ``classify``.
        """
        splits_are_classes = splits_are_classes or self._splits_are_classes
        folders = set()
        for row, path in enumerate(paths):
            if row not in problems and promises_image(path):
                folders.add(path.rpartition("/")[0])
        if len(folders) == 1:
            (only_folder,) = folders
            name = only_folder.rpartition("/")[2]
            if not name or (is_not_a_class(name) and not splits_are_classes):
                return unclassified(paths, problems)
        no_samples_message = (
            f"no images in {self.uri!r}: expected JPEGs in tars, or in folders in a tar"
        )
        source_options = f"--source {shlex.quote(self.uri)} --kind ilsvrc"
        source_folder = (self._section.folder or "").strip("/")

        def advise(folder: str) -> str:
            if in_each_tar and folder:
                exclude = _exclude_siblings(folder, folders)
                # Without the setting, the remaining folder would be refused as a split.
                return f"{source_options}{exclude} --set labels.split_folders=classes"
            path = posixpath.join(source_folder, folder)
            if not path:
                return source_options
            return f"{source_options} --set ilsvrc.folder={shlex.quote(path)}"

        return classify(
            paths,
            problems,
            self.uri,
            advise,
            no_samples_message,
            splits_are_classes=splits_are_classes,
        )

    def _problems(self, names: Sequence[str], table: pa.Table) -> Problems:
        """The members that are not samples, regardless of their classes.

        Args:
            names: the name of each member, sorted, so that members of the same name are neighbours.
            table: the index of the members, a row for each member.
        """
        statuses, reasons = table["status"].to_pylist(), table["problem"].to_pylist()
        problems = {}
        for row, name in enumerate(names):
            excluded = self._exclusion.by_glob(name)
            is_last = row + 1 == len(names)
            if excluded:
                problems[row] = Problem("skipped", excluded)
            elif reasons[row] is not None:
                problems[row] = Problem(statuses[row], reasons[row])
            elif not is_last and names[row + 1] == name:
                # A later member replaces an earlier one, as it does when a tar is unpacked.
                problems[row] = Problem("skipped", _REPLACED)
            elif is_clutter(name):
                problems[row] = Problem("skipped", CLUTTER)
        return problems

    def _require_readable_tars(self, use: _TarUse) -> None:
        """Refuse a source if tars with samples are in it, and another tar cannot be read.

        Raises:
            SourceError: a tar cannot be read.
        """
        unreadable = [tar for tar in sorted(use.unreadable) if not use.has_samples(tar)]
        if use.folders_with_samples and unreadable:
            first = unreadable[0]
            others = f" (and {len(unreadable) - 1:,} more)" if len(unreadable) > 1 else ""
            raise SourceError(
                f"{self.uri}: {first}: {use.unreadable[first]}{others}. A class would be "
                "missing without it: fetch it again; if it is no class, move it elsewhere (within "
                "a tar: tar --delete)"
            )

    def _tar_use(
        self,
        names: Sequence[str],
        tars: Sequence[str],
        problems_before_classes: Problems,
        problems: Problems,
    ) -> _TarUse:
        """Find which tars contain samples.

        Args:
            names: the name of each member. A tar without members, or a file that is not a tar, is
                listed by its own name.
            tars: the tar of each member; empty for a name that is not a member of an inner tar.
            problems_before_classes: the members that are not samples, regardless of their classes.
            problems: all members that are not samples.
        """
        use = _TarUse()
        for row, (name, tar) in enumerate(zip(names, tars, strict=True)):
            if self._exclusion.by_glob(name) or (not tar and is_clutter(name)):
                continue
            problem_before_classes = problems_before_classes.get(row)
            if tar:
                if row not in problems or problems[row].status == "failed":
                    use.folders_with_samples.add(_unpacked_folder(tar))
                else:
                    use.maybe_without_images.add(tar)
            elif problem_before_classes and problem_before_classes.reason == EMPTY:
                use.maybe_without_images.add(name)
            elif TAR_ENDING.search(name):
                reason = "no tar archive"
                if problem_before_classes:
                    reason = problem_before_classes.reason
                use.unreadable[name] = reason
        return use


def _notes_on_empty_tars(use: _TarUse) -> tuple[str, ...]:
    """Name the tars without images, if other tars have samples. They become no classes."""
    empty = [tar for tar in by_bytes(use.maybe_without_images) if not use.has_samples(tar)]
    if not use.folders_with_samples or not empty:
        return ()
    archives = counted(len(empty), "archive")
    return (f"{archives} without images, which make no class: {listed(empty)}",)


def _member_names(table: pa.Table) -> Sequence[str]:
    """The names of the members in an index.

    They are not interned, because most of them are different, unlike the names of tars.
    """
    return [os.fsdecode(name) for name in table["name"].to_pylist()]


def _tar_below(tar: str, prefix: str) -> str:
    """The path of a tar below ``ilsvrc.folder``; empty if that folder is the tar or is inside it.

    Args:
        tar: the path of the tar; empty for the outer archive.
        prefix: the folder with a slash at the end; empty for the root.
    """
    if prefix.startswith(f"{_unpacked_folder(tar)}/"):
        return ""
    return tar.removeprefix(prefix)


def _unpacked_folder(tar: str) -> str:
    """The folder that a tar would be unpacked into: its path without the extension."""
    return TAR_ENDING.sub("", tar)


def _exclude_siblings(folder: str, folders: set[str]) -> str:
    """The command-line options that leave out the folders beside ``folder`` in every tar."""
    depth = folder.count("/") + 1
    siblings = {"/".join(path.split("/")[:depth]) for path in folders} - {folder}
    globs = [f"*/{literal_glob(path)}" for path in sorted(siblings)]
    options = [f" --exclude {shlex.quote(glob)}" for glob in globs]
    return "".join(options)
