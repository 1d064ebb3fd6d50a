"""Outputs are copied to hosts, and array jobs run on a simulated AWS Batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import dataprep
from dataprep.errors import (
    ConfigError,
    DatasetChanged,
    DatasetError,
    FormatMissing,
    JobError,
    OutputConflict,
    StoreError,
    StoreFull,
)
from dataprep.job import aws_batch
from dataprep.job.conversion import Progress
from dataprep.job.parts import Part
from dataprep.job.report import Display
from dataprep.reading import staging
from dataprep.reading.shares import assigned_shards
from dataprep.reading.staging import stage
from dataprep.stores import open_store
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore
from iobench.servers.moto_server import MotoServer
from tests.commandline import FORMATS
from tests.simulated_batch import DEFINITION, QUEUE, batch_queue

sizes = st.lists(st.integers(1, 1_000), min_size=1, max_size=60)


@given(sizes=sizes, hosts=st.integers(1, 12))
def test_a_division_gives_each_shard_to_one_host(sizes: list[int], hosts: int) -> None:
    """Shares of hosts differ by the largest shard at most."""
    shares = assigned_shards(sizes, hosts)
    assert sorted(number for share in shares for number in share) == list(range(len(sizes)))
    share_bytes = [sum(sizes[number] for number in share) for share in shares]
    assert max(share_bytes) - min(share_bytes) <= max(sizes)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """The folder of a copy."""
    return str(tmp_path / "host")


def sources(uri: str) -> list[str]:
    """The source names of a data set's images, after each image was decoded."""
    with dataprep.open(uri) as status:
        assert len(list(status)) == len(status) == len(status.written)
        assert all(status[number].image == sample.image for number, sample in enumerate(status))
        return list(status.written["source"])


@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_shares_have_each_sample_once(uri_of_dataset: str, folder: str, hosts: int) -> None:
    """Each share is a data set of its own that verifies in full, with the counts of all shares."""
    status, counts = [], set()
    for number in range(hosts):
        share = f"{folder}{number}"
        (staged,) = stage(uri_of_dataset, share, host=Part(number, hosts))
        (verified,) = dataprep.verify(share, depth="deep")
        assert verified.ok, verified
        assert staged.share is not None
        assert staged.samples == staged.share.samples[number] == verified.samples
        assert staged.bytes == staged.copied_bytes == verified.bytes
        assert dataprep.inspect(share).ok
        counts.add(staged.share.samples)
        status += sources(share)
    assert sorted(status) == sorted(sources(uri_of_dataset))
    assert len(counts) == 1


@pytest.mark.parametrize("format", [*FORMATS, None])
def test_a_copy_of_everything(changeable: MemoryStore, folder: str, format: str | None) -> None:
    """A copy has one format or both, and its table has failed samples too."""
    stage(changeable.uri, folder, format=format)
    (verified,) = dataprep.verify(folder)
    assert verified.ok, verified
    assert verified.formats == ((format,) if format else FORMATS)
    assert sources(folder) == sources(changeable.uri)
    assert len(dataprep.open(folder).samples) == len(dataprep.open(changeable.uri).samples)


def test_shards_of_a_share_are_a_source(uri_of_dataset: str, folder: str, tmp_path: Path) -> None:
    """A share can be sharded again."""
    stage(uri_of_dataset, folder, host=Part(1, 2))
    config = dataprep.ShardConfig.model_validate(
        {
            "source": folder,
            "kind": "records",
            "output": str(tmp_path / "again"),
            "dask": {"processes": False, "workers": 1},
        }
    )
    dataprep.shard(config)
    assert sorted(sources(str(tmp_path / "again"))) == sorted(sources(folder))


class Stopping(Display):
    """Fails after some bytes, like a full disk or a lost connection."""

    def __init__(self, most: int) -> None:
        self.left = most

    def advance(self, progress: Progress) -> None:
        """Count the bytes down."""
        self.left -= progress.source_bytes
        if self.left < 0:
            raise StoreError("gone")


