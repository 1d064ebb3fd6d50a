"""A broken image is written, failed or skipped with a reason, and none crashes the job."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import dataprep
from dataprep.drawn import draw_tree
from dataprep.errors import ImageError
from dataprep.image import ImagePolicy, convert
from tests import commandline
from tests.strategies import cut, mutated

pytestmark = [pytest.mark.fuzz, pytest.mark.process, pytest.mark.slow]

CONTAINERS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "AVIF")
FLIPS = 6


@cache
def encoded() -> dict[str, bytes]:
    """One small picture in every container and in several kinds of JPEG, by file name."""
    pixels = bytes(Random(3).randrange(256) for _ in range(3 * 40 * 30))
    image = Image.frombytes("RGB", (40, 30), pixels)
    data_of_name = {}
    for name in CONTAINERS:
        sink = io.BytesIO()
        image.save(sink, name)
        data_of_name[name.lower()] = sink.getvalue()
    for name, mode, options in (
        ("grey", "L", {}),
        ("cmyk", "CMYK", {}),
        ("progressive", "RGB", {"progressive": True}),
        ("sampled", "RGB", {"subsampling": 0, "quality": 30}),
    ):
        sink = io.BytesIO()
        image.convert(mode).save(sink, "JPEG", **options)
        data_of_name[name] = sink.getvalue()
    return data_of_name


def damaged() -> Iterator[tuple[str, bytes]]:
    """Each picture cut, with flipped bytes, wrong lengths, huge sizes and reordered parts."""
    chance = Random(20)
    for name, data in encoded().items():
        yield f"{name}-sound", data
        for share in (0, 10, 50, 90, 99):
            yield f"{name}-cut-{share}", data[: len(data) * share // 100]
        for number in range(FLIPS):
            flipped = bytearray(data)
            for _ in range(number + 1):
                flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            yield f"{name}-flipped-{number}", bytes(flipped)
        for number in range(FLIPS):
            at = chance.randrange(len(data) // 2)
            yield f"{name}-length-{number}", data[:at] + b"\xff\xff\xff\x7f" + data[at + 4 :]
        middle = len(data) // 2
        yield f"{name}-swapped", data[middle:] + data[:middle]
        yield f"{name}-doubled", data + data
        yield f"{name}-trailing", data + bytes(1000)
    frame = encoded()["jpeg"].index(b"\xff\xc0")
    for side in (0, 1, 65_500, 65_535):
        huge = bytearray(encoded()["jpeg"])
        huge[frame + 5 : frame + 9] = side.to_bytes(2, "big") * 2
        yield f"jpeg-of-{side}", bytes(huge)


def test_a_folder_of_them(tmp_path: Path) -> None:
    """A job accounts for every file, stores only what decodes, and shows no traceback."""
    drawn = draw_tree(tmp_path / "photos", images=8, classes=2, seed=4, defects=True)
    source, output = drawn.root, tmp_path / "out"
    hostile = dict(damaged())
    for name, data in hostile.items():
        path = source / "n99999999" / f"{name}.JPEG"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    job = ("shard", "--source", source, "--output", output, "--size", "32", "--workers", "2")
    refused = commandline.dataprep(*job)
    assert refused.code == 1
    done = commandline.dataprep(*job, "--max-failures", "100%")
    assert done.code == 0, done.err
    assert "Traceback" not in refused.err + done.err
    table = dataprep.open(str(output)).samples
    files = [path for path in source.rglob("*") if path.is_file() or path.is_symlink()]
    assert len(table) == len(files)
    assert table.source.is_unique
    not_written = table[table.status != "written"]
    assert (not_written.reason.str.len() > 0).all()
    written = set(table[table.status == "written"].source)
    assert {f"n99999999/{name}.JPEG" for name in hostile if name.endswith("-sound")} <= written
    assert commandline.dataprep("verify", output, "--deep").code == 0


hostile_bytes = st.sampled_from(sorted(encoded().values())).flatmap(
    lambda data: mutated(st.just(data)) | cut(st.just(data))
)


@settings(max_examples=1000)
@given(
    data=hostile_bytes,
    policy=st.sampled_from(
        [
            ImagePolicy(size=16),
            ImagePolicy(check="decode"),
            ImagePolicy(size=16, truncated="keep", icc="srgb", orientation="apply"),
            ImagePolicy(mode="crop", size=24, encoding="png", alpha="keep"),
        ]
    ),
)
def test_what_is_stored_decodes(data: bytes, policy: ImagePolicy) -> None:
    """Any bytes give an image of the reported size, or an ImageError."""
    try:
        converted_image = convert(data, policy)
    except ImageError:
        return
    with Image.open(io.BytesIO(converted_image.data)) as image:
        image.load()
        assert image.size == (converted_image.width, converted_image.height)
