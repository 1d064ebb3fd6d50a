"""Tests of dataprep.sources.listed_paths."""

from __future__ import annotations

import os
import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import SourceError
from dataprep.sources.listed_paths import LEAVES, PathRule, split_name


@pytest.mark.parametrize(
    ("root", "path", "name"),
    [
        ("/data", "cats/1.jpg", "cats/1.jpg"),
        ("/data", "./cats//1.jpg", "cats/1.jpg"),
        ("/data", "dogs/../cats/1.jpg", "cats/1.jpg"),
        ("/data", "/data/cats/1.jpg", "cats/1.jpg"),
        ("/data/", "//data/cats/1.jpg", "cats/1.jpg"),
        ("/data", "file:///data/cats/1.jpg", "cats/1.jpg"),
        ("/data", "/database/1.jpg", "/database/1.jpg"),
        ("/data", "/data/../other/1.jpg", "/other/1.jpg"),
        ("/data", "s3://b/cats/1.jpg", "s3://b/cats/1.jpg"),
        ("s3://b/p", "cats/1.jpg", "cats/1.jpg"),
        ("s3://b/p", "s3://b/p/cats/1.jpg", "cats/1.jpg"),
        ("s3://b/p", "s3://b/pp/1.jpg", "s3://b/pp/1.jpg"),
        ("s3://b/p", "s3://b/p/a//../1.jpg", "a//../1.jpg"),
        ("s3://b/p", "/data/1.jpg", "/data/1.jpg"),
        ("/", "/data/1.jpg", "data/1.jpg"),
    ],
)
def test_one_file_has_one_name(root: str, path: str, name: str) -> None:
    """What lies below the root is relative to it, however it was written; keys on S3 are kept."""
    assert PathRule(root)(path) == (name, "")


def test_a_relative_root_knows_its_absolute_paths(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A root given relatively is the same folder as its absolute path."""
    monkeypatch.chdir(str(tmp_path))
    assert PathRule("photos")(f"{tmp_path}/photos/1.jpg").name == "1.jpg"


@pytest.mark.parametrize("path", ["../1.jpg", "a/../../1.jpg", "..", "../data/1.jpg"])
def test_a_relative_path_may_not_leave_the_root(path: str) -> None:
    """It is refused under the name that it was listed by."""
    assert PathRule("/data")(path) == (path, LEAVES)


@pytest.mark.parametrize("path", ["s3://", "s3://bucket", "s3:///key", ".", "a\0b"])
def test_what_names_no_file_is_refused(path: str) -> None:
    """An address without bucket or key, a folder, a zero byte: each has its reason."""
    assert PathRule("/data")(path).problem


@pytest.mark.parametrize("scheme", ["http", "https", "HTTPS"])
def test_the_web_is_out_of_scope(scheme: str) -> None:
    """An address on the web is refused with what to do instead."""
    with pytest.raises(SourceError, match="web are not read: copy the images to a disk or to S3"):
        PathRule("/data")(f"{scheme}://host/1.jpg")


@pytest.mark.parametrize(
    "address",
    [
        "s3://jo:hunter2@bucket/1.jpg",
        "s3://bucket/1.jpg?X-Amz-Signature=hunter2",
        "https://host/1.jpg?sig=hunter2",
    ],
)
def test_credentials_are_refused_and_not_told(address: str) -> None:
    """A name stands in the table of samples, and in what is said of it."""
    with pytest.raises(SourceError) as caught:
        PathRule("/data")(address)
    assert "***" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["img.jpg?key=abc", "a?sig=1&token=2.jpg", "me@host/1.jpg"])
def test_keys_of_crawled_images_are_keys(key: str) -> None:
    """On S3 a question mark begins nothing."""
    assert PathRule("/data")(f"s3://bucket/{key}").name == f"s3://bucket/{key}"


def test_another_scheme_is_refused() -> None:
    """Nothing else is guessed at."""
    with pytest.raises(SourceError, match="paths and s3:// addresses"):
        PathRule("/data")("gs://bucket/1.jpg")


@given(path=st.text(st.sampled_from("ab./"), min_size=1, max_size=12))
def test_names_are_read_from_where_the_path_points(path: str) -> None:
    """A name and its root lead to the file that the path means, and never above the root."""
    place = PathRule("/root/r")(path)
    meant = posixpath.normpath(posixpath.join("/root/r", path)).replace("//", "/")
    if place.problem:
        assert not meant.startswith("/root/r/") or path.endswith(("/", ".")) or ".." in path
        return
    root, key = split_name(place.name)
    assert os.path.join(root or "/root/r", key) == meant  # noqa: PTH118
    assert ".." not in key.split("/")
