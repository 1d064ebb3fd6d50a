"""The keys of a job have documented defaults and bounds, in YAML files, ``--set`` and overrides."""

from __future__ import annotations

import copy
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from dataprep.config.files import parse_settings, read_config, read_yaml, set_dotted
from dataprep.config.shard_config import (
    DaskOptions,
    ShardConfig,
    allowed_failures,
    dump,
    load,
    parse_share,
    store_options,
)
from dataprep.errors import ConfigError
from dataprep.image import ImagePolicy
from dataprep.labels.options import LabelOptions
from dataprep.sources.options import (
    ILSVRCOptions,
    ListingOptions,
    ParquetOptions,
    RecordsOptions,
    WebDatasetOptions,
)
from dataprep.stores import open_store
from dataprep.stores.options import StoreOptions
from tests.permissions import reachable_folder, unprivileged
from tests.strategies import image_policies, json_values

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
    ("key", "message"),
    [
        ("sorce", "sorce: did you mean source?"),
        ("image.sise", "image.sise: did you mean image.size?"),
        ("store.endpoint", "store.endpoint: did you mean store.endpoint_url?"),
        ("source_store.regoin", "source_store.regoin: did you mean source_store.region?"),
        ("dask.wrkers", "dask.wrkers: did you mean dask.workers?"),
        ("imag.quality", "imag: did you mean image?"),
        ("size", "size: did you mean image.size?"),
        ("region", "region: did you mean store.region or source_store.region?"),
        ("dask.numbers", "dask.numbers: known keys of dask: workers, processes,"),
        ("flights.numbers", "flights: known keys: source, output, kind,"),
    ],
)
def test_an_unknown_keys_the_nearest(key: str, message: str) -> None:
    """An unknown key at any depth is named with its parent keys and the nearest known key."""
    assert refusal({key: 1}).startswith(f"unknown key {message}")


