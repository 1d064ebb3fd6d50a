"""Advice as a config of shards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dataprep.config import ShardConfig
from iobench.advice import advise
from iobench.advice.emitted import shard_config
from iobench.errors import NoAdvice
from iobench.result import Result
from iobench.whatif import whatif
from tests.iobench.advice.made import DATA, forms, over_photos, run
from tests.iobench.whatif.made import loader, together


def written(result: Result, source: str = "/photos") -> str:
    """Its config."""
    entries = advise(result, whatif(result.trials, result.environment))
    return shard_config(result, entries, source, "/new/shards")


def parsed(text: str) -> dict[str, Any]:
    """As dataprep reads it, every key known."""
    found = yaml.safe_load(text)
    ShardConfig.model_validate(found)
    assert isinstance(found, dict)
    return found


SWEEP = together(
    *(
        loader(rate, 2, data=f"shards-{size}MB@disk", cache="cold", objects=1000)
        for size, rate in {1: 400.0, 4: 700.0, 16: 790.0, 64: 800.0}.items()
    )
)


def test_it_has_what_was_advised_and_where_it_comes_from() -> None:
    """Source, split, seed and quality of the run; size and shard size as advised."""
    text = written(run(forms(), over_photos(), SWEEP))
    assert parsed(text) == {
        "source": "/photos",
        "kind": "imagefolder",
        "split": "train",
        "output": "/new/shards",
        "format": ["tfrecord"],
        "image": {"size": 256, "quality": 95},
        "shard_size": 16_000_000,
        "seed": 3,
        "dask": {"workers": 8},
    }


def test_the_evidence_stands_beside_each_key() -> None:
    """As comments, no line of them over 100 characters."""
    text = written(run(forms(), over_photos(), SWEEP))
    comments = " ".join(line[2:] for line in text.splitlines() if line.startswith("# "))
    assert "All changes together, predicted: 1.67 times" in comments
    assert "torch-folder over photos 300 samples/s, torch-folder over files 600" in comments
    assert "samples/s by shard size 1 MB: 400" in comments
    assert max(map(len, text.splitlines())) <= 100


def test_a_size_that_nothing_speaks_for_is_left_to_its_default() -> None:
    """And why."""
    many = [replace(t, metrics={**t.metrics, "objects": 1000}) for t in forms()]
    text = written(run(many, over_photos()))
    assert "shard_size" not in parsed(text)
    assert "# shard_size is left at its default: one size of shards was read" in text


def test_shards_that_were_given_are_the_source() -> None:
    """Read as records, their images left as they are."""
    result = run(SWEEP, data={**DATA, "source": None, "shards": "s3://bucket/out"})
    found = parsed(written(result, "s3://bucket/out"))
    assert (found["kind"], found["source"]) == ("records", "s3://bucket/out")
    assert found["shard_size"] == 16_000_000
    assert "image" not in found


def test_a_store_is_reached_as_the_run_did() -> None:
    """Its endpoint is told; what bears on writing only is not."""
    store = {"endpoint_url": "http://127.0.0.1:9000", "profile": None, "storage_class": "STANDARD"}
    data = {**DATA, "source": "s3://bucket/photos", "store": store}
    found = parsed(written(run(forms(), over_photos(), data=data), "s3://bucket/photos"))
    assert found["source_store"] == {"endpoint_url": "http://127.0.0.1:9000"}


def test_mxnet_reads_recordio() -> None:
    """Where its loader is the one that is used."""
    slow = loader(200.0, 2, loader="mxnet-record", data="originals@disk")
    fast = loader(400.0, 2, loader="mxnet-record", data="shards@disk")
    assert parsed(written(run(slow, fast)))["format"] == ["recordio"]


def test_where_nothing_helps_there_is_no_config() -> None:
    """In a line, with what stands against it or what is missing."""
    with pytest.raises(NoAdvice, match="no other shards are advised: sharding: its data are sh"):
        written(run(loader(300.0, 2)))
    with pytest.raises(NoAdvice, match=r"run configs/bench/advise\.yaml measures both"):
        written(run(loader(300.0, 2, loader="raw")))


@given(st.text(max_size=30), st.text(min_size=1, max_size=30))
def test_names_of_any_kind_stay_in_their_place(name: str, source: str) -> None:
    """Line feeds in a name end no comment, and a source is what it was."""
    result = replace(run(forms(), over_photos()), name=name)
    if source.strip() and source.isprintable():
        assert parsed(written(result, source))["source"] == source
