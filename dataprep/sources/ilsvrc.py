"""ILSVRC2012 as downloaded, read in place: a tar of tars, a flat tar, a tree in a tar."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dataprep.counted import counted
from dataprep.errors import SourceError, SourceNotFound
from dataprep.names import by_bytes
from dataprep.samples import in_numpy
from dataprep.sources.class_names import Classes
from dataprep.sources.classes import (
    CLUTTER,
    classify,
    is_clutter,
    promises_image,
    unclassified,
)
from dataprep.sources.local_tree import Tree, shown
from dataprep.sources.member_classes import (
    Members,
    classes_by_name,
    has_class_folders,
    named_classes,
    note_of_parts,
    parts_among,
    refuse_crowded_archives,
    refuse_webdataset,
    tars_are_splits,
)
from dataprep.sources.options import ILSVRCOptions
from dataprep.sources.protocol import Listing, Problem, Problems
from dataprep.sources.splits import is_no_class
from dataprep.sources.tar_source import TarSource, texts
from dataprep.sources.tars import EMPTY, TAR_ENDING, leaves_archive
from dataprep.stores import StoreOptions


class ILSVRC(TarSource):
    """Images in tar archives, of which only headers and the images themselves are read.

    ``uri`` is one archive (ILSVRC2012's train tar of tars, its flat validation tar, any tree in a
    tar), or a folder of tars, one a class. An image in ``n01440764.tar`` is called
    ``n01440764/NAME``, as if that tar had been unpacked into a folder; classes then are those of
    class folders. Where images are in no folder, none has a class.
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
        """All members of all archives but folders, sorted by the bytes of their names."""
        tree = Tree()
        # What an index keeps of small members is for WebDataset.
        indexes = self._indexed(tree, lambda index: index.drop_columns(["content"]))
        table = pa.concat_tables(indexes)
        folder = posixpath.normpath(self._section.folder or "/").strip("/")
        below = f"{folder}/".lstrip("/")
        table = table.filter(pc.starts_with(table["name"], os.fsencode(below)))
        if not len(table):
            raise SourceNotFound(f"nothing is below {folder!r} in {self.uri!r} (ilsvrc.folder)")
        table = table.take(pc.sort_indices(table, [("name", "ascending")]))
        names = [os.fsdecode(name).removeprefix(below) for name in table["name"].to_pylist()]
        tars = [_below(tar, below) for tar in texts(table, "tar")]
        problems = self._problems(names, table)
        known = dict(problems)
        classes = self._classes(names, tars, problems)
        empty_notes = self._require_all(names, tars, known, problems)
        return Listing(
            names=names,
            sizes=in_numpy(table["bytes"]),
            classes=classes.names,
            problems=problems,
            containers=texts(table, "container"),
            offsets=in_numpy(table["offset"]),
            notes=(*classes.notes, *empty_notes, *tree.notes()),
            form="archives",
            unread=tuple(tree.unread),
            file_versions=self._versions,
        )

    def _classes(self, names: Sequence[str], tars: Sequence[str], problems: Problems) -> Classes:
        """The class of each member, if there are classes; what is no sample joins ``problems``.

        Raises:
            SourceError: it can be read in two ways.
        """
        # A path that is refused names folders that are none.
        paths = ["" if leaves_archive(name) else name for name in names]
        members = Members(self.uri, paths, tars, problems)
        inside = [members.inside(row) for row in range(len(names))]
        chosen = self._section.classes
        if chosen == "names":
            return Classes(classes_by_name(members))
        if chosen == "folders":
            return Classes(self._by_folders(inside, problems, splits_are_classes=True))
        if chosen == "archives":
            return Classes(self._by_folders(paths, problems, splits_are_classes=True))
        refuse_webdataset(members)
        if (synsets := named_classes(members)) is not None:
            return Classes(synsets)
        parts = parts_among(members)
        if tars_are_splits(members, parts):
            return Classes(self._by_folders(paths, problems))
        if parts:
            note = note_of_parts(parts)
            if not has_class_folders(members):
                return Classes(unclassified(paths, problems), notes=(note,))
            in_each = any(tars)
            return Classes(self._by_folders(inside, problems, in_each=in_each), notes=(note,))
        refuse_crowded_archives(members)
        return Classes(self._by_folders(paths, problems))

    def _by_folders(
        self,
        paths: Sequence[str],
        problems: Problems,
        *,
        splits_are_classes: bool = False,
        in_each: bool = False,
    ) -> Sequence[str]:
        """The class of each path, if folders give it; what is no sample joins ``problems``.

        ``in_each`` says that each of several tars may have the same folders.
        """
        splits_are_classes = splits_are_classes or self._splits_are_classes
        images = (name for row, name in enumerate(paths) if row not in problems)
        folders = {name.rpartition("/")[0] for name in filter(promises_image, images)}
        # Images in no folder, or all in one that is called as a split or as its kind of files is.
        only = next(iter(folders)).rpartition("/")[2] if len(folders) == 1 else "several"
        if not only or (is_no_class(only) and not splits_are_classes):
            return unclassified(paths, problems)
        absent = f"no images in {self.uri!r}: expected JPEGs in tars, or in folders in a tar"
        whole = f"--source {shlex.quote(self.uri)} --kind ilsvrc"
        above = (self._section.folder or "").strip("/")

        def advise(folder: str) -> str:
            if in_each and folder:
                depth = folder.count("/") + 1
                beside = {"/".join(path.split("/")[:depth]) for path in folders} - {folder}
                left_out = [f"--exclude {shlex.quote(f'*/{path}')}" for path in sorted(beside)]
                # The folder that is left in looks like a split.
                return " ".join([whole, *left_out, "--set labels.split_folders=classes"])
            inside = posixpath.join(above, folder)
            return f"{whole} --set ilsvrc.folder={shlex.quote(inside)}" if inside else whole

        return classify(
            paths,
            problems,
            self.uri,
            advise,
            absent,
            splits_are_classes=splits_are_classes,
        )

    def _problems(self, names: Sequence[str], table: pa.Table) -> Problems:
        """Members that are no samples, regardless of their classes."""
        statuses, reasons = table["status"].to_pylist(), table["problem"].to_pylist()
        problems = {}
        for row, name in enumerate(names):
            if reason := self._exclusion.by_glob(name):
                problems[row] = Problem("skipped", reason)
            elif reasons[row] is not None:
                problems[row] = Problem(statuses[row], reasons[row])
            elif names[row + 1 : row + 2] == [name]:
                # A later member replaces an earlier one, as it does when a tar is unpacked.
                reason = "a later member of the archive has the same name"
                problems[row] = Problem("skipped", reason)
            elif is_clutter(name):
                problems[row] = Problem("skipped", CLUTTER)
        return problems

    def _require_all(
        self,
        names: Sequence[str],
        tars: Sequence[str],
        known: Problems,
        problems: Problems,
    ) -> tuple[str, ...]:
        """Refuse a source in which some tars are classes and another one cannot be read.

        ``known`` are the problems apart from classes. Returns a note of the tars without images,
        which make no class, as empty class folders do not.
        """
        reasons: dict[str, str] = {}
        giving: set[str] = set()
        without_images: set[str] = set()
        for row, (name, tar) in enumerate(zip(names, tars, strict=True)):
            if self._exclusion.by_glob(name) or (not tar and is_clutter(name)):
                continue
            if tar and (row not in problems or problems[row].status == "failed"):
                giving.add(TAR_ENDING.sub("", tar))
            elif tar:
                without_images.add(tar)
            elif row in known and known[row].reason == EMPTY:
                without_images.add(name)
            elif TAR_ENDING.search(name):
                reasons[name] = known[row].reason if row in known else "no tar archive"
        lost = [tar for tar in sorted(reasons) if TAR_ENDING.sub("", tar) not in giving]
        empty = [tar for tar in by_bytes(without_images) if TAR_ENDING.sub("", tar) not in giving]
        if not giving:
            return ()
        if not lost:
            if not empty:
                return ()
            return (
                f"{counted(len(empty), 'archive')} without images, which make no class: "
                f"{shown(empty)}",
            )
        others = f" (and {len(lost) - 1:,} more)" if len(lost) > 1 else ""
        raise SourceError(
            f"{self.uri}: {lost[0]}: {reasons[lost[0]]}{others}. A class would be missing without "
            "it: fetch it again; if it is no class, move it elsewhere (within a tar: tar --delete)"
        )


def _below(tar: str, folder: str) -> str:
    """The path of a tar below a folder; empty if the folder is the tar's own, or is in the tar."""
    own = f"{TAR_ENDING.sub('', tar)}/"
    return "" if folder.startswith(own) else tar.removeprefix(folder)
