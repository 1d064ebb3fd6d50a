"""PURE. What stands below an image on a contact sheet."""

from __future__ import annotations

from collections.abc import Sequence

from dataprep.inspection.record import Record
from dataprep.labels import LabelSpace
from dataprep.names import unescape

_LABELS = ("image/class/label", "label")
_SYNSETS = ("image/class/synset",)
_TEXTS = ("image/class/text",)
_FILENAMES = ("image/filename", "file_name")


def caption(record: Record, labels: LabelSpace | None) -> tuple[str, ...]:
    """Label and synset, the class in words, and the file's name: a line each, where known.

    Labels count from 0 where the record is one of ours, and are as stored where it is not.
    """
    name = str(record.known.get("source", "")) or _field(record, _FILENAMES)
    label = str(record.known.get("label", "")) or _field(record, _LABELS)
    synset = str(record.known.get("synset", "")) or _field(record, _SYNSETS)
    text = _text(record, labels) or _field(record, _TEXTS)
    lines = (f"{label}  {unescape(synset)}".strip(), text, unescape(name).rpartition("/")[2])
    return tuple(line for line in lines if line)


def _text(record: Record, labels: LabelSpace | None) -> str:
    label = record.known.get("label", -1)
    if labels is None or not 0 <= label < len(labels.labels):
        return ""
    found = labels.labels[label]
    return "" if found.text == found.synset else found.text


def _field(record: Record, names: Sequence[str]) -> str:
    shown = (field.shown for field in record.fields if field.name in names)
    return next(shown, "").strip("'")
