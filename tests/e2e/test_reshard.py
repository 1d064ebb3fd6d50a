"""The same shards from folders, listings and records, here and on S3; records made anew."""

from __future__ import annotations

import shutil
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

import dataprep as library
from dataprep.job.in_process import InProcess
from dataprep.job.prepare import prepare
from dataprep.job.worker import contents
from dataprep.names import escape
from dataprep.sources import open_source
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.stores.s3 import S3Store
from iobench.faults import Delay, FaultProxy, Match, Rule
from iobench.s3_server import MotoServer
from tests.commandline import FORMATS, dataprep, files
from tests.golden import expected

pytestmark = pytest.mark.slow

MADE = ("tfrecord/", "recordio/", "index/", "labels.json")


def make(source: str | Path, output: str | Path, kind: str, **changes: Any) -> None:
    """The reference job over a source of another kind, within this process."""
    options: dict[str, Any] = {
        "format": FORMATS,
        "shard_size": "1.2MB",
        "dask": {"workers": 2, "processes": False},
        **changes,
    }
    config = {"source": str(source), "output": str(output), "kind": kind, **options}
    library.shard(library.ShardConfig.model_validate(config))


def made(store: Store) -> dict[str, bytes]:
    """Shards, indexes and labels: what does not tell where they came from."""
    return {info.key: store.get(info.key) for info in store.list() if info.key.startswith(MADE)}


def at(folder: Path) -> dict[str, bytes]:
    """``made`` of a folder."""
    return made(open_store(folder))


def listing_of(tree: Path, form: str, prefix: str = "") -> bytes:
    """All images of ``tree``, in another order than that of their names."""
    names = sorted(files(tree), key=lambda name: name[::-1])
    if form == "csv":
        rows = [f'"{prefix}{name}",{name.split("/")[0]}\n' for name in names]
        return ("path,label\n" + "".join(rows)).encode()
    groups = sorted({name.split("/")[0] for name in names})
    numbers = [groups.index(name.split("/")[0]) for name in names]
    rows = [
        f"{i}\t{number:f}\t{escape(prefix + name)}\n"
        for i, (name, number) in enumerate(zip(names, numbers, strict=True))
    ]
    return "".join(rows).encode()


def upload(tree: Path, store: Store) -> None:
    """Copy ``tree`` to a store."""
    for name in sorted(files(tree)):
        store.put(name, (tree / name).read_bytes())


@pytest.fixture
def endpoint(s3_server: MotoServer) -> StoreOptions:
    """How the test's own S3 server is reached."""
    return StoreOptions(endpoint_url=s3_server.url)


