"""Files that name the classes of numeric labels: the setting ``class_names`` of several kinds.

``labels.class_files`` reads their content; this module fetches them and translates errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataprep.errors import ConfigError, DatasetError, ObjectNotFound, SourceError, SourceNotFound
from dataprep.labels import LabelSpace
from dataprep.labels.class_files import classes_in_order, read_class_list
from dataprep.sources.files import split_uri
from dataprep.stores import StoreOptions, open_store


def read_class_names(uri: str, options: StoreOptions | None = None) -> LabelSpace:
    """Read the names of classes from a text file or a ``labels.json``.

    In a text file, line i, from 0, is the name of class i. If it begins with a WordNet ID, the ID
    is the class and the rest of the line is its text.

    Args:
        uri: the path or address of the file.
        options: how the store is reached.

    Raises:
        SourceNotFound: there is no such file.
        SourceError: the file cannot be read, or has a class twice.
    """
    folder, key = split_uri(uri)
    try:
        return read_class_list(open_store(folder, options).get(key), uri)
    except ObjectNotFound:
        raise SourceNotFound(f"no file {uri!r} of class names (class_names)") from None
    except (ConfigError, DatasetError) as error:
        raise SourceError(str(error)) from None


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
    try:
        return classes_in_order(names, title, noun)
    except ConfigError as error:
        raise SourceError(str(error)) from None