def test_missing_keys_name_their_options() -> None:
    """One error names the options of all missing keys."""
    with pytest.raises(ConfigError, match=r"source is missing: give --source.*output is missing"):
        load(None, {}, {"source": "--source"})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("source", " ", "source=' ': give a path or an address"),
        ("output", "a\0b", "output=a\0b: give a path or an address"),
        ("split", "a-b", "split=a-b: give letters, digits and underscores only"),
        ("split", "", "split='': give letters, digits and underscores only"),
        ("format", "tfrecords", "format: no format 'tfrecords': use one of recordio, "),
        ("format", [], "format: give at least one"),
        ("shard_size", "999KB", "shard_size=999KB: shards are 1 MB to 128 MB"),
        ("shard_size", "128MiB", "shard_size=128MiB: shards are 1 MB to 128 MB"),
        ("shard_size", "big", "shard_size=big: "),
        ("seed", 2**63, "seed=9223372036854775808: give less than 9223372036854775808"),
        ("validation", "0%", "validation=0%: give a share between 0% and 100%"),
        ("validation", "100%", "validation=100%: give a share between 0% and 100%"),
        ("validation", "a bit", "validation=a bit: give a share such as 5%"),
        ("max_failures", "many", "max_failures=many: give a number of failures, a share such as"),
        ("max_failures", -1, "max_failures=-1: give a number of failures, a share such as"),
        ("max_failures", "101%", "max_failures=101%: give a share such as 5%, up to 100%"),
        ("max_failures", [], "max_failures: give a whole number or text"),
        ("max_failures", "none", "max_failures=none: 'none' can be read as no failure or as no"),
        ("max_failures", "None", "max_failures=None: 'none' can be read as no failure or as no"),
        ("max_failures", None, "max_failures=None: 'none' can be read as no failure or as no"),
        ("label_offset.tfrecord", 1001, "label_offset.tfrecord=1001: give at most 1000"),
        ("label_offset.tfrecrod", 1, "label_offset: no format 'tfrecrod': use one of recordio"),
        ("image", 3, "image=3: give keys with values"),
        ("image.mode", "shrt", "image.mode=shrt: give 'short', 'long', 'exact', "),
        ("image.mode", "crop", "image: mode 'crop' needs a 'size' in pixels"),
        ("image.size", "big", "image.size=big: give a whole number or a list"),
        ("image.size", [256, 256], "image: mode 'short' takes one number as 'size', not two"),
        ("image.quality", 101, "image.quality=101: give at most 100"),
        ("layout", "wide", "layout=wide: "),
        ("dask.workers", 0, "dask.workers=0: give at least 1"),
        ("dask.max_concurrent_uploads", 0, "dask.max_concurrent_uploads=0: give at least 1"),
        ("dask.retries", 21, "dask.retries=21: give at most 20"),
        ("dask.processes", "often", "dask.processes=often: give true or false or 'auto'"),
        ("plan.readers", 0, "plan.readers=0: give at least 1"),
        ("plan.upload_mb_per_s", 0, "plan.upload_mb_per_s=0: give more than 0"),
        ("store.sse", "rot13", "store.sse=rot13: give 'AES256', 'aws:kms' or 'aws:kms:dsse'"),
        ("store.endpoint_url", "localhost:9000", "store.endpoint_url=localhost:9000: must begin"),
    ],
)
def test_wrong_values_name_their_key(key: str, value: object, message: str) -> None:
    """Each wrong value is refused in one line that begins with its key."""
    assert refusal({key: value}).startswith(message)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("store.endpoint_url", "https://me:s3cr3t@host:9000"),
        ("source_store.endpoint_url", "https://s3cr3t@host:9000"),
        ("store.endpoint_url", ["https://me:s3cr3t@host"]),
        ("output", "s3://me:s3cr3t@bucket/x"),
        ("source", "https://h/x?X-Amz-Signature=s3cr3t"),
        ("dask.scheduler", "tcp://me:s3cr3t@host:8786"),
        ("dask.retries", "me:s3cr3t@host"),
    ],
)
def test_a_password_is_refused_and_never_repeated(key: str, value: object, tmp_path: Path) -> None:
    """A password is refused in options and in files, and no message repeats it."""
    message = refusal({key: value})
    assert message.startswith(key)
    assert "s3cr3t" not in message
    file = tmp_path / "job.yaml"
    section, _, name = key.rpartition(".")
    content = f"{name}: {value}\n"
    file.write_text(f"{section}: {{{content.strip()}}}\n" if section else content)
    with pytest.raises(ConfigError) as caught:
        load(
            file, {option_name: path for option_name, path in PLACES.items() if option_name != key}
        )
    assert "s3cr3t" not in str(caught.value)


def test_the_models_do_not_repeat_a_password() -> None:
    """A config that is built without `load` keeps a password secret too."""
    store = {"endpoint_url": "https://me:s3cr3t@host"}
    for model, values in ((ShardConfig, {**PLACES, "store": store}), (StoreOptions, store)):
        with pytest.raises(ValidationError) as caught:
            model.model_validate(values)
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
    max_failures=st.sampled_from([0, 5, "5", "2%", "unlimited"]),
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
    """The output of --print-config is a config file with the same meaning."""
    file = tmp_path / "job.yaml"
    file.write_bytes(dump(config).encode())
    assert load(file, {}) == config