class TestFromListings:
    def test_a_listing_makes_what_its_folders_make(
        self, tree: Path, tmp_path: Path, reference_folder: Path
    ) -> None:
        """A CSV of relative or absolute paths and classes gives the shards of the class folders."""
        for number, prefix in enumerate(("", f"{tree}/")):
            (tmp_path / "list.csv").write_bytes(listing_of(tree, "csv", prefix))
            output = tmp_path / f"out-{number}"
            make(tmp_path / "list.csv", output, "listing", listing={"root": str(tree)})
            assert at(output) == at(reference_folder)

    def test_a_listing_with_numbers_and_a_file_of_names(
        self, tree: Path, tmp_path: Path, reference_folder: Path
    ) -> None:
        """A .lst has numbers alone; with the names of the classes it gives the same shards."""
        (tmp_path / "list.lst").write_bytes(listing_of(tree, "lst"))
        groups = sorted({name.split("/")[0] for name in files(tree)})
        (tmp_path / "names.txt").write_text("\n".join(groups))
        section = {"root": str(tree), "class_names": str(tmp_path / "names.txt")}
        make(tmp_path / "list.lst", tmp_path / "out", "listing", listing=section)
        assert at(tmp_path / "out") == at(reference_folder)

    def test_a_listing_on_s3(
        self,
        tree: Path,
        bucket: str,
        endpoint: StoreOptions,
        reference_folder: Path,
    ) -> None:
        """Images and listing on S3, paths relative and as addresses: the same shards on S3."""
        source = S3Store(f"s3://{bucket}/photos", endpoint)
        upload(tree, source)
        output = S3Store(f"s3://{bucket}/out", endpoint)
        source.put("all.csv", listing_of(tree, "csv"))
        make(f"{source.uri}/all.csv", output.uri, "listing", store=endpoint.model_dump())
        assert made(output) == at(reference_folder)
        far = S3Store(f"s3://{bucket}/lists", endpoint)
        far.put("all.csv", listing_of(tree, "csv", f"{source.uri}/"))
        make(
            f"{far.uri}/all.csv",
            f"s3://{bucket}/out2",
            "listing",
            store=endpoint.model_dump(),
            listing={"root": source.uri},
        )
        assert made(S3Store(f"s3://{bucket}/out2", endpoint)) == at(reference_folder)

    def test_the_index_of_an_output_is_a_listing(self, tree: Path, tmp_path: Path) -> None:
        """The .lst that this program writes beside a shard lists what is in it, odd names too."""
        source = tmp_path / "odd"
        names = sorted(files(tree))[:6]
        odd = ["a\tb.jpg", "a\nb.jpg", "a\\x09b.jpg", "\udcff.jpg", "é b.jpg", "c.jpg"]
        for name, target in zip(names, odd, strict=True):
            (source / "k").mkdir(parents=True, exist_ok=True)
            (source / "k" / target).write_bytes((tree / name).read_bytes())
        make(source, tmp_path / "first", "imagefolder", shuffle=False)
        index = tmp_path / "first/index/recordio/train-00000-of-00001.lst"
        names_file = {"root": str(source), "class_names": str(tmp_path / "first/labels.json")}
        make(index, tmp_path / "again", "listing", shuffle=False, listing=names_file)
        assert at(tmp_path / "again") == at(tmp_path / "first")

    def test_several_labels_reach_plan_and_worker(self, tree: Path, tmp_path: Path) -> None:
        """All labels of a sample stand in the plan, and in the items that workers are given."""
        from dataprep.plan import SplitPlan

        names = sorted(files(tree))[:9]
        rows = [f"{i}\t{i % 3}\t{i / 4}\t{name}\n" for i, name in enumerate(names)]
        (tmp_path / "several.lst").write_text("".join(rows))
        make(tmp_path / "several.lst", tmp_path / "out", "listing", listing={"root": str(tree)})
        plan = SplitPlan.from_parquet((tmp_path / "out/train.plan.parquet").read_bytes())
        items = plan.items(plan.rows_of(0))
        assert {item.located.name: item.values for item in items} == {
            name: (float(i % 3), i / 4) for i, name in enumerate(names)
        }
        assert all(item.label == item.values[0] for item in items)

    def test_the_command_line_tells_what_is_wrong(self, tree: Path, tmp_path: Path) -> None:
        """A faulty line, an address on the web, a missing column: exit code 2 and one sentence."""
        listing = tmp_path / "list.csv"
        for text, said in (
            ("path,label\na\n", "list.csv, row 2: 1 columns, the first row has 2"),
            (
                "path,label\nhttp://h/1.jpg,a\n",
                "copy images that are on the web to a disk or to S3 first",
            ),
            ("name,label\na,b\n", "--set listing.path=NAME"),
        ):
            listing.write_text(text)
            ended = dataprep(
                *("shard", "--source", listing, "--kind", "listing"), "--output", tmp_path / "out"
            )
            assert ended.code == 2
            assert len(ended.complaints) == 1
            assert said in ended.complaints[0]
            assert "Traceback" not in ended.err
        assert not (tmp_path / "out").exists()


