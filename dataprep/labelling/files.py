"""The files of ``LabelOptions``, read: what is known about classes beyond the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dataprep.counted import counted
from dataprep.errors import ConfigError, ObjectNotFound
from dataprep.labelling.apply import with_ground_truth, with_map
from dataprep.labelling.devkit import (
    GROUND_TRUTH,
    META,
    Meta,
    is_tarball,
    parse_meta,
    unpack_devkit,
)
from dataprep.labelling.ground_truth import needs_meta, parse_ground_truth
from dataprep.labelling.known import ILSVRC2012, known_synsets
from dataprep.labelling.options import LabelOptions
from dataprep.labelling.order import parse_order
from dataprep.labelling.tables import Pair, once, pairs
from dataprep.labels import LabelSpace, are_whole
from dataprep.sources import Listing
from dataprep.stores import StoreOptions, open_store

_MATLAB = b"MATLAB 5.0 MAT-file"


@dataclass(frozen=True)
class Labelling:
    """What the files say; all empty where there are none.

    Attributes:
        truth: sample to class.
        truth_name: of the file that says so.
        mapped: class to its new name.
        order: classes in the order of their labels; sorted where there is none.
        texts: class to what people call it.
    """

    truth: Mapping[str, str] = field(default_factory=dict)
    truth_name: str = ""
    mapped: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    def applied(self, listing: Listing, note: Callable[[str], None]) -> Listing:
        """The listing with its classes as the files want them, numbered as these have it."""
        before = listing.label_space
        if self.truth:
            listing, differ = with_ground_truth(listing, self.truth, self.truth_name)
            if differ:
                note(
                    f"{counted(differ, 'sample')} in the folder of another class than "
                    f"{self.truth_name} says, which is believed"
                )
        if self.mapped:
            _note_unused(self.mapped, listing, note)
            listing = with_map(listing, self.mapped)
        if listing.label_space != before and not self.order:
            _note_gaps(listing.label_space, note)
        return listing

    def space(self, classes: Iterable[str], counted_as: LabelSpace | None = None) -> LabelSpace:
        """The label space of these classes; ``counted_as`` is how ``applied`` numbers them.

        Raises:
            ConfigError: the given order lacks some of them.
        """
        if not self.order:
            return (counted_as or LabelSpace.of(classes)).with_texts(self.texts)
        strangers = sorted(set(classes) - set(self.order))
        if strangers:
            raise ConfigError(
                f"labels.classes does not name {counted(len(strangers), 'class')} of the source, "
                f"such as {strangers[0]!r}: add them, or map them (labels.map)"
            )
        return LabelSpace.in_order(self.order).with_texts(self.texts)


def _note_unused(mapped: Mapping[str, str], listing: Listing, note: Callable[[str], None]) -> None:
    """Say which names of a map are those of no class: likely misspelt, or new ones."""
    own = listing.label_space.index if listing.label_space else {}
    unused = sorted(mapped.keys() - own.keys() - {*listing.classes})
    if unused:
        note(
            f"labels.map renames {counted(len(unused), 'class')} that the source does not have, "
            f"such as {unused[0]!r}"
        )


def _note_gaps(space: LabelSpace | None, note: Callable[[str], None]) -> None:
    """Say where classes are numbers that cannot all be their own labels."""
    names = list(space.index) if space else []
    if are_whole(names) and any(name != str(label) for label, name in enumerate(names)):
        note(
            f"the classes {names[0]} to {names[-1]} are not 0 to {len(names) - 1} without a gap: "
            "unless this output numbers them already they become that, in their order, as "
            "labels.json tells; a file of all numbers as labels.classes keeps them as they are"
        )


def load_labelling(options: LabelOptions, store_options: StoreOptions | None) -> Labelling:
    """Read the files that ``options`` names.

    Raises:
        ConfigError: a file is missing or is not what it should be.
        StoreError: it cannot be read.
    """
    reader = _Reader(store_options)
    texts: dict[str, str] = {}
    truth: dict[str, str] = {}
    mapped: dict[str, str] = {}
    order: tuple[str, ...] = ()
    if options.ground_truth is not None:
        truth, meta = _ground_truth(reader, options.ground_truth, options.meta)
        texts.update(meta.texts if meta else {})
    if options.map is not None:
        mapped = once(reader.pairs("labels.map", options.map), options.map)
    if options.classes is not None:
        order, said = _order(reader, options.classes)
        texts.update(said)
    if options.texts is not None:
        texts.update(_texts(reader, options.texts))
    return Labelling(truth, options.ground_truth or "", mapped, order, texts)


class _Reader:
    def __init__(self, options: StoreOptions | None) -> None:
        self._options = options

    def read(self, key: str, uri: str, within: str = "") -> tuple[bytes, str]:
        """A whole file and its name. ``key`` is the setting that names it, for errors.

        ``within`` is what is looked for where ``uri`` is the devkit's folder.
        """
        folder = uri.rstrip("/")
        for name in (uri, *((f"{folder}/{within}", f"{folder}/data/{within}") if within else ())):
            if (data := self.find(name)) is not None:
                return data, name
        raise ConfigError(f"{key}: there is no file {uri!r}")

    def read_meta(self, key: str, uri: str) -> bytes:
        """``meta.mat``, alone, in the devkit or in its folder; or another file as it is."""
        data, name = self.read(key, uri, META)
        return unpack_devkit(data, name)[META] if is_tarball(data) else data

    def pairs(self, key: str, uri: str) -> Sequence[Pair]:
        """A table or JSON."""
        data, name = self.read(key, uri)
        return pairs(data, name)

    def find(self, uri: str) -> bytes | None:
        folder, slash, name = uri.rpartition("/")
        try:
            return open_store(folder + slash if slash else ".", self._options).get(name)
        except (ObjectNotFound, IsADirectoryError):
            return None


def _ground_truth(
    reader: _Reader, uri: str, meta_uri: str | None
) -> tuple[dict[str, str], Meta | None]:
    (data, name), meta = reader.read("labels.ground_truth", uri, GROUND_TRUTH), None
    if is_tarball(data):
        members = unpack_devkit(data, name)
        data, meta = members[GROUND_TRUTH], parse_meta(members[META], name)
    if meta_uri is not None:
        meta = parse_meta(reader.read_meta("labels.meta", meta_uri), meta_uri)
    elif meta is None and needs_meta(data, name):
        folder, slash, _ = name.rpartition("/")
        found = reader.find(folder + slash + META)
        meta = parse_meta(found, folder + slash + META) if found is not None else None
    return parse_ground_truth(data, name, meta.synset_of_id if meta else None), meta


def _order(reader: _Reader, uri: str) -> tuple[tuple[str, ...], dict[str, str]]:
    if uri == ILSVRC2012:
        return known_synsets(), {}
    return parse_order(*reader.read("labels.classes", uri))


def _texts(reader: _Reader, uri: str) -> dict[str, str]:
    data = reader.read_meta("labels.texts", uri)
    if data.startswith(_MATLAB):
        return parse_meta(data, uri).texts
    return once(pairs(data, uri), uri)
