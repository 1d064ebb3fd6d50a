"""Folders, listings, archives and records of the same images give the same shards, also on S3."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

import dataprep as library
from dataprep.drawn import draw_ilsvrc
from dataprep.errors import OutputConflict
from dataprep.job.conversion import read_files
from dataprep.job.in_process import InProcess
from dataprep.job.prepare import prepare
from dataprep.name_encoding import escape
from dataprep.sources import open_source
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.stores.s3 import S3Store
from iobench.servers.fault_proxy import Delay, FaultProxy, Match, Rule
from iobench.servers.moto_server import MotoServer
from tests.commandline import (
    JOB,
    Running,
    files,
    in_process,
    make,
    objects,
    upload,
    wait_until,
)
from tests.golden import expected
from tests.parquet_files import IMAGE, parquet_of
from tests.tars import nested, pack, tar_of, zipped

pytestmark = pytest.mark.slow

MADE = ("tfrecord/", "recordio/", "webdataset/", "index/", "labels.json")


def data_files(store: Store) -> dict[str, bytes]:
    """Shards, indexes and labels, which do not depend on the kind of source."""
    return {key: data for key, data in objects(store).items() if key.startswith(MADE)}


def at(folder: Path) -> dict[str, bytes]:
    """The data files of a folder."""
    return data_files(open_store(folder))


def listing_of(tree: Path, form: str, prefix: str = "") -> bytes:
    """A listing of all images of ``tree``, in another order than that of their names."""
    names = sorted(files(tree), key=lambda name: name[::-1])
    if form == "csv":
        rows = [f'"{prefix}{name}",{name.split("/")[0]}\n' for name in names]
        return ("path,label\n" + "".join(rows)).encode()
    groups = sorted({name.split("/")[0] for name in names})
    rows = []
    for row, name in enumerate(names):
        label = groups.index(name.split("/")[0])
        rows.append(f"{row}\t{label:f}\t{escape(prefix + name)}\n")
    return "".join(rows).encode()


class TestFromListings:
    def test_a_listing_makes_what_its_folders_make(
        self, tree: Path, tmp_path: Path, reference_folder: Path
    ) -> None:
        """A CSV of paths and classes gives the shards of the class folders.

        A .lst with numbers and the names of the classes gives them too.
        """
        for number, prefix in enumerate(("", f"{tree}/")):
            (tmp_path / "list.csv").write_bytes(listing_of(tree, "csv", prefix))
            output = tmp_path / f"out-{number}"
            make(tmp_path / "list.csv", output, kind="listing", listing={"root": str(tree)})
            assert at(output) == at(reference_folder)
        (tmp_path / "list.lst").write_bytes(listing_of(tree, "lst"))
        (tmp_path / "names.txt").write_text("\n".join(sorted(path.name for path in tree.iterdir())))
        section = {"root": str(tree), "class_names": str(tmp_path / "names.txt")}
        make(tmp_path / "list.lst", tmp_path / "out", kind="listing", listing=section)
        assert at(tmp_path / "out") == at(reference_folder)

    def test_a_listing_on_s3(
        self, tree: Path, bucket: str, endpoint: StoreOptions, reference_folder: Path
    ) -> None:
        """A listing on S3 gives the same shards with relative paths and with full addresses."""
        photos = S3Store(f"s3://{bucket}/photos", endpoint)
        upload(tree, photos)
        for folder, prefix in (("photos", ""), ("lists", f"{photos.uri}/")):
            listing = S3Store(f"s3://{bucket}/{folder}", endpoint)
            listing.put("all.csv", listing_of(tree, "csv", prefix))
            output = S3Store(f"s3://{bucket}/out-{folder}", endpoint)
            more = {"store": endpoint.model_dump(), "listing": {"root": photos.uri}}
            make(f"{listing.uri}/all.csv", output.uri, kind="listing", **more)
            assert data_files(output) == at(reference_folder)

    def test_the_index_of_an_output_is_a_listing(self, tree: Path, tmp_path: Path) -> None:
        """The .lst beside a shard is a listing of its samples, including odd names."""
        source = tmp_path / "odd"
        names = sorted(files(tree))[:6]
        odd = ["a\tb.jpg", "a\nb.jpg", "a\\x09b.jpg", "\udcff.jpg", "é b.jpg", "c.jpg"]
        for name, target in zip(names, odd, strict=True):
            (source / "k").mkdir(parents=True, exist_ok=True)
            (source / "k" / target).write_bytes((tree / name).read_bytes())
        make(source, tmp_path / "first", kind="imagefolder", shuffle=False)
        index = tmp_path / "first/index/recordio/train-00000-of-00001.lst"
        names_file = {"root": str(source), "class_names": str(tmp_path / "first/labels.json")}
        make(index, tmp_path / "again", kind="listing", shuffle=False, listing=names_file)
        assert at(tmp_path / "again") == at(tmp_path / "first")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("path,label\na\n", "list.csv, row 2: 1 columns, the first row has 2"),
            (
                "path,label\nhttp://h/1.jpg,a\n",
                "copy images that are on the web to a disk",
            ),
            ("name,label\na,b\n", "--set listing.path=NAME"),
        ],
        ids=["row", "address", "column"],
    )
    def test_the_command_line_tells_what_is_wrong(
        self, tmp_path: Path, text: str, message: str
    ) -> None:
        """A faulty line, a web address and a missing column give exit code 2 and one sentence."""
        listing = tmp_path / "list.csv"
        listing.write_text(text)
        job = ("shard", "--source", listing, "--kind", "listing", "--output", tmp_path / "out")
        ended = in_process(*job)
        assert (ended.code, ended.out) == (2, "")
        (complaint,) = ended.complaints
        assert message in complaint
        assert not (tmp_path / "out").exists()


class TestFromRecords:
    @pytest.mark.parametrize(
        ("where", "section"),
        [
            ("", {}),
            ("", {"format": "recordio"}),
            ("", {"format": "webdataset"}),
            ("tfrecord", {}),
            ("webdataset", {}),
            ("recordio", {"class_names": "labels.json"}),
        ],
        ids=[
            "output",
            "output-recordio",
            "output-webdataset",
            "tfrecord",
            "webdataset",
            "recordio",
        ],
    )
    def test_records_make_what_their_images_made(
        self,
        tree: Path,
        tmp_path: Path,
        reference_folder: Path,
        where: str,
        section: dict[str, str],
    ) -> None:
        """Shards of an output's records equal the shards of the images themselves.

        RecordIO files alone have no names, and thus no order: only their images are the same.
        """
        if "class_names" in section:
            section = {"class_names": str(reference_folder / section["class_names"])}
        make(reference_folder / where, tmp_path / "out", kind="records", records=section)
        if where != "recordio":
            assert at(tmp_path / "out") == at(reference_folder)
            return
        first, again = (library.open(str(path)) for path in (reference_folder, tmp_path / "out"))
        assert {(s.label, bytes(s.image)) for s in first} == {
            (s.label, bytes(s.image)) for s in again
        }
        assert (tmp_path / "out/labels.json").read_bytes() == (
            reference_folder / "labels.json"
        ).read_bytes()

    def test_records_on_s3(
        self, bucket: str, endpoint: StoreOptions, reference_folder: Path
    ) -> None:
        """An output on S3, its bare shards and its tars can each be the source of an S3 output."""
        source = S3Store(f"s3://{bucket}/first", endpoint)
        upload(reference_folder, source)
        folders = (source.uri, f"{source.uri}/tfrecord", f"{source.uri}/webdataset")
        for number, uri in enumerate(folders):
            output = S3Store(f"s3://{bucket}/again{number}", endpoint)
            make(uri, output.uri, kind="records", store=endpoint.model_dump())
            assert data_files(output) == at(reference_folder)

    def test_resized_again(self, tmp_path: Path, reference_folder: Path) -> None:
        """An output can be sharded again with another size, one format and fewer shards."""
        in_process(
            *("shard", "--kind", "records", "--source", reference_folder),
            *("--output", tmp_path / "small", "--format", "recordio", "--size", "40"),
            *("--split", "train"),
            code=0,
        )
        small = library.open(str(tmp_path / "small"))
        first = library.open(str(reference_folder))
        assert len(small) == len(first)
        assert set(small.samples["height"]) | set(small.samples["width"]) > {40}
        assert sorted(small.samples["source"]) == sorted(first.samples["source"])
        assert in_process("verify", tmp_path / "small", "--deep").code == 0

    def test_a_damaged_record_fails_and_the_rest_goes_on(
        self, tmp_path: Path, reference_folder: Path
    ) -> None:
        """The reason names shard and byte, and every other sample is written."""
        source = tmp_path / "damaged"
        shutil.copytree(reference_folder, source)
        shard = source / "tfrecord" / sorted(files(source / "tfrecord"))[0]
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 1
        shard.write_bytes(data)
        make(source, tmp_path / "out", kind="records", max_failures=1)
        table = library.open(str(tmp_path / "out")).samples
        failed = table[table["status"] == "failed"]
        assert len(failed) == 1
        assert len(table) == 120
        assert failed["reason"].item().startswith("record at byte ")
        assert f"tfrecord/{shard.name}" in failed["reason"].item()

    def test_a_killed_or_repeated_job_resumes(self, tmp_path: Path, reference_folder: Path) -> None:
        """A source of records lists the same again, so that a second run has nothing to do."""
        arguments = (
            *("shard", "--kind", "records", "--source", reference_folder / "tfrecord"),
            *("--output", tmp_path / "out", "--shard-size", "1.2MB"),
        )
        assert in_process(*arguments).code == 0
        (tmp_path / "out/receipts" / sorted(files(tmp_path / "out/receipts"))[0]).unlink()
        before = at(tmp_path / "out")
        again = in_process(*arguments, code=0)
        assert "resuming" in again.err
        assert at(tmp_path / "out") == before

    @pytest.mark.parametrize(
        ("name", "labels", "classes"),
        [
            ("tensorflow-2.21.tfrecord", None, [name.decode() for name, _ in expected.CLASSES]),
            ("mxnet-1.9.1.rec", expected.LABELS, ["0", "1", "2"]),
        ],
    )
    def test_what_tensorflow_and_mxnet_wrote(
        self, name: str, labels: list[list[float]] | None, classes: list[str]
    ) -> None:
        """Files of TensorFlow and MXNet are read with the bytes and class of each image."""
        source = open_source(str(Path(expected.__file__).parent / name), "records")
        listing = source.list()
        assert listing.order is not None
        rows = [row for row in listing.order.tolist() if row not in listing.problems]
        images = [source.read(listing.located(row)) for row in rows]
        numbers_read = [number for number in range(3) if expected.image(number) in images]
        assert numbers_read
        assert [listing.classes[row] for row in rows] == [
            classes[number] for number in numbers_read
        ]


def webdataset_of(tree: Path, store: Store, parts: int) -> None:
    """The images of ``tree`` in tars, each with its class in a ``.cls``.

    The first is compressed.
    """
    members: dict[str, bytes] = {}
    for name in sorted(files(tree)):
        group, _, base = name.partition("/")
        members[base] = (tree / name).read_bytes()
        members[f"{base.partition('.')[0]}.cls"] = group.encode()
    entries = list(members.items())
    per_part = 2 * -(-len(entries) // (2 * parts))
    for number in range(parts):
        data = tar_of(dict(entries[number * per_part : (number + 1) * per_part]))
        name = f"photos-{number:05}.tar"
        store.put(f"{name}.gz" if not number else name, data if number else zipped(data))


def nameless(output: dict[str, bytes]) -> dict[str, bytes]:
    """An output without MXNet's lists and tars, which contain the names of its source."""
    return {key: data for key, data in output.items() if not key.endswith((".lst", ".tar"))}


