"""What was found, for people."""

from __future__ import annotations

from dataprep.inspection.outputs import Unfinished
from dataprep.inspection.table import Line, ShardTable
from dataprep.inspection.words import summary_text, table_text


def table(*lines: Line, fault: str | None = None, ours: bool = False) -> ShardTable:
    """A table of these lines."""
    return ShardTable("a/b\n.rec", "recordio", 1_500_000, ours, lines, fault, None, 4096, 3)


def test_columns_stand_below_their_headings() -> None:
    """A line a record, numbers to the right, what is not known as a dash."""
    text = table_text(
        table(
            Line(0, 0, 1200, (7,), "n01440764", "a.JPEG", 500, 375, "JPEG"),
            Line(1, 1200, 9, (0.5, 2), "", "", 0, 0, "", "not an image record"),
        )
    )
    head, headings, first, second, foot = text.split("\n")
    assert head.startswith("a/b\\x0a.rec: recordio, 2 records, 1.5 MB; labels as they stand")
    assert first.index("1,200") + 5 == headings.index("length") + 6
    assert first.split() == [
        "0",
        "0",
        "1,200",
        "7",
        "n01440764",
        "a.JPEG",
        "500",
        "x",
        "375",
        "JPEG",
    ]
    assert second.split()[3:6] == ["0.5,2", "-", "-"]
    assert second.endswith("not an image record")
    assert foot.startswith("from 3 range requests, 4,096 of 1,500,000 bytes read")


def test_a_fault_comes_last() -> None:
    """What is wrong is the last line."""
    text = table_text(table(fault="x: record 0 at byte 0: no magic", ours=True))
    assert text.split("\n")[-1] == "fault: x: record 0 at byte 0: no magic"
    assert "labels count from 0" in text
    assert "from its receipt and 3 range requests" in text


def test_unfinished() -> None:
    """A split that is not complete is told in a line."""
    text = summary_text([Unfinished("train", "3 of 9 shards have receipts")])
    assert text == "train: not complete: 3 of 9 shards have receipts"
