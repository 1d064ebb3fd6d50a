"""Each mistake of a user gives one clear line and the right exit code, and writes nothing."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from dataprep.drawn import SampleTree, draw_tree
from dataprep.name_encoding import escape, unescape
from iobench.servers.moto_server import MotoServer
from tests import commandline
from tests.commandline import Finished, files, in_process

pytestmark = pytest.mark.slow

PROGRESS = re.compile(
    r".*: [^,]+, [\d,]+ class(es)?, [\d,]+ images?; labels? 0.*"
    r"|plan: [\d,]+ shards? per format.*"
    r"|shard size .* becomes .*"
    r"|resuming .*"
    r"|1 link to a folder that contains the link, not followed: .*"
    r"|Dask dashboard: http.*"
    r"|[\d,]+ of ImageNet's 1,000 classes.*"
    r"|\w+: complete already, nothing to do .*"
    r"|\w+  [\d,]+/[\d,]+ photos  .*"
)


def one_clear_line(finished: Finished, code: int) -> str:
    """The only error line. All other lines on stderr are progress, and stdout is empty."""
    assert finished.code == code, finished
    assert finished.out == ""
    rest = [line for line in finished.err.splitlines() if not PROGRESS.fullmatch(line)]
    assert len(rest) == 1, finished.err
    assert rest[0].startswith("dataprep: ")
    assert "Traceback" not in finished.err
    return rest[0]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of two small images each."""
    return draw_tree(tmp_path / "photos", images=4, classes=2, seed=1).root


@pytest.fixture(scope="module")
def defects(tmp_path_factory: pytest.TempPathFactory) -> SampleTree:
    """A tree with every defect. Read only."""
    dest = tmp_path_factory.mktemp("defects") / "photos"
    return draw_tree(dest, images=24, classes=4, seed=2, defects=True)