def test_a_copy_that_stopped_goes_on(
    uri_of_dataset: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Existing files are not copied again, and no reader opens an incomplete copy."""
    monkeypatch.setattr(staging, "_SHARDS_AT_ONCE", 1)
    with pytest.raises(StoreError, match="gone"):
        stage(uri_of_dataset, folder, display=Stopping(5_000_000))
    with pytest.raises(DatasetError, match="no complete split"):
        dataprep.open(folder)
    (staged,) = stage(uri_of_dataset, folder)
    assert 0 < staged.copied_bytes < staged.bytes
    assert dataprep.verify(folder)[0].ok
    (again,) = stage(uri_of_dataset, folder)
    assert again.copied_bytes == 0


def test_a_damaged_shard_is_not_taken(changeable: MemoryStore, folder: str) -> None:
    """The error has the shard's name and a remedy, and the copy continues after a repair."""
    key = next(info.key for info in changeable.list("recordio/"))
    content = changeable.get(key)
    changeable.put(key, bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(DatasetError, match=rf"{key} is damaged.*dataprep verify"):
        stage(changeable.uri, folder)
    assert not Path(folder, "train.manifest.json").exists()
    changeable.put(key, content)
    stage(changeable.uri, folder)
    assert dataprep.verify(folder)[0].ok


def test_an_output_that_is_made_anew_meanwhile(changeable: MemoryStore, folder: str) -> None:
    """A copy never mixes shards of an output with those of its replacement."""

    class Overwriting(Display):
        def advance(self, progress: Progress) -> None:
            changeable.delete("train.manifest.json")

    with pytest.raises(DatasetChanged):
        stage(changeable.uri, folder, display=Overwriting())
    assert not Path(folder, "train.manifest.json").exists()


def test_too_little_room(uri_of_dataset: str, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is too little space, nothing is copied."""
    monkeypatch.setattr(LocalStore, "free_bytes", lambda self: 1_000)
    with pytest.raises(StoreFull, match=r"MB would be written to .*0 MB are free") as refused:
        stage(uri_of_dataset, folder)
    assert refused.value.exit_code == 2
    assert not [path for path in Path(folder).rglob("*") if path.is_file()]


def test_another_share_is_refused(uri_of_dataset: str, folder: str) -> None:
    """Another share, another data set and an incomplete output are refused."""
    stage(uri_of_dataset, folder, host=Part(0, 2))
    with pytest.raises(OutputConflict, match="holds another data set or share"):
        stage(uri_of_dataset, folder, host=Part(1, 2))
    with pytest.raises(OutputConflict, match="holds another data set or share"):
        stage(uri_of_dataset, folder, format="tfrecord", host=Part(0, 2))
    with pytest.raises(ConfigError, match="is a share"):
        stage(folder, f"{folder}-of-share")
    with pytest.raises(ConfigError, match="is the output itself"):
        stage(folder, folder)
    with pytest.raises(ConfigError, match="too few for 99 hosts"):
        stage(uri_of_dataset, f"{folder}-99", host=Part(0, 99))
    with pytest.raises(FormatMissing, match="no format 'zip'"):
        stage(uri_of_dataset, f"{folder}-zip", format="zip")


def test_shares_that_differ_much(uri_of_dataset: str, folder: str) -> None:
    """A warning names a shard size with more equal shares."""
    (staged,) = stage(uri_of_dataset, folder, host=Part(0, 4))
    assert staged.share is not None
    few = min(staged.share.samples)
    assert staged.share.left_out == pytest.approx(1 - 4 * few / sum(staged.share.samples))
    assert "warning: shares differ by more than 2%" in str(staged)
    assert "--shard-size 1.2MB for 4 hosts" in str(staged)


@pytest.mark.s3
def test_from_s3(
    uri_of_dataset: str,
    bucket: str,
    s3_server: MotoServer,
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large shard is read by several requests."""
    options = dataprep.StoreOptions(endpoint_url=s3_server.url)
    remote, original = open_store(f"s3://{bucket}/out", options), MemoryStore(uri_of_dataset)
    for info in original.list():
        remote.put(info.key, original.get(info.key))
    monkeypatch.setattr(staging, "_PIECE_BYTES", 300_000)
    stage(f"s3://{bucket}/out", folder, options=options, host=Part(0, 2))
    assert dataprep.verify(folder, depth="deep")[0].ok


@pytest.mark.parametrize(
    ("option", "environment"),
    [
        ("--part", {"AWS_BATCH_JOB_ARRAY_INDEX": "2", "AWS_BATCH_JOB_ARRAY_SIZE": "5"}),
        ("--part", {"SLURM_PROCID": "2", "SLURM_NTASKS": "5"}),
        ("--part", {"RANK": "2", "WORLD_SIZE": "5"}),
        ("--part", {"JOB_COMPLETION_INDEX": "2", "JOB_COMPLETIONS": "5"}),
        ("--part", {"RANK": "2", "WORLD_SIZE": "5", "JOB_COMPLETION_INDEX": "0"}),
        (
            "--part",
            {"SLURM_PROCID": "2", "SLURM_NTASKS": "5"}
            | {"JOB_COMPLETION_INDEX": "0", "JOB_COMPLETIONS": "1"},
        ),
        ("--host", {"JOB_COMPLETION_INDEX": "2", "JOB_COMPLETIONS": "5"}),
        ("--host", {"AWS_BATCH_JOB_ARRAY_INDEX": "2", "AWS_BATCH_JOB_ARRAY_SIZE": "5"}),
        ("--host", {"SLURM_NODEID": "2", "SLURM_NNODES": "5", "SLURM_PROCID": "17"}),
        ("--host", {"GROUP_RANK": "2", "GROUP_WORLD_SIZE": "5", "RANK": "17", "WORLD_SIZE": "40"}),
    ],
)
def test_auto(option: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Index and count come from the environment of the launcher, and Kubernetes is the last one."""
    with pytest.raises(ConfigError, match=f"{option} auto: .* give {option} I/N"):
        Part.parse("auto", option)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Part.parse("auto", option) == (2, 5)


@pytest.mark.parametrize("option", ["--part", "--host"])
def test_kubernetes_does_not_say_how_many_indexes_there_are(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest has to set the count: the error names the variable, its value and the page."""
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "2")
    with pytest.raises(ConfigError, match=r"set JOB_COMPLETIONS to .*docs/kubernetes\.md"):
        Part.parse("auto", option)


@pytest.mark.parametrize("option", ["--part", "--host"])
def test_a_job_of_kubernetes_that_is_not_indexed_is_refused(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods of a job without indexes have a count and no index: the error names the key to set."""
    monkeypatch.setenv("JOB_COMPLETIONS", "5")
    with pytest.raises(ConfigError, match=r"not JOB_COMPLETION_INDEX.*completionMode to Indexed"):
        Part.parse("auto", option)


def test_an_index_beyond_the_count_is_refused_with_the_names_of_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An index beyond the count is refused with both variables, as for a wrong manifest."""
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "7")
    monkeypatch.setenv("JOB_COMPLETIONS", "5")
    with pytest.raises(
        ConfigError, match=r"--part auto: JOB_COMPLETION_INDEX is '7' and JOB_COMPLETIONS is '5'"
    ):
        Part.parse("auto")


queue = pytest.fixture(batch_queue)


def config_file(folder: Path, **values: Any) -> str:
    """A YAML file with these keys."""
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(values))
    return str(path)


def submitted(config: str, children: int = 3) -> tuple[str, str]:
    """The ids of both submitted jobs."""
    return aws_batch.submit(config, queue=QUEUE, definition=DEFINITION, children=children)


def commands(client: Any, *jobs: str) -> list[list[str]]:
    """The command of each job's container."""
    described = client.describe_jobs(jobs=list(jobs))["jobs"]
    status = {job["jobId"]: job["container"]["command"] for job in described}
    return [status[job] for job in jobs]


def test_what_is_submitted(queue: Any, tmp_path: Path) -> None:
    """An array job runs the parts, and another one waits for it and finalizes."""
    image = {"size": 256}
    output = "s3://bucket/out"
    path = config_file(tmp_path, source="s3://b/in", output=output, image=image, max_failures=3)
    array, finalizing = submitted(path)
    shard, finalize = commands(queue, array, finalizing)
    assert shard[:2] == ["dataprep", "shard"]
    assert shard[-2:] == ["--part", "auto"]
    assert 'image={"mode": "short", "size": 256}' in shard
    assert finalize == [
        *("dataprep", "finalize", output),
        *("--parts", "3", "--max-failures", "3"),
    ]
    (described,) = queue.describe_jobs(jobs=[finalizing])["jobs"]
    assert [dependency["jobId"] for dependency in described["dependsOn"]] == [array]


@pytest.mark.parametrize(
    ("children", "changed", "message"),
    [
        (1, {}, "an array job has 2 to 10,000"),
        (3, {"output": "out"}, "the children run on other machines"),
        (3, {"image": {"sizes": 1}}, "unknown key image.sizes"),
        (3, {"kind": "listing", "source": "s3://b/" + 9000 * "x"}, "copy it to S3"),
    ],
)
def test_nothing_is_submitted(
    queue: Any, tmp_path: Path, children: int, changed: dict[str, Any], message: str
) -> None:
    """A wrong request submits no job."""
    path = config_file(tmp_path, **{"source": "s3://b/in", "output": "s3://b/out", **changed})
    with pytest.raises(ConfigError, match=message):
        submitted(path, children)
    assert queue.list_jobs(jobQueue=QUEUE)["jobSummaryList"] == []


def test_what_aws_refuses(queue: Any, tmp_path: Path) -> None:
    """The error has the words of AWS, and names the job that was not submitted."""
    path = config_file(tmp_path, source="s3://b/in", output="s3://b/out")
    with pytest.raises(JobError, match="nothing"):
        aws_batch.submit(path, queue=QUEUE, definition="nothing", children=2)
    with pytest.raises(ConfigError, match="no-such-job: AWS Batch has no such job"):
        aws_batch.status("no-such-job")


def test_status_of_what_is_done(queue: Any, tmp_path: Path) -> None:
    """If both jobs have succeeded, the exit code is 0."""
    path = config_file(tmp_path, source="s3://b/in", output="s3://b/out")
    for job in submitted(path):
        status = aws_batch.wait(job, lambda status_line: None)
        assert (status.state, status.exit_code, status.failed) == ("SUCCEEDED", 0, ())


def test_status_of_what_failed(queue: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each failed child has its reason and its log stream, for the id of either job."""
    monkeypatch.setenv("MOTO_SIMPLE_BATCH_FAIL_AFTER", "0")
    array, finalizing = submitted(
        config_file(tmp_path, source="s3://b/in", output="s3://b/out"), children=2
    )
    for job in (array, finalizing):
        status = aws_batch.status(job)
        assert (status.job, status.state, status.exit_code) == (array, "FAILED", 1)
        assert [failure.child for failure in status.failed] == [0, 1]
        assert all(failure.log_stream != "none" for failure in status.failed)
        assert f"child 1: {status.failed[1].reason}; log stream" in str(status)


def test_a_status_without_children_names_none() -> None:
    """A job that is no array job has no line about children."""
    assert str(aws_batch.Status("abc", "RUNNING", {}, ())) == "abc: running"
    counts = {"RUNNING": 2, "FAILED": 0}
    assert (
        str(aws_batch.Status("abc", "RUNNING", counts, ())) == "abc: running; children: 2 running"
    )
