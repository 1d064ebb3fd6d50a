"""WebDataset shards are tars with exact bytes; other readers read them, and damage is refused."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import CorruptRecord, RecordError, TruncatedRecord
from dataprep.formats import Box, RecordOptions, Sample, get_format

FORM = get_format("webdataset")
GOLDEN = Path(__file__).parents[2] / "golden"
SAMPLES = (
    Sample(
        image=b"\xff\xd8 a JPEG",
        label=7,
        number=0,
        width=4,
        height=3,
        synset=b"n01440764",
        source=b"n01440764/a.JPEG",
    ),
    Sample(
        image=b"\x89PNG another",
        label=-1,
        number=12,
        width=2,
        height=1,
        encoding="PNG",
        source="Füße/\xff\t".encode("latin-1"),
    ),
    Sample(
        image=bytes(512),
        label=1,
        number=123_456_789,
        width=1,
        height=1,
        encoding="WEBP",
        values=(1.0, 0.5, 2.0),
        boxes=(Box(0.0, 0.25, 0.5, 1.0, 3),),
    ),
)


def shard(samples: Sequence[Sample] = SAMPLES, label_offset: int = 0) -> bytes:
    """A complete shard."""
    sink = io.BytesIO()
    writer = FORM.writer(sink, RecordOptions(label_offset))
    for sample in samples:
        writer.write(sample)
    return sink.getvalue() + FORM.trailer


def tar(*members: tuple[str, bytes], **header: Any) -> bytes:
    """A tar of these members, made by Python."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for key, value in header.items():
                setattr(member, key, value)
            archive.addfile(member, io.BytesIO(content))
    return sink.getvalue()


def decoded(data: bytes) -> list[Sample]:
    """All samples of a shard."""
    samples = [FORM.decode(record.payload, RecordOptions()) for record in FORM.read(data, "shard")]
    return [replace(sample, image=bytes(sample.image)) for sample in samples]


def test_the_bytes_are_golden() -> None:
    """The bytes are those of the committed file, which Python's tarfile and GNU tar can read."""
    assert shard() == (GOLDEN / "webdataset.tar").read_bytes()
    assert decoded((GOLDEN / "webdataset.tar").read_bytes()) == [*SAMPLES]


def test_headers_are_those_of_python() -> None:
    """The headers are byte for byte those of Python's ustar with no time and no owner."""
    data, at = shard(), 0
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        for member in opened:
            assert (member.mtime, member.uid, member.gid, member.mode) == (0, 0, 0, 0o644)
            assert (member.uname, member.gname, member.type) == ("", "", tarfile.REGTYPE)
            assert data[at : at + 512] == member.tobuf(tarfile.USTAR_FORMAT)
            at = member.offset_data + (member.size + 511) // 512 * 512
    assert data[at:] == bytes(1024)


def test_members_are_named_by_the_plan() -> None:
    """Keys have nine digits; a sample without a class has no ``.cls``; JSON has sorted keys."""
    with tarfile.open(fileobj=io.BytesIO(shard(label_offset=5))) as opened:
        contents = {
            member.name: file.read()
            for member in opened
            if (file := opened.extractfile(member)) is not None
        }
    assert [*contents] == [
        *("000000000.jpg", "000000000.cls", "000000000.json"),
        *("000000012.png", "000000012.json"),
        *("123456789.webp", "123456789.cls", "123456789.json"),
    ]
    assert contents["000000000.cls"] == b"12"
    assert contents["000000000.json"] == (
        b'{"height":3,"name":"n01440764/a.JPEG","synset":"n01440764","width":4}'
    )
    for name, content in contents.items():
        if name.endswith(".json"):
            facts = json.loads(content)
            assert [*facts] == sorted(facts)
    assert json.loads(contents["123456789.json"])["values"] == [6, 0.5, 2.0]


def test_gnu_tar_lists_it(tmp_path: Path) -> None:
    """GNU tar lists the members and prints no warning."""
    (tmp_path / "shard.tar").write_bytes(shard())
    done = subprocess.run(["tar", "tf", tmp_path / "shard.tar"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == ["000000000.jpg", "000000000.cls"]


def test_a_tar_of_another_writer_is_read_if_its_samples_have_this_form() -> None:
    """Keys, folders and padding of a tar by another writer may differ."""
    data = tar(("a/b.JPG", b"image"), ("a/b.cls", b"3"), ("a/b.json", b"{}"))
    assert decoded(data) == [Sample(image=b"image", label=3)]


LONG = "x" * 120


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (tar(("a.cls", b"1"), ("a.jpg", b""), ("a.json", b"{}")), "begins with 'a.cls'"),
        (tar(("a.jpg", b""), ("a.json2", b"")), "'a.json2' follows 'a.jpg', where its .cls or"),
        (tar(("a.jpg", b""), ("a.cls", b"1"), ("b.json", b"{}")), "'b.json' follows 'a.cls'"),
        (tar(("a.jpg", b""), ("a.cls", b"1"), ("a.cls", b"1")), "where its .json belongs"),
        (tar(("a.jpg", b"")), "the end of the tar follows 'a.jpg', where its .cls or .json"),
        (tar(("a.jpg", b""), ("a.cls", b"1")), "the end of the tar follows 'a.cls', where its .js"),
        (tar(("a.jpg", b""), ("b.jpg", b"")), "'b.jpg' follows 'a.jpg', where its .cls or .json"),
        (tar(("a.jpg", b""), mtime=1.5), "a pax header at byte 0"),
        (tar((f"{LONG}.jpg", b""), mtime=0.5), "a pax header"),
        (tar(("a.jpg", b""), type=tarfile.SYMTYPE), "a member of type b'2'"),
        (bytes(600) + b"x" + bytes(511), "a block of zeros is followed by other bytes"),
    ],
)
def test_other_tars_are_refused(data: bytes, problem: str) -> None:
    """The error names file, record, byte and fault, and for whole tars a kind that reads them."""
    with pytest.raises(CorruptRecord, match=f"^x.tar: record 0 at byte 0: .*{problem}") as caught:
        list(FORM.read(data, "x.tar"))
    assert (caught.value.record, caught.value.offset) == (0, 0)