class TestRequest:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--source", "nowhere"], "no such file or directory: 'nowhere'"),
            (["--shard-size", "900kB"], "--shard-size 900kB: shards are 1 MB to 128 MB"),
            (["--size", "20000"], "--size 20000: give at most 16384"),
            (["--size", "2x3x4"], "--size: give a whole number or at most 2 values"),
            (["--size", "²"], "--size ²: give a whole number"),
            (["--size", "256x192"], "takes one number"),
            (["--mode", "none", "--size", "5"], "leave 'size' out"),
            (["--seed", str(2**63)], "--seed"),
            (["--format", "hdf5"], "'hdf5': use one of recordio, tfrecord, webdataset"),
            (["--split", "a/b"], "letters, digits and underscores"),
            (["--split", "validation", "--validation", "5%"], "other than validation"),
            (["--max-failures", "²"], "--max-failures ²: give a number"),
            (["--set", "image.qualty=5"], "unknown key image.qualty: did you mean image.quality?"),
            (["--set", "image.quality=[1"], "not valid YAML"),
            (["--set", "seed.deeper=5"], "seed"),
            (["--set", "kind=tarball"], "no source kind 'tarball': use one of flat"),
            (["--output", "s3://"], "no bucket in 's3://'"),
            (["--output", "s3:///prefix"], "no bucket"),
            (["--output", "ftp://host/x"], "no store 'ftp': use one of file, memory, s3"),
            (["--output", ""], "--output '': give a path"),
            (["--source", "ftp://host/x"], "no store 'ftp': use one of file, memory, s3"),
            (["--endpoint-url", "localhost:9000"], "must begin with http:// or https://"),
            (["--endpoint-url", "http://me:pw@host:9000"], "must not carry a user"),
            (["--set", "dask.cluster=no.such.Cluster"], "cannot import 'no.such.Cluster'"),
            (["--set", "dask.cluster=nodots"], "cannot import 'nodots'"),
            (["--retry-failed"], "has no job of split 'train', so that there is nothing to retry"),
            (["--scheduler", "nonsense"], "no Dask scheduler answers at 'nonsense'"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_refused(
        self, photos: Path, tmp_path: Path, arguments: list[str], message: str
    ) -> None:
        """An impossible value is refused in one line with its name, and nothing is written."""
        output = tmp_path / "new" / "out"
        options = {"--source": str(photos), "--output": str(output)}
        defaults = [part for pair in options.items() if pair[0] not in arguments for part in pair]
        line = one_clear_line(in_process("shard", *defaults, *arguments), 2)
        assert message in line
        assert not output.parent.exists()
        assert "pw" not in line.replace("password", "")

    @pytest.mark.parametrize("missing", ["source", "output"])
    def test_missing(self, photos: Path, tmp_path: Path, missing: str) -> None:
        """For a missing source or output, the error names its option."""
        settings = {"source": photos, "output": tmp_path / "out"}
        del settings[missing]
        ((name, value),) = settings.items()
        line = one_clear_line(in_process("shard", f"--{name}", value), 2)
        assert f"--{missing}" in line

    def test_several_at_once(self, photos: Path, tmp_path: Path) -> None:
        """All wrong keys are named in one line."""
        line = one_clear_line(
            in_process(
                *("shard", "--source", photos, "--output", tmp_path / "out"),
                *("--quality", "0", "--workers", "-1", "--set", "sede=4"),
            ),
            2,
        )
        assert "--quality 0" in line
        assert "--workers -1" in line
        assert "did you mean seed?" in line

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"source: [a, b\n", "not valid YAML"),
            (b"source: \xff\xfe\n", "not valid YAML"),
            (b"\x00\x01\x02", "not valid YAML"),
            (b"- source\n- output\n", "a config is a mapping"),
            (b"just words", "a config is a mapping"),
            (b"source: !!python/object/apply:os.system [ls]\n", "not valid YAML"),
            (b"source: photos\nsource_: x\noutput: out\n", "did you mean source?"),
            (b"1: 2\nsource: photos\noutput: out\n", "1: Keys should be strings"),
            (b"source: photos\noutput: out\nimage: {size: [1, 2, 3]}\n", "image.size"),
            (b"source: photos\noutput: out\nimage:\n", "image"),
            (b"a: &a [*a]\n", "unknown key a"),
        ],
        ids=[
            *("unclosed", "not UTF-8", "binary", "list", "text", "object", "misspelt", "number"),
            *("wrong type", "null", "recursive"),
        ],
    )
    def test_corrupt_config(self, tmp_path: Path, content: bytes, message: str) -> None:
        """A config file that is malformed, missing or a folder is refused by name."""
        config = tmp_path / "job.yaml"
        config.write_bytes(content)
        line = one_clear_line(in_process("shard", config), 2)
        assert message in line
        for path in (config, tmp_path / "none.yaml", tmp_path):
            assert str(path) in one_clear_line(in_process("shard", path), 2)

    def test_as_a_command(self, tmp_path: Path) -> None:
        """The real command ends as it does in this process. Only --debug shows a traceback."""
        job = ("shard", "--source", tmp_path / "x", "--output", tmp_path / "o")
        line = one_clear_line(commandline.dataprep(*job), 2)
        assert "no such file or directory" in line
        assert not (tmp_path / "o").exists()
        for arguments, message in (
            ((*job, "--debug"), "Traceback"),
            ((*job, "--sauce"), "--sauce"),
        ):
            done = commandline.dataprep(*arguments)
            assert (done.code, done.out) == (2, "")
            assert message in done.err
            assert ("Traceback" in done.err) == (message == "Traceback")