@given(config=configs)
def test_content_has_all_that_determines_bytes(config: ShardConfig) -> None:
    """The content has all settings that determine bytes, and no others.

    Paths, workers, stores, limits and the way of reading a source are not content. The data that
    were read are covered by the plan, by labels.json and by the digest of the source.
    """
    changed_config = config.model_copy(
        update={
            "source": "x",
            "output": "y",
            "store": StoreOptions(region="x"),
            "source_store": None,
            "dask": DaskOptions(workers=3),
            "max_failures": 3,
            "hung_samples": "fail",
            "labels": LabelOptions(texts="z"),
            "exclude": ("z",),
            "listing": ListingOptions(path="z"),
            "records": RecordsOptions(split="z"),
            "ilsvrc": ILSVRCOptions(folder="z"),
            "webdataset": WebDatasetOptions(label="z"),
            "parquet": ParquetOptions(label="z"),
            "source_concurrency": 3,
        }
    )
    assert changed_config.content() == config.content()
    assert config.content().keys() == ShardConfig.model_fields.keys() - {
        *("source", "output", "store", "source_store", "dask", "max_failures", "labels"),
        "hung_samples",
        *("exclude", "listing", "records", "ilsvrc", "webdataset", "parquet", "plan"),
        "source_concurrency",
        "unlabelled",  # it is missing if it is false, as in outputs of earlier versions
    }
    changes: list[dict[str, Any]] = [{"seed": config.seed ^ 1}, {"shuffle": not config.shuffle}]
    for change in [*changes, {"split": "x-y"}, {"unlabelled": True}]:
        assert config.model_copy(update=change).content() != config.content()


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    """Overrides win over the file: a dotted key, a path, and a repeated format that counts once."""
    file = tmp_path / "job.yaml"
    file.write_text("source: a\noutput: b\nimage: {size: 256, quality: 80}\nformat: recordio\n")
    config = load(file, {"image.size": 128, "seed": 3})
    assert (config.image.size, config.image.quality, config.seed) == (128, 80, 3)
    assert config.format == ("recordio",)
    assert load(file, {}).image.size == 256
    paths = {"source": Path("photos"), "output": Path("out")}
    config = load(None, {**paths, "format": ["tfrecord", "recordio", "tfrecord"]})
    assert (config.source, config.output) == ("photos", "out")
    assert config.format == ("tfrecord", "recordio")


@pytest.mark.parametrize(
    ("text", "share"),
    [("5%", "1/20"), ("0.1%", "1/1000"), (" 12.5 % ", "1/8"), ("100%", "1"), ("0%", "0")],
)
def test_shares_are_exact(text: str, share: str) -> None:
    """Shares are exact fractions, not floats."""
    assert parse_share(text) == Fraction(share)


@pytest.mark.parametrize("text", ["5", "%", "-5%", "5%%", "1e3%", ".5%", "five%", "101%", ""])
def test_other_texts_are_no_shares(text: str) -> None:
    """A share consists of digits and a per cent sign."""
    with pytest.raises(ValueError, match="a share such as 5%"):
        parse_share(text)


@pytest.mark.parametrize(
    ("limit", "samples", "allowed"),
    [
        (0, 10, 0),
        (7, 10, 7),
        ("7", 10, 7),
        ("unlimited", 10, 10),
        ("1%", 99, 0),
        ("1%", 100, 1),
        ("29%", 100, 29),
        ("100%", 10, 10),
        ("0.1%", 1_281_167, 1281),
    ],
)
def test_allowed_failures(limit: int | str, samples: int, allowed: int) -> None:
    """A number is itself, a share is rounded down without floats, and unlimited means all."""
    assert allowed_failures(limit, samples) == allowed


@pytest.mark.parametrize("limit", ["-1", "few", "", "1.5", "²", -1])
def test_limits_that_are_none(limit: int | str) -> None:
    """A limit is a count, a share or unlimited."""
    with pytest.raises(ConfigError, match="give a number of failures"):
        allowed_failures(limit, 100)


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_a_fraction_is_a_share(share: float) -> None:
    """YAML's 0.05 means 5 % for the validation split and for failures."""
    config = load(None, {**PLACES, "validation": share, "max_failures": share})
    assert config.validation_share == Fraction(str(share))
    assert allowed_failures(config.max_failures, 1000) == int(1000 * share)


def test_as_many_workers_as_processors() -> None:
    """By default there is one worker for each processor."""
    assert 1 <= DaskOptions().worker_count <= len(os.sched_getaffinity(0))
    assert DaskOptions(workers=7).worker_count == 7


def test_store_options_alone() -> None:
    """Store options are checked as in a whole config, and other keys are refused."""
    options = store_options({"store.profile": "me", "store.requester_pays": True})
    assert (options.profile, options.requester_pays) == ("me", True)
    with pytest.raises(ConfigError, match=r"unknown key store.profil: did you mean store.profile"):
        store_options({"store.profil": "me"})
    with pytest.raises(ConfigError, match="unknown key image"):
        store_options({"image.size": 3})


