"""A job is not resumed if source files with many samples were replaced by others of equal size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import dataprep as library
from dataprep.formats import RecordOptions, Sample, get_format
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.stores.s3 import S3Store
from iobench.servers.moto_server import MotoServer
from tests.commandline import IN_ONE_PROCESS, Finished, in_process, objects
from tests.parquet_files import images, parquet_of
from tests.small_photos import jpeg
from tests.tars import tar_of, zipped

pytestmark = pytest.mark.slow

Photos = Sequence[bytes]


def photos(end: bytes) -> Photos:
    """Eight photos with trailing bytes, which do not change the images."""
    return [jpeg(number) + end for number in range(8)]


FIRST, SECOND = photos(b"first"), photos(b"other")
"""The same photos twice. Their bytes differ, and their sizes do not."""


def parquet(content: Photos) -> bytes:
    """A Parquet file whose size depends only on the sizes of its photos."""
    columns = {"image": images(*content), "label": [number % 2 for number in range(8)]}
    return parquet_of(columns, compression="none", use_dictionary=False)


def webdataset(content: Photos) -> bytes:
    """A WebDataset tar of photos."""
    members = {}
    for number, photo in enumerate(content):
        members[f"{number:03}.jpg"] = photo
        members[f"{number:03}.cls"] = b"%d" % (number % 2)
    return tar_of(members)


def class_tar(content: Photos) -> bytes:
    """The tar of a class."""
    return tar_of({f"{number}.jpg": photo for number, photo in enumerate(content)})


def tfrecord(content: Photos) -> bytes:
    """A TFRecord shard of another program."""
    shard = bytearray()

    class Sink:
        write = shard.extend

    writer = get_format("tfrecord").writer(Sink(), RecordOptions())
    for number, photo in enumerate(content):
        synset = b"c%d" % (number % 2)
        writer.write(
            Sample(image=photo, label=number % 2, filename=b"%d.jpg" % number, synset=synset)
        )
    return bytes(shard)


@dataclass(frozen=True)
class Kind:
    """A kind of source, and the files ``keys`` that it reads. Each file is made of photos."""

    name: str
    keys: Sequence[str]
    content: Callable[[Photos], bytes]

    @property
    def victim(self) -> str:
        """The file that tests replace."""
        return self.keys[-1]

    def fill(self, store: Store) -> None:
        """Write the files."""
        for key in self.keys:
            store.put(key, self.content(FIRST))


KINDS = {
    "parquet": Kind(
        "parquet",
        ("train-00000-of-00002.parquet", "train-00001-of-00002.parquet"),
        parquet,
    ),
    "webdataset": Kind("webdataset", ("train-000.tar", "train-001.tar"), webdataset),
    "tar": Kind("ilsvrc", ("c0.tar", "c1.tar"), class_tar),
    "gzip": Kind("ilsvrc", ("c0.tar.gz", "c1.tar.gz"), lambda content: zipped(class_tar(content))),
    "records": Kind("records", ("train-00000-of-00001",), tfrecord),
}
SAME_SIZE = ["parquet", "webdataset", "tar", "records"]


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.s3)])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store for a source, on a disk and on S3."""
    if request.param == "disk":
        return open_store(tmp_path / "source")
    server: MotoServer = request.getfixturevalue("s3_server")
    bucket = request.getfixturevalue("bucket")
    return S3Store(f"s3://{bucket}/source", StoreOptions(endpoint_url=server.url))


def shard(kind: Kind, source: Store, output: Path, *more: str, code: int) -> Finished:
    """Run the job."""
    endpoint: tuple[str, ...] = ()
    if isinstance(source, S3Store):
        endpoint = ("--endpoint-url", str(source.options.endpoint_url))
    job = ("shard", "--kind", kind.name, "--source", source.uri, "--output", output)
    return in_process(*job, *endpoint, *IN_ONE_PROCESS, "--max-failures", "9", *more, code=code)


def interrupted(kind: Kind, source: Store, output: Path) -> Mapping[str, bytes]:
    """An output without the receipt of its last shard, and its content."""
    shard(kind, source, output, code=0)
    (output / "train.manifest.json").unlink()
    next((output / "receipts").iterdir()).unlink()
    return objects(open_store(output))


@pytest.mark.parametrize("name", SAME_SIZE)
def test_a_replaced_file_of_the_same_size_is_refused(
    source: Store, tmp_path: Path, name: str
) -> None:
    """The resumed job names the replaced file, exits with 2 and changes nothing."""
    kind, output = KINDS[name], tmp_path / "out"
    kind.fill(source)
    before = interrupted(kind, source, output)
    replacement = kind.content(SECOND)
    assert len(replacement) == len(kind.content(FIRST))
    source.put(kind.victim, replacement)
    refused = shard(kind, source, output, code=2)
    assert f"1 file replaced since, such as {kind.victim!r}" in refused.complaints[0]
    assert "--overwrite" in refused.complaints[0]
    assert objects(open_store(output)) == before
    part = shard(kind, source, output, "--part", "0/1", code=2)
    assert "replaced since" in part.complaints[0]