class TestFromWebDataset:
    @pytest.fixture
    def in_order(self, tree: Path, tmp_path: Path) -> dict[str, bytes]:
        """The shards of the class folders in the order of their names."""
        make(tree, tmp_path / "folders", shuffle=False)
        return nameless(at(tmp_path / "folders"))

    def test_tars_make_what_their_images_make(
        self, tree: Path, tmp_path: Path, in_order: dict[str, bytes]
    ) -> None:
        """Tars in the order of class folders give the shards of the folders, without a fault."""
        webdataset_of(tree, open_store(tmp_path / "tars"), 3)
        make(tmp_path / "tars", tmp_path / "out", kind="webdataset", shuffle=False)
        assert nameless(at(tmp_path / "out")) == in_order
        in_process("verify", tmp_path / "out", "--deep", code=0)

    def test_tars_on_s3(
        self, tree: Path, bucket: str, endpoint: StoreOptions, in_order: dict[str, bytes]
    ) -> None:
        """A prefix on S3 gives the same shards on S3."""
        tars = S3Store(f"s3://{bucket}/tars", endpoint)
        webdataset_of(tree, tars, 2)
        output = S3Store(f"s3://{bucket}/out", endpoint)
        more = {"store": endpoint.model_dump(), "shuffle": False}
        make(tars.uri, output.uri, kind="webdataset", **more)
        assert nameless(data_files(output)) == in_order

    def test_tars_in_parts_and_resumed(
        self, tree: Path, tmp_path: Path, in_order: dict[str, bytes]
    ) -> None:
        """Two parts and finalize make the same shards, and a job without one receipt is resumed."""
        webdataset_of(tree, open_store(tmp_path / "tars"), 2)
        job = ("shard", "--kind", "webdataset", "--source", tmp_path / "tars", *JOB)
        options = ("--output", tmp_path / "out", "--set", "shuffle=false", "--workers", "1")
        for part in ("0/2", "1/2"):
            in_process(*job, *options, "--part", part, code=0)
        in_process("finalize", tmp_path / "out", "--split", "train", "--parts", "2", code=0)
        assert nameless(at(tmp_path / "out")) == in_order
        (tmp_path / "out/receipts" / sorted(files(tmp_path / "out/receipts"))[0]).unlink()
        assert "resuming" in in_process(*job, *options, code=0).err
        assert nameless(at(tmp_path / "out")) == in_order


