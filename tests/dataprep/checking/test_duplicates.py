"""``verify`` finds samples of equal content, within a split and between splits."""

from __future__ import annotations

import json
import secrets
import shutil
from collections import Counter
from itertools import combinations, product
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataprep
from dataprep.checking import leakage, verify
from dataprep.checking.duplicates import duplicates_between, duplicates_within
from dataprep.errors import ConfigError, DatasetError
from dataprep.stores.memory import MemoryStore
from tests.dataprep.checking.conftest import command
from tests.dataprep.conftest import Calls

Content = list[tuple[str, str | None, int]]
contents = st.lists(
    st.tuples(
        st.sampled_from(["written", "written", "written", "failed"]),
        st.sampled_from(["a", "b", "c", "d", None]),
        st.integers(0, 2),
    ),
    max_size=12,
)


def table(content: Content, prefix: str = "x") -> pd.DataFrame:
    """A table of samples with the status, digest and label of each."""
    return pd.DataFrame(
        {
            "source": [f"{prefix}{i}" for i in range(len(content))],
            "label": [label for _, _, label in content],
            "status": [status for status, _, _ in content],
            "source_sha256": pd.Series([digest for _, digest, _ in content], dtype=object),
        }
    )


def digests(content: Content) -> list[str]:
    """The digests of the samples that were written and have one."""
    return [digest for status, digest, _ in content if status == "written" and digest]


@given(contents)
def test_within(content: Content) -> None:
    """The pairs are those that a comparison of each sample with each other one finds."""
    duplicates = duplicates_within("train", table(content))
    known_digests = digests(content)
    assert duplicates.pairs == sum(a == b for a, b in combinations(known_digests, 2))
    repeated = {digest: count for digest, count in Counter(known_digests).items() if count > 1}
    assert {group.sha256: len(group.samples) for group in duplicates.groups} == repeated


@given(contents, contents)
def test_between(content: Content, other: Content) -> None:
    """The pairs are those between the splits, without equal samples within one split."""
    duplicates = duplicates_between("train", table(content), "test", table(other, "y"))
    own_digests, other_digests = digests(content), digests(other)
    assert duplicates.pairs == sum(a == b for a, b in product(own_digests, other_digests))
    assert {group.sha256 for group in duplicates.groups} == set(own_digests) & set(other_digests)
    assert duplicates.samples == sum(digest in other_digests for digest in own_digests)
    for group in duplicates.groups:
        assert all(named.source.startswith("x") for named in group.samples)
        assert all(named.source.startswith("y") for named in group.others)


def test_as_text_and_json() -> None:
    """The text has counts and an example with its labels, preferably of two labels."""
    content: Content = [("written", "a", 0), ("written", "a", 0), ("written", "b", 0)]
    content += [("written", "b", 1), ("written", "c", 0)]
    duplicates = duplicates_within("train", table(content))
    assert str(duplicates) == (
        "4 samples in 2 groups of equal content, 1 group with more than one label, "
        "such as x2 (0) = x3 (1)"
    )
    leak = duplicates_between("train", table(content), "test", table([("written", "c", 0)], "y"))
    assert str(leak) == "leakage: 1 sample of train also in test, such as x4 (0) = y0 (0)"
    assert str(duplicates_between("train", table(content), "test", table([]))) == (
        "no leakage between train and test"
    )
    assert json.loads(json.dumps(leak.as_dict())) == {
        "split": "train",
        "against": "test",
        "pairs": 1,
        "samples": 1,
        "groups": [
            {
                "sha256": "c",
                "labels_differ": False,
                "samples": [{"source": "x4", "label": 0}],
                "others": [{"source": "y0", "label": 0}],
            }
        ],
    }


def shard(source: Path, uri: str, **more: object) -> None:
    """Make an output of small images."""
    content = {"source": str(source), "output": uri, "image": {"size": 64}, **more}
    dataprep.shard(dataprep.ShardConfig.model_validate({**content, "dask": {"processes": False}}))


