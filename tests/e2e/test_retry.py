"""``--retry-failed`` makes only the shards that lack samples again."""

from __future__ import annotations

import io
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dataprep
from tests import commandline
from tests.commandline import JOB, Finished, comparable, files, in_process, objects
from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow


def shard(source: Path, output: str | Path, *more: str, code: int | None = None) -> Finished:
    """Run ``dataprep shard`` in this process."""
    location = ("shard", "--source", source, "--output", output, "--workers", "2")
    return in_process(*location, *JOB, "--max-failures", "9", *more, code=code)


def column(output: Path, table: str, name: str) -> dict[str, Any]:
    """A column of a stored table, by source name."""
    samples_table = pq.read_table(io.BytesIO((output / f"train.{table}.parquet").read_bytes()))
    return dict(
        zip(samples_table["source"].to_pylist(), samples_table[name].to_pylist(), strict=True)
    )


def shards_of(output: Path) -> dict[str, int]:
    """The planned shard of each source name."""
    return column(output, "plan", "shard")


def statuses(output: Path) -> dict[str, str]:
    """The status of each source name."""
    return column(output, "samples", "status")


def break_some(source: Path, names: list[str], *, resize: bool) -> dict[str, bytes]:
    """Overwrite files so that they fail. Return their content."""
    contents = {name: (source / name).read_bytes() for name in names}
    for name, data in contents.items():
        (source / name).write_bytes(data[:2_000] if resize else bytes(len(data)))
    return contents


def mend(source: Path, contents: Mapping[str, bytes]) -> None:
    """Restore the content of files."""
    for name, data in contents.items():
        (source / name).write_bytes(data)


