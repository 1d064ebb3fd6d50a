"""Tests of dataprep.labelling.devkit."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.errors import ConfigError
from dataprep.labelling.devkit import GROUND_TRUTH, META, is_tarball, parse_meta, unpack_devkit
from tests.dataprep.labelling.devkits import meta_mat, tarball


def test_meta_has_the_classes_without_children() -> None:
    """IDs, synsets and words of the leaves; what stands above them in WordNet is no class."""
    meta = parse_meta(meta_mat(), "meta.mat")
    assert meta.synset_of_id == {1: "n02119789", 2: "n02100735", 3: "n02110185"}
    assert meta.texts["n02119789"] == "kit fox, Vulpes macrotis"


def test_the_tarball() -> None:
    """Both files come out of the devkit as they are packed."""
    data = tarball({f"ILSVRC2012_devkit_t12/data/{META}": b"m", f"x/{GROUND_TRUTH}": b"g"})
    assert is_tarball(data)
    assert unpack_devkit(data, "devkit") == {META: b"m", GROUND_TRUTH: b"g"}


def test_a_tarball_without_them() -> None:
    """What is missing is named."""
    with pytest.raises(ConfigError, match=r"devkit: not the devkit: meta\.mat is not in it"):
        unpack_devkit(tarball({f"data/{GROUND_TRUTH}": b"g"}), "devkit")


def test_a_link_is_no_file() -> None:
    """A link of the right name is not followed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        link = tarfile.TarInfo(f"data/{META}")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(ConfigError, match="is not in it"):
        unpack_devkit(buffer.getvalue(), "devkit")


@settings(max_examples=50)
@given(data=st.binary(max_size=300))
def test_other_bytes(data: bytes) -> None:
    """Bytes that are neither raise a ConfigError, nothing else."""
    for mangled in (data, meta_mat()[:128] + data, meta_mat()[: len(data) * 3]):
        with pytest.raises(ConfigError, match=r"not the devkit's meta\.mat"):
            parse_meta(mangled, "meta.mat")
    for mangled in (data, b"\x1f\x8b" + data, tarball({"a": data})[:-9]):
        with pytest.raises(ConfigError):
            unpack_devkit(mangled, "devkit")