def parquet_files_of(tree: Path, store: Store, group: int = 7) -> None:
    """The images of ``tree`` in two Parquet files, each with its class."""
    names = sorted(files(tree))
    half = len(names) // 2
    for number, part in enumerate((names[:half], names[half:])):
        rows = [
            {"bytes": (tree / name).read_bytes(), "path": name.rpartition("/")[2]} for name in part
        ]
        columns = {
            "image": pa.array(rows, IMAGE),
            "label": [name.partition("/")[0] for name in part],
        }
        store.put(f"train-{number:05}-of-00002.parquet", parquet_of(columns, group=group))


class TestFromParquet:
    @pytest.fixture
    def made_here(self, tree: Path, tmp_path: Path) -> dict[str, bytes]:
        """The shards of two Parquet files, made by threads of this process."""
        parquet_files_of(tree, open_store(tmp_path / "tables"))
        make(tmp_path / "tables", tmp_path / "here", kind="parquet")
        return at(tmp_path / "here")

    def test_they_hold_the_images_in_order(
        self, tree: Path, tmp_path: Path, made_here: dict[str, bytes]
    ) -> None:
        """The samples are those of the class folders in the order of names, without a fault."""
        make(tree, tmp_path / "folders", shuffle=False)
        in_folders = library.open(str(tmp_path / "folders")).samples
        here = library.open(str(tmp_path / "here")).samples
        assert len(in_folders) == len(here) > 100
        for column in ("label", "source_sha256", "source_bytes", "image_bytes", "tfrecord_crc32c"):
            assert [*here[column]] == [*in_folders[column]]
        in_process("verify", tmp_path / "here", "--deep", code=0)

    def test_they_warn_of_sorted_classes(self, tree: Path, tmp_path: Path) -> None:
        """The summary says how few classes a shard has."""
        parquet_files_of(tree, open_store(tmp_path / "tables"))
        job = ("shard", "--kind", "parquet", "--source", tmp_path / "tables", *JOB)
        done = in_process(*job, "--output", tmp_path / "out", "--workers", "1", code=0)
        assert "the source is sorted by class" in done.out

    def test_on_s3(
        self, tree: Path, bucket: str, endpoint: StoreOptions, made_here: dict[str, bytes]
    ) -> None:
        """A prefix on S3 gives the same shards on S3."""
        tables = S3Store(f"s3://{bucket}/tables", endpoint)
        parquet_files_of(tree, tables)
        output = S3Store(f"s3://{bucket}/out", endpoint)
        make(tables.uri, output.uri, kind="parquet", store=endpoint.model_dump())
        assert data_files(output) == made_here

    @pytest.mark.process
    @pytest.mark.parametrize("workers", [1, 2, 3])
    def test_with_any_number_of_workers(
        self, tmp_path: Path, made_here: dict[str, bytes], workers: int
    ) -> None:
        """Worker processes make the same shards, in whole or in chunks."""
        job = ("shard", "--kind", "parquet", "--source", tmp_path / "tables", *JOB)
        in_process(*job, "--output", tmp_path / "out", "--workers", str(workers), code=0)
        assert at(tmp_path / "out") == made_here

    def test_in_parts_and_resumed(self, tmp_path: Path, made_here: dict[str, bytes]) -> None:
        """Two parts and finalize make the same shards, and a job without receipts is resumed."""
        job = ("shard", "--kind", "parquet", "--source", tmp_path / "tables", *JOB)
        options = ("--output", tmp_path / "out", "--workers", "1")
        for part in ("0/2", "1/2"):
            in_process(*job, *options, "--part", part, code=0)
        in_process("finalize", tmp_path / "out", "--split", "train", "--parts", "2", code=0)
        assert at(tmp_path / "out") == made_here
        for name in sorted(files(tmp_path / "out/receipts"))[::2]:
            (tmp_path / "out/receipts" / name).unlink()
        assert "resuming" in in_process(*job, *options, code=0).err
        assert at(tmp_path / "out") == made_here

    @pytest.mark.process
    def test_killed_and_resumed(self, tmp_path: Path, made_here: dict[str, bytes]) -> None:
        """A job that is killed after a few shards is resumed to the same shards."""
        job = ("shard", "--kind", "parquet", "--source", tmp_path / "tables", *JOB)
        options = ("--output", tmp_path / "out", "--workers", "1")
        with Running(*job, *options) as running:
            receipts = tmp_path / "out/receipts"
            wait_until(lambda: running.ended or len(files(receipts)) >= 2, "two shards")
            assert not running.ended
            running.send_group(signal.SIGKILL)
        assert "resuming" in in_process(*job, *options, "--takeover", code=0).err
        assert at(tmp_path / "out") == made_here