class TestSource:
    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ("", "no files in"),
            ("n01440764/", "no files in"),
            ("a/notes.txt", "no class folders with images"),
        ],
    )
    def test_without_images(self, tmp_path: Path, entry: str, message: str) -> None:
        """A folder without images is refused."""
        path = tmp_path / "photos" / entry
        (path if entry.endswith("/") or not entry else path.parent).mkdir(parents=True)
        if entry.endswith(".txt"):
            path.write_text("words")
        job = ("shard", "--source", tmp_path / "photos", "--output", tmp_path / "out")
        assert message in one_clear_line(in_process(*job), 2)

    def test_a_file(self, photos: Path, tmp_path: Path) -> None:
        """If the source is a single file, the error names the kinds that read files."""
        job = ("shard", "--source", next(photos.rglob("*.JPEG")), "--output", tmp_path / "out")
        line = one_clear_line(in_process(*job), 2)
        assert "is a file, not a folder of images" in line
        assert "--kind ilsvrc or webdataset for a tar, --kind listing for a table" in line

    def test_both_splits(self, photos: Path, tmp_path: Path) -> None:
        """A folder of train and val is refused with the command that takes one of them."""
        both = tmp_path / "both"
        both.mkdir()
        shutil.copytree(photos, both / "train")
        shutil.copytree(photos, both / "val")
        done = in_process("shard", "--source", both, "--output", tmp_path / "out", code=2)
        assert done.out == ""
        first, *rest = done.err.splitlines()
        assert first.startswith("dataprep: ")
        assert first.endswith("folders that look like splits, not classes: 'train', 'val'.")
        command = f"dataprep shard --source {both}/train --split train --output OUTPUT"
        assert command in [line.strip() for line in rest]
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("where", ["", "shards", "a/b", "link/out"])
    def test_output_inside(self, photos: Path, tmp_path: Path, where: str) -> None:
        """An output within the source, even behind a link, is refused and not created."""
        (tmp_path / "link").symlink_to(photos)
        before = files(photos)
        output = tmp_path / where if where.startswith("link") else photos / where
        done = in_process("shard", "--source", photos, "--output", output)
        assert "inside the source" in one_clear_line(done, 2)
        assert files(photos) == before
        assert not where or not output.exists()

    def test_source_among_the_outputs_shards(self, photos: Path, tmp_path: Path) -> None:
        """A source among the shards and tables of the output is refused and left as it is."""
        out, foreign = tmp_path / "out", tmp_path / "foreign"
        assert in_process("shard", "--source", photos, "--output", out).code == 0
        shutil.copytree(out / "tfrecord", foreign / "tfrecord")
        (tmp_path / "link").symlink_to(out)
        for folder, source in ((out, out), (out, tmp_path / "link"), (foreign, foreign)):
            job = ("--source", source / "tfrecord", "--kind", "records", "--output", folder)
            before = files(folder)
            for more in ((), ("--overwrite",)):
                line = one_clear_line(in_process("shard", *job, *more), 2)
                assert "it would be replaced: choose another output" in line
                assert files(folder) == before
        for table in ("train.plan.parquet", "train.samples.parquet"):
            done = in_process(
                *("shard", "--source", out / table, "--kind", "listing", "--output", out),
                "--overwrite",
            )
            assert "choose another output" in one_clear_line(done, 2)
            assert (out / table).exists()

    def test_a_source_beside_the_outputs_shards(self, photos: Path, tmp_path: Path) -> None:
        """Images in another folder of the output can be sharded, and are not removed."""
        before = files(photos)
        for more in ((), ("--overwrite",)):
            in_process("shard", "--source", photos, "--output", photos.parent, *more, code=0)
        assert files(photos) == before

    @pytest.mark.parametrize("kind", ["imagefolder", "flat", "ilsvrc", "listing", "records"])
    @pytest.mark.parametrize("name", ["loop", "x" * 300], ids=["loop", "too long"])
    def test_what_cannot_be_there(self, tmp_path: Path, kind: str, name: str) -> None:
        """A link to itself, and a name that no file can have, are reported as missing sources."""
        (tmp_path / "loop").symlink_to("loop")
        job = ("--source", tmp_path / name, "--kind", kind, "--output", tmp_path / "out")
        assert name in one_clear_line(in_process("shard", *job), 2)

    @pytest.mark.parametrize("name", ["with spaces", "ünïcode 漢字", "new\nline", "tab\there"])
    def test_odd_names_of_folders(self, photos: Path, tmp_path: Path, name: str) -> None:
        """Source and output can have any name, and messages stay printable."""
        source = photos.rename(tmp_path / f"{name} in")
        output = tmp_path / f"{name} out"
        done = commandline.dataprep(
            "shard", "--source", source, "--output", output, "--json", code=0
        )
        assert done.one_object["splits"][0]["output"] == str(output)
        again = in_process("shard", "--source", source, "--output", output, "--seed", "5")
        assert (again.code, again.out) == (2, "")
        assert all(line.isprintable() for line in again.err.splitlines())


class TestOutput:
    @pytest.mark.parametrize("location", ["file/out", "/proc/self/out"])
    def test_where_nothing_can_be(self, photos: Path, tmp_path: Path, location: str) -> None:
        """An output below a file, or on a file system without regular files, is refused."""
        (tmp_path / "file").write_text("x")
        done = in_process("shard", "--source", photos, "--output", tmp_path / location)
        assert "out" in one_clear_line(done, 2)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_no_right_to_write(self, photos: Path, tmp_path: Path) -> None:
        """A folder without the right to write is refused before anything is read."""
        output = tmp_path / "out"
        output.mkdir(mode=0o500)
        done = in_process("shard", "--source", photos, "--output", output)
        assert "permission denied" in one_clear_line(done, 2)


NOBODY_ANSWERS = ("store.max_attempts=1", "store.connect_timeout_s=1")