def second_record() -> int:
    """The offset of the second record of the shard."""
    return [*FORM.read(shard(), "x")][1].offset


def test_a_changed_header_is_found() -> None:
    """A change of any byte of a header is detected by the header's checksum."""
    for at in range(0, 512, 7):
        data = bytearray(shard())
        data[second_record() + at] ^= 1
        reader = FORM.read(bytes(data), "x.tar")
        next(reader)
        with pytest.raises(RecordError, match=r"x.tar: record 1 at byte \d+: .*checksum") as caught:
            next(reader)
        assert caught.value.offset == second_record()


def test_a_length_past_the_end_is_a_cut_file() -> None:
    """For a length beyond the end, such as 8 GiB, no memory is allocated."""
    data = bytearray(shard())
    data[124:135] = b"7" * 11
    data[148:156] = b"%06o\0 " % (sum(data[:148]) + 8 * 32 + sum(data[156:512]))
    with pytest.raises(TruncatedRecord, match="record 0 at byte 0: the 8589934591 bytes of"):
        list(FORM.read(bytes(data), "x.tar"))


def test_a_cut_end_marker_is_found() -> None:
    """One block of zeros is only half of the end marker, which is reported."""
    with pytest.raises(TruncatedRecord, match=r"record 3 at byte .* inside its end marker"):
        list(FORM.read(shard()[:-512], "x.tar"))


@pytest.mark.parametrize(
    ("label", "facts"),
    [
        (b"one", b"{}"),
        (b"", b"{}"),
        (b"9" * 5000, b"{}"),
        (b"1", b"[]"),
        (b"1", b""),
        (b"1", b"null"),
        (b"1", b"{\xff}"),
        (b"1", b'{"width": true}'),
        (b"1", b'{"height": 2.5}'),
        (b"1", b'{"synset": null}'),
        (b"1", b'{"values": ["1"]}'),
        (b"1", b"{"),
        (b"1", b"[" * 100_000),
        (b"1", b'{"width": "1"}'),
        (b"1", b'{"name": 1}'),
        (b"1", b'{"name": "\\ud800"}'),
        (b"1", b'{"values": {}}'),
        (b"1", b'{"values": [1%s]}' % (b"0" * 400)),
        (b"1", b'{"boxes": 1}'),
        (b"1", b'{"boxes": [[1, 2, 3, 4]]}'),
        (b"1", b'{"boxes": [[1, 2, 3, "4", 5]]}'),
    ],
)
def test_hostile_content_is_corrupt(label: bytes, facts: bytes) -> None:
    """Hostile content raises one kind of error."""
    data = tar(("a.jpg", b""), ("a.cls", label), ("a.json", facts))
    with pytest.raises(CorruptRecord):
        decoded(data)


def test_facts_of_any_type_are_shown() -> None:
    """Numbers, texts and values of all other JSON types are shown."""
    facts = {"n": 2**70, "i": 3, "f": 0.5, "t": "x", "l": [1, {}], "z": None}
    data = tar(("a.jpg", b"image"), ("a.json", json.dumps(facts).encode()))
    (record,) = FORM.read(data, "x")
    shown_fields = {name: feature.values for name, feature in FORM.fields(record.payload).items()}
    assert shown_fields["i"] == (3,)
    assert shown_fields["f"] == (0.5,)
    assert [shown_fields[name] for name in "tlz"] == [(b"x",), (b"[1, {}]",), (b"null",)]
    assert "label" not in shown_fields


@pytest.mark.parametrize("with_class", [True, False])
def test_facts_do_not_replace_members(with_class: bool) -> None:
    """Facts with the names of the image or the label member are shown under another name."""
    facts = {"image": "https://example.org/a.jpg", "key": 5, "label": 9, "caption": "a cat"}
    label = [("5.cls", b"3")] if with_class else []
    data = tar(("5.jpg", b"\xff\xd8 a JPEG"), *label, ("5.json", json.dumps(facts).encode()))
    (record,) = FORM.read(data, "shard")
    fields = FORM.fields(record.payload)
    shown_fields: dict[str, list[Any]] = {
        name: list(field.values) for name, field in fields.items()
    }
    assert [bytes(image) for image in shown_fields["image"]] == [b"\xff\xd8 a JPEG"]
    assert shown_fields["key"] == [b"5"]
    assert shown_fields.get("label") == ([3] if with_class else None)
    assert shown_fields["json/label"] == [9]
    assert shown_fields["json/image"] == [b"https://example.org/a.jpg"]
    assert shown_fields["caption"] == [b"a cat"]


def test_numbers_that_json_lacks_are_refused() -> None:
    """The writer refuses numbers that JSON lacks, with the number of the sample."""
    with pytest.raises(RecordError, match=r"sample 4: .* finite"):
        shard([replace(SAMPLES[0], number=4, values=(1.0, float("nan")))])