def test_the_example_configs_run(tree: Path, tmp_path: Path) -> None:
    """configs/shard/listing.yaml and reshard.yaml run as they are, except for their paths."""
    configs = Path(__file__).parents[2] / "configs/shard"
    (tmp_path / "list.csv").write_bytes(listing_of(tree, "csv"))
    in_process(
        *("shard", configs / "listing.yaml", "--source", tmp_path / "list.csv"),
        *("--set", f"listing.root={tree}", "--output", tmp_path / "first"),
        code=0,
    )
    in_process(
        *("shard", configs / "reshard.yaml", "--source", tmp_path / "first"),
        *("--output", tmp_path / "second"),
        code=0,
    )
    assert len(library.open(str(tmp_path / "second"))) == 120
    for name, kind in (("listing", "listing"), ("reshard", "records")):
        assert yaml.safe_load((configs / f"{name}.yaml").read_text())["kind"] == kind


class Meeting:
    """A point where requests wait until ``count`` of them have arrived."""

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count)

    def wait(self, _: float) -> None:
        """Wait for the others. It replaces the delay of a rule."""
        if not self._barrier.broken:
            try:
                self._barrier.wait(30)
            except threading.BrokenBarrierError:
                return

    @property
    def all_met(self) -> bool:
        """Whether all expected requests have arrived."""
        return not self._barrier.broken


