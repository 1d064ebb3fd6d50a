"""Names for classes that a source has only numbers for."""

from __future__ import annotations

from dataprep.errors import ConfigError, DatasetError, ObjectNotFound, SourceError, SourceNotFound
from dataprep.labels import Label, LabelSpace, is_synset
from dataprep.stores import Store, StoreOptions, open_store


def split_uri(uri: str) -> tuple[str, str]:
    """The folder of a file, and its name there: ``s3://bucket/a`` and ``b.csv``.

    Raises:
        ConfigError: it is a URI that names no file.
    """
    scheme, found, rest = uri.partition("://")
    if found and not rest.rpartition("/")[0]:
        raise ConfigError(f"{uri!r} names no file: write {scheme}://PLACE/FILE")
    folder, slash, name = uri.rpartition("/")
    return folder or slash or ".", name


def open_file(uri: str, options: StoreOptions | None) -> tuple[Store, str]:
    """The store of a file's folder, and its key there."""
    folder, name = split_uri(uri)
    return open_store(folder, options), name


def read_class_names(uri: str, options: StoreOptions | None = None) -> LabelSpace:
    """The classes that a file names: line i (from 0) the class i, or a ``labels.json``.

    A line is the name; where it begins with a WordNet id, the rest of it is the text.

    Raises:
        SourceNotFound: there is no such file.
        SourceError: it names a class twice, or nothing.
    """
    store, key = open_file(uri, options)
    try:
        data = store.get(key)
    except ObjectNotFound:
        raise SourceNotFound(f"no file {uri!r} of class names (class_names)") from None
    if key.endswith(".json"):
        try:
            return LabelSpace.from_json(data)
        except DatasetError as error:
            raise SourceError(f"{uri}: {error}") from None
    return parse_class_names(data, uri)


def parse_class_names(data: bytes, name: str) -> LabelSpace:
    """The classes of a text file, named ``name`` in errors; raises SourceError."""
    try:
        lines = [line.strip() for line in data.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise SourceError(f"{name} is not UTF-8: save it as that") from None
    while lines and not lines[-1]:
        lines.pop()
    labels: list[Label] = []
    first: dict[str, int] = {}
    for number, line in enumerate(lines):
        synset, _, text = line.partition(" ")
        if not is_synset(synset):
            synset, text = line, line
        if not synset or synset in first:
            problem = f"is that of line {first[synset] + 1} again" if synset else "is empty"
            raise SourceError(f"{name}, line {number + 1}: the class {synset!r} {problem}")
        first[synset] = number
        labels.append(Label(number, synset, text.strip()))
    if not labels:
        raise SourceError(f"{name} names no class: write one a line")
    return LabelSpace(tuple(labels))
