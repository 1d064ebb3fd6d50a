"""Two splits compared by what their samples contain."""

from __future__ import annotations

import json
import secrets
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dataprep
from dataprep.cli.main import app
from dataprep.errors import ConfigError, DatasetError, ManifestMissing
from dataprep.stores.memory import MemoryStore
from dataprep.verification import compare, leakage, verify


@pytest.fixture(scope="module")
def leaky(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    """Train and test with three files in common, one under another name and label. Read only."""
    folder = tmp_path_factory.mktemp("leaky")
    train, test = folder / "train", folder / "test"
    files = sorted(tree.rglob("*.JPEG"))
    for files_of, root in ((files[:80], train), (files[77:], test)):
        for path in files_of:
            target = root / path.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    (test / files[0].parent.name).mkdir(exist_ok=True)
    last = files[79]
    copy = test / files[0].parent.name / "renamed.JPEG"
    shutil.move(test / last.relative_to(tree), copy)
    store = MemoryStore(f"memory://leaky-{secrets.token_hex(4)}")
    for split, root in (("all", tree), ("train", train), ("test", test)):
        config = dataprep.ShardConfig.model_validate(
            {
                "source": str(root),
                "output": store.uri,
                "split": split,
                "image": {"size": 64},
                "dask": {"processes": False},
            }
        )
        dataprep.shard(config)
    return store


def run(*arguments: str) -> tuple[int, str, str]:
    """``dataprep verify``: exit code, stdout, stderr."""
    result = CliRunner().invoke(app, ["verify", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def test_what_leaks(leaky: MemoryStore) -> None:
    """Each file that is in both is found, whatever it is called."""
    found = leakage(leaky.uri, "train", "test")
    assert (found.pairs, found.samples) == (3, 3)
    (renamed,) = [g for g in found.groups if g.others[0].source.endswith("renamed.JPEG")]
    assert renamed.labels_differ
    assert leakage(leaky.uri, "test", "train").pairs == 3


def test_only_two_tables_are_read(leaky: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards, receipts and everything else stay unread."""
    read: list[str] = []
    get = MemoryStore.get

    def counted(store: MemoryStore, key: str) -> bytes:
        read.append(key)
        return get(store, key)

    monkeypatch.setattr(MemoryStore, "get", counted)
    code, out, _ = run(leaky.uri, "--split", "train", "--against", "test")
    assert code == 0
    assert out.startswith(
        "leakage: 3 samples of train are in test too (3 samples there, 3 pairs), "
    )
    assert sorted(read) == ["test.samples.parquet", "train.samples.parquet"]


def test_every_other_split(leaky: MemoryStore) -> None:
    """Without --split, every other split is compared."""
    found = compare(leaky.uri, None, "test")
    assert [(one.split, one.against) for one in found] == [("all", "test"), ("train", "test")]


def test_it_fails_only_when_asked_to(leaky: MemoryStore) -> None:
    """Leakage is a finding; --fail-on-leakage makes it exit code 1."""
    arguments = (leaky.uri, "--split", "train", "--against", "test")
    assert run(*arguments)[0] == 0
    assert run(*arguments, "--fail-on-leakage")[0] == 1


def test_no_leak(tree: Path) -> None:
    """Splits with nothing in common say so, and do not fail."""
    uri = f"memory://{secrets.token_hex(4)}"
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(tree),
            "output": uri,
            "image": {"size": 64},
            "validation": "20%",
            "dask": {"processes": False},
        }
    )
    dataprep.shard(config)
    code, out, err = run(uri, "--against", "validation", "--fail-on-leakage")
    assert (code, err) == (0, "")
    assert out == "train against validation: no sample of one is in the other\n"


def test_with_a_verification(leaky: MemoryStore) -> None:
    """With --quick or --deep the split is verified as well, and --json has both."""
    code, out, _ = run(leaky.uri, "--split", "train", "--against", "test", "--quick", "--json")
    found = json.loads(out)
    assert code == 0
    assert [(one["split"], one["ok"]) for one in found["splits"]] == [("train", True)]
    (leak,) = found["leakage"]
    assert (leak["split"], leak["against"], leak["pairs"]) == ("train", "test", 3)
    assert len(leak["groups"]) == 3


def test_equal_samples_within_a_split_are_a_remark(tree: Path, tmp_path: Path) -> None:
    """A file that is there twice is told, with both names, and nothing is wrong."""
    source = Path(shutil.copytree(tree, tmp_path / "photos"))
    one = sorted(source.rglob("*.JPEG"))[0]
    other = one.with_name("again.JPEG")
    shutil.copy(one, other)
    uri = f"memory://{secrets.token_hex(4)}"
    config = dataprep.ShardConfig.model_validate(
        {"source": str(source), "output": uri, "image": {"size": 64}, "dask": {"processes": False}}
    )
    dataprep.shard(config)
    (found,) = verify(uri, depth="quick")
    assert found.ok
    assert found.duplicates.pairs == 1
    names = {named.source for named in found.duplicates.groups[0].samples}
    assert names == {str(path.relative_to(source)) for path in (one, other)}
    code, out, _ = run(uri)
    assert code == 0
    assert "note: 2 samples of equal content in 1 group, 1 pair, such as " in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--split", "train", "--against", "train"], "give another split"),
        (["--against", "nope"], "no nope.samples.parquet"),
        (["--split", "nope", "--against", "test"], "no nope.samples.parquet"),
        (["--fail-on-leakage"], "--fail-on-leakage needs --against SPLIT"),
    ],
)
def test_wrong_requests(leaky: MemoryStore, arguments: list[str], said: str) -> None:
    """What cannot be is refused with 2 and one line."""
    code, out, err = run(leaky.uri, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_the_only_split(tree: Path, changed: MemoryStore) -> None:
    """With nothing to compare it is refused, and an unreadable table is named."""
    for key in [info.key for info in changed.list()]:
        if key.startswith(("all.", "test.", "receipts/all-", "receipts/test-")):
            changed.delete(key)
    with pytest.raises(ConfigError, match="'train' is the only split"):
        compare(changed.uri, None, "train")
    with pytest.raises(ManifestMissing):
        leakage(changed.uri, "train", "test")
    changed.put("test.samples.parquet", b"PAR1")
    with pytest.raises(
        DatasetError, match=r"test\.samples\.parquet: damaged, .*: remove test\.manifest\.json"
    ):
        leakage(changed.uri, "train", "test")


@pytest.fixture
def changed(leaky: MemoryStore) -> MemoryStore:
    """A copy of ``leaky``, to be changed."""
    store = MemoryStore(f"memory://{secrets.token_hex(4)}")
    for info in leaky.list():
        store.put(info.key, leaky.get(info.key))
    return store
