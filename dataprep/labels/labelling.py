"""Class information beyond the source: read the files of ``LabelOptions`` and apply them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from dataprep.counted import counted
from dataprep.errors import ConfigError, ObjectNotFound, OutputConflict
from dataprep.labels.class_files import (
    GROUND_TRUTH,
    META,
    Row,
    class_order,
    ground_truth,
    has_ids,
    read_rows,
    two_columns,
    unpacked,
)
from dataprep.labels.imagenet_synsets import ILSVRC2012, imagenet_synsets
from dataprep.labels.options import LabelOptions
from dataprep.labels.space import LabelSpace, are_whole, is_number
from dataprep.names import by_bytes
from dataprep.stores import StoreOptions, open_store

_TWO_COLUMNS = "expected two columns in each line with a tab, a comma or a semicolon between them"
_EXPECTED = {
    "labels.map": f"{_TWO_COLUMNS}, as in old,new",
    "labels.texts": f"{_TWO_COLUMNS}, as in n02123045,tabby cat",
    "labels.classes": "expected a class in each line, or a class and its label, as in cat,0",
}
"""What the files of these settings hold, for errors."""

_NEGATIVE = re.compile("-[0-9]+")


class Classified(NamedTuple):
    """The classes of a listing's entries, as columns of ``dataprep.sources.Listing``.

    Attributes:
        classes: the class of each entry; empty where it has none.
        problems: row to status (failed or skipped) and reason, for entries that are no samples.
        space: the classes as their numbers order them; None where their names do.
    """

    classes: Sequence[str]
    problems: Mapping[int, tuple[Literal["failed", "skipped"], str]]
    space: LabelSpace | None


@dataclass(frozen=True)
class Labelling:
    """The content of the files; empty where there are none.

    Attributes:
        truth: sample to class.
        truth_name: the file that ``truth`` was read from.
        mapped: class to its new name.
        order: classes in the order of their labels; empty where they are sorted.
        texts: class to its text.
        is_numeric: whether classes, which are numbers, are ordered by their values.
    """

    truth: Mapping[str, str] = field(default_factory=dict)
    truth_name: str = ""
    mapped: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    is_numeric: bool = False

    def applied(
        self, names: Sequence[str], found: Classified, note: Callable[[str], None]
    ) -> Classified:
        """Apply ground truth, then the map, to the entries of these names.

        A sample without ground truth fails; one whose class is mapped to nothing is skipped.
        Classes that the source numbers keep its order: a renamed one takes the place of the first
        with its new name. Classes that the ground truth numbers are their own labels. Those that
        become whole numbers by the map are in numeric order.

        Raises:
            ConfigError: the ground truth has none of the samples.
        """
        if not (self.truth or self.mapped):
            return found
        classes, problems, differ = list(found.classes), dict(found.problems), 0
        before: set[str] = set()
        lookup = _TruthLookup(self.truth, self.truth_name)
        for row, name in enumerate(names):
            if row in problems:
                continue
            group, reason = lookup.class_of(name) if self.truth else (classes[row], "")
            differ += bool(group) and classes[row] not in ("", group)
            before.add(group)
            classes[row] = self.mapped.get(group, group)
            if reason:
                problems[row] = ("failed", reason)
            elif group and not classes[row]:
                problems[row] = ("skipped", "its class is mapped to nothing")
        if differ:
            note(
                f"{counted(differ, 'sample')} in the folder of another class than in "
                f"{self.truth_name}, which takes precedence"
            )
        before.discard("")
        if self.truth and not before and len(found.problems) < len(names):
            lookup.refuse(names)
        space = found.space
        if self.truth:
            space = self._numbered_by_truth(before, note)
        if unused := sorted(self.mapped.keys() - before - set(space.index if space else ())):
            note(
                f"labels.map renames {counted(len(unused), 'class')} that the source does not "
                f"have, such as {unused[0]!r}"
            )
        return Classified(classes, problems, self._renumbered(space, before))

    def _numbered_by_truth(
        self, classes: set[str], note: Callable[[str], None]
    ) -> LabelSpace | None:
        """Return whole numbers as their own labels; None where names decide."""
        if not are_whole(classes):
            return None
        if self.mapped:
            return LabelSpace.numbered(classes)
        try:
            return LabelSpace.as_numbered(classes)
        except ValueError as error:
            note(
                f"{self.truth_name}: {error}: its labels are numbered anew, in their order, as "
                "labels.json shows; labels.classes keeps them"
            )
            return LabelSpace.numbered(classes)

    def _renumbered(self, space: LabelSpace | None, before: set[str]) -> LabelSpace | None:
        """Return how classes are numbered after the map; None where their names decide."""
        if space is None:
            after = {self.mapped.get(name, name) for name in before} - {""}
            # Folders whose names are numbers are sorted as texts, with a map as without one.
            is_numbered = are_whole(after) and not are_whole(before)
            return LabelSpace.numbered(after) if is_numbered else None
        old = list(space.index)
        names = list(dict.fromkeys(filter(None, (self.mapped.get(name, name) for name in old))))
        by_number = not are_whole(old) or old == sorted(old, key=int)
        in_order = LabelSpace.numbered if by_number and are_whole(names) else LabelSpace.in_order
        return in_order(names).with_texts({label.synset: label.text for label in space.labels})

    def space(self, classes: Iterable[str], numbered: LabelSpace | None = None) -> LabelSpace:
        """Return the label space of these classes; ``numbered`` is ``Classified.space``.

        Raises:
            ConfigError: ``labels.classes`` lacks some of them, or they are to be ordered by value
                and are no numbers.
        """
        if self.is_numeric:
            return _by_value(numbered.index if numbered else classes).with_texts(self.texts)
        if not self.order:
            return (numbered or LabelSpace.of(classes)).with_texts(self.texts)
        strangers = sorted(set(classes) - set(self.order))
        if strangers:
            raise ConfigError(
                f"labels.classes does not name {counted(len(strangers), 'class')} of the source, "
                f"such as {strangers[0]!r}: add them, or map them (labels.map)"
            )
        return LabelSpace.in_order(self.order).with_texts(self.texts)

    def require_order(self, shared: LabelSpace, split: str) -> None:
        """Refuse an order of classes other than that of the output's labels.json.

        Other texts are no conflict: the stored ones are kept.

        Raises:
            OutputConflict: it names the first label that differs.
        """
        if self.is_numeric and [*shared.index] != [*_by_value(shared.index).index]:
            raise OutputConflict(
                f"labels.json of this output, with which split {split!r} would share its labels, "
                "has other classes than in numeric order: leave labels.order out, or use another "
                "--output"
            )
        for label, (stored, here) in enumerate(zip_longest(shared.index, self.order)):
            if self.order and stored != here:
                raise OutputConflict(
                    f"labels.classes gives split {split!r} other labels than labels.json of this "
                    f"output: label {label} is {stored!r} in labels.json and {here!r} in "
                    "labels.classes. All splits share one label space: leave labels.classes out, "
                    "or use another --output"
                )


def _by_value(names: Iterable[str]) -> LabelSpace:
    """Number classes by their values. Raises ConfigError if one is no number."""
    different = {*names}
    for name in by_bytes(different):
        if not is_number(name):
            raise ConfigError(
                f"labels.order is numeric, but the class {name!r} is no whole number: leave "
                "labels.order out, or give the order with labels.classes=FILE"
            )
    return LabelSpace.in_order(sorted(by_bytes(different), key=int))


class _TruthLookup:
    """Looks samples up in a ground truth, whose paths may begin with other folders."""

    def __init__(self, truth: Mapping[str, str], title: str) -> None:
        self._truth, self._title = truth, title

    def class_of(self, name: str) -> tuple[str, str]:
        """Return the class of a sample, or nothing and the reason.

        It is looked up by its whole name, its base name, and that without extension; then among
        longer paths that end with its name, or shorter ones that its name ends with.
        """
        path, truth = PurePosixPath(name), self._truth
        group = truth.get(name) or truth.get(path.name) or truth.get(path.stem, "")
        if not group:
            keys = self._with_folders.get(path.name) or self._with_folders.get(path.stem, [])
            fitting = [key for key in keys if _ends_alike(key, name)]
            groups = {truth[key] for key in fitting}
            if len(groups) > 1:
                shown = " and ".join(map(repr, fitting[:2]))
                return "", f"{self._title} has several classes for it: {shown}"
            group = next(iter(groups), "")
        if not group:
            return "", f"{self._title} has no class for it"
        if _NEGATIVE.fullmatch(group):
            return "", f"{self._title} gives it the label {group}; classes count from 0"
        return group, ""

    def refuse(self, names: Sequence[str]) -> None:
        """Refuse a ground truth that gives none of these samples a class. Raises ConfigError."""
        key = next(iter(self._truth))
        raise ConfigError(
            f"{self._title} (labels.ground_truth) has no class for any sample: it has {key!r} with "
            f"class {self._truth[key]!r}, the source has {next(iter(names), '')!r}"
        )

    @cached_property
    def _with_folders(self) -> dict[str, list[str]]:
        """Base name to the paths in the ground truth that have folders."""
        found: dict[str, list[str]] = {}
        for key in self._truth:
            *folders, base = _parts(key)
            if folders or key != base:
                found.setdefault(base, []).append(key)
        return found


def _parts(path: str) -> tuple[str, ...]:
    """The parts of a path of Linux or of Windows."""
    return PurePosixPath(path.replace("\\", "/")).parts


def _ends_alike(key: str, name: str) -> bool:
    """Whether one path ends with the other, extensions aside where ``key`` has none."""
    parts, sample = _parts(key), _parts(name)
    if parts[-1] != sample[-1]:
        sample = (*sample[:-1], PurePosixPath(name).stem)
    shared = min(len(parts), len(sample))
    return parts[-shared:] == sample[-shared:]


def require_known(shared: LabelSpace, classes: Iterable[str], split: str) -> None:
    """Refuse a split with classes that the output's labels.json lacks.

    Raises:
        OutputConflict: it names one of them.
    """
    strangers = by_bytes(set(classes) - shared.index.keys())
    if strangers and not shared.labels:
        raise OutputConflict(
            f"labels.json of this output has no classes, since its splits are unlabelled, and "
            f"split {split!r} has some, such as {strangers[0]!r}: make the split with classes "
            "first, give labels.classes with the unlabelled one, or use another --output"
        )
    if strangers:
        raise OutputConflict(
            f"split {split!r} has {counted(len(strangers), 'class')} that labels.json of this "
            f"output does not know, such as {strangers[0]!r}. All splits share one label space: "
            "use another --output, or check the source"
        )


def load_labelling(options: LabelOptions, stores: StoreOptions | None) -> Labelling:
    """Read the files that ``options`` names.

    Raises:
        ConfigError: a file is missing or has another form.
        StoreError: a file cannot be read.
    """
    if options.order == "numeric" and options.classes is not None:
        raise ConfigError("labels.classes and labels.order exclude each other: give one")
    truth, texts = _ground_truth(options, stores)
    mapped = _table("labels.map", options.map, stores)
    order: tuple[str, ...] = ()
    if options.classes == ILSVRC2012:
        order = imagenet_synsets()
    elif options.classes is not None:
        with _explained("labels.classes"):
            rows = _rows("labels.classes", options.classes, stores)
            order, its_texts = class_order(rows, options.classes)
        texts |= its_texts
    texts |= _table("labels.texts", options.texts, stores, META)
    return Labelling(
        truth=truth,
        truth_name=options.ground_truth or "",
        mapped=mapped,
        order=order,
        texts=texts,
        is_numeric=options.order == "numeric",
    )


def _ground_truth(
    options: LabelOptions, stores: StoreOptions | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the class of each sample, and the texts in ``meta.mat``."""
    if options.ground_truth is None:
        return {}, {}
    data, name = _read("labels.ground_truth", options.ground_truth, stores, GROUND_TRUTH)
    rows = read_rows(data, name, spaced=True)
    key, meta_uri = "labels.meta", options.meta
    if meta_uri is None and has_ids(rows):
        key = f"{name} has ILSVRC2012_IDs, which need labels.meta, the devkit's meta.mat"
        meta_uri = name
        if not name.endswith((".gz", ".tgz")):
            meta_uri = name.removesuffix(PurePosixPath(name).name) + META
    meta = _rows(key, meta_uri, stores, META)
    return ground_truth(rows, name, meta), two_columns(meta)