@pytest.mark.parametrize("name", [*KINDS])
def test_unchanged_files_are_resumed(source: Store, tmp_path: Path, name: str) -> None:
    """An interrupted job with unchanged files is completed."""
    kind, output = KINDS[name], tmp_path / "out"
    kind.fill(source)
    interrupted(kind, source, output)
    assert "resuming" in shard(kind, source, output, code=0).err
    assert len(library.open(str(output))) == 8 * len(kind.keys)
    assert "nothing to do" in shard(kind, source, output, code=0).err


def test_a_replaced_file_of_compressed_data_is_refused(tmp_path: Path) -> None:
    """A gzip archive of another version is refused, though its members have the same sizes."""
    source, output, kind = open_store(tmp_path / "source"), tmp_path / "out", KINDS["gzip"]
    kind.fill(source)
    interrupted(kind, source, output)
    data = bytearray(kind.content(FIRST))
    data[4:8] = b"\1\2\3\4"  # this is the time in the header
    source.put(kind.victim, bytes(data))
    assert "replaced since" in shard(kind, source, output, code=2).complaints[0]


@pytest.mark.parametrize("name", [*KINDS])
def test_a_job_of_an_earlier_version_is_resumed(tmp_path: Path, name: str) -> None:
    """The job file of an earlier version has no versions of files, so that none is compared."""
    source, output, kind = open_store(tmp_path / "source"), tmp_path / "out", KINDS[name]
    kind.fill(source)
    interrupted(kind, source, output)
    job = json.loads((output / "train.job.json").read_bytes())
    assert job.pop("file_versions").keys() == {*kind.keys}
    (output / "train.job.json").write_text(json.dumps(job))
    source.put(kind.victim, kind.content(FIRST))
    assert "resuming" in shard(kind, source, output, code=0).err


def test_a_replaced_output_is_refused_and_the_same_one_is_not(tmp_path: Path) -> None:
    """Shards of this program are identified by their SHA-256, not by location or time."""
    first, output = tmp_path / "first", tmp_path / "out"
    kind, again = KINDS["webdataset"], Kind("records", (), tfrecord)
    for folder, content in (("a", FIRST), ("b", SECOND)):
        for key in kind.keys:
            open_store(tmp_path / folder).put(key, kind.content(content))
    first_output = open_store(first)
    shard(kind, open_store(tmp_path / "a"), first, code=0)
    interrupted(again, first_output, output)
    shard(kind, open_store(tmp_path / "a"), first, "--overwrite", code=0)
    assert "resuming" in shard(again, first_output, output, code=0).err
    shard(kind, open_store(tmp_path / "b"), first, "--overwrite", code=0)
    refused = shard(again, first_output, output, code=2)
    assert "1 file replaced since" in refused.complaints[0]


@pytest.mark.parametrize("name", SAME_SIZE)
def test_a_mended_file_is_taken_in(tmp_path: Path, name: str) -> None:
    """--retry-failed accepts a changed file of which a sample failed, and so do later runs.

    Another file that was replaced meanwhile is refused.
    """
    source, output, kind = open_store(tmp_path / "source"), tmp_path / "out", KINDS[name]
    kind.fill(source)
    broken = [*FIRST]
    broken[3] = b"no image".ljust(len(FIRST[3]), b"\0")
    source.put(kind.victim, kind.content(broken))
    shard(kind, source, output, code=0)
    assert [*library.open(str(output)).samples["status"]].count("failed") == 1
    source.put(kind.victim, kind.content(FIRST))
    refused = shard(kind, source, output, code=2)
    assert "if these files failed before, --retry-failed accepts them" in refused.complaints[0]
    if len(kind.keys) > 1:
        other = kind.keys[0]
        source.put(other, kind.content(SECOND))
        refused = shard(kind, source, output, "--retry-failed", code=2)
        assert f"1 file replaced since, such as {other!r}" in refused.complaints[0]
        return
    shard(kind, source, output, "--retry-failed", code=0)
    assert {*library.open(str(output)).samples["status"]} == {"written"}
    assert "nothing to do" in shard(kind, source, output, code=0).err
    in_process("verify", output, code=0)


@pytest.mark.parametrize("name", ["parquet", "records"])
def test_a_retry_that_was_killed_takes_the_file_in(tmp_path: Path, name: str) -> None:
    """A killed retry has removed the receipts with the failed samples, and its file is accepted."""
    source, output, kind = open_store(tmp_path / "source"), tmp_path / "out", KINDS[name]
    kind.fill(source)
    interrupted(kind, source, output)
    source.put(kind.victim, kind.content(SECOND))
    assert "replaced since" in shard(kind, source, output, code=2).complaints[0]
    shard(kind, source, output, "--retry-failed", code=0)
    assert "nothing to do" in shard(kind, source, output, code=0).err
