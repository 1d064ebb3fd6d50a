"""Files that name the classes of numeric labels: the setting ``class_names`` of several kinds.

Line i of such a file, from 0, is the name of class i. A whole line is one name, commas included, so
these files are not read by ``labels.class_files``, which reads tables.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataprep.errors import DatasetError, ObjectNotFound, SourceError, SourceNotFound
from dataprep.labels import Label, LabelSpace, is_synset
from dataprep.sources.files import split_uri
from dataprep.stores import StoreOptions, open_store


def read_class_names(uri: str, options: StoreOptions | None = None) -> LabelSpace:
    """Read the names of classes from a text file or a ``labels.json``.

    In a text file, a line is the name of a class. If it begins with a WordNet ID, the ID is the
    class and the rest of the line is its text.

    Args:
        uri: the path or address of the file.
        options: how the store is reached.

    Raises:
        SourceNotFound: there is no such file.
        SourceError: it names a class twice, or cannot be read.
    """
    folder, key = split_uri(uri)
    try:
        data = open_store(folder, options).get(key)
        if key.endswith(".json"):
            return LabelSpace.from_json(data)
        lines = data.decode("utf-8-sig").rstrip().splitlines()
    except ObjectNotFound:
        raise SourceNotFound(f"no file {uri!r} of class names (class_names)") from None
    except (DatasetError, UnicodeDecodeError) as error:
        raise SourceError(f"{uri}: {error}") from None
    return label_space_of([line.strip() for line in lines], uri, "line")


def label_space_of(names: Sequence[str], title: str, noun: str) -> LabelSpace:
    """Number classes in the order of their names.

    If a name begins with a WordNet ID, the ID is the class and the rest is its text.

    Args:
        names: the name of each class, from number 0.
        title: what errors call the file or table that has the names.
        noun: what errors call one name there, such as ``line``. They count from 1.

    Raises:
        SourceError: a name is empty, or is there twice.
    """
    labels: dict[str, Label] = {}
    for number, name in enumerate(names):
        synset, _, text = name.partition(" ")
        if not is_synset(synset):
            synset, text = name, name
        if not synset or synset in labels:
            raise SourceError(
                f"{title}, {noun} {number + 1}: the class {synset!r} is empty or on a {noun} before"
            )
        labels[synset] = Label(number, synset, text.strip())
    return LabelSpace(tuple(labels.values()))
