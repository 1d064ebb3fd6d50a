"""The settings of data, and the names of their forms."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from iobench.data.settings import (
    BucketSettings,
    DataSettings,
    check_name,
    side_of,
    split_name,
)

FORMS = ("photos", "files", "shards", "originals", "pixels")
stores = st.sampled_from(["disk", "s3"])


@given(st.sampled_from(FORMS), st.integers(1, 128), st.integers(32, 16_384), stores)
def test_names(form: str, size: int, side: int, store: str) -> None:
    """Each form has a name for each storage, with a shard size in MB or a side in pixels."""
    is_remote = store == "s3"
    assert split_name(check_name(f"{form}@{store}")) == (form, None, is_remote)
    for kind in ("shards", "originals"):
        sized = check_name(f"{kind}-{size}MB@{store}")
        assert split_name(sized) == (kind, size * 1_000_000, is_remote)
        assert side_of(sized) is None
    name = check_name(f"shards-{side}px@{store}")
    assert (*split_name(name), side_of(name)) == ("shards", None, is_remote, side)


@pytest.mark.parametrize(
    "name",
    [
        *("shards-31px@disk", "shards-16385px@s3", "files-64px@disk", "originals-64px@disk"),
        *("", "shards", "@disk", "shards@", "shards@gcs", "Shards@disk", "shards@disk "),
        *("pixels-4MB@disk", "files-4MB@disk", "photos-4MB@s3", "shards-4@disk"),
        *("shards-4GB@disk", "shards-4.5MB@s3", "shards-0MB@disk", "shards-129MB@disk"),
        *("shards--4MB@disk", "shards@disk\n", None, 3),
    ],
)
def test_a_wrong_name_is_refused(name: Any) -> None:
    """The message repeats a wrong name."""
    with pytest.raises(ValueError, match=r"shards") as caught:
        check_name(name)
    assert repr(name) in str(caught.value)


@given(st.text())
def test_no_text_passes_by_mistake(name: str) -> None:
    """Every accepted name has a known form."""
    try:
        check_name(name)
    except ValueError:
        return
    assert split_name(name)[0] in FORMS


@pytest.mark.parametrize(
    "wrong",
    [
        {"images": 9},
        {"classes": 1},
        {"size": 31},
        {"quality": 0},
        {"shard_size": "999kB"},
        {"shard_size": "129MB"},
        {"imagse": 40},
        {"bucket": {"uri": "bucket/prefix"}},
        {"bucket": {"uri": "s3://"}},
        {"bucket": {"uri": "gs://bucket"}},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    """They are refused before anything is drawn."""
    with pytest.raises(ValidationError):
        DataSettings.model_validate(wrong)


@pytest.mark.parametrize("uri", ["local", "s3://bucket", "s3://bucket/", "s3://bucket/a/b"])
def test_buckets(uri: str) -> None:
    """A bucket is an S3 address with or without a prefix, or a local server."""
    arguments = {"bucket": {"uri": uri}, "shard_size": "4MB"}
    settings = DataSettings.model_validate(arguments)
    assert (settings.bucket.uri, settings.shard_size) == (uri, 4_000_000)


@pytest.mark.parametrize("key", ["folder", "source", "shards"])
def test_a_home_of_nobody(key: str) -> None:
    """The home of an unknown user is a wrong config."""
    with pytest.raises(ValidationError, match="no such user here"):
        DataSettings.model_validate({key: "~nobody-of-that-name/x"})


@pytest.mark.parametrize(
    "address", ["s3://me:hunter2@bucket/x", "s3://bucket/x?X-Amz-Signature=hunter2"]
)
@pytest.mark.parametrize("key", ["shards", "source"])
def test_credentials_in_an_address_are_refused_and_not_repeated(key: str, address: str) -> None:
    """A config is stored with each run, so it must not hold credentials."""
    for build in (
        lambda: DataSettings.model_validate({key: address}),
        lambda: BucketSettings(uri=address),
    ):
        with pytest.raises(ValidationError, match=r"must not carry a") as caught:
            build()
        assert "hunter2" not in str(caught.value)
