"""Every sample of the plan in the receipts, once; every class with as many records as it should."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from crc32c import crc32c

from dataprep.formats.tfrecord import masked_crc32c
from dataprep.manifest import Receipt
from dataprep.verification import Depth, Fault

if TYPE_CHECKING:
    from tests.dataprep.verification.conftest import Output

RECEIPT = "receipts/train-{:05}-of-00003.json"
DEPTHS: tuple[Depth, ...] = ("quick", "full", "deep")


def account_faults(output: Output, depth: Depth = "quick") -> list[Fault]:
    """What is said of receipts; what manifest and table say to it is theirs to tell."""
    return [fault for fault in output.faults(depth) if fault.key.startswith("receipts/")]


def column(name: str, value: Callable[[list[Any]], None]) -> Callable[[Any], None]:
    """An edit of one column of a receipt's samples."""

    def edit(content: Any) -> None:
        value(content["samples"][name])

    return edit


def drop_row(number: int) -> Callable[[Any], None]:
    """Take one sample out of a receipt, its records too."""

    def edit(content: Any) -> None:
        for name, values in content["samples"].items():
            for rows in values.values() if name == "records" else [values]:
                del rows[number]

    return edit


def repeat_row(number: int) -> Callable[[Any], None]:
    """Put one sample of a receipt at its end once more."""

    def edit(content: Any) -> None:
        for name, values in content["samples"].items():
            for rows in values.values() if name == "records" else [values]:
                rows.append(rows[number])

    return edit


def source(output: Output, shard: int, row: int) -> str:
    """The name of a sample in a receipt."""
    return output.receipt(shard).rows[row].source


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_sample_is_missing(output: Output, depth: Depth) -> None:
    """A sample that the plan has and no receipt is named, at every depth."""
    name = source(output, 1, 4)
    output.change_json(RECEIPT.format(1), drop_row(4))
    said = [(fault.key, fault.what) for fault in account_faults(output, depth)]
    assert (RECEIPT.format(1), f"{name} is in the plan of this shard and in no receipt") in said


def test_its_class_lacks_a_record(output: Output) -> None:
    """The class of a sample that no receipt has is named, with how many it should have."""
    row = output.receipt(1).rows[4]
    count = sum(r.label == row.label for i in range(3) for r in output.receipt(i).rows)
    output.change_json(RECEIPT.format(1), drop_row(4))
    said = [fault.what for fault in output.faults("quick") if fault.key == "train.plan.parquet"]
    assert said == [
        f"class {row.label} ({row.synset}) has {count - 1} records in {form}, "
        f"the source {count} samples"
        for form in ("tfrecord", "recordio")
    ]


def test_a_sample_is_there_twice(output: Output) -> None:
    """A sample that stands twice in a receipt is named."""
    name = source(output, 1, 4)
    output.change_json(RECEIPT.format(1), repeat_row(4))
    assert f"{name} is there although {RECEIPT.format(1)} has it: twice" in [
        fault.what for fault in account_faults(output)
    ]


def test_a_sample_of_another_shard(output: Output) -> None:
    """A sample that stands in two receipts is named, with both."""
    mine, theirs = source(output, 1, 4), source(output, 2, 0)
    output.change_json(
        RECEIPT.format(1), column("source", lambda names: names.__setitem__(4, theirs))
    )
    said = {(fault.key, fault.what) for fault in account_faults(output)}
    twice = f"{theirs} is there although {RECEIPT.format(2)} has it: twice"
    assert said >= {
        (RECEIPT.format(1), f"{mine} is in the plan of this shard and in no receipt"),
        (RECEIPT.format(1), twice),
    }


def test_two_samples_exchanged_between_shards(output: Output) -> None:
    """Samples that stand in each other's shard are named, with where they are."""
    mine, theirs = source(output, 1, 4), source(output, 2, 0)
    output.change_json(
        RECEIPT.format(1), column("source", lambda names: names.__setitem__(4, theirs))
    )
    output.change_json(RECEIPT.format(2), column("source", lambda n: n.__setitem__(0, mine)))
    said = {(fault.key, fault.what) for fault in account_faults(output)}
    assert said >= {
        (RECEIPT.format(1), f"{mine} is in {RECEIPT.format(2)} instead"),
        (RECEIPT.format(2), f"{theirs} is in {RECEIPT.format(1)} instead"),
    }


def test_two_samples_exchanged_within_a_shard(output: Output) -> None:
    """Two names exchanged within a receipt are found, although none is missing."""

    def exchange(names: list[str]) -> None:
        names[2], names[5] = names[5], names[2]

    output.change_json(RECEIPT.format(0), column("source", exchange))
    (fault,) = account_faults(output)
    assert fault.key == RECEIPT.format(0)
    assert fault.what == "its samples stand in another order than the plan's, from 2 on"


def test_a_stranger(output: Output) -> None:
    """A name that the plan does not have is named."""
    output.change_json(RECEIPT.format(0), column("source", lambda n: n.__setitem__(2, "n0/x.JPEG")))
    assert "n0/x.JPEG is not in train.plan.parquet" in [f.what for f in account_faults(output)]


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("label", 5, "has label 5, the plan says "),
        ("synset", "n00000000", "is of 'n00000000', which labels.json does not call "),
        ("number", 7777, "is number 7,777 of "),
        ("source_bytes", 7, " of 7 bytes, the plan says number "),
    ],
)
def test_a_changed_row(output: Output, depth: Depth, name: str, value: Any, said: str) -> None:
    """A row whose label, class, number or size is not the plan's is named."""
    rows = output.receipt(0).rows
    number = next(i for i, row in enumerate(rows) if row.label != 5)
    output.change_json(
        RECEIPT.format(0), column(name, lambda values: values.__setitem__(number, value))
    )
    found = [fault.what for fault in account_faults(output, depth)]
    assert any(what.startswith(rows[number].source) and said in what for what in found)