class TestS3:
    @pytest.mark.parametrize(
        ("source", "output", "options", "message"),
        [
            ("photos", "s3://{bucket}-no/x", (), "s3://{bucket}-no: no such bucket"),
            ("s3://{bucket}-no/x", "out", (), "no such bucket"),
            ("s3://{bucket}/x", "out", (), "no files in"),
            ("photos", "s3://{bucket}/x", ("store.profile=nobody",), "nobody"),
            ("photos", "s3://{bucket}/x", NOBODY_ANSWERS, "http://127.0.0.1:9"),
            ("s3://{bucket}/x", "out", NOBODY_ANSWERS, "--endpoint-url"),
        ],
        ids=["bucket", "source bucket", "prefix", "profile", "output endpoint", "source endpoint"],
    )
    def test_refused(
        self,
        photos: Path,
        bucket: str,
        s3_server: MotoServer,
        monkeypatch: pytest.MonkeyPatch,
        source: str,
        output: str,
        options: tuple[str, ...],
        message: str,
    ) -> None:
        """A missing bucket or object, and an endpoint without an answer, are named."""
        monkeypatch.chdir(photos.parent)
        locations = (source.format(bucket=bucket), "--output", output.format(bucket=bucket))
        url = "http://127.0.0.1:9" if options == NOBODY_ANSWERS else s3_server.url
        settings = [part for option in options for part in ("--set", option)]
        done = in_process("shard", "--source", *locations, "--endpoint-url", url, *settings)
        assert message.format(bucket=bucket) in one_clear_line(done, 2)
        assert not Path("out").exists()

    def test_no_credentials(
        self, photos: Path, bucket: str, s3_server: MotoServer, tmp_path: Path
    ) -> None:
        """The error line says how to give credentials."""
        hidden = {
            **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), ""),
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
            "AWS_CONFIG_FILE": str(tmp_path / "none"),
        }
        done = commandline.dataprep(
            *("shard", "--source", photos, "--output", f"s3://{bucket}/x"),
            *("--endpoint-url", s3_server.url),
            env=hidden,
        )
        assert "AWS_ACCESS_KEY_ID" in one_clear_line(done, 2)


class TestChannels:
    def test_json_is_one_object(self, photos: Path, tmp_path: Path) -> None:
        """--json prints one JSON object on stdout, with any number of messages on stderr."""
        done = commandline.dataprep(
            *("shard", "--source", photos, "--output", tmp_path / "out", "--json"),
            *("--set", "dask.processes=true", "--workers", "1"),
            code=0,
        )
        (split,) = done.one_object["splits"]
        assert split["samples"] == {
            "total": 4,
            "written": 4,
            "failed": 0,
            "skipped": 0,
            "passthrough": 4,
            "reencoded": 0,
        }
        for line in done.err.splitlines():
            assert PROGRESS.fullmatch(line), line

    def test_json_of_a_job_that_stops(self, photos: Path, tmp_path: Path) -> None:
        """The JSON object has the reason, each known failure, and the complete splits."""
        first = min(photos.iterdir())
        (first / "broken.jpg").write_bytes(b"no image")
        arguments = ("shard", "--source", photos, "--output", tmp_path / "out", "--json")
        done = in_process(*arguments, code=1)
        stopped = done.one_object["stopped"]
        assert "1 sample failed, but --max-failures 1% allows 0 of so few samples" in stopped["why"]
        (failure,) = stopped["failures"]
        assert failure["source"] == f"{first.name}/broken.jpg"
        assert failure["reason"].startswith("not an image")
        assert done.one_object["splits"] == []
        assert len(done.complaints) == 1
        refused = in_process(*arguments, "--seed", "1")
        assert (refused.code, refused.out) == (2, "")
        (content,) = in_process(*arguments, "--max-failures", "1").one_object["splits"]
        assert content["samples"]["failed"] == 1

    def test_skips_have_their_reasons(self, photos: Path, tmp_path: Path) -> None:
        """The summary has the reasons for skipped files, as it has for failures."""
        (photos / "stray.jpg").write_bytes(b"")
        (min(photos.iterdir()) / ".DS_Store").write_bytes(b"x")
        (min(photos.iterdir()) / "README.txt").write_bytes(b"words")
        done = in_process("shard", "--source", photos, "--output", tmp_path / "out", code=0)
        for reason in ("in no class folder 1", "hidden or system file 1", "not an image 1"):
            assert f"  skipped: {reason}" in done.out.splitlines()

    def test_print_config_comes_back(self, tmp_path: Path, photos: Path) -> None:
        """--print-config prints a config that prints the same again, and makes nothing."""
        output = tmp_path / "out"
        first = in_process(
            *("shard", "--source", photos, "--output", output, "--size", "256x192"),
            *("--mode", "crop", "--validation", "5%", "--shard-size", "5MB", "--format"),
            *("recordio", "--set", "label_offset={recordio: 3}", "--print-config"),
            code=0,
        )
        assert first.err == ""
        content = yaml.safe_load(first.out)
        assert content["image"]["size"] == [256, 192]
        assert content["shard_size"] == 5_000_000
        config = tmp_path / "job.yaml"
        config.write_text(first.out)
        second = in_process("shard", config, "--print-config")
        assert second.out == first.out
        assert not output.exists()
        assert in_process("shard", config).code == 0


