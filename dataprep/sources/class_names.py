"""Read the files that name the classes of numeric labels (the setting ``class_names``).

This module fetches the files and translates errors. ``labels.class_files`` parses their content.
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

    In a text file, line i, counted from 0, has the name of class i. If the line begins with a
    WordNet ID, the ID is the class, and the rest of the line is its description.

    Args:
        uri: the path or address of the file.
        options: how the store is reached.

    Raises:
        ConfigError: the address names no file.
        SourceNotFound: there is no such file.
        SourceError: the file does not have the expected form, or contains a class twice.
        StoreError: the file cannot be read.
    """
    folder, key = split_uri(uri)
    try:
        return read_class_list(open_store(folder, options).get(key), uri)
    except ObjectNotFound:
        raise SourceNotFound(f"no file {uri!r} of class names (class_names)") from None
    except (ConfigError, DatasetError) as error:
        raise SourceError(str(error)) from None


def label_space_of(names: Sequence[str], title: str, noun: str) -> LabelSpace:
    """Number classes in the given order, from 0.

    If a name begins with a WordNet ID, the ID is the class, and the rest is its description.

    Args:
        names: the name of each class, or its WordNet ID and description.
        title: the file or table with the names, as errors call it.
        noun: the unit that has one name, such as ``line``. Errors give its number, from 1.

    Raises:
        SourceError: a name is empty, is not valid Unicode, or occurs twice.
    """
    try:
        return classes_in_order(names, title, noun)
    except ConfigError as error:
        raise SourceError(str(error)) from None
