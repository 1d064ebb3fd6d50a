"""Read the files that ``LabelOptions`` names, and apply them to the classes of a source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from dataprep.errors import ConfigError, ObjectNotFound, OutputConflict
from dataprep.labels.class_files import (
    GROUND_TRUTH,
    META,
    Row,
    class_order,
    column_mapping,
    ground_truth,
    has_ilsvrc_ids,
    read_rows,
    unpack_devkit,
)
from dataprep.labels.imagenet_synsets import ILSVRC2012, imagenet_synsets
from dataprep.labels.options import LabelOptions
from dataprep.labels.space import LabelSpace, are_whole, is_number
from dataprep.message_text import counted
from dataprep.name_encoding import by_bytes
from dataprep.stores import StoreOptions, open_store

_TWO_COLUMNS = "expected two columns in each line with a tab, a comma or a semicolon between them"
_EXPECTED = {
    "labels.map": f"{_TWO_COLUMNS}, as in old,new",
    "labels.texts": f"{_TWO_COLUMNS}, as in n02123045,tabby cat",
    "labels.classes": "expected a class in each line, or a class and its label, as in cat,0",
}
"""The form that the file of a setting must have, for errors."""

_NEGATIVE_NUMBER = re.compile("-[0-9]+")


class Classified(NamedTuple):
    """The classes of the entries of a listing.

    Attributes:
        classes: the class of each entry; empty for an entry without a class.
        problems: the status (failed or skipped) and the reason of each entry that is not a sample,
            by the position of the entry in the listing.
        space: the label space, if the source or a file of ``LabelOptions`` numbers the classes;
            None if the classes are to be sorted by name.
    """

    classes: Sequence[str]
    problems: Mapping[int, tuple[Literal["failed", "skipped"], str]]
    space: LabelSpace | None


@dataclass(frozen=True)
class Labelling:
    """The content of the files that ``LabelOptions`` names.

    An attribute is empty if none of its files is named.

    Attributes:
        truth: the ground truth, which is the class of each sample, by the name of the sample.
        truth_name: the path or URI of the ground truth, as in ``labels.ground_truth``.
        new_names: the new name of each class that is renamed, by its old name. An empty new name
            means that the samples of the class are skipped.
        order: the classes in the order of their labels, from ``labels.classes``; empty if no file
            gives the order.
        texts: the text of each class, by the name of the class: from ``meta.mat``,
            ``labels.classes`` and ``labels.texts``.
        is_numeric: whether ``labels.order`` is numeric: classes are numbers, and are sorted by
            their values.
    """

    truth: Mapping[str, str] = field(default_factory=dict)
    truth_name: str = ""
    new_names: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    is_numeric: bool = False

    def apply(
        self, names: Sequence[str], classified: Classified, note: Callable[[str], None]
    ) -> Classified:
        """Apply the ground truth, and then the new names, to the entries of a listing.

        A sample fails if the ground truth has no valid class for it. A sample whose class has an
        empty new name is skipped. Entries with a problem do not change.

        Without a ground truth, the order of the classes is that of the source. If several classes
        get the same new name, the first of them determines its place in the order. If the classes
        in the ground truth are whole numbers, they are labels; ``_space_of_truth`` describes the
        exceptions. If all new names are whole numbers, the new classes are in numeric order, unless
        the old names are whole numbers, too, and are sorted as texts or in an order that the source
        has chosen.

        Args:
            names: the name of each entry.
            classified: the classes that the source gives.
            note: called with each message for the user.

        Returns:
            The classes of the same entries, with the added problems.

        Raises:
            ConfigError: the ground truth has no valid class for any sample.
        """
        if not (self.truth or self.new_names):
            return classified
        lookup = _TruthLookup(self.truth, self.truth_name)
        classes = list(classified.classes)
        problems = dict(classified.problems)
        old_names: set[str] = set()
        contradictions = 0
        for position, name in enumerate(names):
            if position in problems:
                continue
            old_name = classes[position]
            failure = ""
            if self.truth:
                old_name, failure = lookup.class_of(name)
                contradictions += int(_contradict(classes[position], old_name))
            old_names.add(old_name)
            classes[position] = self.new_names.get(old_name, old_name)
            if failure:
                problems[position] = ("failed", failure)
            elif old_name and not classes[position]:
                problems[position] = ("skipped", "its class is mapped to nothing")
        old_names.discard("")
        space = classified.space
        if self.truth:
            if not old_names and len(classified.problems) < len(names):
                lookup.refuse_all(names)
            self._note_contradictions(contradictions, note)
            space = self._space_of_truth(old_names, note)
        self._note_unused_names(old_names, space, note)
        return Classified(classes, problems, self._renamed_space(space, old_names))

    def _note_contradictions(self, count: int, note: Callable[[str], None]) -> None:
        """Report the number of samples whose class in the source contradicts the ground truth."""
        if count:
            note(
                f"{counted(count, 'sample')} in the folder of a class that differs from "
                f"{self.truth_name}, which takes precedence"
            )

    def _note_unused_names(
        self, old_names: set[str], space: LabelSpace | None, note: Callable[[str], None]
    ) -> None:
        """Report how many classes in ``labels.map`` the source does not have.

        Args:
            old_names: the classes of all samples before they were renamed.
            space: the label space before classes were renamed. It can have classes without
                samples. None if there is none.
            note: called with the message.
        """
        unused = self.new_names.keys() - old_names
        if space is not None:
            unused -= space.index.keys()
        if unused:
            note(
                f"labels.map renames {counted(len(unused), 'class')} that the source does not "
                f"have, such as {min(unused)!r}"
            )

    def _space_of_truth(self, classes: set[str], note: Callable[[str], None]) -> LabelSpace | None:
        """The label space of a ground truth whose classes are whole numbers; otherwise None.

        The label of a class is its number, except in two cases: a number is too high, or the
        classes are renamed afterwards. Then the classes are numbered from 0 in numeric order.

        Args:
            classes: the classes of all samples before they are renamed.
            note: called with a message if a number is too high.
        """
        if not are_whole(classes):
            return None
        if self.new_names:
            return LabelSpace.sorted_by_number(classes)
        try:
            return LabelSpace.with_numbers_as_labels(classes)
        except ValueError as error:
            note(
                f"{self.truth_name}: {error}: its labels are renumbered from 0 in numeric order, "
                "as labels.json shows; use labels.classes to keep them"
            )
            return LabelSpace.sorted_by_number(classes)

    def _renamed_space(self, space: LabelSpace | None, old_names: set[str]) -> LabelSpace | None:
        """The label space after classes were renamed; None to sort the classes by new names.

        Args:
            space: the label space of the old names; None to sort the classes by these names.
            old_names: the classes of all samples before they were renamed.
        """
        if space is None:
            new_names = {self.new_names.get(name, name) for name in old_names} - {""}
            # Old names that are numbers, such as folders "1" and "10", are sorted as texts without
            # labels.map. New names are then sorted as texts too.
            if are_whole(new_names) and not are_whole(old_names):
                return LabelSpace.sorted_by_number(new_names)
            return None
        old_order = list(space.index)
        renamed = [self.new_names.get(name, name) for name in old_order]
        new_order = [name for name in dict.fromkeys(renamed) if name]  # each name once
        # Keep the order of a source whose classes are numbers, but not in numeric order.
        is_order_chosen = are_whole(old_order) and old_order != sorted(old_order, key=int)
        if are_whole(new_order) and not is_order_chosen:
            new_space = LabelSpace.sorted_by_number(new_order)
        else:
            new_space = LabelSpace.in_order(new_order)
        # The texts of the old names apply to the classes that have these names now.
        return new_space.with_texts({label.synset: label.text for label in space.labels})

    def space(self, classes: Iterable[str], source_space: LabelSpace | None = None) -> LabelSpace:
        """The label space of a split, with the texts of its classes.

        The order of the classes comes from their values if ``is_numeric``, or else from ``order``,
        or else from ``source_space``. If there is none of these, the classes are sorted by name.

        Args:
            classes: the classes of the samples.
            source_space: ``Classified.space`` after ``apply``.

        Raises:
            ConfigError: ``labels.classes`` lacks some of the classes, or classes that must be
                ordered by value are not numbers.
        """
        if self.is_numeric:
            space = _by_value(source_space.index if source_space else classes)
        elif not self.order:
            space = source_space or LabelSpace.of(classes)
        else:
            missing = sorted(set(classes) - set(self.order))
            if missing:
                raise ConfigError(
                    f"labels.classes does not name {counted(len(missing), 'class')} of the source, "
                    f"such as {missing[0]!r}: add them, or map them (labels.map)"
                )
            space = LabelSpace.in_order(self.order)
        return space.with_texts(self.texts)

    def require_order(self, shared: LabelSpace, split: str) -> None:
        """Raise an error unless labels.json of the output has the classes in the configured order.

        Different texts are not a conflict. The texts in labels.json are kept.

        Args:
            shared: the content of labels.json, which all splits of the output share.
            split: the name of the new split.

        Raises:
            OutputConflict: the order differs.
            ConfigError: classes that must be ordered by value are not numbers.
        """
        if self.is_numeric and list(shared.index) != list(_by_value(shared.index).index):
            raise OutputConflict(
                f"labels.json of this output, with which split {split!r} would share its labels, "
                "has other classes than in numeric order: leave labels.order out, or use another "
                "--output"
            )
        if not self.order:
            return
        for label, (shared_name, name) in enumerate(zip_longest(shared.index, self.order)):
            if shared_name != name:
                raise OutputConflict(
                    f"labels.classes gives split {split!r} other labels than labels.json of this "
                    f"output: label {label} is {shared_name!r} in labels.json and {name!r} in "
                    "labels.classes. All splits share one label space: leave labels.classes out, "
                    "or use another --output"
                )


def _contradict(source_class: str, truth_class: str) -> bool:
    """Whether the source and the ground truth both give a sample a class, and these differ."""
    return bool(source_class and truth_class) and source_class != truth_class


def _by_value(names: Iterable[str]) -> LabelSpace:
    """Number classes that are whole numbers in the order of their values.

    Raises:
        ConfigError: a class is not a whole number.
    """
    # The numeric sort below keeps the byte order of names with one value, such as 7 and 007.
    classes = by_bytes(set(names))
    for name in classes:
        if not is_number(name):
            raise ConfigError(
                f"labels.order is numeric, but the class {name!r} is not a whole number: leave "
                "labels.order out, or give the order with labels.classes=FILE"
            )
    return LabelSpace.in_order(sorted(classes, key=int))


class _TruthLookup:
    """Finds the class of samples in a ground truth.

    The ground truth may name a sample by more or by fewer folders than the source, or without its
    extension.
    """

    def __init__(self, truth: Mapping[str, str], title: str) -> None:
        self._truth = truth
        self._title = title

    def class_of(self, name: str) -> tuple[str, str]:
        """Return the class of a sample and an empty text, or an empty class and the reason.

        The ground truth is searched for the full name of the sample, its base name, and its base
        name without extension, in this order. If it has none of them, it is searched for paths that
        end with the name of the sample, and for paths that are the end of this name. All these
        paths must have the same class.
        """
        path = PurePosixPath(name)
        truth = self._truth
        class_name = truth.get(name) or truth.get(path.name) or truth.get(path.stem, "")
        if not class_name:
            paths = self._paths_by_base.get(path.name) or self._paths_by_base.get(path.stem, [])
            matching = [truth_path for truth_path in paths if _ends_alike(truth_path, name)]
            classes = {truth[truth_path] for truth_path in matching}
            if len(classes) > 1:
                examples = " and ".join([repr(truth_path) for truth_path in matching[:2]])
                return "", f"{self._title} has several classes for it: {examples}"
            class_name = classes.pop() if classes else ""
        if not class_name:
            return "", f"{self._title} has no class for it"
        if _NEGATIVE_NUMBER.fullmatch(class_name):
            return "", f"{self._title} gives it the label {class_name}; classes count from 0"
        return class_name, ""

    def refuse_all(self, names: Sequence[str]) -> None:
        """Raise ConfigError, because the ground truth has a class for none of these samples."""
        key = next(iter(self._truth))
        raise ConfigError(
            f"{self._title} (labels.ground_truth) has no class for any sample: it has {key!r} with "
            f"class {self._truth[key]!r}, the source has {next(iter(names), '')!r}"
        )

    @cached_property
    def _paths_by_base(self) -> dict[str, list[str]]:
        """The paths in the ground truth that are more than a base name, by their base names."""
        paths: dict[str, list[str]] = {}
        for key in self._truth:
            parts = _parts(key)  # none of "." and of an empty name
            if parts and key != parts[-1]:
                paths.setdefault(parts[-1], []).append(key)
        return paths


def _parts(path: str) -> tuple[str, ...]:
    """The parts of a path. Windows paths are accepted too."""
    return PurePosixPath(path.replace("\\", "/")).parts


def _ends_alike(truth_path: str, name: str) -> bool:
    """Whether one of two paths ends with all parts of the other.

    Args:
        truth_path: a path in the ground truth, with or without the extension.
        name: the path of a sample in the source.
    """
    truth_parts = _parts(truth_path)
    name_parts = _parts(name)
    if truth_parts[-1] != name_parts[-1]:
        name_parts = (*name_parts[:-1], PurePosixPath(name).stem)
    count = min(len(truth_parts), len(name_parts))
    return truth_parts[-count:] == name_parts[-count:]


def require_shared_classes(shared: LabelSpace, classes: Iterable[str], split: str) -> None:
    """Raise an error if a split has classes that labels.json of the output does not have.

    Args:
        shared: the content of labels.json, which all splits of the output share.
        classes: the classes of the split.
        split: the name of the split.

    Raises:
        OutputConflict: there are classes that labels.json lacks. The message names one of them.
    """
    missing = by_bytes(set(classes) - shared.index.keys())
    if not missing:
        return
    if not shared.labels:
        raise OutputConflict(
            f"labels.json of this output has no classes, since its splits are unlabelled, and "
            f"split {split!r} has some, such as {missing[0]!r}: make the split with classes "
            "first, give labels.classes with the unlabelled split, or use another --output"
        )
    raise OutputConflict(
        f"split {split!r} has {counted(len(missing), 'class')} that labels.json of this "
        f"output does not know, such as {missing[0]!r}. All splits share one label space: "
        "use another --output, or check the source"
    )


def load_labelling(options: LabelOptions, stores: StoreOptions | None) -> Labelling:
    """Read all files that ``options`` names.

    Args:
        options: the section ``labels`` of the config.
        stores: options of the store that has the files; None for the defaults.

    Raises:
        ConfigError: a file is missing or does not have the expected form, or ``options`` has both
            ``classes`` and a numeric ``order``.
        StoreError: a file cannot be read.
    """
    if options.order == "numeric" and options.classes is not None:
        raise ConfigError("labels.classes and labels.order exclude each other: give one")
    # A later file replaces the texts of earlier files.
    truth, texts = _ground_truth(options, stores)
    new_names = _table("labels.map", options.map, stores)
    order: tuple[str, ...] = ()
    if options.classes == ILSVRC2012:
        order = imagenet_synsets()
    elif options.classes is not None:
        with _explained("labels.classes"):
            rows = _rows("labels.classes", options.classes, stores)
            order, texts_of_order = class_order(rows, options.classes)
        texts |= texts_of_order
    texts |= _table("labels.texts", options.texts, stores, META)
    return Labelling(
        truth=truth,
        truth_name=options.ground_truth or "",
        new_names=new_names,
        order=order,
        texts=texts,
        is_numeric=options.order == "numeric",
    )


def _ground_truth(
    options: LabelOptions, stores: StoreOptions | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Read the class of each sample, and the text of each class in ``meta.mat``.

    Both are empty without a ground truth. The texts are empty if ``meta.mat`` is neither given nor
    needed.
    """
    if options.ground_truth is None:
        return {}, {}
    data, name = _read("labels.ground_truth", options.ground_truth, stores, GROUND_TRUTH)
    rows = read_rows(data, name, spaced=True)
    setting = "labels.meta"
    meta_uri = options.meta
    if meta_uri is None and has_ilsvrc_ids(rows):
        # Without labels.meta, read meta.mat from the same tarball or the same folder.
        setting = f"{name} has ILSVRC2012_IDs, which need labels.meta, the devkit's meta.mat"
        meta_uri = name
        if not name.endswith((".gz", ".tgz")):
            meta_uri = name.removesuffix(PurePosixPath(name).name) + META
    meta = _rows(setting, meta_uri, stores, META)
    return ground_truth(rows, name, meta), column_mapping(meta)