def test_a_file_in_a_store() -> None:
    """A config file in a store is read like one on a disk. A missing one is a wrong request."""
    store = open_store("memory://configs")
    store.put("job.yaml", b"source: photos\noutput: out\nimage: {size: 96}\n")
    config = load("memory://configs/job.yaml", {"image.quality": 90})
    assert (config.source, config.image.size, config.image.quality) == ("photos", 96, 90)
    with pytest.raises(ConfigError, match=r"memory://configs/none\.yaml: there is no such object"):
        load("memory://configs/none.yaml", {})
    store.put("wrong.yaml", b"sources: photos\n")
    with pytest.raises(ConfigError, match=r"memory://configs/wrong\.yaml: .* unknown key sources"):
        load("memory://configs/wrong.yaml", {})


key_names = st.text("abc", min_size=1, max_size=2)
nested = st.dictionaries(
    key_names, st.recursive(st.integers(), lambda x: st.dictionaries(key_names, x))
)
dotted = st.lists(key_names, min_size=1, max_size=4).map(".".join)


class Inner(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    size: int = 1


class Outer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "x"
    items: tuple[Inner, ...] = ()


def at(values: Any, path: str) -> Any:
    """The value of ``a.b.c``."""
    for key in path.split("."):
        values = values[key]
    return values


class TestReadConfig:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("items: [{size: 2}, {sise: 3}]", "unknown key items.1.sise: did you mean items.size?"),
            ("items: [{size: big}]", "items.0.size=big: give a whole number"),
            ("items: 3", "items=3: give a list"),
            ("name: [1]", "name: give text"),
            ("name: {a: 1}", "name: give text"),
            ("1: 2", "1=1: Keys should be strings"),
            ("a: 1\nb: 2", "unknown key a: known keys: name, items; unknown key b: "),
        ],
    )
    def test_every_problem_is_named(self, tmp_path: Path, content: str, message: str) -> None:
        """Every problem is one line after the file's name, with its position in a list."""
        path = tmp_path / "c.yaml"
        path.write_text(content)
        with pytest.raises(ConfigError) as caught:
            read_config(Outer, path, {})
        assert str(caught.value).startswith(f"{path}: {message}")

    def test_a_problem_of_an_option_has_its_name(self, tmp_path: Path) -> None:
        """The error of an option has its name and its shortened value.

        That of a file has its key.
        """
        with pytest.raises(ConfigError, match=r"^--first big: give a whole number$"):
            read_config(Outer, None, {"items": [{}], "items.0.size": "big"}, FLAGS)
        path = tmp_path / "c.yaml"
        path.write_text("items: [{size: big}]")
        with pytest.raises(ConfigError, match=r"c\.yaml: items\.0\.size=big: give a whole number$"):
            read_config(Outer, path, {}, FLAGS)
        with pytest.raises(ConfigError) as caught:
            read_config(Inner, None, {"size": "word " * 1000})
        assert len(str(caught.value)) < 100


FLAGS = {"items.0.size": "--first"}


