"""``verify`` finds every kind of damage with its position, and its advice repairs the damage."""

from __future__ import annotations

import io
import json
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataprep
from dataprep.checking import Depth, verify
from dataprep.errors import DatasetChanged, ManifestMissing
from dataprep.stores import ObjectInfo, StoreOptions
from dataprep.stores.memory import MemoryStore
from dataprep.stores.s3 import S3Store
from iobench.servers.moto_server import MotoServer
from tests.commandline import comparable, objects
from tests.dataprep.checking.conftest import (
    DEPTHS,
    MANIFEST,
    PLAN,
    RECEIPT,
    SHARDS,
    TABLE,
    Output,
    command,
    flip,
    job,
)
from tests.dataprep.conftest import Calls

SHARD = SHARDS["tfrecord"].format(1)
FOLDERS = tuple(f"{form}/" for form in SHARDS)
INDEX = "index/recordio/train-00000-of-00003.idx"
Edit = Callable[[Any], object]
CHANGED: list[tuple[str, Edit]] = [
    ("samples", lambda c: c["samples"].update(written=7)),
    ("samples", lambda c: c["samples"].update(total=119)),
    ("formats", lambda c: c["formats"]["tfrecord"].update(records=7)),
    ("formats", lambda c: c["formats"]["tfrecord"].update(label_offset=0)),
    ("formats", lambda c: c["formats"]["tfrecord"]["shards"][1].update(sha256="0" * 64)),
    ("formats", lambda c: c["formats"]["recordio"]["shards"].pop()),
    ("formats", lambda c: c["formats"].pop("recordio")),
    ("warnings", lambda c: c["warnings"].update(cmyk=7)),
    ("config", lambda c: c["config"].update(seed=7)),
    ("fingerprint", lambda c: c.update(fingerprint="0" * 64)),
    ("versions", lambda c: c["versions"].update(simplejpeg="0.1")),
    ("split", lambda c: c.update(split="test")),
]
LABELS: list[Edit] = [
    lambda c: c["classes"][2].update(text="other"),
    lambda c: c["classes"].reverse(),
    lambda c: c["classes"].pop(),
]
RESTORE = ": missing, .*restore it, or use --overwrite"


def recompress(output: Output) -> None:
    """Write the rows of the table of samples again, with other bytes."""
    sink = io.BytesIO()
    rows = pq.read_table(io.BytesIO(output.store.get(TABLE)))
    pq.write_table(rows, sink, compression="snappy")
    output.store.put(TABLE, sink.getvalue())


def remove(output: Output, key: str) -> None:
    """Delete an object."""
    output.store.delete(key)


def copy(output: Output, key: str, to: str) -> None:
    """Store an object under another key."""
    output.store.put(to, output.store.get(key))


def widen(content: Any) -> None:
    """Change the width of one sample in a receipt."""
    content["samples"]["source_width"][4] += 1


MISSING = [
    *(SHARD, SHARDS["recordio"].format(2), INDEX, "index/tfrecord/train-00000-of-00003.idx"),
    *("index/recordio/train-00001-of-00003.lst", RECEIPT.format(1), MANIFEST, TABLE),
]
Fault = tuple[str, Callable[[Output], object], str]
"""The depth of the verification, the damage, and a pattern of the message."""


def edited(key: str, edit: Edit) -> Callable[[Output], object]:
    """A damage that edits the JSON of an object."""
    return partial(Output.change_json, key=key, edit=edit)


def faults_of_removed_objects() -> Iterator[Fault]:
    """Each object removed, at each depth: objects that a job makes again, and those to restore."""
    for key in MISSING:
        for depth in DEPTHS:
            yield depth, partial(remove, key=key), f"{key}: missing((?!restore).)*$"
    for key in (PLAN, "labels.json"):
        for depth in DEPTHS:
            yield depth, partial(remove, key=key), key + RESTORE


def faults_of_edited_manifests() -> Iterator[Fault]:
    """Each part of the manifest edited, at each depth."""
    for part, edit in CHANGED:
        for depth in DEPTHS:
            message = f"{MANIFEST}: its {part!r} does not match the receipts$"
            yield depth, edited(MANIFEST, edit), message


