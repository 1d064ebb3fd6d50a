"""One label space for all splits, whichever comes first, and at the same moment."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import dataprep
from dataprep import keys, stores
from dataprep.errors import OutputConflict
from dataprep.job import prepare
from dataprep.job.forecast import forecast
from dataprep.job.report import Display
from dataprep.stores import Buffer, StoreOptions
from dataprep.stores.local import LocalStore
from tests.commandline import files

pytestmark = pytest.mark.slow


def shard(source: Path, output: Path, split: str) -> None:
    """A small split of both formats on threads."""
    config = dataprep.ShardConfig(
        source=str(source), output=str(output), split=split, format=("tfrecord", "recordio")
    )
    dataprep.shard(config)


def labels_of(output: Path, split: str) -> dict[str, int]:
    """Synset to label, from the table of samples."""
    table = pq.read_table(io.BytesIO((output / f"{split}.samples.parquet").read_bytes()))
    return dict(zip(table["synset"].to_pylist(), table["label"].to_pylist(), strict=True))


@pytest.fixture
def fewer(tree: Path, tmp_path: Path) -> Path:
    """The drawn tree without its first class."""
    source = Path(shutil.copytree(tree, tmp_path / "fewer"))
    shutil.rmtree(min(source.iterdir()))
    return source


def test_the_larger_split_second(tree: Path, fewer: Path, tmp_path: Path) -> None:
    """A split with a class that the first one lacks is refused, the class and the way out named."""
    output = tmp_path / "out"
    shard(fewer, output, "validation")
    before = files(output)
    with pytest.raises(OutputConflict) as refused:
        shard(tree, output, "train")
    missing = min(path.name for path in tree.iterdir())
    assert "labels.json of this output does not know" in str(refused.value)
    assert repr(missing) in str(refused.value)
    assert files(output) == before


def test_the_smaller_split_second(tree: Path, fewer: Path, tmp_path: Path) -> None:
    """A split with fewer classes keeps the numbers of the first, and what it lacks is said."""
    output = tmp_path / "out"
    shard(tree, output, "train")
    notes: list[str] = []

    class Noted(Display):
        def note(self, line: str) -> None:
            notes.append(line)

    config = dataprep.ShardConfig(source=str(fewer), output=str(output), split="validation")
    dataprep.shard(config, display=Noted())
    train = labels_of(output, "train")
    assert labels_of(output, "validation").items() < train.items()
    missing = min(path.name for path in tree.iterdir())
    assert f"no sample here of 1 class, such as {missing!r}" in notes


@pytest.mark.parametrize("again", ["validation", "train"], ids=["a later split", "resumed"])
def test_another_order_of_classes(tree: Path, tmp_path: Path, again: str) -> None:
    """Labels that are not those of labels.json are refused by plan and shard; the same are not."""
    output = tmp_path / "out"
    shard(tree, output, "train")
    names = sorted(path.name for path in tree.iterdir())
    (tmp_path / "order.txt").write_text("\n".join(names))
    given = {"classes": str(tmp_path / "order.txt")}
    config = dataprep.ShardConfig(
        source=str(tree),
        output=str(output),
        split=again,
        format=("tfrecord", "recordio"),
        labels=given,  # type: ignore[arg-type]
    )
    dataprep.shard(config)
    before = files(output)
    (tmp_path / "order.txt").write_text("\n".join(reversed(names)))
    said = f"label 0 is '{names[0]}' in labels.json and '{names[-1]}' in labels.classes"
    with pytest.raises(OutputConflict, match=said):
        dataprep.shard(config)
    if again == "validation":
        with pytest.raises(OutputConflict, match=said):
            forecast(config.model_copy(update={"split": "test"}))
    assert files(output) == before


class Overtaken(LocalStore):
    """A store in which somebody else is faster by one object."""

    def __init__(self, uri: str, faster: Callable[[], None]) -> None:
        super().__init__(uri)
        self._faster: Callable[[], None] | None = faster

    def create(self, key: str, data: Buffer) -> bool:
        """As its parent, after a whole other run."""
        if key == keys.LABELS and self._faster:
            faster, self._faster = self._faster, None
            faster()
        return super().create(key, data)


def overtaken(monkeypatch: pytest.MonkeyPatch, output: Path, faster: Callable[[], None]) -> None:
    """Let the next run find ``faster`` done between looking at the output and writing to it."""
    opened = stores.open_store

    def open_store(uri: str, options: StoreOptions | None = None) -> object:
        monkeypatch.setattr(prepare, "open_store", opened)
        return Overtaken(str(output), faster)

    monkeypatch.setattr(prepare, "open_store", open_store)


def test_two_first_runs_at_once(
    tree: Path, fewer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two splits that begin an output together the second plans anew with the first's labels."""
    output = tmp_path / "out"
    overtaken(monkeypatch, output, lambda: shard(tree, output, "train"))
    shard(fewer, output, "validation")
    train = labels_of(output, "train")
    assert sorted(train.values()) == list(range(6))
    assert labels_of(output, "validation").items() < train.items()
    assert all(found.ok for found in dataprep.verify(output, depth="deep"))


def test_two_first_runs_at_once_that_do_not_fit(
    tree: Path, fewer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The larger split, overtaken by the smaller, is refused by name and leaves nothing behind."""
    output = tmp_path / "out"
    overtaken(monkeypatch, output, lambda: shard(fewer, output, "validation"))
    with pytest.raises(OutputConflict, match=min(path.name for path in tree.iterdir())):
        shard(tree, output, "train")
    assert not any(name.startswith("train") or "/train" in name for name in files(output))
    assert all(found.ok for found in dataprep.verify(output))
