"""Tests of dataprep.config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from dataprep.config import ShardConfig, dump, load, store_options
from dataprep.errors import ConfigError
from dataprep.execution import DaskOptions
from dataprep.image import ImagePolicy
from dataprep.labels.options import LabelOptions
from dataprep.shares import allowed_failures, parse_share
from dataprep.sources.options import ILSVRCOptions, ListingOptions, RecordsOptions
from dataprep.stores.options import StoreOptions
from tests.strategies import image_policies

PLACES = {"source": "photos", "output": "out"}


def refusal(overrides: dict[str, Any]) -> str:
    """The message with which overrides are refused."""
    with pytest.raises(ConfigError) as caught:
        load(None, {**PLACES, **overrides})
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_source_and_output_are_enough() -> None:
    """Two keys make a job with the documented defaults."""
    config = load(None, PLACES)
    assert (config.kind, config.split, config.format) == ("imagefolder", "train", ("tfrecord",))
    assert (config.image, config.shard_size, config.seed) == (ImagePolicy(), 64 * 2**20, 0)
    assert (config.max_failures, config.validation_share) == ("1%", None)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("sorce", "did you mean 'source'?"),
        ("image.sise", "did you mean 'size'?"),
        ("store.endpoint", "did you mean 'endpoint_url'?"),
        ("source_store.regoin", "did you mean 'region'?"),
        ("dask.wrkers", "did you mean 'workers'?"),
        ("size", "did you mean 'image.size'?"),
        ("region", "did you mean 'store.region' or 'source_store.region'?"),
        ("dask.xyzzy", "known: cluster, cluster_args, dashboard,"),
    ],
)
def test_an_unknown_key_names_the_nearest(key: str, hint: str) -> None:
    """An unknown key, at any depth, is named in full with the nearest known one."""
    assert refusal({key: 1}).startswith(f"the command line: unknown key '{key}': {hint}")


def test_missing_keys_name_their_flags() -> None:
    """What is missing is said with the flag that gives it, all of it at once."""
    with pytest.raises(ConfigError, match=r"'source' is missing: give --source.*'output'"):
        load(None, {})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("source", " ", "source: must not be empty"),
        ("output", "a\0b", "output: holds a NUL, which no path and no key has"),
        ("split", "a-b", "split: a split's name has letters"),
        ("split", "", "split: a split's name has letters"),
        ("format", "tfrecords", "format: no format 'tfrecords': use one or more of recordio, "),
        ("format", [], "format: it is empty: use one or more of recordio, "),
        ("shard_size", "999KB", "shard_size: 999,000 bytes; shards have 1 to 128 MB"),
        ("shard_size", "128MiB", "shard_size: 134,217,728 bytes; shards have 1 to 128 MB"),
        ("shard_size", "big", "shard_size: "),
        ("seed", 2**63, "seed: give less than 9223372036854775808, not 9223372036854775808"),
        ("validation", "0%", "validation: a share between"),
        ("validation", "100%", "validation: a share between"),
        ("validation", "a bit", "validation: 'a bit' is not a share such as 5%"),
        ("max_failures", "many", "max_failures: 'many': give a number, a share such as 1%, or"),
        ("max_failures", -1, "max_failures: a number of failures is not negative"),
        ("max_failures", "101%", "max_failures: a share of failures is at most 100%"),
        ("max_failures", [], "max_failures: give a whole number or text, not a list"),
        ("label_offset.tfrecord", 1001, "label_offset.tfrecord: give at most 1000, not 1001"),
        ("image", 3, "image: give keys with values, not 3"),
        ("image.mode", "shrt", "image.mode: give 'short', 'long', 'exact', "),
        ("image.mode", "crop", "image: mode 'crop' needs a 'size' in pixels"),
        (
            "image.size",
            "big",
            "image.size: give pixels from 1 to 16,384, as in 256, or",
        ),
        ("image.size", [256, 256], "image: mode 'short' takes one number as 'size', not two"),
        ("image.quality", 101, "image.quality: give at most 100, not 101"),
        ("dask.workers", 0, "dask.workers: give at least 1, not 0"),
        ("dask.retries", 21, "dask.retries: give at most 20, not 21"),
        ("dask.processes", "often", "dask.processes: give true or false or 'auto', not 'often'"),
        (
            "store.sse",
            "rot13",
            "store.sse: give 'AES256', 'aws:kms' or 'aws:kms:dsse', not 'rot13'",
        ),
        (
            "store.endpoint_url",
            ["https://me:s3cr3t@host"],
            "store.endpoint_url: give text, not a list",
        ),
        ("dask.retries", "me:s3cr3t@host", "dask.retries: give a whole number, not this"),
        ("store.endpoint_url", "localhost:9000", "store.endpoint_url: must begin with http"),
        ("output", "s3://me:s3cr3t@bucket/x", "output: must not carry a user or password"),
        ("source", "https://h/x?X-Amz-Signature=s3cr3t", "source: must not carry a signature"),
        ("seed", True, "seed: give a number, not true"),
        ("image.quality", True, "image.quality: give a number, not true"),
        ("max_failures", False, "max_failures: give a number, not false"),
        ("dask.workers", True, "dask.workers: give a number, not true"),
    ],
)
def test_wrong_values_name_their_key(key: str, value: object, message: str) -> None:
    """Each wrong value or combination is refused on one line that begins with its key."""
    assert refusal({key: value}).startswith(f"the command line: {message}")


@pytest.mark.parametrize("key", ["store.endpoint_url", "source_store.endpoint_url"])
@pytest.mark.parametrize("user", ["me:s3cr3t", "s3cr3t", ":s3cr3t", "me:s3cr3t@x"])
def test_a_password_in_an_endpoint_is_never_repeated(key: str, user: str, tmp_path: Path) -> None:
    """An endpoint with user info is refused, and the message keeps the password to itself."""
    message = refusal({key: f"https://{user}@host:9000"})
    assert message.startswith(f"the command line: {key}: must not carry a user or password")
    assert "s3cr3t" not in message
    file = tmp_path / "job.yaml"
    section, name = key.split(".")
    file.write_text(f"{section}:\n  {name}: https://{user}@host\n")
    with pytest.raises(ConfigError) as caught:
        load(file, PLACES)
    assert "s3cr3t" not in str(caught.value)


def test_nor_is_it_by_the_model_itself() -> None:
    """Building the config without `load` keeps a password to itself too."""
    store = {"endpoint_url": "https://me:s3cr3t@host"}
    with pytest.raises(ValidationError) as caught:
        ShardConfig.model_validate({**PLACES, "store": store})
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(ValidationError) as caught:
        StoreOptions.model_validate(store)
    assert "s3cr3t" not in str(caught.value)


configs = st.builds(
    ShardConfig,
    source=st.text(min_size=1, max_size=10).filter(lambda name: name.strip() and "\0" not in name),
    output=st.sampled_from(["out", "s3://bucket/prefix"]),
    split=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_]{0,5}", fullmatch=True),
    format=st.sampled_from([("tfrecord",), ("recordio", "tfrecord")]),
    image=image_policies(),
    shard_size=st.integers(1_000_000, 128_000_000),
    shuffle=st.booleans(),
    seed=st.integers(-(2**63), 2**63 - 1),
    validation=st.sampled_from([None, "5%", "0.5 %"]),
    label_offset=st.dictionaries(st.sampled_from(["tfrecord", "recordio"]), st.integers(-9, 9)),
    max_failures=st.sampled_from([0, 5, "5", "2%", "none"]),
    store=st.builds(StoreOptions, endpoint_url=st.sampled_from([None, "http://[::1]:9/a@b"])),
    source_store=st.none() | st.builds(StoreOptions, requester_pays=st.booleans()),
    dask=st.builds(
        DaskOptions,
        workers=st.none() | st.integers(1, 9),
        processes=st.just("auto") | st.booleans(),
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(config=configs)
def test_a_dumped_config_loads_as_it_was(config: ShardConfig, tmp_path: Path) -> None:
    """What --print-config prints is a config file that means the same."""
    file = tmp_path / "job.yaml"
    file.write_bytes(dump(config).encode())
    assert load(file, {}) == config


@given(config=configs)
def test_content_has_all_that_determines_bytes(config: ShardConfig) -> None:
    """Places, workers, stores, limits, and how a source is read are no content; the rest is.

    What was read is: it stands in the plan, in labels.json and in the digest of the source.
    """
    elsewhere = config.model_copy(
        update={
            "source": "x",
            "output": "y",
            "store": StoreOptions(region="x"),
            "source_store": None,
            "dask": DaskOptions(workers=3),
            "max_failures": 3,
            "hung_samples": "fail",
            "labels": LabelOptions(texts="z"),
            "listing": ListingOptions(path="z"),
            "records": RecordsOptions(split="z"),
            "ilsvrc": ILSVRCOptions(folder="z"),
            "source_concurrency": 3,
        }
    )
    assert elsewhere.content() == config.content()
    assert config.content().keys() == ShardConfig.model_fields.keys() - {
        *("source", "output", "store", "source_store", "dask", "max_failures", "labels"),
        "hung_samples",
        *("listing", "records", "ilsvrc", "source_concurrency", "plan"),
    }
    for change in ({"seed": config.seed ^ 1}, {"shuffle": not config.shuffle}, {"split": "x-y"}):
        assert config.model_copy(update=change).content() != config.content()


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    """A dotted override changes one key of a file and leaves its neighbours."""
    file = tmp_path / "job.yaml"
    file.write_text("source: a\noutput: b\nimage: {size: 256, quality: 80}\nformat: recordio\n")
    config = load(file, {"image.size": 128, "seed": 3})
    assert (config.image.size, config.image.quality, config.seed) == (128, 80, 3)
    assert config.format == ("recordio",)
    assert load(file, {}).image.size == 256


def test_formats_are_named_once() -> None:
    """A format that is given twice counts once, in the order given."""
    config = load(None, {**PLACES, "format": ["tfrecord", "recordio", "tfrecord"]})
    assert config.format == ("tfrecord", "recordio")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"- a\n- b\n", "a config is a mapping"),
        (b"a: [", "not valid YAML"),
        (b"\xff\xfe\x00", "not valid YAML"),
        (b"a: 2024-13-01", "not valid YAML: month must be"),
        (b"!!python/object/apply:os.getcwd []", "not valid YAML"),
        (b"1: 2\nsource: a\noutput: b", "1: "),
    ],
)
def test_files_that_are_no_config(content: bytes, message: str, tmp_path: Path) -> None:
    """A file that is no YAML mapping of names is refused by its name, and never run."""
    file = tmp_path / "job.yaml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file and a folder are named; an empty file is an empty config."""
    with pytest.raises(ConfigError, match="no config file"):
        load(tmp_path / "none.yaml", {})
    with pytest.raises(ConfigError, match="is a folder, not a config file"):
        load(tmp_path, {})
    (tmp_path / "empty.yaml").touch()
    assert load(tmp_path / "empty.yaml", PLACES) == load(None, PLACES)