FAULTS: list[Fault] = [
    *faults_of_removed_objects(),
    *faults_of_edited_manifests(),
    *(("quick", edited("labels.json", edit), "labels.json" + RESTORE) for edit in LABELS),
    ("quick", recompress, f"{TABLE}: checksum does not match the manifest$"),
    (
        "quick",
        edited(RECEIPT.format(2), widen),
        f"{RECEIPT.format(2)}: its samples differ from those in {TABLE}$",
    ),
    (
        "quick",
        partial(copy, key=RECEIPT.format(1), to=RECEIPT.format(0)),
        f"{RECEIPT.format(0)}: belongs to another job or shard$",
    ),
    (
        "quick",
        edited(RECEIPT.format(0), lambda c: c.update(fingerprint="0" * 64)),
        f"{RECEIPT.format(0)}: belongs to another job or shard$",
    ),
    (
        "quick",
        edited("train.job.json", lambda c: c.update(shards=2)),
        "train.job.json: its content does not match its fingerprint",
    ),
]


@pytest.fixture(scope="session")
def on_disk(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small output on disk. Read only."""
    folder = tmp_path_factory.mktemp("verify") / "out"
    content = {"source": str(tree), "output": str(folder), "image": {"size": 96}}
    dataprep.shard(dataprep.ShardConfig.model_validate({**content, "dask": {"processes": False}}))
    return folder


class TestClean:
    @pytest.mark.parametrize("depth", DEPTHS)
    def test_no_faults(self, output: Output, on_disk: Path, depth: Depth) -> None:
        """A valid output has no faults at any depth, and everything in it is counted."""
        verification = output.verify(depth)
        assert (verification.ok, verification.faults, verification.repair) == (True, (), "")
        assert (
            verification.split,
            verification.depth,
            verification.shards,
            verification.samples,
        ) == ("train", depth, 3, 120)
        shards = [info for info in output.store.list() if info.key.startswith(FOLDERS)]
        assert verification.bytes == sum(info.bytes for info in shards)
        assert verify(on_disk, depth=depth, workers=3)[0].faults == ()

    def test_what_is_read(self, output: Output, calls: Calls) -> None:
        """--quick reads no shard and no index, and plain verify reads each shard once."""
        read = calls(MemoryStore, "get")
        assert output.verify("quick").ok
        assert not [key for _, key in read if key.startswith((*FOLDERS, "index/"))]
        read.clear()
        assert output.verify().ok
        shards = [key for _, key in read if key.startswith(FOLDERS)]
        assert sorted(shards) == sorted(SHARDS[form].format(i) for form in SHARDS for i in range(3))


class TestRepair:
    @pytest.mark.slow
    @pytest.mark.parametrize("depth", ["quick", "full"])
    @pytest.mark.parametrize("damage", ["bit", "cut", "empty"])
    @pytest.mark.parametrize("key", [SHARD, INDEX, RECEIPT.format(2), TABLE, MANIFEST])
    def test_what_is_advised_repairs(
        self,
        tree: Path,
        clean: Mapping[str, bytes],
        output: Output,
        key: str,
        damage: str,
        depth: Depth,
    ) -> None:
        """Deleting the named objects and running the job again gives exactly the same output."""
        data = bytearray(output.store.get(key))
        if damage == "bit":
            data[len(data) // 2] ^= 1
        else:
            del data[len(data) // 2 if damage == "cut" else 0 :]
        output.store.put(key, data)
        verification = output.verify(depth)
        assert verification.faults
        assert verification.repair in str(verification)
        assert verification.repair.endswith("run the same dataprep shard again")
        for fault in verification.faults:
            assert fault.remedy is not None
            if fault.remedy:
                assert fault.remedy in verification.repair
                output.store.delete(fault.remedy)
        dataprep.shard(job(tree, output.store))
        assert output.verify().ok
        assert comparable(objects(output.store)) == comparable(clean)


class TestObjects:
    @pytest.mark.parametrize(("depth", "damage", "message"), FAULTS)
    def test_the_one_fault_is_named(
        self, output: Output, depth: Depth, damage: Callable[[Output], object], message: str
    ) -> None:
        """A missing, changed or additional object, or one of another job, is the only fault."""
        damage(output)
        (fault,) = output.faults(depth)
        assert re.match(message, str(fault))

    def test_a_table_of_other_bytes(self, output: Output) -> None:
        """Equal rows with other bytes are no fault if an old manifest has no checksum."""
        recompress(output)
        assert not output.verify("quick").ok
        output.change_json(MANIFEST, lambda content: content.pop("table"))
        assert output.verify().ok

    def test_strays(self, output: Output) -> None:
        """All objects to delete are named.

        Objects outside the folders of the split do not count.
        """
        strays = [
            *(f"tfrecord/train-0000{i}-of-00009" for i in range(8)),
            "tfrecord/train-00000-of-00003.bak",
            "recordio/train-00000-of-00012.rec",
            "index/tfrecord/train-00007-of-00008.idx",
            "receipts/train-00000-of-00004.json",
        ]
        for key in [*strays, "notes.txt"]:
            output.store.put(key, b"stray")
        verification = output.verify("quick")
        assert {str(fault) for fault in verification.faults} == {
            f"{key}: does not belong to this data set" for key in strays
        }
        assert all(key in verification.repair for key in strays)

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": 1}', b'{"schema": 99}'])
    @pytest.mark.parametrize("key", [MANIFEST, RECEIPT.format(2), "labels.json"])
    def test_no_json(self, output: Output, key: str, content: bytes) -> None:
        """An unreadable file is reported. For a newer schema, the advice is not to run again."""
        output.store.put(key, content)
        (fault,) = output.faults("quick")
        newer = b"99" in content and key != "labels.json"
        # The job does not write labels.json again: it must be restored.
        assert (fault.key, fault.remedy is None) == (key, newer or key == "labels.json")
        assert ("upgrade" in fault.what) is newer

    @pytest.mark.parametrize("column", ["label", "status", "tfrecord_offset", "shard", "source"])
    def test_a_changed_table(self, output: Output, column: str) -> None:
        """A changed table of samples is reported."""
        table = pq.read_table(io.BytesIO(output.store.get(TABLE)))
        column_index, kind = table.schema.get_field_index(column), table.schema.field(column).type
        values = table[column].to_pylist()
        values = ["failed", *values[1:]] if column == "status" else [*values[1:], values[0]]
        sink = io.BytesIO()
        pq.write_table(table.set_column(column_index, column, pa.array(values, kind)), sink)
        output.store.put(TABLE, sink.getvalue())
        assert [str(f) for f in output.faults("quick")] == [f"{TABLE}: does not match the receipts"]


def test_a_split_that_is_made_anew_meanwhile_has_no_result(
    changeable: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A split that is replaced meanwhile has no result: its faults would mix two outputs."""
    listed, years = MemoryStore.list, iter(range(2000, 2100))

    def changed_shards(store: MemoryStore, prefix: str = "") -> Iterator[ObjectInfo]:
        content = json.loads(store.get(MANIFEST))
        content["created"] = f"{next(years)}-01-01T00:00:00+00:00"
        store.put(MANIFEST, json.dumps(content).encode())
        return listed(store, prefix)

    monkeypatch.setattr(MemoryStore, "list", changed_shards)
    with pytest.raises(DatasetChanged):
        dataprep.verify(changeable.uri, depth="quick")


class TestAccounts:
    """Every sample of the plan is in the receipts once, as the plan has it."""

    def faults(self, output: Output, shard: int, edit: Edit) -> list[str]:
        """The faults of a receipt at every depth, without their location."""
        output.change_json(RECEIPT.format(shard), edit)
        key = RECEIPT.format(shard)
        lines = [[f.what for f in output.faults(depth) if f.key == key] for depth in DEPTHS]
        assert lines[0] == lines[1] == lines[2] != []
        return lines[0]

    @pytest.mark.parametrize(("times", "row"), [(0, 4), (2, 4), (0, 0), (2, -1)])
    def test_missing_or_twice(self, output: Output, times: int, row: int) -> None:
        """A sample that is missing in a receipt, or that occurs twice, is named."""
        name = output.receipt(1).rows[row].source

        def edit(content: Any) -> None:
            samples = content["samples"]
            records = samples.pop("records")
            for values in (*records.values(), *samples.values()):
                value = values.pop(row)
                values += [value] * times
            samples["records"] = records

        lines = self.faults(output, 1, edit)
        (line,) = [line for line in lines if line.startswith(f"{name} with number ")]
        assert line.endswith(f" is {times} times in it, 1 times in the plan")

    def test_in_another_shard(self, output: Output) -> None:
        """A sample that is in the receipt of another shard is named in both."""
        source_in_shard, source_in_other_shard = (
            output.receipt(shard).rows[4].source for shard in (1, 2)
        )
        lines = self.faults(
            output, 1, lambda c: c["samples"]["source"].__setitem__(4, source_in_other_shard)
        )
        for name, times in (
            (source_in_shard, "0 times in it, 1"),
            (source_in_other_shard, "1 times in it, 0"),
        ):
            assert any(name in line and f" is {times} times in the plan" in line for line in lines)

    def test_exchanged(self, output: Output) -> None:
        """Two exchanged samples of a receipt are named, although none is missing."""
        names = [row.source for row in output.receipt(0).rows]

        def edit(content: Any) -> None:
            column = content["samples"]["source"]
            column[2], column[5] = column[5], column[2]

        lines = self.faults(output, 0, edit)
        for i in (2, 5):
            assert sum(f"{names[i]} with number " in line for line in lines) == 2

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("label", 5, "label 5 and class"),
            ("synset", "n00000000", "class n00000000 is 1 times in it"),
            ("number", 7777, "with number 7777, "),
        ],
    )
    def test_a_changed_row(self, output: Output, name: str, value: Any, message: str) -> None:
        """A row whose label, class or number differs from the plan is named."""
        rows = output.receipt(0).rows
        number = next(i for i, row in enumerate(rows) if row.label != 5)
        faults = self.faults(output, 0, lambda c: c["samples"][name].__setitem__(number, value))
        assert any(rows[number].source in fault and message in fault for fault in faults)

    @pytest.mark.parametrize(
        "edit",
        [
            lambda c: c["formats"]["recordio"].update(records=99),
            lambda c: c["samples"]["status"].__setitem__(3, "failed"),
            lambda c: c["samples"]["records"]["recordio"].__setitem__(3, None),
        ],
    )
    def test_the_number_of_records(self, output: Output, edit: Edit) -> None:
        """A receipt whose number of records differs from its written samples is reported."""
        output.store.delete(MANIFEST)
        assert any("samples written, " in fault for fault in self.faults(output, 0, edit))

    def test_many_faults(self, output: Output) -> None:
        """A receipt with many faults is reported with twenty of them."""
        count = len(output.receipt(0).rows)
        lines = self.faults(
            output, 0, lambda c: c["samples"].update(source=[f"x{i}" for i in range(count)])
        )
        assert sum(" times in the plan" in line for line in lines) == 20