@pytest.fixture(scope="module")
def table(defects: SampleTree, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The table of samples of a job over every defect."""
    output = tmp_path_factory.mktemp("accounted") / "out"
    done = commandline.dataprep(
        *("shard", "--source", defects.root, "--output", output, "--size", "128"),
        *("--format", "tfrecord", "--format", "recordio", "--max-failures", "100%", "--json"),
        code=0,
    )
    assert "Traceback" not in done.err
    for line in done.err.splitlines():
        assert PROGRESS.fullmatch(line), line
    data = (output / "train.samples.parquet").read_bytes()
    frame: pd.DataFrame = pq.read_table(io.BytesIO(data)).to_pandas()
    manifest = json.loads((output / "train.manifest.json").read_bytes())
    statuses = Counter(frame["status"])
    assert manifest["samples"]["total"] == len(frame)
    for status in ("written", "failed", "skipped"):
        assert manifest["samples"][status] == statuses[status]
    assert in_process("verify", output, "--deep").code == 0
    return frame


class TestEveryInputIsAccountedFor:
    def test_once(self, defects: SampleTree, table: pd.DataFrame) -> None:
        """Every file and link of the tree has one row in the table, with its status.

        Only a written sample has a shard and a position. Only another entry has a reason.
        """
        entries = set()
        for folder, subfolders, names in os.walk(defects.root):
            paths = [Path(folder) / name for name in names]
            linked_folders = [Path(folder) / name for name in subfolders]
            paths += [path for path in linked_folders if path.is_symlink()]
            entries |= {os.fspath(path.relative_to(defects.root)) for path in paths}
        assert len(table) == len(entries)
        assert {unescape(name) for name in table["source"]} == entries

        assert len(defects.defects) > 40
        statuses = {unescape(k): v for k, v in zip(table["source"], table["status"], strict=True)}
        expected = dict(defects.defects)
        assert {name: statuses[name] for name in expected} == expected
        rest = [status for name, status in statuses.items() if name not in expected]
        assert rest == ["written"] * defects.images
        written = table["status"] == "written"
        assert table.loc[written, "reason"].isna().all()
        assert (table.loc[~written, "reason"].str.len() > 0).all()
        columns = ["tfrecord_offset", "tfrecord_length", "recordio_offset", "recordio_length"]
        assert table.loc[written, [*columns, "shard"]].notna().all().all()
        assert table.loc[~written, columns].isna().all().all()

    @pytest.mark.parametrize(
        ("suffix", "status", "reason"),
        [
            ("_text.JPEG", "failed", ""),
            ("_empty.JPEG", "failed", "empty file (0 bytes)"),
            ("_half.JPEG", "failed", ""),
            ("_bomb-of-65500x65500.JPEG", "failed", "pixels"),
            ("_link-out-of-the-folder.JPEG", "failed", ""),
            ("_link-to-nothing.JPEG", "failed", "broken symlink"),
            ("_link-to-the-folder-above", "skipped", "symlink to a folder that contains it"),
            ("README.txt", "skipped", ""),
            (".DS_Store", "skipped", "hidden or system file"),
            (escape("new\nline.JPEG"), "written", None),
            (escape("tab\tulator.JPEG"), "written", None),
            (escape("bytes-\udcff\udcfe.JPEG"), "written", None),
            ("with some spaces.JPEG", "written", None),
            ("漢字.JPEG", "written", None),
        ],
        ids=lambda value: str(value).encode("ascii", "replace").decode(),
    )
    def test_by_name(
        self, table: pd.DataFrame, suffix: str, status: str, reason: str | None
    ) -> None:
        """Each defect has its status and its own reason."""
        (row,) = table[table["source"].str.endswith(suffix)].to_dict("records")
        assert row["status"] == status
        assert reason is None or reason in row["reason"]