def test_the_number_of_records(output: Output) -> None:
    """A receipt that counts other records than it has places for is named."""
    count = len(output.receipt(0).rows)
    output.change_json(
        RECEIPT.format(0), lambda content: content["formats"]["recordio"].update(records=count + 1)
    )
    assert (
        f"{count} samples written, {count + 1} records in recordio, {count} with their place"
        in [fault.what for fault in account_faults(output)]
    )


def test_many_are_not_all_listed(output: Output) -> None:
    """Of many differences some are told, and how many more there are."""
    output.change_json(
        RECEIPT.format(0),
        column("source", lambda names: names.__setitem__(slice(None), [f"{n}x" for n in names])),
    )
    faults = [f for f in output.faults("quick") if f.key.startswith(("receipts/", "train.plan"))]
    assert len(faults) <= 21
    more = 2 * len(output.receipt(0).rows) - 20
    assert faults[-1].what.startswith(f"and {more} more faults between plan and receipts")


class TestRecordsOfOtherSamples:
    """Records whose checksums are all right, and that are not those of their rows."""

    def relabel(self, output: Output, label: int) -> tuple[str, int, int]:
        """Change the label within a TFRecord, and every checksum of it; its key and place."""
        key, number = "tfrecord/train-00001-of-00003", 3
        offset, length = output.place("tfrecord", 1, number)
        data = bytearray(output.store.get(key))
        record = data[offset : offset + length]
        at = record.index(b"image/class/label") + len(b"image/class/label") + 6
        assert record[at] == output.receipt(1).rows[number].label + 1
        record[at] = label + 1
        record[-4:] = masked_crc32c(bytes(record[12:-4])).to_bytes(4, "little")
        data[offset : offset + length] = record
        output.store.put(key, data)
        checksum = crc32c(bytes(record))
        output.change_json(RECEIPT.format(1), lambda c: _set_crc(c, number, checksum))
        return key, number, offset

    def test_its_label(self, output: Output) -> None:
        """A record with another label is named, and so are the classes that differ."""
        was = output.receipt(1).rows[3].label
        key, number, offset = self.relabel(output, (was + 1) % 6)
        faults = output.faults("full")
        assert any(
            (fault.key, fault.record, fault.offset) == (key, number, offset)
            and f"label {(was + 1) % 6}, its receipt says {was}" in fault.what
            for fault in faults
        )
        classes = [fault.what for fault in faults if fault.key == "train.plan.parquet"]
        assert len(classes) == 2
        for label in (was, (was + 1) % 6):
            assert any(what.startswith(f"class {label} (n") for what in classes)

    def test_the_receipt_alone_does_not_show_it(self, output: Output) -> None:
        """--quick reads no records: it takes the receipts' word for their labels."""
        was = output.receipt(1).rows[3].label
        key, _, _ = self.relabel(output, (was + 1) % 6)
        assert not [
            f
            for f in output.faults("quick")
            if f.key in (key, "train.plan.parquet")
            if "class" in f.what or "label" in f.what
        ]

    def test_two_exchanged_with_their_checksums(self, output: Output) -> None:
        """Two records exchanged, checksums and places too, are of the wrong names and numbers."""

        def exchange(content: Any) -> None:
            for places in content["samples"]["records"].values():
                places[0], places[1] = places[1], places[0]

        receipt = output.receipt(0)
        output.change_json(RECEIPT.format(0), exchange)
        # The rows now point at each other's records.
        for name, key in (
            ("tfrecord", "tfrecord/train-00000-of-00003"),
            ("recordio", "recordio/train-00000-of-00003.rec"),
        ):
            self.swap_bytes(output, key, receipt, name)
        said = [fault.what for fault in output.faults("full") if fault.record in (0, 1)]
        assert any("its id is " in what for what in said)
        assert any("it is of b'" in what for what in said)

    def swap_bytes(self, output: Output, key: str, receipt: Receipt, name: str) -> None:
        """Write the first two records in the other order, and their places in the receipt."""
        (a, length_a, crc_a), (b, length_b, crc_b) = (
            (row.records or {})[name] for row in receipt.rows[:2]
        )
        data = output.store.get(key)
        output.store.put(
            key, data[b : b + length_b] + data[a : a + length_a] + data[b + length_b :]
        )

        def places(content: Any) -> None:
            content["samples"]["records"][name][0] = [0, length_b, crc_b]
            content["samples"]["records"][name][1] = [length_b, length_a, crc_a]

        output.change_json(RECEIPT.format(0), places)


def _set_crc(content: Any, number: int, checksum: int) -> None:
    content["samples"]["records"]["tfrecord"][number][2] = checksum


def test_as_json(output: Output) -> None:
    """A verdict with faults and duplicates can be told as JSON."""
    output.change_json(RECEIPT.format(1), drop_row(4))
    found = json.loads(json.dumps(output.verify("quick").as_dict()))
    assert found["ok"] is False
    assert found["duplicates"] == {
        "split": "train",
        "against": None,
        "pairs": 0,
        "samples": 0,
        "groups": [],
    }