def _table(
    setting: str, uri: str | None, stores: StoreOptions | None, devkit_file: str = ""
) -> dict[str, str]:
    """Read a mapping from the first to the second column of a file; empty if ``uri`` is None.

    ``_read`` describes the arguments.
    """
    with _explained(setting):
        return column_mapping(_rows(setting, uri, stores, devkit_file))


@contextmanager
def _explained(setting: str) -> Iterator[None]:
    """Add the expected form of the file, and the setting that names it, to each ConfigError."""
    try:
        yield
    except ConfigError as error:
        # ``_read`` begins with the setting if the file does not exist. The form is no help then.
        if str(error).startswith(f"{setting}: "):
            raise
        raise ConfigError(f"{error}: {_EXPECTED[setting]} ({setting})") from None


def _rows(
    setting: str, uri: str | None, stores: StoreOptions | None, devkit_file: str = ""
) -> list[Row]:
    """Read the rows of a file; empty if ``uri`` is None. ``_read`` describes the arguments."""
    if uri is None:
        return []
    data, name = _read(setting, uri, stores, devkit_file)
    return read_rows(data, name)


def _read(
    setting: str, uri: str, stores: StoreOptions | None, devkit_file: str
) -> tuple[bytes, str]:
    """Read a file. Instead of a file of the devkit, the devkit itself can be given.

    Args:
        setting: the beginning of the error if there is no file: the setting that names it.
        uri: the file, or the folder or the tarball of the devkit.
        stores: options of the store; None for the defaults.
        devkit_file: the base name of the file in the devkit; empty for a file that is not part of
            the devkit.

    Returns:
        The content of the file, and the path or URI of the file or of the tarball that has it.

    Raises:
        ConfigError: there is no file at ``uri`` or in the devkit, or the tarball is damaged, is not
            the devkit, or is given although the file is not part of the devkit.
        StoreError: the file cannot be read.
    """
    candidates = [uri]
    if devkit_file:
        folder = uri.rstrip("/")
        candidates += [f"{folder}/{devkit_file}", f"{folder}/data/{devkit_file}"]
    for candidate in candidates:
        parent, slash, base = candidate.rpartition("/")
        # If the candidate does not exist or is a folder, the next one is tried.
        with suppress(ObjectNotFound, IsADirectoryError):
            data = open_store(parent + slash or ".", stores).get(base)
            return unpack_devkit(data, devkit_file, candidate), candidate
    raise ConfigError(f"{setting}: there is no file {uri!r}")