class TestReadYaml:
    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("a: {b: [1, two]}\nc: é\n", {"a": {"b": [1, "two"]}, "c": "é"}),
            *((nothing, {}) for nothing in ("", "\n", "# nothing\n", "null", "---\n")),
            (
                "a: &a {x: 1}\nb: {<<: *a, x: 3}\nc: {<<: *a, y: 4}\n",
                {"a": {"x": 1}, "b": {"x": 3}, "c": {"x": 1, "y": 4}},
            ),
        ],
    )
    def test_a_mapping(self, tmp_path: Path, content: str, expected: dict[str, Any]) -> None:
        """An empty file is an empty mapping, and keys that ``<<`` merges can be overridden."""
        path = tmp_path / "c.yaml"
        path.write_text(content, "utf-8")
        assert read_yaml(path) == expected

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"- 1\n- 2\n", "a mapping of keys to values"),
            (b"only words", "a mapping of keys to values"),
            (b"a: [1", "not valid YAML"),
            (b"a: b: c", "not valid YAML"),
            (b"\xff\xfe\xfd", "not valid YAML"),
            (b"a: 2024-13-01", "not valid YAML"),
            (b"a: !!python/object/apply:os.getcwd []", "not valid YAML"),
            (b"a: 1\n---\nb: 2\n", "not valid YAML"),
            (b"a: 1\nb: 2\na: 3\n", "not valid YAML: key 'a' is repeated.*line 1"),
            (b"a: {b: 1, b: 1}\n", "key 'b' is repeated"),
            (b"a: " + b"[" * 100_000, "not valid YAML: .*recursion depth"),
            (b"? [a]\n: b\n", "not valid YAML"),
            (b"a: " + b"9" * 5000, "not valid YAML"),
        ],
    )
    def test_what_is_no_config(self, tmp_path: Path, content: bytes, message: str) -> None:
        """The error is one line with the file's name and the reason. No object is ever built."""
        path = tmp_path / "c.yaml"
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=message) as caught:
            read_yaml(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_no_file(self, tmp_path: Path) -> None:
        """The error has the name of the file. A folder is no file."""
        with pytest.raises(ConfigError, match=r"cannot read config file .*missing\.yaml: No such"):
            read_yaml(tmp_path / "missing.yaml")
        with pytest.raises(ConfigError, match=r"config file .*: Is a directory: .*--source"):
            read_yaml(tmp_path)

    def test_a_file_that_may_not_be_read(self) -> None:
        """An unreadable file is distinguished from a missing one."""
        with reachable_folder() as folder:
            path = folder / "c.yaml"
            path.write_text("a: 1")
            path.chmod(0)
            with unprivileged(), pytest.raises(ConfigError, match="Permission denied"):
                read_yaml(path)


class TestSettings:
    def test_values_are_yaml(self) -> None:
        """Values are numbers, lists, mappings and empty values as in YAML.

        The first ``=`` separates.
        """
        pairs = ["a=1", "b.c=[x, 2]", "d=", "e=k=v", "f={g: true}", "a=2", "h= "]
        assert parse_settings(pairs) == {
            "a": 2,
            "b.c": ["x", 2],
            "d": None,
            "e": "k=v",
            "f": {"g": True},
            "h": " ",
        }

    @pytest.mark.parametrize("pair", ["", "a", "=1", "a: 1"])
    def test_other_texts_are_refused(self, pair: str) -> None:
        """The error shows how a pair is written."""
        with pytest.raises(ConfigError, match="write KEY=VALUE"):
            parse_settings([pair])

    @pytest.mark.parametrize("value", ["[1", "{a: ", "'", "!!python/name:os.getcwd", "2024-13-01"])
    def test_broken_yaml_is_refused(self, value: str) -> None:
        """The error shows the pair that has the mistake."""
        with pytest.raises(ConfigError, match=r"--set a=.*: not valid YAML"):
            parse_settings([f"a={value}"])


class TestSetDotted:
    @given(nested, dotted, json_values)
    def test_the_value_stands_where_it_was_told(
        self, values: dict[str, Any], path: str, value: Any
    ) -> None:
        """The value replaces any old value, without change of other keys or of shared mappings."""
        original = dict(values)
        before = copy.deepcopy(original)
        set_dotted(values, path, value)
        assert at(values, path) == value
        assert original == before
        first = path.partition(".")[0]
        values.pop(first)
        before.pop(first, None)
        assert values == before

    def test_places_in_lists(self) -> None:
        """Positions in a list are numbers, and the original list does not change."""
        items = [{"x": 1}, {"x": 2}]
        values: dict[str, Any] = {"items": items}
        set_dotted(values, "items.1.x", 3)
        assert values == {"items": [{"x": 1}, {"x": 3}]}
        assert items[1] == {"x": 2}
        for path in ("items.2.x", "items.x", "items.-1"):
            with pytest.raises(ConfigError, match=f"{path}: the list has 2 entries"):
                set_dotted(values, path, 3)
