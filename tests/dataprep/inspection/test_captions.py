"""What stands below an image."""

from __future__ import annotations

from typing import Any

from dataprep.inspection.captions import caption
from dataprep.inspection.record import Field, Record
from dataprep.labels import Label, LabelSpace

LABELS = LabelSpace((Label(0, "n01440764", "tench, Tinca tinca"), Label(1, "cat", "cat")))


def record(known: dict[str, Any], *fields: Field) -> Record:
    """A record of which this is known."""
    return Record("x", "tfrecord", 0, 0, 9, -1, known, fields, None, "", b"")


def test_ours() -> None:
    """Label and synset, the class in words, and the base name."""
    known = {"label": 0, "synset": "n01440764", "source": "n01440764/a.JPEG"}
    assert caption(record(known), LABELS) == (
        "0  n01440764",
        "tench, Tinca tinca",
        "a.JPEG",
    )


def test_a_name_is_not_told_twice() -> None:
    """Where the text of a class is its name, it stands once."""
    known = {"label": 1, "synset": "cat", "source": "cat/a.JPEG"}
    assert caption(record(known), LABELS) == ("1  cat", "a.JPEG")


def test_anybodys() -> None:
    """What the record itself says, where nothing else is known."""
    fields = (
        Field("image/class/label", "int64", 1, "441"),
        Field("image/class/synset", "bytes", 1, "'n02823750'"),
        Field("image/class/text", "bytes", 1, "'beer glass'"),
        Field("image/filename", "bytes", 1, "'b.JPEG'"),
    )
    assert caption(record({}, *fields), None) == ("441  n02823750", "beer glass", "b.JPEG")
    assert caption(record({}, Field("label", "float32", 1, "3")), None) == ("3",)
    assert caption(record({}), None) == ()


def test_a_label_of_no_class() -> None:
    """A label that labels.json does not know is told as a number."""
    assert caption(record({"label": 7}), LABELS) == ("7",)