class TestCommand:
    @pytest.mark.parametrize(
        ("depth", "message"),
        [
            ("--quick", "; shards were not read"),
            ("--workers=3", ""),
            ("--deep", "; every image was decoded"),
        ],
    )
    def test_clean(self, output: Output, depth: str, message: str) -> None:
        """A valid output ends with 0 and one line that says what was checked."""
        size = output.verify("quick").bytes / 1e6
        line = f"train: no faults in 3 shards (120 samples, {size:.1f} MB){message}\n"
        assert command(output.store.uri, depth) == (0, line, "")

    def test_damaged(self, output: Output) -> None:
        """A damaged output ends with 1. The faults and the remedy are on stdout, or in the JSON."""
        key = SHARDS["recordio"].format(0)
        offset, _ = output.location_of("recordio", 0, 2)
        output.change(key, flip(offset + 100))
        code, out, err = command(output.store.uri)
        assert (code, err) == (1, "")
        assert out.splitlines()[0].startswith("train: 1 fault in 3 shards (120 samples, ")
        assert out.splitlines()[1:] == [
            f"  {key}, record 2, byte {offset}: checksum does not match its receipt",
            f"  To repair: delete {key} and run the same dataprep shard again.",
        ]
        code, out, _ = command(output.store.uri, "--json")
        (split,) = json.loads(out)["splits"]
        assert (code, split["ok"], split["split"]) == (1, False, "train")
        assert split["mending"] == f"delete {key} and run the same dataprep shard again"
        assert split["faults"] == [
            {
                "key": key,
                "what": "checksum does not match its receipt",
                "record": 2,
                "offset": offset,
                "remedy": key,
            }
        ]

    def test_a_hostile_name(self, on_disk: Path, tmp_path: Path) -> None:
        """Names with control characters are printed escaped."""
        folder = shutil.copytree(on_disk, tmp_path / "out")
        (folder / "tfrecord/train-00000-of-00009.\x1b[31m\udcff").write_bytes(b"stray")
        code, out, _ = command(folder, "--quick")
        assert code == 1
        assert "\\x1b[31m" in out
        assert "\x1b" not in out

    @pytest.mark.parametrize("kind", ["missing", "empty", "other"])
    def test_nothing(self, tmp_path: Path, kind: str) -> None:
        """Without an output the command ends with 2 and one line. The library raises an error."""
        folder = tmp_path / "out"
        if kind != "missing":
            folder.mkdir()
        if kind == "other":
            (folder / "notes.txt").write_text("x")
        code, out, err = command(folder)
        assert (code, out) == (2, "")
        assert err.startswith("dataprep: no data set in ")
        assert err.count("\n") == 1
        with pytest.raises(ManifestMissing):
            dataprep.verify(folder)

    @pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"schema": 99}', b"\xff", None])
    def test_a_job_file(self, output: Output, content: bytes | None) -> None:
        """A missing or damaged job file is a fault of its own split only."""
        output.store.put("other.manifest.json", b"{}")
        if content is not None:
            output.store.put("other.job.json", content)
        code, out, err = command(output.store.uri, "--quick")
        assert (code, err) == (1, "")
        assert "other: 1 fault in 0 shards" in out
        assert "  other.job.json: " in out
        assert "restore it, or use --overwrite" in out
        assert "To repair" not in out
        assert "train: no faults in 3 shards" in out