@pytest.fixture
def victims(tree: Path, reference_folder: Path) -> list[str]:
    """Two samples of one shard and one of another, which are not used for calibration."""
    by_size = sorted(shards_of(reference_folder), key=lambda name: (tree / name).stat().st_size)
    looked_at = {by_size[(2 * i + 1) * 120 // 64] for i in range(32)}
    groups: dict[int, list[str]] = {}
    for name, number in shards_of(reference_folder).items():
        if name not in looked_at:
            groups.setdefault(number, []).append(name)
    return [*groups[3][:2], groups[7][0]]


def test_a_mended_file_of_the_same_size(
    source: Path, tmp_path: Path, victims: list[str], reference: Mapping[str, object]
) -> None:
    """If no size changed, the result has the bytes of an undisturbed run."""
    output = tmp_path / "out"
    contents = break_some(source, victims, resize=False)
    done = shard(source, output, "--json")
    assert done.one_object["splits"][0]["samples"]["failed"] == 3, done.err
    inodes = {name: (output / name).stat().st_ino for name in files(output)}
    mend(source, contents)
    retried = shard(source, output, "--retry-failed", "--json", code=0)
    (content,) = retried.one_object["splits"]
    assert (content["made_shards"], content["kept_shards"]) == (2, 9)
    assert "3 samples to try again in 2 shards" in retried.err
    content_by_key = objects(output)
    assert content_by_key.keys() == reference.keys()
    # The digest covers sizes, not content: only the failed samples were planned differently.
    assert comparable(content_by_key) == reference
    changed = {n for n in inodes if (output / n).stat().st_ino != inodes[n]}
    assert {n for n in changed if n.startswith("tfrecord/")} == {
        f"tfrecord/train-{i:05}-of-00011" for i in (3, 7)
    }


def test_a_mended_file_of_another_size(
    source: Path, tmp_path: Path, victims: list[str], tree: Path
) -> None:
    """The stored plan stays, other shards do not change, and every sample is written."""
    output = tmp_path / "out"
    contents = break_some(source, victims, resize=True)
    assert shard(source, output).code == 0
    before = objects(output)
    mend(source, contents)
    refused = shard(source, output, code=2)
    assert "source: 3 files of another size" in refused.complaints[0]
    assert "if these files failed before, --retry-failed accepts them" in refused.complaints[0]
    shard(source, output, "--retry-failed", code=0)
    assert set(statuses(output).values()) == {"written"}
    after = objects(output)
    again = {shards_of(output)[name] for name in victims}
    for key, data in before.items():
        made_again = any(f"-{number:05}-of-" in key for number in again)
        assert (after[key] == data) is not (made_again or key.startswith("train.samples")) or (
            key == "train.manifest.json"
        ), key
    assert all(verification.ok for verification in dataprep.verify(output, depth="deep"))
    images = {sample.filename.decode(): sample.image for sample in dataprep.open(output)}
    assert all(images[Path(name).name] == contents[name] for name in victims)
    assert "nothing to do" in shard(source, output).err


def test_some_are_mended_later(source: Path, tmp_path: Path, victims: list[str]) -> None:
    """Samples that still fail are counted as before, and can be tried any number of times.

    A changed sound file, or a limit below the failures, is refused and nothing is removed.
    """
    output = tmp_path / "out"
    contents = break_some(source, victims, resize=True)
    assert shard(source, output, "--max-failures", "3").code == 0
    before = objects(output)
    refused = shard(source, output, "--retry-failed", "--max-failures", "1%", code=2)
    assert "complete with 3 failed samples, and --max-failures 1% allows 1" in refused.err
    assert "--max-failures 3" in refused.complaints[0]
    sound = next(name for name in shards_of(output) if name not in victims)
    content = (source / sound).read_bytes()
    (source / sound).write_bytes(content + b"\0")
    refused = shard(source, output, "--retry-failed", code=2)
    assert f"1 file of another size, such as {sound!r}" in refused.complaints[0]
    assert objects(output) == before
    mend(source, {victims[0]: contents[victims[0]], sound: content})
    for _ in range(2):
        done = shard(source, output, "--retry-failed", "--json", code=0)
        assert done.one_object["splits"][0]["samples"]["failed"] == 2
    mend(source, contents)
    assert shard(source, output, "--retry-failed").code == 0
    assert set(statuses(output).values()) == {"written"}


def test_an_unfinished_job(source: Path, tmp_path: Path, victims: list[str]) -> None:
    """A job that stopped because of failures is completed from where it stopped."""
    output = tmp_path / "out"
    contents = break_some(source, victims, resize=True)
    stopped = shard(source, output, "--max-failures", "2", code=1)
    assert "--retry-failed" in stopped.complaints[0]
    mend(source, contents)
    shard(source, output, "--retry-failed", "--max-failures", "0", code=0)
    assert set(statuses(output).values()) == {"written"}


def test_nothing_to_retry(tree: Path, reference_folder: Path, tmp_path: Path) -> None:
    """A split without failures is left as it is. Without a job the request is refused."""
    output = Path(shutil.copytree(reference_folder, tmp_path / "out"))
    before = objects(output)
    for location, code in ((output, 0), (tmp_path / "none", 2)):
        done = shard(tree, location, "--retry-failed", code=code)
        assert "nothing to retry" in done.err
    assert objects(output) == before
    assert files(tmp_path / "none") == set()


def test_a_refused_entry_has_no_place(source: Path, tmp_path: Path) -> None:
    """A link that was refused when the job was planned stays out, and the message has a remedy."""
    output = tmp_path / "out"
    link = source / "n01440764/link.JPEG"
    link.symlink_to("nowhere")
    assert shard(source, output).code == 0
    link.unlink()
    shutil.copy(next(source.rglob("*_*.JPEG")), link)
    done = shard(source, output, "--retry-failed", code=0)
    assert "1 entry was refused when the job was planned" in done.err
    assert "--overwrite" in done.err
    assert statuses(output)["n01440764/link.JPEG"] == "failed"


@pytest.mark.parametrize(
    ("location", "plain"),
    [
        ("delete:train.manifest", 2),
        ("delete:receipts/", 2),
        ("recordio/", 2),
        ("receipts/", 2),
        ("train.manifest", 0),
    ],
)
def test_killed_while_it_retries(
    source: Path, tmp_path: Path, victims: list[str], gate: Gate, location: str, plain: int
) -> None:
    """A retry that is killed at any object never leaves a complete split with old shards.

    The same command continues. Without ``--retry-failed``, mended files are still refused by name,
    until all of them are in a shard.
    """
    output = tmp_path / "out"
    contents = break_some(source, victims, resize=True)
    assert shard(source, output).code == 0
    mend(source, contents)
    commandline.dataprep(
        *("shard", "--source", source, "--output", f"gated://{output}", *JOB, "--retry-failed"),
        *("--workers", "1", "--max-failures", "9", *commandline.IN_ONE_PROCESS),
        env=gate.kills_at(location, 1),
        code=-signal.SIGKILL,
    )
    untouched = location == "delete:train.manifest"
    assert (output / "train.manifest.json").exists() is untouched
    if untouched:
        assert all(verification.ok for verification in dataprep.verify(output))
    done = shard(source, output, code=plain)
    if plain:
        assert "of another size" in done.complaints[0]
        assert "--retry-failed accepts them" in done.complaints[0]
        assert shard(source, output, "--retry-failed").code == 0
    assert all(verification.ok for verification in dataprep.verify(output))
    assert set(statuses(output).values()) == {"written"}
    assert "nothing to do" in shard(source, output).err