@pytest.fixture(scope="module")
def leaky(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    """Train and test with three files in common, one under another name and label. Read only."""
    folder = tmp_path_factory.mktemp("leaky")
    files = sorted(tree.rglob("*.JPEG"))
    for files_of, root in ((files[:80], folder / "train"), (files[77:], folder / "test")):
        for path in files_of:
            target = root / path.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    renamed = folder / "test" / files[0].parent.name / "renamed.JPEG"
    renamed.parent.mkdir(exist_ok=True)
    shutil.move(folder / "test" / files[79].relative_to(tree), renamed)
    store = MemoryStore(f"memory://leaky-{secrets.token_hex(4)}")
    for split, root in (("all", tree), ("train", folder / "train"), ("test", folder / "test")):
        shard(root, store.uri, split=split)
    return store


def test_what_leaks(leaky: MemoryStore) -> None:
    """Each file in both splits is found under any name and label, and --quick verifies too."""
    (leak,) = leakage(leaky.uri, "train", "test")
    assert (leak.pairs, leak.samples) == (3, 3)
    (renamed,) = [g for g in leak.groups if g.others[0].source.endswith("renamed.JPEG")]
    assert renamed.labels_differ
    others = leakage(leaky.uri, None, "test")
    assert [(other.split, other.against) for other in others] == [
        ("all", "test"),
        ("train", "test"),
    ]
    code, out, _ = command(leaky.uri, "--split", "train", "--against", "test", "--quick", "--json")
    both = json.loads(out)
    assert code == 0
    assert [(other["split"], other["ok"]) for other in both["splits"]] == [("train", True)]
    assert [(other["split"], other["pairs"]) for other in both["leakage"]] == [("train", 3)]


def test_only_two_tables_are_read(leaky: MemoryStore, calls: Calls) -> None:
    """--against reads no shard and no receipt. A leak is a failure only if that is requested."""
    read = calls(MemoryStore, "get")
    arguments = (leaky.uri, "--split", "train", "--against", "test")
    code, out, _ = command(*arguments)
    assert code == 0
    assert out.startswith("leakage: 3 samples of train also in test, 1 group with more than one")
    assert sorted(key for _, key in read) == ["test.samples.parquet", "train.samples.parquet"]
    assert command(*arguments, "--fail-on-leakage")[0] == 1


def test_no_leakage(tree: Path) -> None:
    """Splits of one source have no sample in common."""
    uri = f"memory://{secrets.token_hex(4)}"
    shard(tree, uri, validation="20%")
    code, out, err = command(uri, "--against", "validation", "--fail-on-leakage")
    assert (code, out, err) == (0, "no leakage between train and validation\n", "")


def test_equal_samples_within_a_split(tree: Path, tmp_path: Path) -> None:
    """A file that occurs twice is a note with both names, and not a fault."""
    source = Path(shutil.copytree(tree, tmp_path / "photos"))
    first_photo = min(source.rglob("*.JPEG"))
    other = first_photo.with_name("again.JPEG")
    shutil.copy(first_photo, other)
    uri = f"memory://{secrets.token_hex(4)}"
    shard(source, uri)
    (duplicates,) = verify(uri, depth="quick")
    assert (duplicates.ok, duplicates.duplicates.pairs) == (True, 1)
    names = {named.source for named in duplicates.duplicates.groups[0].samples}
    assert names == {str(path.relative_to(source)) for path in (first_photo, other)}
    code, out, _ = command(uri)
    assert code == 0
    assert "  note: 2 samples in 1 group of equal content, such as " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split", "none"], "it has all, test, train"),
        (["--split", "train", "--against", "train"], "no other split to compare"),
        (["--against", "nope"], "no nope.samples.parquet"),
        (["--split", "nope", "--against", "test"], "no nope.samples.parquet"),
    ],
)
def test_wrong_requests(leaky: MemoryStore, arguments: list[str], message: str) -> None:
    """An impossible comparison ends with 2 and one line."""
    code, out, err = command(leaky.uri, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_tables_that_cannot_be_compared(tree: Path) -> None:
    """A single split cannot be compared, and a damaged table is named."""
    store = MemoryStore(f"memory://{secrets.token_hex(4)}")
    shard(tree, store.uri)
    with pytest.raises(ConfigError, match="--against train: there is no other split"):
        leakage(store.uri, None, "train")
    store.put("test.samples.parquet", b"PAR1")
    with pytest.raises(DatasetError, match=r"test\.samples\.parquet: damaged, "):
        leakage(store.uri, "train", "test")