class TestRequestsInFlight:
    @pytest.mark.parametrize("kind", ["imagefolder", "listing", "records"])
    @pytest.mark.parametrize("configured", [None, 20], ids=["default", "configured"])
    def test_one_worker_keeps_many_reads_under_way(
        self,
        tree: Path,
        bucket: str,
        s3_server: MotoServer,
        endpoint: StoreOptions,
        reference_folder: Path,
        kind: str,
        configured: int | None,
    ) -> None:
        """One worker has 32 requests in flight, or the configured number.

        Every read waits until all expected reads are in flight, so that with fewer reads the first
        one would wait until the time limit.
        """
        store = S3Store(f"s3://{bucket}/source", endpoint)
        upload(reference_folder if kind == "records" else tree, store)
        if kind == "listing":
            store.put("all.csv", listing_of(tree, "csv"))
        count = configured or 32
        meeting = Meeting(count)
        with FaultProxy(s3_server.url, sleep=meeting.wait) as proxy:
            through = StoreOptions(endpoint_url=proxy.url, max_attempts=1)
            source = open_source(
                f"{store.uri}/all.csv" if kind == "listing" else store.uri, kind, through
            )
            listing = source.list()
            source.concurrency = configured or source.concurrency
            items = [listing.located(row) for row in range(len(listing))][: 3 * count]
            proxy.replace_rules([Rule(Match("GET"), Delay(0.02))])
            results = list(read_files(source, items, 10**9))
        assert meeting.all_met
        assert [len(data) for data in results if isinstance(data, bytes)] == [
            item.bytes for item in items
        ]

    @pytest.mark.parametrize(("configured", "reads"), [(None, 1), (7, 7)])
    def test_a_config_says_how_many(
        self, tree: Path, tmp_path: Path, configured: int | None, reads: int
    ) -> None:
        """The source of a worker has the configured ``source_concurrency``, on a disk too."""
        config = library.ShardConfig(
            source=str(tree), output=str(tmp_path / "out"), source_concurrency=configured
        )
        with ExitStack() as running:
            engine = InProcess(config.dask, lambda progress: None)
            prepared = prepare(config, cleanup=running, note=lambda text: None, engine=engine)
        assert prepared.source.concurrency == reads