class TestFromRecords:
    @pytest.mark.parametrize(
        ("where", "section"),
        [
            ("", {}),
            ("", {"format": "recordio"}),
            ("tfrecord", {}),
            ("recordio", {"class_names": "labels.json"}),
        ],
        ids=["output", "output-recordio", "tfrecord", "recordio"],
    )
    def test_records_make_what_their_images_made(
        self,
        tree: Path,
        tmp_path: Path,
        reference_folder: Path,
        where: str,
        section: dict[str, str],
    ) -> None:
        """Shards made of an output's records are those that were made of the images themselves.

        RecordIO files alone hold no names, and so no order: of them the images are the same.
        """
        if "class_names" in section:
            section = {"class_names": str(reference_folder / section["class_names"])}
        make(reference_folder / where, tmp_path / "out", "records", records=section)
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
        """From an output on S3 to one on S3, and from its bare shards."""
        source = S3Store(f"s3://{bucket}/first", endpoint)
        upload(reference_folder, source)
        for number, uri in enumerate((source.uri, f"{source.uri}/tfrecord")):
            output = S3Store(f"s3://{bucket}/again{number}", endpoint)
            make(uri, output.uri, "records", store=endpoint.model_dump())
            assert made(output) == at(reference_folder)

    def test_resized_again(self, tmp_path: Path, reference_folder: Path) -> None:
        """Another size, one format of two, fewer shards: what the command line is for."""
        ended = dataprep(
            *("shard", "--kind", "records", "--source", reference_folder),
            *("--output", tmp_path / "small", "--format", "recordio", "--size", "40"),
            *("--split", "train"),
        )
        assert ended.code == 0, ended.err
        small = library.open(str(tmp_path / "small"))
        first = library.open(str(reference_folder))
        assert len(small) == len(first)
        assert set(small.samples["height"]) | set(small.samples["width"]) > {40}
        assert sorted(small.samples["source"]) == sorted(first.samples["source"])
        assert dataprep("verify", tmp_path / "small", "--deep").code == 0

    def test_a_damaged_record_fails_and_the_rest_goes_on(
        self, tmp_path: Path, reference_folder: Path
    ) -> None:
        """The reason names shard and byte; every other sample is written."""
        source = tmp_path / "damaged"
        shutil.copytree(reference_folder, source)
        shard = source / "tfrecord" / sorted(files(source / "tfrecord"))[0]
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 1
        shard.write_bytes(data)
        make(source, tmp_path / "out", "records", max_failures=1)
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
        assert dataprep(*arguments).code == 0
        (tmp_path / "out/receipts" / sorted(files(tmp_path / "out/receipts"))[0]).unlink()
        before = at(tmp_path / "out")
        again = dataprep(*arguments)
        assert again.code == 0, again.err
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
        """Their own files: every image byte for byte, class by class."""
        source = open_source(str(Path(expected.__file__).parent / name), "records")
        listing = source.list()
        assert listing.order is not None
        rows = [row for row in listing.order.tolist() if row not in listing.problems]
        images = [source.read(listing.located(row)) for row in rows]
        found = [number for number in range(3) if expected.image(number) in images]
        assert found
        assert [listing.classes[row] for row in rows] == [classes[number] for number in found]


def test_the_example_configs_run(tree: Path, tmp_path: Path) -> None:
    """configs/shard/listing.yaml and reshard.yaml are runnable as they are, but for places."""
    configs = Path(__file__).parents[2] / "configs/shard"
    (tmp_path / "list.csv").write_bytes(listing_of(tree, "csv"))
    first = dataprep(
        *("shard", configs / "listing.yaml", "--source", tmp_path / "list.csv"),
        *("--set", f"listing.root={tree}", "--output", tmp_path / "first"),
    )
    assert first.code == 0, first.err
    second = dataprep(
        *("shard", configs / "reshard.yaml", "--source", tmp_path / "first"),
        *("--output", tmp_path / "second"),
    )
    assert second.code == 0, second.err
    assert len(library.open(str(tmp_path / "second"))) == 120
    kinds = [yaml.safe_load((configs / f"{n}.yaml").read_text())["kind"] for n in
             ("listing", "reshard")]  # fmt: skip
    assert kinds == ["listing", "records"]


class Meeting:
    """Where requests wait for each other: none goes on before ``count`` of them are there."""

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count)

    def wait(self, _: float) -> None:
        """In place of a delay."""
        if not self._barrier.broken:
            try:
                self._barrier.wait(30)
            except threading.BrokenBarrierError:
                return

    @property
    def met(self) -> bool:
        """Whether all came that had to."""
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
        """One worker has 32 requests in flight, or as many as told, so that latency costs little.

        Every read waits on the way until all of its fellows are on theirs: were there fewer, the
        first of them would wait in vain.
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
            found = list(contents(source, items, 10**9))
        assert meeting.met
        assert [len(data) for data in found if isinstance(data, bytes)] == [
            item.bytes for item in items
        ]

    @pytest.mark.parametrize(("configured", "reads"), [(None, 1), (7, 7)])
    def test_a_config_says_how_many(
        self, tree: Path, tmp_path: Path, configured: int | None, reads: int
    ) -> None:
        """``source_concurrency`` reaches the source that workers are given, from a disk too."""
        config = library.ShardConfig(
            source=str(tree), output=str(tmp_path / "out"), source_concurrency=configured
        )
        with ExitStack() as running:
            engine = InProcess(config.dask, lambda progress: None)
            prepared = prepare(config, running=running, note=lambda text: None, engine=engine)
        assert prepared.source.concurrency == reads


def test_a_listed_file_that_is_no_image_fails(tree: Path, tmp_path: Path) -> None:
    """In a folder a text without an image's extension is passed over; who lists it meant it."""
    (tmp_path / "notes").write_text("no image")
    rows = [f"{tree / name},{name.split('/')[0]}\n" for name in sorted(files(tree))]
    (tmp_path / "list.csv").write_text("path,label\nnotes,x\n" + "".join(rows))
    make(tmp_path / "list.csv", tmp_path / "out", "listing", max_failures=1)
    table = library.open(str(tmp_path / "out")).samples
    assert table[table["source"] == "notes"]["status"].item() == "failed"