def _table(
    key: str, uri: str | None, stores: StoreOptions | None, within: str = ""
) -> dict[str, str]:
    with _explained(key):
        return two_columns(_rows(key, uri, stores, within))


@contextmanager
def _explained(key: str) -> Iterator[None]:
    """Add to errors in the content of a file what it should hold, and the setting that names it."""
    try:
        yield
    except ConfigError as error:
        if str(error).startswith(f"{key}: "):  # there is no file
            raise
        raise ConfigError(f"{error}: {_EXPECTED[key]} ({key})") from None


def _rows(key: str, uri: str | None, stores: StoreOptions | None, within: str = "") -> list[Row]:
    return [] if uri is None else read_rows(*_read(key, uri, stores, within))


def _read(key: str, uri: str, stores: StoreOptions | None, within: str) -> tuple[bytes, str]:
    """Return a file, unpacked, and its name.

    ``key`` is the setting that names it, for errors; ``within`` the file wanted where ``uri`` is
    the folder of the devkit or its tarball.
    """
    folder = uri.rstrip("/")
    inside = (f"{folder}/{within}", f"{folder}/data/{within}") if within else ()
    for name in (uri, *inside):
        parent, slash, base = name.rpartition("/")
        with suppress(ObjectNotFound, IsADirectoryError):
            data = open_store(parent + slash or ".", stores).get(base)
            return unpacked(data, within, name), name
    raise ConfigError(f"{key}: there is no file {uri!r}")