def test_a_listed_file_that_is_no_image_fails(tree: Path, tmp_path: Path) -> None:
    """A folder skips a text without an image extension, and a listing that names it fails it."""
    (tmp_path / "notes").write_text("no image")
    rows = [f"{tree / name},{name.split('/')[0]}\n" for name in sorted(files(tree))]
    (tmp_path / "list.csv").write_text("path,label\nnotes,x\n" + "".join(rows))
    make(tmp_path / "list.csv", tmp_path / "out", kind="listing", max_failures=1)
    table = library.open(str(tmp_path / "out")).samples
    assert table[table["source"] == "notes"]["status"].item() == "failed"


@pytest.fixture(scope="module")
def images(tree: Path) -> dict[str, bytes]:
    """The drawn tree in memory."""
    return {name: (tree / name).read_bytes() for name in sorted(files(tree))}


def made_of(samples: Mapping[str, object]) -> dict[str, object]:
    """The parts of the output that do not depend on the source, and the table of samples."""
    prefixes = (*MADE, "train.samples.parquet")
    return {key: data for key, data in samples.items() if key.startswith(prefixes)}


@pytest.mark.parametrize("shape", ["tars", "gzipped", "tree", "tree by GNU tar"])
def test_the_bytes_of_class_folders(
    shape: str,
    images: dict[str, bytes],
    tree: Path,
    tmp_path: Path,
    reference: Mapping[str, object],
) -> None:
    """Shards, indexes and tables of packed images equal those of folders."""
    backwards = dict(reversed(images.items()))
    data = {
        "tars": lambda: nested(backwards),
        "gzipped": lambda: zipped(nested(images)),
        "tree": lambda: tar_of(backwards),
        "tree by GNU tar": lambda: pack("gnu", tree, tmp_path / "gnu.tar"),
    }[shape]()
    (tmp_path / "archive").write_bytes(data)
    make(tmp_path / "archive", tmp_path / "out", kind="ilsvrc")
    assert made_of(objects(tmp_path / "out")) == made_of(reference)