@pytest.mark.parametrize(
    ("given_value", "kept"), [(0.05, "5.00%"), (0.5, "50.0%"), ("5%", "5%")], ids=str
)
def test_a_fraction_is_a_share(given_value: object, kept: str) -> None:
    """YAML's 0.05 means 5 %, for the validation split and for failures."""
    config = load(None, {**PLACES, "validation": given_value, "max_failures": given_value})
    assert parse_share(str(config.validation)) == parse_share(kept)
    assert allowed_failures(config.max_failures, 1000) == int(1000 * parse_share(kept))


def test_paths_are_places() -> None:
    """A path object serves as source and output."""
    config = load(None, {"source": Path("photos"), "output": Path("out")})
    assert (config.source, config.output) == ("photos", "out")


def test_offsets_belong_to_formats() -> None:
    """A label offset of an unknown format is refused with the nearest one."""
    with pytest.raises(ConfigError, match=r"no format 'tfrecrod': did you mean 'tfrecord'"):
        load(None, {**PLACES, "label_offset": {"tfrecrod": 1}})


def test_store_options_alone() -> None:
    """Store options are checked as in a whole config; nothing else is taken."""
    options = store_options({"store.profile": "me", "store.requester_pays": True})
    assert (options.profile, options.requester_pays) == ("me", True)
    with pytest.raises(ConfigError, match=r"unknown key 'store.profil': did you mean 'profile'"):
        store_options({"store.profil": "me"})
    with pytest.raises(ConfigError, match="unknown key 'image'"):
        store_options({"image.size": 3})
