"""A cluster in lines."""

from __future__ import annotations

from iobench.scale import scale
from iobench.scale.words import lines
from tests.iobench.scale.made import disk, loader, run, store

ASKED = {"devices": 256, "images_per_s": 171_000.0, "devices_per_host": 8}


def test_the_first_lines_say_what_is_needed() -> None:
    """Rates, hosts for each way, streams."""
    said = list(lines(scale(run(loader(4_000), disk(1_000), store(500)), ASKED)))
    assert said[:4] == [
        "256 devices consume 171,000 images/s (668 each): 8.55 GB/s as stored, 50.0 kB a sample.",
        "Data on a disk of each host: 43 hosts. The 32 that hold 8 devices each are not enough: "
        "what breaks first, the processors of a host, gives 74.9% of what they consume.",
        "Data on a store: 43 hosts. The 32 that hold 8 devices each are not enough: what breaks "
        "first, the processors of a host, gives 74.9% of what they consume.",
        "At the store: 171 requests at a time of 50 MB/s each, 855 GETs/s of 10 MB.",
    ]


def test_enough_is_said_with_what_would_be_short() -> None:
    """Of more devices a host."""
    said = list(lines(scale(run(loader(10_000), disk(1_000)), ASKED)))
    assert said[1] == (
        "Data on a disk of each host: 32 hosts, with 8 devices each. Of more devices a host the "
        "processors would be short first, from 15 on."
    )


def test_what_cannot_be_told_names_what_is_missing() -> None:
    """And ends there."""
    assert list(lines(scale(run(), ASKED))) == [
        "256 devices: not to be told.",
        "unknown:",
        "  - what a loader gives: measure one that decodes under loaders",
    ]