@pytest.mark.parametrize("packed", [False, True])
def test_worker_processes_from_s3(
    packed: bool,
    images: dict[str, bytes],
    tmp_path: Path,
    bucket: str,
    endpoint: StoreOptions,
    reference: Mapping[str, object],
) -> None:
    """Worker processes that read ranges of an archive on S3 make the bytes of local folders."""
    data = nested(images)
    S3Store(f"s3://{bucket}", endpoint).put("data/train", zipped(data) if packed else data)
    dask = {"workers": 2, "processes": True}
    source = f"s3://{bucket}/data/train"
    make(source, tmp_path / "out", kind="ilsvrc", store=endpoint, dask=dask)
    assert made_of(objects(tmp_path / "out")) == made_of(reference)


def test_ilsvrc_as_downloaded(tmp_path: Path) -> None:
    """Both archives and the devkit give one output with one label space, which verifies."""
    draw_ilsvrc(tmp_path / "data", images=40, classes=5, seed=1)
    out = tmp_path / "out"
    common = ("--kind", "ilsvrc", "--output", out, *JOB)
    kit = tmp_path / "data" / "ILSVRC2012_devkit_t12.tar.gz"
    in_process(
        "shard",
        "--source",
        tmp_path / "data" / "ILSVRC2012_img_train.tar",
        *common,
        code=0,
    )
    in_process(
        *("shard", "--source", tmp_path / "data" / "ILSVRC2012_img_val.tar", *common),
        *("--split", "validation", "--set", f"labels.ground_truth={kit}"),
        code=0,
    )
    in_process("verify", out, "--deep", code=0)
    with library.open(out, split="validation") as data:
        assert len(data) == 5
        assert sorted(data[i].label for i in range(5)) == [0, 1, 2, 3, 4]


def test_resumed_after_the_archive_changed(images: dict[str, bytes], tmp_path: Path) -> None:
    """An archive that was packed again in another order is refused as another source."""
    path = tmp_path / "archive"
    path.write_bytes(nested(images))
    make(path, tmp_path / "out", kind="ilsvrc")
    path.write_bytes(nested(dict(reversed(images.items()))))
    with pytest.raises(OutputConflict):
        make(path, tmp_path / "out", kind="ilsvrc")


def test_what_a_person_hears(
    images: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message names the cost of a compressed archive first. Damage gives one line and code 2."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    some_images = dict(list(images.items())[:30])
    path = tmp_path / "archive"
    path.write_bytes(zipped(nested(some_images)))
    arguments = ("shard", "--source", path, "--kind", "ilsvrc", "--output", tmp_path / "out")
    first = in_process(*arguments, code=0)
    assert "decompressed once" in first.err
    assert "decompressed once" not in in_process(*arguments).err
    path.write_bytes(nested(some_images)[:300_000])
    cut = in_process(*arguments, code=2)
    (complaint,) = cut.complaints
    assert f"{path}: ends at byte 300,000" in complaint