class TestQuick:
    def test_on_disk(self, on_disk: Path, tmp_path: Path) -> None:
        """On a disk, --quick detects another size of a shard, and not a changed byte."""
        folder = Path(shutil.copytree(on_disk, tmp_path / "out"))
        shard = next((folder / "tfrecord").iterdir())
        data = bytearray(shard.read_bytes())
        flip(500)(data)
        shard.write_bytes(data)
        assert verify(folder, depth="quick")[0].ok
        assert not verify(folder)[0].ok
        shard.write_bytes(data + b"\0")
        (fault,) = verify(folder, depth="quick")[0].faults
        assert fault.key == f"tfrecord/{shard.name}"
        assert fault.what == f"has {len(data) + 1:,} bytes, its receipt says {len(data):,}"

    def test_on_s3(self, tree: Path, bucket: str, s3_server: MotoServer, calls: Calls) -> None:
        """On S3, --quick detects a changed byte by the ETag, and reads no shard."""
        options = StoreOptions(endpoint_url=s3_server.url)
        uri = f"s3://{bucket}/{secrets.token_hex(4)}"
        content = {"source": str(tree), "output": uri, "store": options, "image": {"size": 96}}
        config = {**content, "dask": {"processes": False}}
        dataprep.shard(dataprep.ShardConfig.model_validate(config))
        store = S3Store(uri, options)
        key = "tfrecord/train-00000-of-00001"
        assert verify(uri, depth="quick", options=options)[0].ok
        data = bytearray(store.get(key))
        flip(500)(data)
        store.put(key, data)
        read = calls(S3Store, "get")
        (verification,) = verify(uri, depth="quick", options=options)
        assert [fault.key for fault in verification.faults] == [key]
        assert "its ETag is " in verification.faults[0].what
        assert key not in [requested for _, requested in read]
